//! What a metered read costs: reserve and settle, in Redis and in a file.
//!
//! `make bench-ledger`, or `taskset -c 1 cargo bench --bench ledger -- [--quick] [DIRECTORY]`. The embedded
//! ledger's file is written in DIRECTORY (default: the system's place for temporary files), whose disk decides
//! what durable costs. A `redis-server` of its own, from the path, has the first processor, and the clients the
//! second; nothing else should have much to do meanwhile.
//!
//! Everything is measured in one run, beside what the same client gets of a script that does nothing,
//! so that ratios hold on any machine. "us Redis" is the server's own processor time for each.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that reports to a terminal")]

mod growth;
mod load;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use artifactd::ledger::redis::Options;
use artifactd::ledger::{Allowance, Embedded, Ledger, Policy, Redis, ReservationId, ResetZone, Rules, SystemClock};

use load::{Load, Ran};
use server::Server;

/// How much is done.
struct Extent {
    /// How long each line of a table is measured.
    lasts: Duration,
    /// How far the ledger grows.
    most: usize,
}

fn policy() -> Policy {
    Policy { rules: Rules::default(), allowance: Allowance::Unlimited, zone: ResetZone::UTC }
}

/// A ledger with empty books of its own, whose keys are as long as usual.
fn in_redis(server: &Server) -> Arc<Redis> {
    ledger_at(&server.url("redis"))
}

fn ledger_at(url: &str) -> Arc<Redis> {
    static LEDGERS: AtomicUsize = AtomicUsize::new(0);
    let namespace = format!("bench-{}", LEDGERS.fetch_add(1, Relaxed));
    Arc::new(Redis::open(url, policy(), Options { namespace, ..Options::default() }).unwrap())
}

fn embedded(directory: &Path) -> Arc<Embedded> {
    let path = directory.join(format!("{}.db", ReservationId::new()));
    Arc::new(Embedded::open(path, policy(), SystemClock).unwrap())
}

/// The line of a table that every speed has.
fn row(what: &str, ran: &Ran, redis: Option<(f64, f64)>) {
    let redis = redis.map(|(us, bare)| format!("{us:>10.1} {:>10.1}", us / bare)).unwrap_or_default();
    println!(
        "{what:<44} {:>9.0} {:>9.2} {:>9.2} {:>10.1}{redis}",
        ran.rate(),
        ran.percentile(50),
        ran.percentile(99),
        ran.client_us(),
    );
}

fn head(title: &str, server: &str) {
    println!("\n{title:<44} {:>9} {:>9} {:>9} {:>10}{server}", "per s", "p50 ms", "p99 ms", "us client");
}

async fn speed_of_redis(server: &Server, lasts: Duration) {
    let bare = Load::bare(server).await;
    head("Redis", "   us Redis     x bare");
    let mut least = f64::INFINITY;
    for callers in [1, 64, 512] {
        let (ran, us) = server.timed(bare.run(callers, lasts)).await;
        least = least.min(us);
        row(&format!("a script that answers 1, {callers} callers"), &ran, Some((us, us)));
    }
    for durable in [false, true] {
        server.append_only(durable).await;
        for (callers, projects) in [(1, 1), (64, 64), (64, 8), (64, 1), (512, 512), (512, 1)] {
            if durable && callers != 64 {
                continue;
            }
            let reads = Load::reads(in_redis(server), projects);
            let (ran, us) = server.timed(reads.run(callers, lasts)).await;
            let file = if durable { ", appendonly" } else { "" };
            row(&format!("read, {callers} callers of {projects} projects{file}"), &ran, Some((us, least)));
        }
    }
    server.append_only(false).await;
    let cluster = Server::start_cluster().await;
    for (callers, projects) in [(64, 64), (64, 1)] {
        let reads = Load::reads(ledger_at(&cluster.url("redis-cluster")), projects);
        let (ran, us) = cluster.timed(reads.run(callers, lasts)).await;
        row(&format!("read, {callers} callers of {projects} projects, Cluster"), &ran, Some((us, least)));
    }
    println!("Calls under load go together: of all projects, or in a Cluster of one.");
    for pipeline in [1, 16] {
        match server.benchmark(pipeline) {
            Some(rate) => {
                println!("redis-benchmark, that script, 64 clients, {pipeline:>2} in a pipeline: {rate:.0} per s")
            }
            None => println!("redis-benchmark is not on the path"),
        }
    }
}

async fn speed_of_files(directory: &Path, lasts: Duration) {
    head("embedded", "");
    for (callers, projects) in [(1, 1), (64, 8), (64, 1), (512, 8)] {
        let ledger = embedded(directory);
        let ran = Load::reads(ledger.clone(), projects).run(callers, lasts).await;
        row(&format!("read, {callers} callers of {projects} projects"), &ran, None);
        let sums = ledger.verify(&load::project(0), None).await.unwrap().reply;
        assert!(sums.balanced(), "{sums:?}");
    }
}

fn main() {
    let (flags, places): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let extent = if flags.iter().any(|flag| flag == "--quick") {
        Extent { lasts: Duration::from_millis(500), most: 10_000 }
    } else {
        Extent { lasts: Duration::from_secs(3), most: 100_000 }
    };
    let directory = places.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(directory).expect("DIRECTORY is writable");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let server = Server::start().await;
        speed_of_redis(&server, extent.lasts).await;
        speed_of_files(directory.path(), extent.lasts).await;
        growth::costs(&server, directory.path(), &extent).await;
        growth::memory(&server, extent.most).await;
    });
}
