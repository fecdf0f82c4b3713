//! Callers that do the same thing again and again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifactd::artifact::{ArtifactName, ProjectId, TrialId};
use artifactd::ledger::{Channel, Context, Lease, Ledger, LedgerTime, Outcome, ReservationId, Reserve, Settle};
use tokio::task::JoinSet;

use crate::server::Server;

const SIZE: u64 = 4096;

pub(crate) fn project(n: usize) -> ProjectId {
    ProjectId::parse(&format!("project-{n}")).unwrap()
}

/// A context of usual length.
fn context() -> Context {
    Context {
        key_id: "key_7f3a9c".to_owned(),
        channel: Channel::Mcp,
        trial: TrialId::parse("hello-world__aB3xYz9").unwrap(),
        artifact: ArtifactName::parse("verifier/test-stdout.txt").unwrap(),
        request_id: "0193c5a2-7b1e-7c3d-9f00-5d1e2f3a4b5c".to_owned(),
        link_id: None,
    }
}

/// Reserves, and answers the lease with its id.
pub(crate) async fn reserve(ledger: &dyn Ledger, project: &ProjectId) -> (ReservationId, Lease) {
    let (id, not_after) = (ReservationId::new(), LedgerTime(u64::MAX));
    let call = Reserve { project: project.clone(), id, size: SIZE, not_after, context: context() };
    (id, ledger.reserve(&call).await.unwrap().reply.lease().unwrap())
}

pub(crate) async fn settle(ledger: &dyn Ledger, project: &ProjectId, (id, lease): (ReservationId, Lease)) {
    let (day, deadline) = (Some(lease.day), lease.deadline);
    let (outcome, context) = (Outcome::Completed, context());
    let project = project.clone();
    let call = Settle { project, id, actual: SIZE, size: SIZE, day, deadline, outcome, context };
    ledger.settle(&call).await.unwrap();
}

/// What one caller does, once; callers are numbered.
type Work = Arc<dyn Fn(usize) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

pub(crate) struct Load(Work);

/// When callers stop.
#[derive(Clone, Copy)]
enum Until {
    Time(Instant),
    /// Each has done so much.
    Count(usize),
}

impl Load {
    /// Reads of 4 KiB: each reserves and settles. Callers share the projects evenly.
    pub(crate) fn reads(ledger: Arc<dyn Ledger>, projects: usize) -> Self {
        Self(Arc::new(move |caller| {
            let (ledger, project) = (Arc::clone(&ledger), project(caller % projects));
            Box::pin(async move {
                let lease = reserve(&*ledger, &project).await;
                settle(&*ledger, &project, lease).await;
            })
        }))
    }

    /// A script that does nothing, by the client that the ledger uses.
    pub(crate) async fn bare(server: &Server) -> Self {
        let (connection, sha) = (server.connection(), server.script_that_answers_1().await);
        Self(Arc::new(move |_| {
            let (mut connection, sha) = (connection.clone(), sha.clone());
            Box::pin(async move {
                let mut call = redis::cmd("EVALSHA");
                let _: i64 = call.arg(sha).arg(1).arg("k").query_async(&mut connection).await.unwrap();
            })
        }))
    }

    pub(crate) async fn run(&self, callers: usize, lasts: Duration) -> Ran {
        self.run_until(callers, Until::Time(Instant::now() + lasts)).await
    }

    /// Does it `count` times at least, by 64 callers.
    pub(crate) async fn repeat(&self, count: usize) -> Ran {
        self.run_until(64, Until::Count(count.div_ceil(64))).await
    }

    async fn run_until(&self, callers: usize, until: Until) -> Ran {
        let mut tasks = JoinSet::new();
        let (begun, cpu) = (Instant::now(), cpu_time());
        for caller in 0..callers {
            let work = Arc::clone(&self.0);
            tasks.spawn(async move {
                let mut times = Vec::new();
                while match until {
                    Until::Time(end) => Instant::now() < end,
                    Until::Count(count) => times.len() < count,
                } {
                    let begun = Instant::now();
                    work(caller).await;
                    times.push(begun.elapsed());
                }
                times
            });
        }
        let mut times: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        times.sort_unstable();
        Ran { times, wall: begun.elapsed(), cpu: cpu_time() - cpu }
    }
}

/// What was measured.
pub(crate) struct Ran {
    /// How long each took, sorted.
    times: Vec<Duration>,
    wall: Duration,
    cpu: Duration,
}

impl Ran {
    pub(crate) fn count(&self) -> f64 {
        f64::from(u32::try_from(self.times.len()).unwrap())
    }

    pub(crate) fn rate(&self) -> f64 {
        self.count() / self.wall.as_secs_f64()
    }

    /// In ms.
    pub(crate) fn percentile(&self, part: usize) -> f64 {
        self.times[(self.times.len() * part / 100).min(self.times.len() - 1)].as_secs_f64() * 1e3
    }

    /// Processor time of this process for each.
    pub(crate) fn client_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count()
    }
}

/// Processor time of this process so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}
