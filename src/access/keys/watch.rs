//! A running service's view of its key file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use jiff::Timestamp;
use rustix::fs::OFlags;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::{InvalidKeys, KeyFileError, KeyRing};
use crate::access::{Authenticator, Credentials, Principal};
use crate::artifact::Project;
use crate::error::{Error, Kind, Result};
use crate::link::MAX_LIFE_SECONDS;

/// How often the file is read again. A change is in force after this and the time of a read.
pub const POLL: Duration = Duration::from_secs(1);
/// How long the last good set outlives a file that has become unreadable or wrong.
pub const GRACE: Duration = Duration::from_secs(600);
/// How often an ongoing fault is logged.
const REMIND: Duration = Duration::from_secs(60);
/// The longest key file, in bytes.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// The clock that expiry is judged by.
type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// The keys of a file, kept up to date.
///
/// The whole file is read every [`POLL`]: a key file is small, and comparing its text is surer than
/// comparing times of a coarse clock. A new text is parsed whole and swapped in at once. One that
/// cannot be read or is wrong leaves the last good set in force and is logged as an error, at once
/// and every minute; after [`GRACE`] every request is answered `INTERNAL_ERROR`, since keys that
/// were withdrawn meanwhile would still open doors. A file without any key counts as wrong: it is
/// what a half-written file looks like.
pub struct WatchedKeys {
    path: PathBuf,
    clock: Clock,
    state: ArcSwap<State>,
    /// One reader at a time: a poll and a reload cannot overtake each other.
    reading: tokio::sync::Mutex<Option<Reminder>>,
}

#[derive(Clone)]
struct State {
    text: Arc<str>,
    ring: Arc<KeyRing>,
    broken_since: Option<Instant>,
}

/// The fault that was logged last.
struct Reminder {
    fault: String,
    logged: Instant,
}

impl WatchedKeys {
    /// Reads the file for the first time. Expiry is judged by the system's clock.
    ///
    /// # Errors
    /// The file cannot be read, is no key file, or holds no key.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, KeyFileError> {
        Self::with_clock(path, Timestamp::now).await
    }

    /// As [`open`](Self::open), with another clock for expiry.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn with_clock(
        path: impl Into<PathBuf>,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Result<Self, KeyFileError> {
        let path = path.into();
        let text = read(&path).await.map_err(|source| KeyFileError::Io { path: path.clone(), source })?;
        let ring = parse(&text).map_err(|fault| KeyFileError::Invalid { path: path.clone(), fault })?;
        let state = State { text: text.into(), ring: Arc::new(ring), broken_since: None };
        let reading = tokio::sync::Mutex::new(None);
        Ok(Self { path, clock: Box::new(clock), state: ArcSwap::from_pointee(state), reading })
    }

    /// Reads the file now and takes what it says. Called every [`POLL`], and on SIGHUP.
    pub async fn reload(&self) {
        let mut reminder = self.reading.lock().await;
        let old = self.state.load_full();
        let outcome = match read(&self.path).await {
            Ok(text) if *text == *old.text => Ok(None),
            Ok(text) => parse(&text).map(|ring| Some((text, ring))).map_err(|fault| fault.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(None) if old.broken_since.is_none() => {}
            Ok(None) => {
                self.state.store(Arc::new(State { broken_since: None, ..(*old).clone() }));
                *reminder = None;
                tracing::info!(path = %self.path.display(), "the key file is as before its fault");
            }
            Ok(Some((text, ring))) => {
                tracing::info!(path = %self.path.display(), keys = ring.len(), "the key file was read");
                self.state.store(Arc::new(State { text: text.into(), ring: Arc::new(ring), broken_since: None }));
                *reminder = None;
            }
            Err(fault) => {
                let now = Instant::now();
                let since = old.broken_since.unwrap_or(now);
                if old.broken_since.is_none() {
                    self.state.store(Arc::new(State { broken_since: Some(since), ..(*old).clone() }));
                }
                if reminder.as_ref().is_none_or(|last| last.fault != fault || now - last.logged >= REMIND) {
                    let refuses_in_seconds = GRACE.saturating_sub(now - since).as_secs();
                    tracing::error!(path = %self.path.display(), %fault, refuses_in_seconds,
                        "the key file cannot be used: the last good one stays in force for the time given, then every request is refused");
                    *reminder = Some(Reminder { fault, logged: now });
                }
            }
        }
    }

    /// For how long the file has been unusable; `None` while all is well.
    #[must_use]
    pub fn broken_for(&self) -> Option<Duration> {
        self.state.load().broken_since.map(|since| since.elapsed())
    }
}

#[async_trait]
impl Authenticator for WatchedKeys {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        self.ring()?.authenticate(credentials, (self.clock)())
    }

    async fn still(&self, key_id: &str, project: &Project) -> Result<Principal> {
        self.ring()?.still(key_id, project, (self.clock)())
    }

    fn link_life_seconds(&self) -> u64 {
        MAX_LIFE_SECONDS
    }
}

impl WatchedKeys {
    /// The keys in force.
    fn ring(&self) -> Result<Arc<KeyRing>> {
        let state = self.state.load();
        if state.broken_since.is_some_and(|since| since.elapsed() >= GRACE) {
            return Err(Error::new(
                Kind::InternalError,
                "The service cannot check keys now; report the request id to its operator.",
            )
            .with_source("the key file has been unusable for ten minutes"));
        }
        Ok(Arc::clone(&state.ring))
    }
}

async fn read(path: &Path) -> std::io::Result<String> {
    // Not blocking: to open a FIFO would wait for a writer, and with it every later change, every
    // alarm and the stop of the service.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = tokio::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).await?;
    if !file.metadata().await?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).await?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::other("a key file has at most 16 MiB"));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<KeyRing, InvalidKeys> {
    let ring = KeyRing::parse(text)?;
    if ring.is_empty() {
        return Err(InvalidKeys("the file holds no key; `artifactd keys create` makes one".into()));
    }
    Ok(ring)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;
    use crate::access::keys::{KeyFile, Scope, Secret};

    struct Bench {
        dir: tempfile::TempDir,
        file: KeyFile,
        secret: Secret,
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let file = KeyFile::new(dir.path().join("keys.toml"));
            let (secret, _) = file
                .create_key(Some("one"), Scope::Operator, Timestamp::UNIX_EPOCH, Some(Timestamp::MAX))
                .expect("written");
            Self { dir, file, secret }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("keys.toml")
        }

        async fn ask(&self, keys: &WatchedKeys) -> Result<String, &'static str> {
            code(keys, &self.secret).await
        }
    }

    async fn code(keys: &WatchedKeys, secret: &Secret) -> Result<String, &'static str> {
        let credentials = Credentials { key: Some(secret.expose().into()), ..Credentials::default() };
        keys.authenticate(&credentials).await.map(|principal| principal.key_id).map_err(|e| e.kind().code())
    }

    #[tokio::test]
    async fn a_first_file_must_be_sound() {
        let bench = Bench::new();
        for (text, say) in [("x", "line 1"), ("", "holds no key"), ("# none\n", "holds no key")] {
            fs::write(bench.path(), text).expect("written");
            let error = WatchedKeys::open(bench.path()).await.err().expect(say).to_string();
            assert!(error.contains(say), "{error}");
        }
        let error = WatchedKeys::open(bench.dir.path().join("none")).await.err().expect("missing");
        assert!(matches!(error, KeyFileError::Io { .. }), "{error}");
    }

    #[tokio::test]
    async fn changes_are_taken() {
        let bench = Bench::new();
        let keys = WatchedKeys::open(bench.path()).await.expect("opened");
        assert_eq!(bench.ask(&keys).await.as_deref(), Ok("one"));
        let (second, _) = bench.file.create_key(Some("two"), Scope::Operator, Timestamp::now(), None).expect("written");
        bench.file.disable("one").expect("written");
        keys.reload().await;
        assert_eq!(bench.ask(&keys).await, Err("UNAUTHENTICATED"));
        assert_eq!(code(&keys, &second).await.as_deref(), Ok("two"));
    }

    #[tokio::test]
    async fn a_rewrite_of_the_same_length_is_seen() {
        let bench = Bench::new();
        let keys = WatchedKeys::open(bench.path()).await.expect("opened");
        let text = fs::read_to_string(bench.path()).expect("text");
        fs::write(bench.path(), text.replace("one", "eno")).expect("written");
        keys.reload().await;
        assert_eq!(bench.ask(&keys).await.as_deref(), Ok("eno"));
    }

    #[tokio::test]
    async fn a_broken_file_keeps_the_last_set_for_ten_minutes() {
        let bench = Bench::new();
        let keys = WatchedKeys::open(bench.path()).await.expect("opened");
        let good = fs::read_to_string(bench.path()).expect("text");
        for broken in [Some("[[keys]]\n"), Some(""), Some("]"), None] {
            match broken {
                Some(text) => fs::write(bench.path(), text).expect("written"),
                None => fs::remove_file(bench.path()).expect("removed"),
            }
            keys.reload().await;
            tokio::time::pause();
            tokio::time::advance(GRACE - Duration::from_secs(1)).await;
            assert_eq!(bench.ask(&keys).await.as_deref(), Ok("one"), "{broken:?}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(bench.ask(&keys).await, Err("INTERNAL_ERROR"), "{broken:?}");
            assert!(keys.broken_for().is_some_and(|time| time >= GRACE));
            tokio::time::resume();

            fs::write(bench.path(), &good).expect("written");
            keys.reload().await;
            assert_eq!(bench.ask(&keys).await.as_deref(), Ok("one"));
            assert_eq!(keys.broken_for(), None);
        }
    }

    /// Each of them could be read for ever, or not even opened.
    #[tokio::test]
    async fn what_is_no_regular_file_is_a_fault() {
        let bench = Bench::new();
        let keys = WatchedKeys::open(bench.path()).await.expect("opened");
        let good = fs::read_to_string(bench.path()).expect("text");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        for what in ["FIFO", "device", "folder"] {
            fs::remove_file(bench.path()).expect("removed");
            match what {
                "FIFO" => rustix::fs::mkfifoat(rustix::fs::CWD, bench.path(), mode).expect("made"),
                "device" => std::os::unix::fs::symlink("/dev/zero", bench.path()).expect("made"),
                _ => fs::create_dir(bench.path()).expect("made"),
            }
            tokio::time::timeout(Duration::from_secs(5), keys.reload()).await.expect(what);
            assert!(keys.broken_for().is_some(), "{what}");
            assert_eq!(bench.ask(&keys).await.as_deref(), Ok("one"), "{what}");
            fs::remove_file(bench.path()).or_else(|_| fs::remove_dir(bench.path())).expect("removed");
            fs::write(bench.path(), &good).expect("written");
            keys.reload().await;
            assert_eq!(keys.broken_for(), None, "{what}");
        }
    }

    #[tokio::test]
    async fn expiry_goes_by_the_clock_that_was_given() {
        let bench = Bench::new();
        let expires: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let (secret, _) = bench
            .file
            .create_key(Some("brief"), Scope::Operator, Timestamp::UNIX_EPOCH, Some(expires))
            .expect("written");
        let now = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
        let clock = Arc::clone(&now);
        let keys =
            WatchedKeys::with_clock(bench.path(), move || *clock.lock().expect("unpoisoned")).await.expect("opened");
        assert_eq!(code(&keys, &secret).await.as_deref(), Ok("brief"));
        *now.lock().expect("unpoisoned") = expires;
        assert_eq!(code(&keys, &secret).await, Err("UNAUTHENTICATED"));
    }
}
