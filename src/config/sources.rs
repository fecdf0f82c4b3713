//! Where settings come from: the defaults, a TOML file, the environment, the command line, each
//! overruling those before it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::setting::{ENVIRONMENT_PREFIX, Preset, Setting};
use super::{Config, ConfigError, SECTIONS};
use crate::listing::near::edits;

/// Names that differ in more places are not what was meant.
const SLIPS: usize = 3;

/// Where settings come from. Read anew, they say what has changed.
#[derive(Clone, Default)]
pub struct Sources {
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
    flags: Vec<(String, String)>,
}

/// Settings that were read, and what each of them was said to be.
#[derive(Clone)]
pub struct Settings {
    /// The settings.
    pub config: Config,
    values: Values,
}

/// Values by `section.key`.
type Values = BTreeMap<String, Value>;

impl Sources {
    /// A file, if one is named; then variables, of which those count that begin with
    /// [`ENVIRONMENT_PREFIX`]; then `section.key` and its value from the command line.
    #[must_use]
    pub fn new(
        file: Option<PathBuf>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        Self { file, environment: environment.into_iter().collect(), flags: flags.into_iter().collect() }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads all of them, and checks every bound.
    ///
    /// # Errors
    /// [`ConfigError`] names every setting that is wrong, and its rule.
    pub fn read(&self) -> Result<Settings, ConfigError> {
        let mut faults = Vec::new();
        let mut values = defaults();
        if let Some(path) = &self.file {
            let table = parse(path)?;
            faults
                .extend(take_file(&mut values, table).into_iter().map(|fault| format!("{}: {fault}", path.display())));
        }
        for (name, value) in &self.environment {
            let Some(rest) = name.strip_prefix(ENVIRONMENT_PREFIX).filter(|rest| !is_of_kubernetes(rest)) else {
                continue;
            };
            let setting = rest.to_ascii_lowercase().replace("__", ".");
            take_text(&mut values, &setting, value).unwrap_or_else(|fault| faults.push(format!("{name}: {fault}")));
        }
        for (name, value) in &self.flags {
            take_text(&mut values, name, value).unwrap_or_else(|fault| faults.push(format!("--set {name}: {fault}")));
        }
        // One that is there and wrong is not missing as well.
        let there = |name: &str| values.contains_key(name) || faults.iter().any(|fault| fault.contains(name));
        let missing: Vec<_> =
            all().filter(|setting| setting.default == Preset::Required && !there(&setting.name())).collect();
        faults.extend(
            missing.into_iter().map(|setting| missing_fault(&setting.name(), &setting.variable(), self.file())),
        );
        if !faults.is_empty() {
            return Err(ConfigError::Invalid(faults.join("\n")));
        }
        let config = Config::of(nested(&values))?;
        Ok(Settings { config, values })
    }
}

impl Settings {
    /// The settings that are something else in `other`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static Setting> {
        all().filter(|setting| self.values.get(&setting.name()) != other.values.get(&setting.name())).collect()
    }
}

/// What to do about a setting that nobody made.
pub(super) fn missing_fault(name: &str, variable: &str, file: Option<&Path>) -> String {
    let place = file.map_or_else(
        || "no settings file was named: write one and name it by --config".to_owned(),
        |path| format!("set it in {}", path.display()),
    );
    format!("{name} is missing; {place}, or set {variable}")
}

fn all() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}

fn defaults() -> Values {
    let preset = |setting: &'static Setting| match setting.default {
        Preset::Is(text) => Some((setting.name(), setting.read(text).expect("a default is within its own bounds"))),
        Preset::Required | Preset::Unset => None,
    };
    all().filter_map(preset).collect()
}

/// Reads a file of settings. What is wrong is told by its place and not by its text, which may hold a
/// password.
fn parse(path: &Path) -> Result<Table, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let says = error.message();
        ConfigError::Invalid(format!("{}: line {line} is no TOML: {says}", path.display()))
    })
}

/// Takes what a file says; answers what is wrong with it.
fn take_file(values: &mut Values, table: Table) -> Vec<String> {
    let mut faults = Vec::new();
    let mut take = |name: String, value: Value| match named(&name).and_then(|setting| setting.check(&value)) {
        Ok(()) => drop(values.insert(name, value)),
        Err(fault) => faults.push(fault),
    };
    let mut wrong = Vec::new();
    for (name, value) in table {
        let is_section = !name.is_empty() && SECTIONS.iter().any(|section| section.name == name);
        match value {
            Value::Table(inner) if is_section => {
                inner.into_iter().for_each(|(key, value)| take(format!("{name}.{key}"), value));
            }
            _ if is_section => wrong.push(format!("{name} is a section; write [{name}] and its settings below it")),
            value => take(name, value),
        }
    }
    faults.extend(wrong);
    faults
}

/// Kubernetes tells every container of a namespace about a service named artifactd in variables such
/// as `ARTIFACTD_SERVICE_HOST` and `ARTIFACTD_PORT_8080_TCP`: nobody set these.
fn is_of_kubernetes(rest: &str) -> bool {
    ["PORT", "SERVICE_HOST", "SERVICE_PORT"].iter().any(|name| {
        rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_') && !rest.starts_with("__"))
    })
}

fn take_text(values: &mut Values, name: &str, text: &str) -> Result<(), String> {
    let value = named(name)?.read(text)?;
    values.insert(name.to_owned(), value);
    Ok(())
}

fn named(name: &str) -> Result<&'static Setting, String> {
    all().find(|setting| setting.name() == name).ok_or_else(|| unknown(name))
}

/// A setting that does not exist, and the one that may have been meant.
fn unknown(name: &str) -> String {
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    // A setting may also stand in the wrong section.
    let distance = |setting: &Setting| {
        let key = name.rsplit('.').next().unwrap_or(name);
        edits(&chars(name), &chars(&setting.name())).min(edits(&chars(key), &chars(setting.key)) + 1)
    };
    let meant = all().map(|setting| (distance(setting), setting.name())).min();
    let advice = match meant {
        Some((distance, near)) if distance <= SLIPS => format!("did you mean {near}?"),
        _ => "`artifactd config docs` lists all".to_owned(),
    };
    format!("{name} is no setting; {advice}")
}

/// The values as a file would hold them.
fn nested(values: &Values) -> Table {
    let mut table = Table::new();
    for section in SECTIONS.iter().filter(|section| !section.name.is_empty()) {
        table.insert(section.name.to_owned(), Value::Table(Table::new()));
    }
    for (name, value) in values {
        match name.split_once('.') {
            None => drop(table.insert(name.clone(), value.clone())),
            Some((section, key)) => {
                if let Some(Value::Table(inner)) = table.get_mut(section) {
                    inner.insert(key.to_owned(), value.clone());
                }
            }
        }
    }
    table
}
