//! Redis servers for tests: alone, as a cluster, with a replica and Sentinels.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::{Server, free_port};

/// What every server of a test is: durable, never evicting, open to `DEBUG`.
const SETTINGS: &str = "--save '' --appendonly yes --appendfsync everysec --maxmemory-policy noeviction \
                        --enable-debug-command local --protected-mode no --bind 127.0.0.1";

fn settings() -> impl Iterator<Item = &'static str> {
    SETTINGS.split_whitespace().map(|word| if word == "''" { "" } else { word })
}

/// A server with further settings, written as on its command line.
pub(crate) fn server(more: &[&str]) -> Server {
    let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
    Server::start(move |port, dir| {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string()]).args(settings()).args(["--dir"]).arg(dir).args(&more);
        command
    })
}

/// A server on a port and over the files of one that ended.
pub(crate) fn server_at(port: u16, dir: &Path) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string()]).args(settings()).arg("--dir").arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server")
}

/// Asks a server by `redis-cli`; the answer as it prints it.
pub(crate) fn ask(port: u16, words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(words).output().expect("redis-cli");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Waits until `ready`, at most ten seconds.
#[allow(clippy::disallowed_methods, reason = "other processes are waited for, also where there is no runtime")]
pub(crate) fn wait(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !ready() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Servers that all tests of a process share. Their shell ends them when the process ends, however it
/// ends: its end of the pipe is closed.
struct Shared {
    ports: Vec<u16>,
    _shell: Child,
    _dir: tempfile::TempDir,
}

impl Shared {
    fn start(count: usize, more: impl Fn(u16) -> Vec<String>) -> Self {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let script = r#"while IFS= read -r line && [ -n "$line" ]; do eval "exec redis-server $line > /dev/null 2>&1" & pids="$pids $!"; done
            cat > /dev/null; kill $pids"#;
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut commands = String::new();
        for port in &ports {
            let home = dir.path().join(port.to_string());
            std::fs::create_dir(&home).expect("a directory");
            let more = more(*port).join(" ");
            commands.push_str(&format!("--port {port} {SETTINGS} --dir {} {more}\n", home.display()));
        }
        commands.push('\n');
        use std::io::Write as _;
        shell.stdin.as_mut().expect("a pipe").write_all(commands.as_bytes()).expect("written");
        for port in &ports {
            wait("a server that answers", || ask(*port, &["PING"]) == "PONG");
        }
        Self { ports, _shell: shell, _dir: dir }
    }
}

/// The port of a server that tests share, each by a namespace of its own.
pub(crate) fn shared() -> u16 {
    static SERVER: OnceLock<Shared> = OnceLock::new();
    SERVER.get_or_init(|| Shared::start(1, |_| Vec::new())).ports[0]
}

/// The ports of a cluster of three masters that tests share.
pub(crate) fn shared_cluster() -> &'static [u16] {
    static CLUSTER: OnceLock<Shared> = OnceLock::new();
    &CLUSTER
        .get_or_init(|| {
            let cluster = Shared::start(3, cluster_settings);
            join(&cluster.ports, 0);
            cluster
        })
        .ports
}

fn cluster_settings(_: u16) -> Vec<String> {
    let bus = free_port().to_string();
    ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-port", &bus].map(str::to_owned).into()
}

/// Makes one cluster of servers and waits until each of them knows all of it.
pub(crate) fn join(ports: &[u16], replicas: usize) {
    let nodes = ports.iter().map(|port| format!("127.0.0.1:{port}"));
    let mut create = Command::new("redis-cli");
    create.args(["--cluster", "create"]).args(nodes);
    create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]);
    let output = create.output().expect("redis-cli");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    for port in ports {
        wait("a cluster", || {
            let info = ask(*port, &["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
        });
    }
}

/// A server of a cluster of a test's own.
pub(crate) fn cluster_node() -> Server {
    let settings = cluster_settings(0);
    server(&settings.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The URL of a server.
pub(crate) fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

/// The URL of a cluster.
pub(crate) fn cluster_url(ports: &[u16]) -> String {
    let nodes: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis-cluster://{}", nodes.join(","))
}

/// A Sentinel that watches the master of that port under the name `main`.
pub(crate) fn sentinel(master: u16) -> Server {
    Server::start(move |port, dir: &Path| {
        let config = dir.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n",
            dir.display()
        );
        std::fs::write(&config, text).expect("written");
        let mut command = Command::new("redis-server");
        command.arg(config).arg("--sentinel");
        command
    })
}
