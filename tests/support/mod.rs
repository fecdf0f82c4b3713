//! What integration tests share: servers on free ports that stop with the test, and where they are
//! installed. Nothing here knows what it is a test of.

#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod azure;
pub(crate) mod redis;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take until it listens.
const START: Duration = Duration::from_secs(60);

/// A port of 127.0.0.1 that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// A program below `target/`, where `make test` installs what tests need.
///
/// # Panics
/// It is not installed: that is a failure, not a reason to skip.
pub(crate) fn installed(program: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join(program);
    assert!(path.exists(), "target/{program} is not installed: run `make test`, which installs what the tests need");
    path
}

/// A running server, killed by its process id when dropped.
pub(crate) struct Server {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its scratch directory, with its output in `log`.
    pub(crate) dir: TempDir,
}

impl Server {
    /// Starts what `command` makes of a free port and a scratch directory, and waits until the port
    /// answers.
    ///
    /// # Panics
    /// It cannot be started, ends, or does not listen within a minute.
    pub(crate) fn start(command: impl Fn(u16, &Path) -> Command) -> Self {
        let port = free_port();
        let dir = tempfile::tempdir().expect("a scratch directory");
        let log = std::fs::File::create(dir.path().join("log")).expect("a log");
        let mut command = command(port, dir.path());
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Self { child, address: ([127, 0, 0, 1], port).into(), dir };
        server.wait(&command);
        server
    }

    #[allow(clippy::disallowed_methods, reason = "a server may be started where there is no runtime")]
    fn wait(&mut self, command: &Command) {
        let deadline = Instant::now() + START;
        while TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_err() {
            let ended = self.child.try_wait().expect("a child");
            let late = Instant::now() > deadline;
            assert!(ended.is_none() && !late, "{command:?} does not listen: {ended:?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// `http://address`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as by `kill -9`.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Goes on as another process, which listens at the same address.
    pub(crate) fn replace(&mut self, child: Child) {
        self.kill();
        self.child = child;
    }

    /// An S3 server that checks no signatures.
    pub(crate) fn moto() -> Self {
        let program = installed("venv/bin/moto_server");
        Self::start(|port, _| {
            let mut command = Command::new(&program);
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
            command
        })
    }

    /// An Azure Blob Storage server.
    pub(crate) fn azurite() -> Self {
        let program = installed("npm/node_modules/.bin/azurite-blob");
        Self::start(|port, dir| {
            let mut command = Command::new(&program);
            command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
            command.args(["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--location"]).arg(dir);
            command
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How often a test that has a long form goes on: once, or, where `SOAK_SECONDS` is set, until
/// so many seconds have passed.
///
/// # Panics
/// It is set, and not a number.
#[allow(clippy::disallowed_methods, reason = "it is for tests")]
pub(crate) fn rounds() -> impl Iterator<Item = usize> {
    let seconds = std::env::var("SOAK_SECONDS").map_or(0, |text| text.parse().expect("whole seconds"));
    let until = Instant::now() + Duration::from_secs(seconds);
    (0..).take_while(move |round| *round == 0 || Instant::now() < until)
}
