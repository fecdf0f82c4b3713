//! Looking for due leases of projects that nobody asks about.
//!
//! A list names every project that may have open leases, by a time before which none of them is due.
//! Whoever reserves puts the project on it first; the sweeper postpones what it looked at. It lives
//! apart from the projects (on a node of its own in a cluster), so no script can change both; the
//! order of the calls makes up for it: a lease made after a look is due a whole lease later at the
//! earliest, which is as far as a project is postponed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;

use super::{Redis, reply};
use crate::artifact::ProjectId;
use crate::ledger::{At, Day, DaySpan, LedgerTime, Reply, Unavailable};

/// Projects looked at in one step, and how many of them at a time.
const LOOK: usize = 256;
const AT_ONCE: usize = 16;
/// Steps of one sweep: so many projects are looked at that have nothing due.
const STEPS: usize = 64;
/// How long a registration is relied on. A list that was lost is whole again by then.
const RELIED_ON: Duration = Duration::from_secs(60);
/// How long after a registration that failed none is tried.
const TRIED_AGAIN: Duration = Duration::from_secs(5);
/// Projects remembered; beyond that all are forgotten and registered anew.
const REMEMBERED: usize = 100_000;

/// The projects that this process has put on the list: until when that is relied on, and the end of
/// the day that it was done on.
#[derive(Debug, Default)]
pub(super) struct Registered(Mutex<HashMap<ProjectId, (Instant, LedgerTime)>>);

impl Registered {
    fn holds(&self, project: &ProjectId, now: LedgerTime) -> bool {
        let projects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        projects.get(project).is_some_and(|(until, day_ends)| Instant::now() < *until && now < *day_ends)
    }

    fn note(&self, project: &ProjectId, lasts: Duration, day_ends: LedgerTime) {
        let mut projects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if projects.len() >= REMEMBERED {
            projects.clear();
        }
        projects.insert(project.clone(), (Instant::now() + lasts, day_ends));
    }

    fn forget(&self, project: &ProjectId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(project);
    }
}

/// A lease that was due when it was looked at.
type Due = (LedgerTime, ProjectId, Day, String);

/// What a look at a project found.
struct Look {
    project: ProjectId,
    at: LedgerTime,
    /// The project has accounts of today or yesterday, or open leases.
    in_use: bool,
    earliest: Option<LedgerTime>,
    due: Vec<Due>,
}

impl Redis {
    /// Puts the project on the list, unless it was lately: `now` is when, as far as that is known.
    /// Where the list is out of reach the project goes without for a while: its leases still end when
    /// somebody asks for its account, and the node of the list must not hold up every project.
    pub(super) async fn register(&self, project: &ProjectId, now: LedgerTime) {
        if self.registered.holds(project, now) {
            return;
        }
        match self.run_bare(&self.scripts().register, &[project.as_str()]).await {
            Ok(answer) => {
                let day_ends = self.policy.zone.days(answer.now).today.end;
                self.registered.note(project, RELIED_ON, day_ends);
            }
            Err(error) => {
                tracing::warn!(%project, %error, "cannot tell the sweeper of a project");
                self.registered.note(project, TRIED_AGAIN, LedgerTime(u64::MAX));
            }
        }
    }

    /// A reserve was answered that made no account: a project without accounts is taken off the list, so
    /// its next reserve puts it on again.
    pub(super) fn unregister(&self, project: &ProjectId) {
        self.registered.forget(project);
    }

    /// Expires the earliest due leases of all projects, at most a batch.
    pub(super) async fn sweep_all(&self) -> Reply<usize> {
        let batch = self.policy.rules.sweep_batch;
        let mut expired = 0;
        let mut now = LedgerTime::default();
        for _ in 0..STEPS {
            let mut answer = self.run_bare(&self.scripts().look, &[&LOOK.to_string()]).await?;
            now = answer.now;
            let mut projects = Vec::new();
            while !answer.is_empty() {
                projects.push(ProjectId::parse(&answer.text()?).map_err(|_| reply::nonsense("project"))?);
            }
            let more = projects.len() == LOOK;
            let looks = stream::iter(projects).map(|project| self.look_at(project, batch - expired));
            let looks: Vec<_> = looks.buffer_unordered(AT_ONCE).try_collect().await?;
            self.postpone(&looks).await?;
            let mut due: Vec<_> = looks.into_iter().flat_map(|look| look.due).collect();
            due.sort_unstable();
            due.truncate(batch - expired);
            expired += self.expire(due).await?;
            if expired >= batch || !more {
                break;
            }
        }
        Ok(At { now, reply: expired })
    }

    async fn look_at(&self, project: ProjectId, limit: usize) -> Result<Look, Unavailable> {
        let base = self.names.base(&project);
        let limit = limit.to_string();
        let arguments = |span: &DaySpan| vec![limit.clone(), span.day.plus(-1).to_string()];
        let (mut answer, _) = self.run_with(&self.scripts().peek, &base, arguments).await?;
        let used = answer.amount()? > 0;
        let earliest = answer.maybe()?.map(LedgerTime);
        let mut due = Vec::new();
        while !answer.is_empty() {
            due.push((answer.time()?, project.clone(), answer.day()?, answer.text()?));
        }
        Ok(Look { project, at: answer.now, in_use: used || earliest.is_some(), earliest, due })
    }

    /// Projects with due leases stay where they are on the list.
    async fn postpone(&self, looks: &[Look]) -> Result<(), Unavailable> {
        let mut arguments = Vec::new();
        for look in looks.iter().filter(|look| look.due.is_empty()) {
            let next = look.at.plus(self.policy.rules.lease_ms);
            let next = look.earliest.map_or(next, |earliest| earliest.min(next));
            arguments.push(look.project.as_str().to_owned());
            arguments.push(if look.in_use { next.0.to_string() } else { String::new() });
        }
        if arguments.is_empty() {
            return Ok(());
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        self.run_bare(&self.scripts().postpone, &arguments).await.map(drop)
    }

    async fn expire(&self, due: Vec<Due>) -> Result<usize, Unavailable> {
        let mut by_project: HashMap<ProjectId, Vec<String>> = HashMap::new();
        for (_, project, day, id) in due {
            by_project.entry(project).or_default().extend([day.to_string(), id]);
        }
        let calls = stream::iter(by_project).map(|(project, leases)| async move {
            let base = self.names.base(&project);
            let (mut answer, _) = self.run_with(&self.scripts().expire, &base, |_| leases.clone()).await?;
            answer.amount()
        });
        let counts: Vec<u64> = calls.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(usize::try_from(counts.into_iter().sum::<u64>()).unwrap_or(usize::MAX))
    }
}
