//! The demo's three keys, kept beside its key file so that they are the same tomorrow.

use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use crate::access::Preset;
use crate::access::keys::{Access, Grant, Key, KeyFile, Scope, Secret};
use crate::artifact::Project;

/// Keys in plain text, as `--json` prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DemoKeys {
    /// The preset `read-only`.
    #[serde(serialize_with = "exposed")]
    pub read_only: Secret,
    /// The preset `project-automation`.
    #[serde(serialize_with = "exposed")]
    pub project_automation: Secret,
    /// An operator's.
    #[serde(serialize_with = "exposed")]
    pub operator: Secret,
}

fn exposed<S: Serializer>(secret: &Secret, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(secret.expose())
}

/// What the file of secrets holds; any of them may be missing.
#[derive(Default, Deserialize)]
struct Kept {
    read_only: Option<String>,
    project_automation: Option<String>,
    operator: Option<String>,
}

impl DemoKeys {
    /// The keys of an earlier run, from `secrets`, as far as `file` still takes them; new ones in
    /// the place of others. Both files are for their owner alone (mode 0600).
    ///
    /// # Errors
    /// Either file cannot be read, written or understood.
    pub fn keep(
        file: &KeyFile,
        secrets: &Path,
        project: &Project,
        now: Timestamp,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let kept: Kept = match std::fs::read(secrets) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", secrets.display()))?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Kept::default(),
            Err(e) => return Err(format!("{}: {e}", secrets.display()).into()),
        };
        let known = if file.exists() { file.keys()? } else { Vec::new() };
        let usable = |key: &&Key| !key.disabled && key.expires.is_none_or(|expires| expires > now);
        let key = |kept: Option<String>, name: &str, scope: Scope| {
            let kept = kept.as_deref().and_then(Secret::parse);
            let same = |secret: &Secret| known.iter().filter(usable).any(|key| key.sha256 == secret.hash());
            if let Some(secret) = kept.filter(same) {
                return Ok(secret);
            }
            // A name that another key has already is left to it.
            let name = (!known.iter().any(|key| key.key_id == name)).then_some(name);
            file.create_key(name, scope, now, None).map(|(secret, _)| secret)
        };
        let granted = |preset| Scope::Project(Grant { project: project.clone(), access: Access::Preset(preset) });
        let keys = Self {
            read_only: key(kept.read_only, "demo-read-only", granted(Preset::ReadOnly))?,
            project_automation: key(
                kept.project_automation,
                "demo-project-automation",
                granted(Preset::ProjectAutomation),
            )?,
            operator: key(kept.operator, "demo-operator", Scope::Operator)?,
        };
        let folder = secrets.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(&serde_json::to_vec_pretty(&keys)?)?;
        new.persist(secrets)?;
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::artifact::{ProjectId, WorkspaceId};

    #[test]
    fn keys_are_reused_while_the_key_file_takes_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, secrets) = (KeyFile::new(dir.path().join("keys.toml")), dir.path().join("secrets.json"));
        let project = Project {
            workspace: WorkspaceId::parse("default").expect("valid"),
            id: ProjectId::parse("demo").expect("valid"),
        };
        let keep = || DemoKeys::keep(&file, &secrets, &project, Timestamp::UNIX_EPOCH).expect("kept");
        let first = keep();
        assert_eq!(keep(), first);
        assert_eq!(std::fs::metadata(&secrets).expect("written").permissions().mode() & 0o777, 0o600);

        file.disable("demo-operator").expect("disabled");
        let second = keep();
        assert_eq!(second.read_only, first.read_only);
        assert_ne!(second.operator, first.operator);
        assert_eq!(file.keys().expect("a key file").len(), 4);

        std::fs::remove_file(&secrets).expect("removed");
        let third = keep();
        assert_ne!(third.read_only, first.read_only);
        assert_eq!(keep(), third);
    }
}
