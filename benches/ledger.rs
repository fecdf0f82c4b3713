//! Reads metered per second: reserve and settle, both durable, by one, 64 and 512 callers at once.
//!
//! `cargo bench --bench ledger [-- SECONDS [DIRECTORY]]`; the file is written in DIRECTORY, which
//! decides what durable costs (default: the system's place for temporary files).

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that reports to a terminal")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifactd::artifact::{ArtifactName, ProjectId, TrialId};
use artifactd::ledger::{
    Allowance, Channel, Context, Embedded, Ledger, Outcome, Policy, ReservationId, Reserve, ResetZone, Rules, Settle,
    SystemClock,
};
use tokio::task::JoinSet;

const SIZE: u64 = 4096;

async fn read(ledger: &Embedded, project: &ProjectId) -> Duration {
    let begun = Instant::now();
    let context = Context {
        key_id: "key_7f3a9c".to_owned(),
        channel: Channel::Mcp,
        trial: TrialId::parse("hello-world__aB3xYz9").unwrap(),
        artifact: ArtifactName::parse("verifier/test-stdout.txt").unwrap(),
        request_id: "0193c5a2-7b1e-7c3d-9f00-5d1e2f3a4b5c".to_owned(),
        link_id: None,
    };
    let now = ledger.now().await.unwrap();
    let (id, project) = (ReservationId::new(), project.clone());
    let not_after = now.plus(ledger.rules().admission_ms);
    let call = Reserve { project: project.clone(), id, size: SIZE, not_after, context: context.clone() };
    let lease = ledger.reserve(&call).await.unwrap().reply.lease().unwrap();
    let settle = Settle {
        project,
        id,
        actual: SIZE,
        size: SIZE,
        day: Some(lease.day),
        deadline: lease.deadline,
        outcome: Outcome::Completed,
        context,
    };
    ledger.settle(&settle).await.unwrap();
    begun.elapsed()
}

async fn round(ledger: &Arc<Embedded>, callers: usize, lasts: Duration) {
    let until = Instant::now() + lasts;
    let mut tasks = JoinSet::new();
    let (begun, cpu) = (Instant::now(), cpu_time());
    for caller in 0..callers {
        let ledger = Arc::clone(ledger);
        let project = ProjectId::parse(&format!("project-{}", caller % 8)).unwrap();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                times.push(read(&ledger, &project).await);
            }
            times
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done.unwrap());
    }
    let (wall, cpu) = (begun.elapsed(), cpu_time() - cpu);
    times.sort_unstable();
    let count = u32::try_from(times.len()).unwrap();
    let percentile = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!(
        "{callers:>4} callers: {:>7.0} reads/s  p50 {:.2} ms  p99 {:.2} ms  {:.1} us CPU per read",
        f64::from(count) / wall.as_secs_f64(),
        percentile(50),
        percentile(99),
        cpu.as_secs_f64() * 1e6 / f64::from(count),
    );
}

/// Processor time of this process so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let seconds = arguments.next().map_or(3, |seconds| seconds.parse().expect("SECONDS is a whole number"));
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(directory).expect("DIRECTORY is writable");
    let policy = Policy { rules: Rules::default(), allowance: Allowance::Unlimited, zone: ResetZone::UTC };
    let ledger = Embedded::open(directory.path().join("ledger.db"), policy, SystemClock).unwrap();
    let ledger = Arc::new(ledger);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for callers in [1, 64, 512] {
        runtime.block_on(round(&ledger, callers, Duration::from_secs(seconds)));
    }
    let sums = runtime.block_on(ledger.verify(&ProjectId::parse("project-0").unwrap(), None)).unwrap().reply;
    assert!(sums.balanced(), "{sums:?}");
}
