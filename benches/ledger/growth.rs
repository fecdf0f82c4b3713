//! That a read costs the same however much the ledger holds, and what it holds costs in memory.

use std::path::Path;
use std::sync::Arc;

use artifactd::ledger::Ledger;

use crate::load::{self, Load, project};
use crate::server::Server;
use crate::{Extent, embedded, in_redis};

/// What there may be much of.
#[derive(Clone, Copy)]
enum Much {
    Entries,
    Projects,
    OpenLeases,
}

impl Much {
    const ALL: [(Self, &str); 3] =
        [(Self::Entries, "entries that day"), (Self::Projects, "projects"), (Self::OpenLeases, "open reservations")];

    /// Brings the ledger from `from` to `to` of it.
    async fn grow(self, ledger: &Arc<dyn Ledger>, from: usize, to: usize) {
        match self {
            Self::Entries => {
                Load::reads(Arc::clone(ledger), 1).repeat(to - from).await;
            }
            Self::Projects | Self::OpenLeases => {
                let mut calls = tokio::task::JoinSet::new();
                for n in from..to {
                    let (ledger, all) = (Arc::clone(ledger), matches!(self, Self::Projects));
                    let project = project(if all { n } else { 0 });
                    calls.spawn(async move {
                        let lease = load::reserve(&*ledger, &project).await;
                        if all {
                            load::settle(&*ledger, &project, lease).await;
                        }
                    });
                    if calls.len() == 64 {
                        calls.join_next().await.unwrap().unwrap();
                    }
                }
                calls.join_all().await;
            }
        }
    }
}

pub(crate) async fn costs(server: &Server, directory: &Path, extent: &Extent) {
    println!("\nA read of one project by 64 callers, while the ledger holds");
    println!("{:<28} {:>10} {:>14} {:>14} {:>16}", "", "", "us Redis", "Redis per s", "embedded per s");
    for (much, name) in Much::ALL {
        let redis: Arc<dyn Ledger> = in_redis(server);
        let file: Arc<dyn Ledger> = embedded(directory);
        let mut held = 0;
        for to in [1, 1000, extent.most] {
            for ledger in [&redis, &file] {
                much.grow(ledger, held, to).await;
            }
            held = to;
            let (ran, us) = server.timed(Load::reads(Arc::clone(&redis), 1).run(64, extent.lasts / 2)).await;
            let embedded = Load::reads(Arc::clone(&file), 1).run(64, extent.lasts / 2).await.rate();
            println!("{name:<28} {to:>10} {us:>14.1} {:>14.0} {embedded:>16.0}", ran.rate());
        }
        let () = server.ask("FLUSHALL").await;
    }
    println!("Reads that were measured add to the entries; above 100,000 a day they are rolled up.");
}

pub(crate) async fn memory(server: &Server, count: usize) {
    let () = server.ask("FLUSHALL").await;
    let ledger = in_redis(server);
    // So that what is there only once does not count.
    let first = load::reserve(&*ledger, &project(0)).await;
    load::settle(&*ledger, &project(0), first).await;
    let before = server.memory().await;
    let each = |bytes: f64| bytes / f64::from(u32::try_from(count).unwrap());
    let mut leases = Vec::with_capacity(count);
    for _ in 0..count {
        leases.push(load::reserve(&*ledger, &project(0)).await);
    }
    let open = each(server.memory().await - before);
    for lease in leases {
        load::settle(&*ledger, &project(0), lease).await;
    }
    let ended = each(server.memory().await - before);
    let keys: Vec<String> = server.ask("KEYS *:lines").await;
    let line = each(server.ask::<f64>(&format!("MEMORY USAGE {} SAMPLES 0", keys[0])).await);
    println!("\nBytes of Redis memory for each of {count}");
    for (what, bytes) in [("open reservation", open), ("ended one, 5 minutes", ended - line), ("entry", line)] {
        println!("{what:<28} {bytes:>10.0}");
    }
}
