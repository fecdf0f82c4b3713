//! Faults of a whole service under load. Real clients count the bytes that reach them; when the fault
//! is over, no read is charged less than its client received, and I1 to I7 hold.
//!
//! Each row of the table below is a test: it lets clients download, does its harm in mid-load, waits
//! until a lease and W have passed, and reads the books. `SOAK_SECONDS` has every test do so
//! again and again for that long.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test stops where it fails, and says what it saw")]

#[path = "../support/mod.rs"]
mod servers;

mod books;
mod clients;
mod harm;
mod scene;
mod verdict;

use books::Books;
use clients::Load;
use harm::Harm;
use scene::Scene;
use verdict::Verdict;

/// One test for each fault and each place where the books may be.
macro_rules! faults {
    ($($name:ident: $harm:expr => $($books:ident),+;)*) => {$(
        mod $name {
            $(
                #[allow(non_snake_case, reason = "named as the ledger is")]
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $books() {
                    super::suffer($harm, crate::Books::$books).await;
                }
            )+
        }
    )*};
}

faults! {
    the_service_is_killed: crate::Harm::Killed => embedded, redis;
    the_service_stands_still_longer_than_a_lease: crate::Harm::Stopped => embedded, redis;
    clients_leave_at_every_fraction: crate::Harm::ClientsLeave => embedded, redis;
    the_disk_is_full: crate::Harm::DiskFull => embedded;
    redis_is_killed: crate::Harm::RedisKilled => redis;
    scripts_are_forgotten: crate::Harm::ScriptsForgotten => redis;
    redis_pauses_its_clients: crate::Harm::RedisPauses => redis;
    redis_sleeps: crate::Harm::RedisSleeps => redis;
    redis_is_out_of_memory: crate::Harm::MemoryFull => redis;
    a_master_fails_over: crate::Harm::FailsOver => sentinels, cluster;
    a_master_fails_over_to_a_replica_that_lags: crate::Harm::FailsOverBehind => sentinels, cluster;
    a_slot_moves: crate::Harm::SlotMoves => cluster;
}

async fn suffer(harm: Harm, books: fn() -> Books) {
    for round in servers::rounds() {
        let mut scene = Scene::start(books());
        let load = Load::start(&scene, harm.manners());
        let blow = harm.strike(&mut scene, &load).await;
        load.until(harm.downloads()).await;
        let reads = load.stop().await;
        let verdict = Verdict::of(&scene, reads).await;
        println!("round {round}: {harm:?}: {verdict}");
        verdict.check(&harm, &blow);
        verdict::fits(&mut scene).await;
    }
}
