//! A clock to step, a ledger in memory, and short ways to make calls.

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use artifactd::artifact::{ArtifactName, ProjectId, TrialId};
use artifactd::ledger::embedded::OpenError;
use artifactd::ledger::memory::MemoryBook;
use artifactd::ledger::state::{self, Moment};
use artifactd::ledger::{
    Adjust, Adjustment, Admission, Allowance, At, AuditFilter, AuditPage, Channel, Clock, Context, Day, DayUsage,
    Embedded, Extend, Extension, Ledger, LedgerTime, Link, LinkId, Outcome, Override, Policy, Reply, ReservationId,
    Reserve, ResetZone, Rules, Settle, Settlement, Unavailable, Usage, Verification,
};
use async_trait::async_trait;
use tempfile::TempDir;
use uuid::Uuid;

/// 2026-11-29T12:00:00Z.
pub(crate) const NOON: u64 = 1_795_953_600_000;
pub(crate) const DAY: u64 = 86_400_000;

/// A clock that moves when it is told to.
#[derive(Debug, Clone)]
pub(crate) struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub(crate) fn at(ms: u64) -> Self {
        Self(Arc::new(AtomicU64::new(ms)))
    }

    pub(crate) fn step(&self, ms: u64) {
        self.0.fetch_add(ms, SeqCst);
    }

    pub(crate) fn set(&self, ms: u64) {
        self.0.store(ms, SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

/// A directory in memory where the system has one: for tests that write much and never crash.
pub(crate) fn memory_directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Small numbers: a credit step of 10 bytes, sweeps of 2 and 3 leases.
pub(crate) fn policy(allowance: u64) -> Policy {
    let rules = Rules { credit_bytes: 10, sweep_in_reserve: 2, sweep_batch: 3, ..Rules::default() };
    Policy { rules, allowance: Allowance::Bytes(allowance), zone: ResetZone::UTC }
}

/// Opens a ledger that may have been closed a moment ago. Between its fork and its exec, a server that another
/// test starts holds all that this process had open, a lock too.
pub(crate) fn open(path: &Path, allowance: u64, clock: &ManualClock) -> Embedded {
    let give_up = Instant::now() + Duration::from_secs(5);
    loop {
        match Embedded::open(path, policy(allowance), clock.clone()) {
            Err(OpenError::Owned) if Instant::now() < give_up => std::thread::yield_now(),
            opened => return opened.expect("opens"),
        }
    }
}

/// An override without an end.
pub(crate) fn endless(allowance: Allowance) -> Override {
    Override { allowance, until: None, by: "op".to_owned(), reason: String::new() }
}

pub(crate) fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).unwrap()
}

pub(crate) fn id(n: u128) -> ReservationId {
    ReservationId(Uuid::from_u128(n))
}

pub(crate) fn context() -> Context {
    Context {
        key_id: "k".to_owned(),
        channel: Channel::Http,
        trial: TrialId::parse("t").unwrap(),
        artifact: ArtifactName::parse("agent/log.txt").unwrap(),
        request_id: "r".to_owned(),
        link_id: None,
    }
}

pub(crate) fn reserve(n: u128, size: u64, not_after: u64) -> Reserve {
    Reserve { project: project("p"), id: id(n), size, not_after: LedgerTime(not_after), context: context() }
}

/// A settle of a read that was admitted on the day of `now`, with a lease from then.
pub(crate) fn settle(n: u128, actual: u64, size: u64, now: u64) -> Settle {
    let day = Some(ResetZone::UTC.days(LedgerTime(now)).today.day);
    let deadline = LedgerTime(now + Rules::default().lease_ms);
    let outcome = Outcome::Completed;
    Settle { project: project("p"), id: id(n), actual, size, day, deadline, outcome, context: context() }
}

/// The model as a ledger: the transitions over a book in memory.
pub(crate) struct MemoryLedger {
    pub(crate) book: Mutex<MemoryBook>,
    policy: Policy,
    allowance: Mutex<Allowance>,
    clock: ManualClock,
}

impl MemoryLedger {
    pub(crate) fn new(policy: Policy, clock: ManualClock) -> Self {
        let allowance = Mutex::new(policy.allowance);
        Self { book: Mutex::default(), policy, allowance, clock }
    }

    fn call<T>(
        &self,
        transition: impl FnOnce(&mut MemoryBook, &Moment<'_>) -> Result<T, std::convert::Infallible>,
    ) -> Reply<T> {
        let now = LedgerTime(self.clock.now_ms());
        let today = self.policy.zone.days(now).today;
        let allowance = *self.allowance.lock().unwrap();
        let at = Moment { now, today, rules: &self.policy.rules, allowance };
        let Ok(reply) = transition(&mut self.book.lock().unwrap(), &at);
        Ok(At { now, reply })
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    fn rules(&self) -> &Rules {
        &self.policy.rules
    }

    fn set_default_allowance(&self, allowance: Allowance) {
        *self.allowance.lock().unwrap() = allowance;
    }

    async fn now(&self) -> Result<LedgerTime, Unavailable> {
        Ok(LedgerTime(self.clock.now_ms()))
    }

    async fn reserve(&self, call: &Reserve) -> Reply<Admission> {
        self.call(|book, at| state::reserve(book, at, call))
    }

    async fn extend(&self, call: Extend<'_>) -> Reply<Extension> {
        self.call(|book, at| state::extend(book, at, call))
    }

    async fn settle(&self, call: &Settle) -> Reply<Settlement> {
        self.call(|book, at| state::settle(book, at, call))
    }

    async fn usage(&self, project: &ProjectId) -> Reply<Usage> {
        self.call(|book, at| state::usage(book, at, project))
    }

    async fn history(&self, project: &ProjectId, days: u32) -> Reply<Vec<DayUsage>> {
        self.call(|book, at| state::history(book, at, project, days))
    }

    async fn audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage> {
        self.call(|book, at| state::audit(book, at, project, day, filter, from, limit))
    }

    async fn verify(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification> {
        self.call(|book, at| state::verify(book, at, project, day))
    }

    async fn set_allowance(&self, project: &ProjectId, exception: Option<&Override>) -> Reply<()> {
        self.call(|book, _| state::set_allowance(book, project, exception))
    }

    async fn allowance(&self, project: &ProjectId) -> Reply<Option<Override>> {
        self.call(|book, at| state::allowance(book, at, project))
    }

    async fn record_link(&self, project: &ProjectId, link: &Link) -> Reply<()> {
        self.call(|book, at| state::record_link(book, at, project, link))
    }

    async fn links(&self, project: &ProjectId, after: Option<LinkId>, limit: usize) -> Reply<Vec<Link>> {
        self.call(|book, at| state::links(book, at, project, after, limit))
    }

    async fn revoke_link(&self, project: &ProjectId, id: LinkId) -> Reply<bool> {
        self.call(|book, at| state::revoke_link(book, at, project, id))
    }

    async fn adjust(&self, call: &Adjust) -> Reply<Adjustment> {
        self.call(|book, at| state::adjust(book, at, call))
    }

    async fn sweep(&self) -> Reply<usize> {
        self.call(|book, at| {
            state::forget(book, at, 3)?;
            state::sweep(book, at)
        })
    }
}
