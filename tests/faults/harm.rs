//! What is done to a service and its ledger while clients download.

use std::time::{Duration, Instant};

use rand::RngExt as _;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit};
use tokio::time::sleep;

use crate::books::Books;
use crate::clients::{Load, Manner, mixed};
use crate::scene::{LEASE, PROJECT, Scene};
use crate::servers::redis::{
    ask, begin_move, caught_up, cut_off, master_of, ports, replica_of, server_at, wait, write_before_answering,
};

/// Downloads before the harm begins.
const BEFORE: usize = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// SIGKILL at random moments, the service started again each time.
    Killed,
    /// SIGSTOP for longer than a lease.
    Stopped,
    /// No harm but that of the clients: they leave after every fraction of every file.
    ClientsLeave,
    /// The files of an embedded ledger can hardly grow, then not even be written.
    DiskFull,
    /// SIGKILL, then a start over its append-only file.
    RedisKilled,
    /// `SCRIPT FLUSH`, again and again.
    ScriptsForgotten,
    /// `CLIENT PAUSE`, 5 s.
    RedisPauses,
    /// `DEBUG SLEEP`, 4 s.
    RedisSleeps,
    /// `maxmemory` is reached, and nothing evicted.
    MemoryFull,
    /// The master is killed; its replica takes over.
    FailsOver,
    /// The same, and the replica had heard nothing for a while: what was answered since is lost.
    FailsOverBehind,
    /// A slot moves to another master.
    SlotMoves,
}

/// What the harm did, as far as the verdict needs it.
#[derive(Debug, Default)]
pub(crate) struct Blow {
    /// Calls that the ledger answered in this time may be lost.
    pub(crate) lost: Option<(Instant, Instant)>,
}

impl Harm {
    /// How the clients of its test download.
    pub(crate) fn manners(self) -> fn(usize) -> Manner {
        match self {
            Self::ClientsLeave => |n| Manner::Leaves(((n as u64 / 8) * 37) % 1001),
            _ => mixed,
        }
    }

    /// Downloads of a round, at the least.
    pub(crate) const fn downloads(self) -> usize {
        if matches!(self, Self::Killed) { 200 } else { 120 }
    }

    /// Does it, once the load is under way; goes on when it is over.
    pub(crate) async fn strike(self, scene: &mut Scene, load: &Load) -> Blow {
        load.until(BEFORE).await;
        match self {
            Self::Killed => {
                for _ in 0..6 {
                    load.goes_on(rand::rng().random_range(1..40)).await;
                    sleep(Duration::from_millis(rand::rng().random_range(0..50))).await;
                    scene.restart(rand::rng().random_range(0..scene.services.len())).await;
                }
                load.wait("a download that was cut", || load.cut() > 0).await;
            }
            Self::Stopped => {
                for _ in 0..4 {
                    load.slow_client();
                }
                load.goes_on(8).await;
                scene.signal(0, Signal::STOP);
                sleep(LEASE + Duration::from_secs(1)).await;
                // Where there is another service, it finds the leases due before their owner wakes.
                if let Some(other) = scene.services.get(1) {
                    scene.ask(other, "/v1/quota").await.unwrap();
                }
                scene.signal(0, Signal::CONT);
            }
            // Every file, at each of some 30 fractions from none to all.
            Self::ClientsLeave => load.until(8 * 28).await,
            Self::DiskFull => {
                for room in [scene.database() + 16_384, 1] {
                    limit_files(scene, Some(room));
                    let before = load.unavailable();
                    load.wait("a full disk", || load.unavailable() > before + 10).await;
                    sleep(LEASE).await;
                    limit_files(scene, None);
                    load.goes_on(20).await;
                }
            }
            _ => return self.strike_redis(scene, load).await,
        }
        Blow::default()
    }

    async fn strike_redis(self, scene: &mut Scene, load: &Load) -> Blow {
        let ports = scene.books.ports();
        match self {
            Self::RedisKilled => {
                write_before_answering(ports[0]);
                load.goes_on(20).await;
                for _ in 0..2 {
                    kill_redis(&mut scene.books, ports[0]);
                    load.goes_on(40).await;
                }
            }
            Self::ScriptsForgotten => {
                let before = load.unavailable();
                for _ in 0..20 {
                    load.goes_on(5).await;
                    for port in &ports {
                        ask(*port, &["SCRIPT", "FLUSH"]);
                    }
                }
                assert_eq!(load.unavailable(), before, "nobody notices");
            }
            Self::RedisPauses => self.hang(load, &["CLIENT", "PAUSE", "5000", "ALL"], ports[0]).await,
            Self::RedisSleeps => self.hang(load, &["DEBUG", "SLEEP", "4"], ports[0]).await,
            Self::MemoryFull => {
                ask(ports[0], &["CONFIG", "SET", "maxmemory", "1"]);
                load.wait("a full memory", || load.unavailable() > 20).await;
                ask(ports[0], &["CONFIG", "SET", "maxmemory", "0"]);
                load.goes_on(40).await;
            }
            Self::FailsOver | Self::FailsOverBehind => return self.fail_over(scene, load).await,
            _ => {
                begin_move(&ports, PROJECT).finish();
                load.goes_on(60).await;
            }
        }
        Blow::default()
    }

    async fn hang(self, load: &Load, words: &[&str], port: u16) {
        let before = load.unavailable();
        ask(port, words);
        load.goes_on(40).await;
        assert!(load.unavailable() > before, "it was felt");
    }

    async fn fail_over(self, scene: &mut Scene, load: &Load) -> Blow {
        let (master, replica) = match &scene.books {
            Books::Sentinels(sentinels) => (sentinels.master.address.port(), sentinels.replica.address.port()),
            Books::Cluster(nodes) => {
                let ports = ports(nodes);
                let master = master_of(&ports, PROJECT);
                (master, replica_of(&ports, master))
            }
            Books::Embedded | Books::Redis(_) => unreachable!("nobody can take over"),
        };
        let begun = Instant::now();
        caught_up(master, replica);
        if self == Self::FailsOverBehind {
            cut_off(replica);
            for _ in 0..4 {
                load.slow_client();
            }
            load.goes_on(8).await;
            sleep(Duration::from_millis(200)).await;
        }
        match &mut scene.books {
            Books::Sentinels(sentinels) => sentinels.master.kill(),
            Books::Cluster(nodes) => {
                nodes.iter_mut().find(|node| node.address.port() == master).unwrap().kill();
            }
            Books::Embedded | Books::Redis(_) => {}
        }
        let lost = Some((begun, Instant::now()));
        load.wait("another master", || ask(replica, &["ROLE"]).starts_with("master")).await;
        load.goes_on(40).await;
        Blow { lost }
    }
}

/// Kills Redis and starts it over its files, and waits until it has read them.
fn kill_redis(books: &mut Books, port: u16) {
    let Books::Redis(server) = books else { unreachable!("one server") };
    let dir = server.dir.path().to_owned();
    server.kill();
    server.replace(server_at(port, &dir));
    wait("the server's file", || ask(port, &["PING"]) == "PONG");
}

/// The files of the service may not grow beyond so many bytes: what any user may ask of the kernel.
fn limit_files(scene: &Scene, bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    prlimit(Some(scene.pid(0)), Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}
