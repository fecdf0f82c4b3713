//! `artifactd keys`: make, list and disable keys.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Failure, answer, note};
use crate::access::keys::{Access, Grant, Key, KeyFile, Scope};
use crate::access::{Capability, KeyKind, Preset};
use crate::artifact::{Project, ProjectId, WorkspaceId};

/// Options of `artifactd keys`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a key and print it, once
    Create(Box<Create>),
    /// Show the keys of a file; never the keys themselves, which it does not hold
    List {
        #[command(flatten)]
        file: FileOption,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Disable a key for good; a running service refuses it within two seconds
    Disable {
        #[command(flatten)]
        file: FileOption,
        /// The key's id, as `keys list` shows it
        key_id: String,
    },
}

#[derive(Debug, clap::Args)]
struct FileOption {
    /// The key file
    #[arg(long, value_name = "FILE", env = "ARTIFACTD_ACCESS__KEYS_FILE")]
    keys_file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Create {
    #[command(flatten)]
    file: FileOption,
    /// The kind: a project's, a person's (with --grant), or an operator's
    #[arg(long, value_enum, default_value = "project")]
    kind: KeyKind,
    /// A name for logs and the audit; a random one if left out
    #[arg(long)]
    key_id: Option<String>,
    /// The project's workspace [default: default]
    #[arg(long, value_parser = WorkspaceId::parse)]
    workspace: Option<WorkspaceId>,
    /// The project
    #[arg(long, value_parser = ProjectId::parse, required_if_eq("kind", "project"))]
    project: Option<ProjectId>,
    /// What the key may do
    #[arg(long, value_enum, conflicts_with = "capabilities")]
    preset: Option<Preset>,
    /// One thing that the key may do, instead of a preset; may be repeated
    #[arg(long = "capability", value_name = "CAPABILITY", value_parser = capability)]
    capabilities: Vec<Capability>,
    /// A project of a personal key, WORKSPACE/PROJECT:PRESET or WORKSPACE/PROJECT:CAPABILITY,…; may be repeated
    #[arg(long = "grant", value_name = "GRANT", value_parser = grant, required_if_eq("kind", "personal"),
          conflicts_with_all = ["workspace", "project", "preset", "capabilities"])]
    grants: Vec<Grant>,
    /// From when on the key is refused, such as 2027-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does it.
///
/// # Errors
/// Options that do not fit together, or a fault of the file.
pub(super) fn run(options: Options) -> Result<(), Failure> {
    match options.action {
        Action::Create(create) => {
            let json = create.json;
            let (key, secret) = make(*create)?;
            if json {
                let mut value = row(&key);
                value["key"] = secret.expose().into();
                answer(&format!("{value}\n"))?;
            } else {
                note(&format!("Key {} was made. It is shown this once:", key.key_id));
                answer(&format!("{}\n", secret.expose()))?;
            }
        }
        Action::List { file, json } => {
            let keys = KeyFile::new(file.keys_file).keys()?;
            if json {
                answer(&format!("{}\n", Value::from(keys.iter().map(row).collect::<Vec<_>>())))?;
            } else {
                answer(&table(&keys, Timestamp::now()))?;
            }
        }
        Action::Disable { file, key_id } => {
            KeyFile::new(file.keys_file).disable(&key_id)?;
            note(&format!("Key {key_id} is disabled."));
        }
    }
    Ok(())
}

fn make(options: Create) -> Result<(Key, crate::access::keys::Secret), Failure> {
    let scope = match options.kind {
        KeyKind::Project => {
            if !options.grants.is_empty() {
                return Err("--grant is for keys of --kind personal".into());
            }
            let id = options.project.ok_or("--project is needed")?;
            let access = match options.preset {
                Some(preset) => Access::Preset(preset),
                None if !options.capabilities.is_empty() => Access::List(options.capabilities.into_iter().collect()),
                None => return Err("--preset or --capability is needed".into()),
            };
            let workspace = options.workspace.map_or_else(|| WorkspaceId::parse("default"), Ok)?;
            Scope::Project(Grant { project: Project { workspace, id }, access })
        }
        KeyKind::Personal => Scope::Personal(options.grants),
        KeyKind::Operator => {
            let given = options.workspace.is_some() || options.project.is_some() || options.preset.is_some();
            if given || !options.capabilities.is_empty() || !options.grants.is_empty() {
                return Err("an operator's key has no --workspace, --project, --preset, --capability or --grant".into());
            }
            Scope::Operator
        }
    };
    let file = KeyFile::new(options.file.keys_file);
    let (secret, key) = file.create_key(options.key_id.as_deref(), scope, Timestamp::now(), options.expires)?;
    Ok((key, secret))
}

fn capability(text: &str) -> Result<Capability, String> {
    Capability::ALL.into_iter().find(|capability| capability.as_str() == text).ok_or_else(|| {
        let names: Vec<_> = Capability::ALL.iter().map(|capability| capability.as_str()).collect();
        format!("one of {}", names.join(", "))
    })
}

fn grant(text: &str) -> Result<Grant, String> {
    let (workspace, rest) = text.split_once('/').ok_or("WORKSPACE/PROJECT:PRESET is needed")?;
    // A project id may hold colons, a preset or capability none: the last one separates.
    let (project, access) = rest.rsplit_once(':').ok_or("a preset is needed: WORKSPACE/PROJECT:PRESET")?;
    let access = match <Preset as clap::ValueEnum>::from_str(access, false) {
        Ok(preset) => Access::Preset(preset),
        Err(_) => {
            let each = access.split(',').map(capability).collect::<Result<_, _>>();
            Access::List(each.map_err(|e| format!("project-automation, read-only, or some, by commas, {e}"))?)
        }
    };
    let workspace = WorkspaceId::parse(workspace).map_err(|e| e.to_string())?;
    let id = ProjectId::parse(project).map_err(|e| e.to_string())?;
    Ok(Grant { project: Project { workspace, id }, access })
}

fn row(key: &Key) -> Value {
    let grants: Vec<_> = key
        .grants()
        .iter()
        .map(|grant| {
            let (workspace, project) = (&grant.project.workspace, &grant.project.id);
            json!({"workspace": workspace, "project": project, "capabilities": grant.access.capabilities()})
        })
        .collect();
    json!({
        "key_id": key.key_id,
        "kind": key.kind(),
        "created": key.created,
        "expires": key.expires,
        "disabled": key.disabled,
        "grants": grants,
    })
}

fn table(keys: &[Key], now: Timestamp) -> String {
    let mut rows = vec![["KEY_ID", "KIND", "STATE", "CREATED", "EXPIRES", "MAY"].map(str::to_owned).to_vec()];
    rows.extend(keys.iter().map(|key| {
        let state = match key {
            Key { disabled: true, .. } => "disabled",
            Key { expires: Some(expires), .. } if *expires <= now => "expired",
            _ => "active",
        };
        let may = match &key.scope {
            Scope::Operator => "quota.read, quota.manage everywhere".to_owned(),
            Scope::Project(_) | Scope::Personal(_) => key.grants().iter().map(described).collect::<Vec<_>>().join("; "),
        };
        let expires = key.expires.map_or_else(|| "never".to_owned(), |time| time.to_string());
        vec![key.key_id.clone(), key.kind().as_str().into(), state.into(), key.created.to_string(), expires, may]
    }));
    super::table::table(&rows, &[])
}

fn described(grant: &Grant) -> String {
    let access = match &grant.access {
        Access::Preset(preset) => preset.as_str().to_owned(),
        Access::List(set) => set.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(","),
    };
    format!("{}/{}:{access}", grant.project.workspace, grant.project.id)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn command(file: &std::path::Path, args: &str) -> Result<(), String> {
        let file = file.to_str().expect("UTF-8");
        let mut words: Vec<_> = ["artifactd", "keys"].into_iter().chain(args.split(' ')).collect();
        words.extend(["--keys-file", file]);
        let cli = Cli::try_parse_from(words).map_err(|e| e.to_string())?;
        crate::cli::run(cli).map_err(|e| e.to_string())
    }

    #[test]
    fn keys_of_each_kind_are_made_listed_and_disabled() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("keys.toml");
        for args in [
            "create --key-id a --project p --preset read-only",
            "create --key-id b --workspace w --project p:2 --capability jobs.read --capability quota.read --json",
            "create --key-id c --kind personal --grant default/p:project-automation --grant w/p:2:jobs.read,quota.read",
            "create --key-id d --kind operator --expires 2020-01-01T00:00:00Z",
            "disable a",
            "list",
            "list --json",
        ] {
            command(&file, args).expect(args);
        }
        let keys = KeyFile::new(&file).keys().expect("a key file");
        let created = keys[0].created.to_string();
        let table = table(&keys, Timestamp::now());
        let lines: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[1], ["a", "project", "disabled", &created, "never", "default/p:read-only"]);
        assert_eq!(lines[2][5], "w/p:2:jobs.read,quota.read");
        assert_eq!(lines[3][5..], ["default/p:project-automation;", "w/p:2:jobs.read,quota.read"]);
        assert_eq!(lines[4][2..=2], ["expired"]);
        assert_eq!(row(&keys[1])["grants"][0]["capabilities"], json!(["jobs.read", "quota.read"]));
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("keys.toml");
        for (args, say) in [
            ("create --preset read-only", "--project"),
            ("create --project p", "--preset or --capability is needed"),
            ("create --project a/b --preset read-only", "a project id is"),
            ("create --project p --preset root", "read-only"),
            ("create --project p --preset read-only --capability jobs.read", "cannot be used with"),
            ("create --project p --capability fly", "one of datasets.read"),
            ("create --kind personal", "--grant"),
            ("create --kind personal --grant p:read-only", "WORKSPACE/PROJECT:PRESET"),
            ("create --kind personal --grant w/p", "a preset is needed"),
            ("create --kind personal --grant w/p:fly", "project-automation, read-only, or"),
            ("create --kind operator --preset read-only", "an operator's key has no"),
            ("create --project p --preset read-only --expires tomorrow", "--expires"),
            ("disable a", "no key has the id a"),
            ("list", "No such file"),
        ] {
            let error = command(&file, args).expect_err(args);
            assert!(error.contains(say), "{args}: {error}");
        }
        assert!(!file.exists(), "a refused command makes no file");
    }
}
