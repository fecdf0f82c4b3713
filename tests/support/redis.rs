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

/// Lets a server answer no call that is not on disk. By `everysec` it may put off writing for up to two
/// seconds while its disk is busy, and a kill then loses what it answered.
pub(crate) fn write_before_answering(port: u16) {
    assert_eq!(ask(port, &["CONFIG", "SET", "appendfsync", "always"]), "OK");
}

/// A server on a port and over the files of one that ended, which writes before it answers.
pub(crate) fn server_at(port: u16, dir: &Path) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string()]).args(settings()).arg("--dir").arg(dir);
    command.args(["--appendfsync", "always"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server")
}

/// Asks a server by `redis-cli`; the answer as it prints it.
pub(crate) fn ask(port: u16, words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(words).output().expect("redis-cli");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Waits until `ready`, at most half a minute.
#[allow(clippy::disallowed_methods, reason = "other processes are waited for, also where there is no runtime")]
pub(crate) fn wait(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
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
fn join(ports: &[u16], replicas: usize) {
    let nodes = ports.iter().map(|port| format!("127.0.0.1:{port}"));
    let mut create = Command::new("redis-cli");
    create.args(["--cluster", "create"]).args(nodes);
    create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]).stdout(Stdio::null());
    let mut create = create.spawn().expect("redis-cli");
    let begun = Instant::now();
    wait("servers that join", || {
        // A handshake lasts no longer than the time-out of a node, and `create` does not repeat it.
        if begun.elapsed() > Duration::from_secs(3) {
            ports[1..].iter().for_each(|port| meet(*port, ports[0]));
        }
        let ended = create.try_wait().expect("a child");
        ended.is_some_and(|status| {
            assert!(status.success(), "{status}");
            true
        })
    });
    for port in ports {
        wait("a cluster", || {
            let info = ask(*port, &["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
        });
    }
}

/// Makes a server know another one of its cluster, if it does not yet.
fn meet(port: u16, other: u16) {
    let nodes = ask(other, &["CLUSTER", "NODES"]);
    let bus = nodes.lines().find(|line| line.contains("myself")).and_then(|line| {
        let address = line.split_whitespace().nth(1)?;
        address.split_once('@')?.1.split(',').next()
    });
    ask(port, &["CLUSTER", "MEET", "127.0.0.1", &other.to_string(), bus.expect("the port of its bus")]);
}

/// A server of a cluster of a test's own.
fn cluster_node() -> Server {
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
fn sentinel(master: u16) -> Server {
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

/// A master and its replica under a Sentinel, each a server of a test's own.
pub(crate) struct Sentinels {
    pub(crate) master: Server,
    pub(crate) replica: Server,
    sentinel: Server,
}

impl Sentinels {
    pub(crate) fn start() -> Self {
        let master = server(&[]);
        let replica = server(&["--replicaof", "127.0.0.1", &master.address.port().to_string()]);
        wait("a replica", || follows(replica.address.port()));
        let sentinel = sentinel(master.address.port());
        let found = replica.address.port().to_string();
        wait("a Sentinel that knows the replica", || {
            ask(sentinel.address.port(), &["SENTINEL", "REPLICAS", "main"]).contains(&found)
        });
        Self { master, replica, sentinel }
    }

    /// The URL of the master that the Sentinel names; the first Sentinel of the list is not there.
    pub(crate) fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:1,{}/main", self.sentinel.address)
    }
}

/// A cluster of a test's own, of three masters with so many replicas each.
pub(crate) fn cluster(replicas: usize) -> Vec<Server> {
    let nodes: Vec<_> = (0..3 + 3 * replicas).map(|_| cluster_node()).collect();
    join(&ports(&nodes), replicas);
    for port in ports(&nodes) {
        wait("replicas", || replicas == 0 || follows(port) || replication(port).contains("state=online"));
    }
    nodes
}

pub(crate) fn ports(nodes: &[Server]) -> Vec<u16> {
    nodes.iter().map(|node| node.address.port()).collect()
}

fn replication(port: u16) -> String {
    ask(port, &["INFO", "replication"])
}

fn follows(replica: u16) -> bool {
    replication(replica).contains("master_link_status:up")
}

fn slot(port: u16, project: &str) -> String {
    ask(port, &["CLUSTER", "KEYSLOT", &format!("{{{project}}}")])
}

/// The master among `ports` that has the keys of a project.
pub(crate) fn master_of(ports: &[u16], project: &str) -> u16 {
    let serves = |port: u16| {
        replication(port).contains("role:master")
            && !["0", ""].contains(&&*ask(port, &["CLUSTER", "COUNTKEYSINSLOT", &slot(port, project)]))
    };
    *ports.iter().find(|port| serves(**port)).expect("a master that has the keys")
}

/// The replica among `ports` of the master of that port.
pub(crate) fn replica_of(ports: &[u16], master: u16) -> u16 {
    let mine = format!("master_port:{master}\r");
    *ports.iter().find(|port| (replication(**port) + "\r").contains(&mine)).expect("a replica")
}

/// Waits until the replica has all that its master has at this moment. A replica may be behind by any
/// time, where a machine is busy: that it follows says nothing of how closely.
pub(crate) fn caught_up(master: u16, replica: u16) {
    let offset = |port| {
        let info = replication(port);
        let offset = info.lines().find_map(|line| line.trim().strip_prefix("master_repl_offset:"));
        offset.and_then(|offset| offset.parse::<u64>().ok()).expect("an offset")
    };
    let master = offset(master);
    wait("replication", || offset(replica) >= master);
}

/// Cuts a replica off: from now on it hears nothing from its master, and still may take over.
pub(crate) fn cut_off(replica: u16) {
    assert_eq!(ask(replica, &["CONFIG", "SET", "masterauth", "refused"]), "OK");
    ask(replica, &["CLIENT", "KILL", "TYPE", "master"]);
    wait("the link to be down", || !follows(replica));
}

/// A slot on its way from one master of a cluster to another.
pub(crate) struct Move {
    slot: String,
    from: u16,
    to: u16,
}

/// Begins to move the slot of a project: from now on it belongs to two masters.
pub(crate) fn begin_move(ports: &[u16], project: &str) -> Move {
    let from = master_of(ports, project);
    let slot = slot(from, project);
    let to = *ports.iter().find(|port| **port != from && replication(**port).contains("role:master")).expect("another");
    let of = Move { slot, from, to };
    of.set_slot(to, "IMPORTING", from);
    of.set_slot(from, "MIGRATING", to);
    of
}

impl Move {
    fn set_slot(&self, port: u16, state: &str, node: u16) {
        let node = ask(node, &["CLUSTER", "MYID"]);
        assert_eq!(ask(port, &["CLUSTER", "SETSLOT", &self.slot, state, &node]), "OK");
    }

    /// Moves the keys, none of which the other master may have already, and gives it the slot.
    pub(crate) fn finish(self) {
        let target = self.to.to_string();
        wait("the slot to be empty", || {
            let keys = ask(self.from, &["CLUSTER", "GETKEYSINSLOT", &self.slot, "100"]);
            let keys: Vec<_> = keys.lines().filter(|key| !key.is_empty()).collect();
            let mut move_keys = vec!["MIGRATE", "127.0.0.1", &target, "", "0", "5000", "KEYS"];
            move_keys.extend(&keys);
            keys.is_empty() || {
                let answer = ask(self.from, &move_keys);
                assert!(!answer.contains("BUSYKEY"), "both masters have it: {answer}");
                false
            }
        });
        for port in [self.to, self.from] {
            self.set_slot(port, "NODE", self.to);
        }
    }
}
