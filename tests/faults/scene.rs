//! Services over one store and one ledger, each a process of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::books::Books;
use crate::clients::PATIENCE;
use crate::servers::Server;

/// The credit step, and how long a lease lives.
pub(crate) const CREDIT: u64 = 256 << 10;
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// The project whose files are downloaded.
pub(crate) const PROJECT: &str = "demo";

/// A file of the store.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) size: u64,
}

pub(crate) struct Scene {
    pub(crate) books: Books,
    pub(crate) services: Vec<Server>,
    pub(crate) files: Vec<File>,
    pub(crate) key: String,
    daily: String,
    scratch: TempDir,
    client: reqwest::Client,
}

impl Scene {
    /// Services over files of nothing, of little, of exactly a grant and of many.
    pub(crate) fn start(books: Books) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let folder = at(&format!("store/{PROJECT}/t1"));
        std::fs::create_dir_all(&folder).unwrap();
        let sizes = [0, 1, 1000, 65_537, CREDIT, CREDIT + 1, 3 * CREDIT + 7, 3 << 20, 24 << 20];
        let files = sizes.map(|size| {
            std::fs::File::create(folder.join(size.to_string())).unwrap().set_len(size).unwrap();
            File { path: format!("/v1/trials/t1/artifacts/{size}/content"), size }
        });
        let settings = format!(
            "[store]\nurl = \"file://{store}\"\n[ledger]\nurl = \"{ledger}\"\nlease_seconds = {lease}\n\
             credit = {CREDIT}\n[access]\nkeys_file = \"{keys}\"\n",
            store = at("store").display(),
            ledger = books.url(scratch.path()),
            lease = LEASE.as_secs(),
            keys = at("keys.toml").display(),
        );
        std::fs::write(at("artifactd.toml"), settings).unwrap();
        let key = key(&at("keys.toml"));
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
        let daily = "unlimited".to_owned();
        let mut scene = Self { books, services: Vec::new(), files: files.into(), key, daily, scratch, client };
        for _ in 0..scene.books.replicas() {
            let service = Server::start(|port, _| scene.command(port));
            scene.services.push(service);
        }
        scene
    }

    fn command(&self, port: u16) -> Command {
        // The signal that comes with a full disk of the tests' kind would end the process; a disk that
        // is really full sends none.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_artifactd"), "serve", "--config"]);
        command.arg(self.settings()).env("ARTIFACTD_LISTEN", format!("127.0.0.1:{port}"));
        command.env("ARTIFACTD_QUOTA__DAILY_BYTES", &self.daily);
        command
    }

    fn settings(&self) -> PathBuf {
        self.scratch.path().join("artifactd.toml")
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.services.iter().map(|service| service.address).collect()
    }

    /// Kills a service and starts another at its address.
    pub(crate) async fn restart(&mut self, n: usize) {
        self.services[n].kill();
        let address = self.services[n].address;
        let log = std::fs::File::options().append(true).open(self.services[n].dir.path().join("log")).unwrap();
        let mut command = self.command(address.port());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        self.services[n].replace(child);
        let give_up = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < give_up, "it listens again: {}", self.services[n].log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Starts all services anew, with another allowance.
    pub(crate) async fn allow(&mut self, bytes: u64) {
        self.daily = bytes.to_string();
        for n in 0..self.services.len() {
            self.restart(n).await;
        }
    }

    pub(crate) fn signal(&self, n: usize, signal: Signal) {
        kill_process(self.pid(n), signal).unwrap();
    }

    pub(crate) fn pid(&self, n: usize) -> Pid {
        Pid::from_raw(self.services[n].id().cast_signed()).unwrap()
    }

    /// The database of an embedded ledger, bytes. Beside it lies its log, whose room is used anew where the
    /// database can take up what is in it.
    pub(crate) fn database(&self) -> u64 {
        self.scratch.path().join("ledger.db").metadata().unwrap().len()
    }

    /// What a service answers.
    pub(crate) async fn ask(&self, service: &Server, path: &str) -> Result<Value, String> {
        let request = self.client.get(format!("{}{path}", service.url())).bearer_auth(&self.key);
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let (status, text) = (answer.status(), answer.text().await.map_err(|error| error.to_string())?);
        if status != 200 {
            return Err(format!("{status}: {text}"));
        }
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// What any of the services answers, asked again while it has no ledger.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let give_up = Instant::now() + PATIENCE;
        let mut services = self.services.iter().cycle();
        loop {
            match self.ask(services.next().expect("there are services"), path).await {
                Ok(answer) => return answer,
                Err(error) => assert!(Instant::now() < give_up, "{path}: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn key(file: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_artifactd"));
    command.args(["keys", "create", "--project", PROJECT, "--preset", "read-only", "--json", "--keys-file"]).arg(file);
    let output = command.output().unwrap();
    let key: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    key["key"].as_str().unwrap().to_owned()
}
