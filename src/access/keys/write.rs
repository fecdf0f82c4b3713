//! Changing the key file, for the command line.
//!
//! A change is made to the text: entries are appended, a flag is set beside its key id, and all
//! else, comments included, stays as it is. The result is parsed before it replaces the file, which
//! happens by rename, under a lock, so that a reader sees the old file or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use toml::Spanned;

use super::{Access, Grant, InvalidKeys, Key, Scope, Secret, parse};
use crate::encoding::hex;

/// How long a writer waits for another one.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How often it tries meanwhile.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Why a key file was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It is no key file.
    #[error("{}: {fault}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: InvalidKeys,
    },
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("{}: another process is changing it; try again", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// No entry has this id.
    #[error("no key has the id {0}")]
    UnknownKey(String),
    /// The entry is not written as a `[[keys]]` table with `key_id` on a line of its own.
    #[error("the entry of {0} is written in a way that only an editor can change: set disabled = true by hand")]
    Unusual(String),
}

/// A key file that is changed by whole, locked steps. It need not exist before its first key.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Whether the file is there.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Its keys, in the order of the file.
    ///
    /// # Errors
    /// The file cannot be read or is no key file.
    pub fn keys(&self) -> Result<Vec<Key>, KeyFileError> {
        self.parse(&fs::read_to_string(&self.path).map_err(|e| self.io(e))?)
    }

    /// Makes a key, appends its entry, and returns both; the key itself cannot be had again.
    /// Without `key_id` the entry gets a random one.
    ///
    /// # Errors
    /// The file cannot be read, locked or written, or would not be valid with the new entry (such
    /// as a `key_id` that is taken).
    pub fn create_key(
        &self,
        key_id: Option<&str>,
        scope: Scope,
        created: Timestamp,
        expires: Option<Timestamp>,
    ) -> Result<(Secret, Key), KeyFileError> {
        let secret = Secret::generate().map_err(|e| self.io(e))?;
        let key_id = match key_id {
            Some(id) => id.to_owned(),
            // A part of another key's randomness, so that the id tells nothing of this one's.
            None => format!("key-{}", &hex(&uuid::Uuid::new_v4().into_bytes())[..12]),
        };
        let key = Key { key_id, sha256: secret.hash(), created, expires, disabled: false, scope };
        self.change(|text| {
            let gap = if text.is_empty() || text.ends_with("\n\n") {
                ""
            } else if text.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            Ok(format!("{text}{gap}{}", entry(&key)))
        })?;
        Ok((secret, key))
    }

    /// Disables a key for good. Doing it again changes nothing.
    ///
    /// # Errors
    /// No key has the id, or the file cannot be read, locked or written.
    pub fn disable(&self, key_id: &str) -> Result<(), KeyFileError> {
        self.change(|text| disabled(text, key_id))
    }

    fn change(&self, edit: impl FnOnce(&str) -> Result<String, KeyFileError>) -> Result<(), KeyFileError> {
        // A link to the file stays one: what it names is replaced.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let _lock = self.lock(&path)?;
        let (text, old) = match File::open(&path) {
            Ok(file) => {
                let metadata = file.metadata().map_err(|e| self.io(e))?;
                (io::read_to_string(file).map_err(|e| self.io(e))?, Some(metadata))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => (String::new(), None),
            Err(e) => return Err(self.io(e)),
        };
        self.parse(&text)?;
        let new = edit(&text)?;
        self.parse(&new)?;
        replace(&path, new.as_bytes(), old.as_ref()).map_err(|e| self.io(e))
    }

    /// Held until dropped. The lock is a file of its own, since the key file is replaced.
    fn lock(&self, path: &Path) -> Result<File, KeyFileError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.with_file_name(name))
            .map_err(|e| self.io(e))?;
        let start = Instant::now();
        #[allow(clippy::disallowed_methods, reason = "keys are written by the command line, on a thread of its own")]
        let pause = || std::thread::sleep(LOCK_RETRY);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) if start.elapsed() < LOCK_WAIT => pause(),
                Err(fs::TryLockError::WouldBlock) => return Err(KeyFileError::Locked { path: self.path.clone() }),
                Err(fs::TryLockError::Error(e)) => return Err(self.io(e)),
            }
        }
    }

    fn parse(&self, text: &str) -> Result<Vec<Key>, KeyFileError> {
        parse::parse(text).map_err(|fault| KeyFileError::Invalid { path: self.path.clone(), fault })
    }

    fn io(&self, source: io::Error) -> KeyFileError {
        KeyFileError::Io { path: self.path.clone(), source }
    }
}

/// Puts `content` in the place of `path`: whole or not at all, also across a power cut. A new file
/// is its owner's alone (mode 0600); an old one keeps its mode and owner, so that a service which
/// runs as another user can still read it.
fn replace(path: &Path, content: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".keys-").tempfile_in(folder)?;
    file.write_all(content)?;
    if let Some(old) = old {
        let new = file.as_file().metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            fchown(file.as_file(), Some(old.uid()), Some(old.gid()))?;
        }
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    File::open(folder)?.sync_all()
}

fn entry(key: &Key) -> String {
    let mut lines = vec![
        "[[keys]]".to_owned(),
        format!("key_id = {}", quoted(&key.key_id)),
        format!("kind = {}", quoted(key.kind().as_str())),
        format!("sha256 = {}", quoted(&key.sha256.to_string())),
        format!("created = {}", key.created),
    ];
    lines.extend(key.expires.map(|time| format!("expires = {time}")));
    match &key.scope {
        Scope::Project(grant) => lines.extend(fields(grant)),
        Scope::Personal(grants) => {
            let tables: Vec<_> =
                grants.iter().map(|grant| format!("    {{ {} }},", fields(grant).join(", "))).collect();
            lines.push(format!("grants = [\n{}\n]", tables.join("\n")));
        }
        Scope::Operator => {}
    }
    lines.join("\n") + "\n"
}

fn fields(grant: &Grant) -> [String; 3] {
    let access = match &grant.access {
        Access::Preset(preset) => format!("preset = {}", quoted(preset.as_str())),
        Access::List(set) => {
            let names: Vec<_> = set.iter().map(|capability| quoted(capability.as_str())).collect();
            format!("capabilities = [{}]", names.join(", "))
        }
    };
    let Grant { project, .. } = grant;
    [
        format!("workspace = {}", quoted(project.workspace.as_str())),
        format!("project = {}", quoted(project.id.as_str())),
        access,
    ]
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Where in the text an entry's id and flag stand.
#[derive(Deserialize)]
struct Located {
    keys: Vec<LocatedKey>,
}

#[derive(Deserialize)]
struct LocatedKey {
    key_id: Spanned<String>,
    disabled: Option<Spanned<bool>>,
}

fn disabled(text: &str, key_id: &str) -> Result<String, KeyFileError> {
    let unusual = || KeyFileError::Unusual(key_id.to_owned());
    let unknown = || KeyFileError::UnknownKey(key_id.to_owned());
    // The text was parsed before: it fails here only if it holds no keys at all.
    let located: Located = toml::from_str(text).map_err(|_| unknown())?;
    let entry = located.keys.iter().find(|key| key.key_id.get_ref() == key_id).ok_or_else(unknown)?;
    let (at, insert) = match &entry.disabled {
        Some(flag) => (flag.span(), "true"),
        None => {
            let end = entry.key_id.span().end;
            let line_end = text[end..].find('\n').map_or(text.len(), |length| end + length);
            (line_end..line_end, "\ndisabled = true")
        }
    };
    let mut new = text.to_owned();
    new.replace_range(at, insert);
    // The line that was found by position must have done exactly what was meant.
    let mut want = parse::parse(text).map_err(|_| unusual())?;
    for key in want.iter_mut().filter(|key| key.key_id == key_id) {
        key.disabled = true;
    }
    if parse::parse(&new).as_ref() == Ok(&want) { Ok(new) } else { Err(unusual()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::access::{Capability, Credentials, KeyRing, Preset};
    use crate::artifact::{Project, ProjectId, WorkspaceId};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn grant(project: &str, access: Access) -> Grant {
        let workspace = WorkspaceId::parse("default").expect("valid");
        Grant { project: Project { workspace, id: ProjectId::parse(project).expect("valid") }, access }
    }

    fn read_only(project: &str) -> Grant {
        grant(project, Access::Preset(Preset::ReadOnly))
    }

    fn file() -> (tempfile::TempDir, KeyFile) {
        let dir = tempfile::tempdir().expect("a folder");
        let file = KeyFile::new(dir.path().join("keys.toml"));
        (dir, file)
    }

    fn mode(file: &KeyFile) -> u32 {
        fs::metadata(&file.path).expect("exists").permissions().mode() & 0o777
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let (_dir, file) = file();
        let some = Access::List([Capability::JobsRead, Capability::QuotaRead].into());
        let scopes = [
            Scope::Project(read_only("p")),
            Scope::Project(grant("p:2", some.clone())),
            Scope::Personal(vec![read_only("p"), grant("q", some)]),
            Scope::Operator,
        ];
        let mut made = Vec::new();
        for scope in scopes {
            made.push(file.create_key(None, scope, NOW, Some("2030-01-01T00:00:00.5Z".parse().expect("a time"))));
        }
        let made: Vec<_> = made.into_iter().map(|made| made.expect("written")).collect();
        assert_eq!(file.keys().expect("a key file"), made.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>());
        let text = fs::read_to_string(&file.path).expect("text");
        let ring = KeyRing::parse(&text).expect("a key file");
        for (secret, key) in &made {
            assert!(!text.contains(secret.expose()), "the file holds no key");
            let credentials = Credentials { key: Some(secret.expose().into()), ..Credentials::default() };
            assert_eq!(ring.authenticate(&credentials, NOW).expect("known").key_id, key.key_id);
        }
        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn an_edited_file_keeps_its_comments_mode_and_link() {
        let (dir, file) = file();
        file.create_key(Some("a"), Scope::Operator, NOW, None).expect("written");
        let edited = format!("# ours\n{}\n# the end", fs::read_to_string(&file.path).expect("text"));
        fs::write(&file.path, edited).expect("written");
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o640)).expect("set");
        let link = dir.path().join("link.toml");
        std::os::unix::fs::symlink(&file.path, &link).expect("linked");

        let linked = KeyFile::new(&link);
        linked.create_key(Some("b"), Scope::Project(read_only("p")), NOW, None).expect("written");
        linked.disable("a").expect("written");

        let text = fs::read_to_string(&file.path).expect("text");
        assert!(text.starts_with("# ours\n[[keys]]\nkey_id = \"a\"\ndisabled = true\n"), "{text}");
        assert!(text.contains("\n# the end\n\n[[keys]]\nkey_id = \"b\"\n"), "{text}");
        assert_eq!(mode(&file), 0o640);
        assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
    }

    #[test]
    fn disabling() {
        let hash = "0".repeat(64);
        let table = |id: &str, flag: &str| {
            format!(
                "[[keys]]\nkey_id = '{id}' # who\n{flag}kind = 'operator'\nsha256 = '{hash}'\ncreated = 2026-01-01T00:00:00Z\n"
            )
        };
        for (text, want) in [
            (table("a", ""), Ok(table("a", "disabled = true\n"))),
            (table("a", "disabled = false # no\n"), Ok(table("a", "disabled = true # no\n"))),
            (table("a", "disabled = true\n"), Ok(table("a", "disabled = true\n"))),
            (table("b", ""), Err("no key has the id a")),
            (String::new(), Err("no key has the id a")),
            (
                format!("keys = [{{ kind='operator', sha256='{hash}', created=2026-01-01T00:00:00Z, key_id = 'a' }}]"),
                Err("only an editor"),
            ),
        ] {
            match (disabled(&text, "a"), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want),
                (Err(got), Err(want)) => assert!(got.to_string().contains(want), "{got}"),
                (got, want) => panic!("{got:?} instead of {want:?}"),
            }
        }
    }

    #[test]
    fn a_refused_change_leaves_the_file_alone() {
        let (dir, file) = file();
        file.create_key(Some("a"), Scope::Operator, NOW, None).expect("written");
        let before = fs::read(&file.path).expect("bytes");
        for (error, say) in [
            (file.create_key(Some("a"), Scope::Operator, NOW, None).map(|_| ()), "occurs twice"),
            (file.create_key(Some("a b"), Scope::Operator, NOW, None).map(|_| ()), "key_id is"),
            (file.disable("b"), "no key has the id b"),
        ] {
            let error = error.expect_err(say).to_string();
            assert!(error.contains(say), "{error}");
        }
        assert_eq!(fs::read(&file.path).expect("bytes"), before);
        let names: Vec<_> = fs::read_dir(dir.path()).expect("listed").map(|e| e.expect("entry").file_name()).collect();
        assert_eq!(names.len(), 2, "the file and its lock: {names:?}");

        fs::write(&file.path, "[[keys]]\nbroken").expect("written");
        let error = file.create_key(None, Scope::Operator, NOW, None).expect_err("not a key file");
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn writers_take_turns() {
        let (_dir, file) = file();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| file.create_key(None, Scope::Operator, NOW, None).expect("written"));
            }
        });
        assert_eq!(file.keys().expect("a key file").len(), 8);
    }
}
