//! Reads metered per second: reserve and settle, both durable, by one, 64 and 512 callers at once.
//!
//! `cargo bench --bench ledger [-- SECONDS [DIRECTORY]]`; the file is written in DIRECTORY, which
//! decides what durable costs (default: the system's place for temporary files). With `REDIS_URL` the
//! ledger in that Redis as well, and what the same client gets of a script that does nothing.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that reports to a terminal")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifactd::artifact::{ArtifactName, ProjectId, TrialId};
use artifactd::ledger::{
    Allowance, Channel, Context, Embedded, Ledger, LedgerTime, Outcome, Policy, Redis, ReservationId, Reserve,
    ResetZone, Rules, Settle, SystemClock, redis::Options,
};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

const SIZE: u64 = 4096;

async fn read(ledger: &dyn Ledger, project: &ProjectId, not_after: LedgerTime) -> Duration {
    let begun = Instant::now();
    let context = Context {
        key_id: "key_7f3a9c".to_owned(),
        channel: Channel::Mcp,
        trial: TrialId::parse("hello-world__aB3xYz9").unwrap(),
        artifact: ArtifactName::parse("verifier/test-stdout.txt").unwrap(),
        request_id: "0193c5a2-7b1e-7c3d-9f00-5d1e2f3a4b5c".to_owned(),
        link_id: None,
    };
    let (id, project) = (ReservationId::new(), project.clone());
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

/// Lets so many callers do `work` at once, each again and again; answers how often it was done.
async fn round<F>(callers: usize, lasts: Duration, work: impl Fn(usize) -> F + Clone + Send + 'static) -> f64
where
    F: Future<Output = Duration> + Send + 'static,
{
    let until = Instant::now() + lasts;
    let mut tasks = JoinSet::new();
    let (begun, cpu) = (Instant::now(), cpu_time());
    for caller in 0..callers {
        let work = work.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                times.push(work(caller).await);
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
    let count = f64::from(u32::try_from(times.len()).unwrap());
    let percentile = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    print!(
        "{callers:>4} callers: {:>7.0} /s  p50 {:.2} ms  p99 {:.2} ms  {:.1} us CPU each",
        count / wall.as_secs_f64(),
        percentile(50),
        percentile(99),
        cpu.as_secs_f64() * 1e6 / count,
    );
    count
}

async fn reads(ledger: &Arc<dyn Ledger>, callers: usize, lasts: Duration) -> f64 {
    let ledger = Arc::clone(ledger);
    let not_after = ledger.now().await.unwrap().plus(3_600_000);
    round(callers, lasts, move |caller| {
        let ledger = Arc::clone(&ledger);
        let project = ProjectId::parse(&format!("project-{}", caller % 8)).unwrap();
        async move { read(&*ledger, &project, not_after).await }
    })
    .await
}

/// The ledger in Redis, beside calls of a script that answers 1.
async fn in_redis(url: &str, policy: Policy, lasts: Duration) {
    let namespace = format!("bench-{}", ReservationId::new());
    let ledger = Redis::open(url, policy, Options { namespace, ..Options::default() }).unwrap();
    ledger.connect().await.unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(ledger);
    let info = redis::IntoConnectionInfo::into_connection_info(url).unwrap();
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let client = redis::Client::open(info.set_tcp_settings(tcp)).unwrap();
    let bare = client.get_multiplexed_async_connection().await.unwrap();
    let sha: String = redis::cmd("SCRIPT").arg("LOAD").arg("return 1").query_async(&mut bare.clone()).await.unwrap();
    for callers in [1, 64, 512] {
        for ledgers in [false, true] {
            println!("{}", if ledgers { "reserve + settle" } else { "a script that answers 1" });
            let before = server_cpu(&bare).await;
            let count = if ledgers {
                reads(&ledger, callers, lasts).await
            } else {
                let (bare, sha) = (bare.clone(), sha.clone());
                let call = move |_| {
                    let (mut bare, sha) = (bare.clone(), sha.clone());
                    async move {
                        let begun = Instant::now();
                        let mut call = redis::cmd("EVALSHA");
                        let _: i64 = call.arg(sha).arg(1).arg("k").query_async(&mut bare).await.unwrap();
                        begun.elapsed()
                    }
                };
                round(callers, lasts, call).await
            };
            println!("  {:.1} us of Redis each", (server_cpu(&bare).await - before) * 1e6 / count);
        }
    }
}

/// Processor time of the server so far, s.
async fn server_cpu(connection: &MultiplexedConnection) -> f64 {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(&mut connection.clone()).await.unwrap();
    let field = |name| info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse::<f64>().unwrap();
    field("used_cpu_user:") + field("used_cpu_sys:")
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
    let ledger = Embedded::open(directory.path().join("ledger.db"), policy.clone(), SystemClock).unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(ledger);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
    let lasts = Duration::from_secs(seconds);
    println!("embedded: reserve + settle");
    for callers in [1, 64, 512] {
        runtime.block_on(reads(&ledger, callers, lasts));
        println!();
    }
    let sums = runtime.block_on(ledger.verify(&ProjectId::parse("project-0").unwrap(), None)).unwrap().reply;
    assert!(sums.balanced(), "{sums:?}");
    #[expect(clippy::disallowed_methods, reason = "a program of its own, without settings")]
    if let Ok(url) = std::env::var("REDIS_URL") {
        println!("Redis:");
        runtime.block_on(in_redis(&url, policy, lasts));
    }
}
