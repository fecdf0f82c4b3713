//! The key file's text, read strictly: whatever is unknown, doubled or missing is an error that
//! names its entry, and one bad entry spoils the file. A service that guessed at identities would
//! hand files to strangers.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::Deserialize;

use super::KeyHash;
use crate::access::{Capabilities, Capability, KeyKind, Preset};
use crate::artifact::{Project, ProjectId, WorkspaceId};

/// The longest key id, in bytes.
pub const MAX_KEY_ID_BYTES: usize = 64;

/// Why a text is no key file. The text names the entry, and never a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKeys(pub(super) String);

/// One key of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its public name, in logs and the audit: `[A-Za-z0-9._-]{1,64}`.
    pub key_id: String,
    /// The SHA-256 of the key itself.
    pub sha256: KeyHash,
    /// When it was made.
    pub created: Timestamp,
    /// From when on it is refused.
    pub expires: Option<Timestamp>,
    /// Refused for good.
    pub disabled: bool,
    /// Whom it speaks for.
    pub scope: Scope,
}

/// Whom a key speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One project.
    Project(Grant),
    /// The projects of a person, at least one, no project twice.
    Personal(Vec<Grant>),
    /// The account books of every project.
    Operator,
}

/// What a key may do in one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The project and its workspace.
    pub project: Project,
    /// What may be done there.
    pub access: Access,
}

/// A set of capabilities as the file writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// A named set.
    Preset(Preset),
    /// A list, not empty.
    List(Capabilities),
}

impl Access {
    /// The capabilities meant.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        match self {
            Self::Preset(preset) => preset.capabilities(),
            Self::List(set) => *set,
        }
    }
}

impl Key {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> KeyKind {
        match self.scope {
            Scope::Project(_) => KeyKind::Project,
            Scope::Personal(_) => KeyKind::Personal,
            Scope::Operator => KeyKind::Operator,
        }
    }

    /// Its projects; none for an operator.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        match &self.scope {
            Scope::Project(grant) => std::slice::from_ref(grant),
            Scope::Personal(grants) => grants,
            Scope::Operator => &[],
        }
    }
}

/// Whether `text` can be a key id.
#[must_use]
pub fn is_key_id(text: &str) -> bool {
    (1..=MAX_KEY_ID_BYTES).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    keys: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    key_id: String,
    kind: KeyKind,
    sha256: String,
    created: toml::Value,
    expires: Option<toml::Value>,
    #[serde(default)]
    disabled: bool,
    workspace: Option<WorkspaceId>,
    project: Option<ProjectId>,
    preset: Option<Preset>,
    capabilities: Option<Vec<Capability>>,
    grants: Option<Vec<RawGrant>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGrant {
    workspace: WorkspaceId,
    project: ProjectId,
    preset: Option<Preset>,
    capabilities: Option<Vec<Capability>>,
}

/// Reads a key file. A text without keys is an empty list.
///
/// # Errors
/// [`InvalidKeys`]: a fault of syntax, an unknown field, a missing or surplus part, two keys of one
/// id or hash, or one project under two workspaces.
pub fn parse(text: &str) -> Result<Vec<Key>, InvalidKeys> {
    let file: RawFile = toml::from_str(text).map_err(|e| syntax(text, &e))?;
    let mut keys = Vec::with_capacity(file.keys.len());
    for (index, table) in file.keys.into_iter().enumerate() {
        let named = match table.get("key_id").and_then(toml::Value::as_str) {
            Some(id) if is_key_id(id) => format!("key {} ({id})", index + 1),
            _ => format!("key {}", index + 1),
        };
        keys.push(key(table).map_err(|rule| InvalidKeys(format!("{named}: {rule}")))?);
    }
    check_whole(&keys)?;
    Ok(keys)
}

/// Line and message only: the parser's own text quotes the line, which might hold a key by mistake.
fn syntax(text: &str, error: &toml::de::Error) -> InvalidKeys {
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    InvalidKeys(match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_owned(),
    })
}

fn key(table: toml::Table) -> Result<Key, String> {
    let raw: RawKey = table.try_into().map_err(|e: toml::de::Error| e.message().to_owned())?;
    if !is_key_id(&raw.key_id) {
        return Err("key_id is 1 to 64 of A-Z a-z 0-9 . _ -".into());
    }
    let sha256 = KeyHash::parse(&raw.sha256).ok_or("sha256 is 64 lower-case hex digits")?;
    let created = time("created", &raw.created)?;
    let expires = raw.expires.as_ref().map(|value| time("expires", value)).transpose()?;
    let surplus = |present: &[(&str, bool)]| match present.iter().find(|(_, present)| *present) {
        Some((field, _)) => Err(format!("a key of this kind has no {field}")),
        None => Ok(()),
    };
    let scope = match raw.kind {
        KeyKind::Project => {
            surplus(&[("grants", raw.grants.is_some())])?;
            let workspace = raw.workspace.ok_or("workspace is missing")?;
            let project = raw.project.ok_or("project is missing")?;
            Scope::Project(grant(workspace, project, raw.preset, raw.capabilities)?)
        }
        KeyKind::Personal => {
            surplus(&single_project_fields(&raw))?;
            let raw = raw.grants.filter(|grants| !grants.is_empty()).ok_or("grants is missing or empty")?;
            let grants: Vec<_> = raw
                .into_iter()
                .map(|raw| grant(raw.workspace, raw.project, raw.preset, raw.capabilities))
                .collect::<Result<_, _>>()?;
            let mut seen = HashSet::new();
            if let Some(double) = grants.iter().find(|grant| !seen.insert(&grant.project)) {
                return Err(format!("grants names the project {} twice", double.project.id));
            }
            Scope::Personal(grants)
        }
        KeyKind::Operator => {
            surplus(&single_project_fields(&raw))?;
            surplus(&[("grants", raw.grants.is_some())])?;
            Scope::Operator
        }
    };
    Ok(Key { key_id: raw.key_id, sha256, created, expires, disabled: raw.disabled, scope })
}

fn single_project_fields(raw: &RawKey) -> [(&'static str, bool); 4] {
    [
        ("workspace", raw.workspace.is_some()),
        ("project", raw.project.is_some()),
        ("preset", raw.preset.is_some()),
        ("capabilities", raw.capabilities.is_some()),
    ]
}

fn grant(
    workspace: WorkspaceId,
    id: ProjectId,
    preset: Option<Preset>,
    capabilities: Option<Vec<Capability>>,
) -> Result<Grant, String> {
    let access = match (preset, capabilities) {
        (Some(preset), None) => Access::Preset(preset),
        (None, Some(list)) if !list.is_empty() => {
            let set: Capabilities = list.iter().copied().collect();
            if set.count() != list.len() {
                return Err("capabilities names one twice".into());
            }
            Access::List(set)
        }
        _ => return Err("exactly one of preset and capabilities (not empty) is needed".into()),
    };
    Ok(Grant { project: Project { workspace, id }, access })
}

/// A time as TOML's own type or as a string, with an offset in either case.
fn time(field: &str, value: &toml::Value) -> Result<Timestamp, String> {
    let text = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Datetime(time) => time.to_string(),
        _ => String::new(),
    };
    text.parse().map_err(|_| format!("{field} is a time with an offset, such as 2026-11-29T12:00:00Z"))
}

fn check_whole(keys: &[Key]) -> Result<(), InvalidKeys> {
    let (mut ids, mut hashes) = (HashSet::new(), HashMap::new());
    let mut workspaces: BTreeMap<&ProjectId, &WorkspaceId> = BTreeMap::new();
    for key in keys {
        let id = &key.key_id;
        if !ids.insert(id) {
            return Err(InvalidKeys(format!("the key_id {id} occurs twice")));
        }
        if let Some(other) = hashes.insert(key.sha256, id) {
            return Err(InvalidKeys(format!("the keys {other} and {id} have the same sha256")));
        }
        // Project ids are unique across workspaces: the account of a project is named by its id.
        for Grant { project, .. } in key.grants() {
            let first = workspaces.entry(&project.id).or_insert(&project.workspace);
            if **first != project.workspace {
                let (p, a, b) = (&project.id, *first, &project.workspace);
                return Err(InvalidKeys(format!("{id}: the project {p} is in the workspaces {a} and {b}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(digit: char) -> String {
        std::iter::repeat_n(digit, 64).collect()
    }

    /// An entry with the fields that every kind has.
    fn entry(id: &str, kind: &str, digit: char, rest: &str) -> String {
        let sha256 = hash(digit);
        format!("[[keys]]\nkey_id='{id}'\nkind='{kind}'\nsha256='{sha256}'\ncreated=2026-11-29T12:00:00Z\n{rest}\n")
    }

    const DEMO: &str = "workspace='default'\nproject='demo'\npreset='read-only'";

    #[test]
    fn a_file_of_each_kind() {
        let text = entry("a", "project", '1', &format!("{DEMO}\nexpires='2027-01-01T00:00:00+01:00'"))
            + &entry("b", "personal", '2', "grants=[{workspace='default',project='demo',capabilities=['jobs.read']}]")
            + &entry("c", "operator", '3', "disabled=true");
        let keys = parse(&text).expect("a key file");
        let kinds: Vec<_> = keys.iter().map(|k| (k.key_id.as_str(), k.kind(), k.disabled)).collect();
        assert_eq!(
            kinds,
            [("a", KeyKind::Project, false), ("b", KeyKind::Personal, false), ("c", KeyKind::Operator, true)]
        );
        assert_eq!(keys[0].expires.map(|t| t.to_string()).as_deref(), Some("2026-12-31T23:00:00Z"));
        assert_eq!(keys[0].grants()[0].access, Access::Preset(Preset::ReadOnly));
        assert_eq!(keys[1].grants()[0].access.capabilities(), [Capability::JobsRead].into());
        assert_eq!(keys[2].grants(), []);
    }

    #[test]
    fn an_empty_text_has_no_keys() {
        assert_eq!(parse("# none yet\n"), Ok(vec![]));
    }

    #[test]
    fn faults_name_their_entry() {
        let good = entry("a", "project", '1', DEMO);
        let personal = |grants: &str| entry("b", "personal", '2', grants);
        for (text, say) in [
            ("keys = 3".into(), "line 1"),
            ("x = 1".into(), "unknown field `x`"),
            (format!("{good}[[keys]]\nkey_id = \"b"), "line 10"),
            (good.replace("project='demo'", "project='demo'\ncolour='red'"), "key 1 (a): unknown field `colour`"),
            (good.replace("key_id='a'", ""), "key 1: missing field `key_id`"),
            (good.replace("key_id='a'", "key_id='a b'"), "key 1: key_id is"),
            (good.replace("kind='project'", ""), "key 1 (a): missing field `kind`"),
            (good.replace("kind='project'", "kind='root'"), "key 1 (a): unknown variant `root`"),
            (good.replace(&hash('1'), "1"), "key 1 (a): sha256 is"),
            (good.replace(&hash('1'), &hash('A')), "key 1 (a): sha256 is"),
            (good.replace("12:00:00Z", "12:00:00"), "key 1 (a): created is a time"),
            (good.replace("created=2026-11-29T12:00:00Z", "created=1"), "key 1 (a): created is a time"),
            (good.replace("workspace='default'", ""), "key 1 (a): workspace is missing"),
            (good.replace("project='demo'", ""), "key 1 (a): project is missing"),
            (good.replace("'demo'", "'a/b'"), "key 1 (a): a project id is"),
            (good.replace("preset='read-only'", ""), "key 1 (a): exactly one of preset"),
            (good.replace("preset='read-only'", "capabilities=[]"), "key 1 (a): exactly one of preset"),
            (good.replace("preset='read-only'", "capabilities=['fly']"), "key 1 (a): unknown variant `fly`"),
            (
                good.replace("preset='read-only'", "capabilities=['jobs.read','jobs.read']"),
                "key 1 (a): capabilities names one twice",
            ),
            (format!("{good}capabilities=['jobs.read']"), "key 1 (a): exactly one of preset"),
            (format!("{good}grants=[]"), "key 1 (a): a key of this kind has no grants"),
            (format!("{good}disabled='no'"), "key 1 (a): invalid type"),
            (personal(""), "key 1 (b): grants is missing or empty"),
            (personal("grants=[]"), "key 1 (b): grants is missing or empty"),
            (personal(DEMO), "key 1 (b): a key of this kind has no workspace"),
            (personal("grants=[{workspace='w',project='p'}]"), "key 1 (b): exactly one of preset"),
            (
                personal(
                    "grants=[{workspace='w',project='p',preset='read-only'},{workspace='w',project='p',preset='read-only'}]",
                ),
                "key 1 (b): grants names the project p twice",
            ),
            (entry("c", "operator", '3', DEMO), "key 1 (c): a key of this kind has no workspace"),
            (entry("c", "operator", '3', "capabilities=['jobs.read']"), "has no capabilities"),
            (format!("{good}{}", entry("a", "operator", '3', "")), "the key_id a occurs twice"),
            (format!("{good}{}", entry("b", "operator", '1', "")), "the keys a and b have the same sha256"),
            (
                format!("{good}{}", personal("grants=[{workspace='w',project='demo',preset='read-only'}]")),
                "b: the project demo is in the workspaces default and w",
            ),
        ] {
            let error = parse(&text).expect_err(say).to_string();
            assert!(error.contains(say), "{error:?} should say {say:?}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_place_is_not_quoted() {
        let secret = format!("epk_{}", hash('7'));
        let error = parse(&format!("[[keys]]\nkey = {secret}\n")).expect_err("no TOML").to_string();
        assert!(!error.contains(&secret), "{error}");
    }
}
