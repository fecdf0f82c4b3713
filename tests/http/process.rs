//! The binary as a process of its own: to be killed, and for what it logs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::raw;

pub struct Process {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the binary, which logs JSON, and waits until it says where it listens.
    pub fn start(config: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_artifactd"))
            .args(["serve", "--config"])
            .arg(config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = lines.lines().map(|line| line.expect("text"));
        let line = lines.find(|line| line.contains("\"listening\"")).expect("it listens");
        let line: Value = serde_json::from_str(&line).expect("a log line");
        let address = line["address"].as_str().expect("address").parse().expect("address");
        // The pipe is read on, so that the process never waits for its log.
        let log = Arc::<Mutex<String>>::default();
        let reader = std::thread::spawn({
            let log = Arc::clone(&log);
            move || lines.for_each(|line| log.lock().expect("unpoisoned").push_str(&(line + "\n")))
        });
        Self { child, address, log, reader: Some(reader) }
    }

    /// Starts the binary with its log going to `log`, and waits until it listens at `address`.
    pub fn start_logging_to(log: Stdio, config: &Path, address: SocketAddr) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_artifactd"));
        let child = command.args(["serve", "--config"]).arg(config).stderr(log).spawn().expect("it starts");
        let mut process = Self { child, address, log: Arc::default(), reader: None };
        let give_up = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(process.is_running(), "it stopped");
            assert!(Instant::now() < give_up, "it listens");
            #[expect(clippy::disallowed_methods, reason = "no runtime runs here")]
            std::thread::sleep(Duration::from_millis(20));
        }
        process
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a state").is_none()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("it is gone");
    }

    /// Stops it as an operator would; answers everything that it logged.
    pub fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("told");
        assert!(self.child.wait().expect("it stops").success());
        self.reader.take().expect("its log is read").join().expect("read");
        self.log.lock().expect("unpoisoned").clone()
    }

    pub fn json(&self, path: &str, key: &str) -> Value {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.write_all(&raw::request("GET", path, key, "")).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
