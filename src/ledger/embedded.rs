//! The ledger of one node: a SQLite file, durable before each answer.
//!
//! The file belongs to one process, by a lock on a second file beside it (`-lock`); another one that
//! opens it is turned away. Time is the injected
//! [`Clock`]. Where that is set back, leases and remembered ids live longer by as much and reads
//! count to the day that it is again; where it is set forward, leases end early: they are charged
//! their grant, and their settles correct that.
//!
//! An answered call is on the disk, whatever happens to the process or the machine afterwards. A
//! call that cannot be written (the disk is full, not writable, or failing) is answered
//! [`Unavailable`] and changes nothing; the next call tries again. So is every call while the path
//! names another file than the one that is open: what is written there would be forgotten by the
//! next start.

mod accounts;
mod columns;
mod reader;
mod rows;
mod schema;
mod sql_book;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::sync::mpsc;

use super::state::{self, Moment};
use super::{
    Adjust, Adjustment, Admission, Allowance, At, AuditFilter, AuditPage, Clock, Day, DayUsage, Extend, Extension,
    Ledger, LedgerTime, Link, LinkId, Override, Policy, Reply, Reserve, Rules, Settle, Settlement, Unavailable, Usage,
    Verification,
};
use crate::artifact::ProjectId;
use reader::Reader;
use sql_book::SqlBook;
use writer::{Job, Writer};

/// Calls that wait for the disk; further callers wait for a place.
const QUEUE: usize = 1024;
/// Ids, and about as many lines of days beyond the retention, that one sweep deletes.
const FORGET_PER_SWEEP: usize = 1024;

/// Why a ledger's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("the ledger's file is in use by another process")]
    Owned,
    /// The file whose lock says who has it open cannot be used.
    #[error("the file beside the ledger's that is locked while it is in use: {0}")]
    Lock(#[source] std::io::Error),
    /// Not a ledger's file.
    #[error("the file is not a ledger")]
    Foreign,
    /// Written by a later version of the program.
    #[error("the ledger's file has version {0}, which this program does not know: use a newer program")]
    Version(i64),
    /// The file or its directory cannot be written to.
    #[error("the ledger's file is read-only")]
    ReadOnly,
    /// The path no longer names the file that is open, or its write-ahead log is gone.
    #[error("the ledger's file was removed or replaced while in use: put it back, or restart the service")]
    Removed,
    /// The rules cannot work together.
    #[error("the ledger's rules contradict each other: {0}")]
    Rules(&'static str),
    /// The operating system has no thread for it.
    #[error("the ledger's thread did not start")]
    Thread(#[source] std::io::Error),
    /// Anything else that SQLite reports.
    #[error("the ledger's file cannot be used: {0}")]
    Storage(#[source] rusqlite::Error),
}

/// The account books of every project in one file.
///
/// Dropping it finishes the calls that wait and closes the file; that blocks for as long as the
/// disk takes, so an async program calls [`close`](Embedded::close) instead.
pub struct Embedded {
    rules: Rules,
    clock: Arc<dyn Clock>,
    policy: Arc<ArcSwap<Policy>>,
    reader: Option<Reader>,
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Embedded {
    /// Opens the file at `path`, which is created if it is not there; its directory must be.
    ///
    /// # Errors
    /// Says why the file cannot be used.
    pub fn open(path: impl AsRef<Path>, policy: Policy, clock: impl Clock) -> Result<Self, OpenError> {
        policy.rules.check().map_err(OpenError::Rules)?;
        let rules = policy.rules.clone();
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let policy = Arc::new(ArcSwap::from_pointee(policy));
        let writer = Writer::open(path.as_ref().to_owned(), Arc::clone(&policy), Arc::clone(&clock))?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("ledger".to_owned());
        let thread = thread.spawn(move || writer.work(waiting)).map_err(OpenError::Thread)?;
        let reader = Some(Reader::new(path.as_ref().to_owned()));
        Ok(Self { rules, clock, policy, reader, queue: Some(queue), thread: Some(thread) })
    }

    /// Finishes the calls that wait and closes the file.
    pub async fn close(self) {
        // Only a runtime that is shutting down refuses the task, and it drops the ledger as well.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    async fn call<T, F>(&self, transition: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnMut(&mut SqlBook<'_>, &Moment<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let gone = || Unavailable("the ledger's thread has ended".into());
        let (job, answer) = writer::job(transition);
        self.queue.as_ref().ok_or_else(gone)?.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Asks about a whole day: its due leases are swept by the writer, then the reader looks through
    /// it at that same moment, by which nothing is due any more.
    async fn look<T, F>(&self, project: ProjectId, day: Option<Day>, question: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut SqlBook<'_>, &Moment<'_>, &ProjectId) -> rusqlite::Result<T> + Send + 'static,
    {
        let of = project.clone();
        let swept = self.call(move |book, at| {
            let day = day.unwrap_or(at.today.day);
            if day >= at.first_kept() {
                state::whole_day(book, at, &of, day)?;
            }
            Ok((at.today, at.allowance))
        });
        let At { now, reply: (today, allowance) } = swept.await?;
        let reader = self.reader.as_ref().ok_or_else(|| Unavailable("the ledger is closed".into()))?;
        let rules = self.rules.clone();
        let ask =
            move |book: &mut SqlBook<'_>| question(book, &Moment { now, today, rules: &rules, allowance }, &project);
        Ok(At { now, reply: reader.ask(ask).await? })
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").field("policy", &self.policy.load()).finish_non_exhaustive()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The writer goes last: whoever closes the file last tidies up, which needs to write.
        self.reader = None;
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has been reported where it did.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Ledger for Embedded {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn set_default_allowance(&self, allowance: Allowance) {
        self.policy.rcu(|policy| Policy { allowance, ..Policy::clone(policy) });
    }

    async fn now(&self) -> Result<LedgerTime, Unavailable> {
        Ok(LedgerTime(self.clock.now_ms()))
    }

    async fn reserve(&self, call: &Reserve) -> Reply<Admission> {
        let call = call.clone();
        self.call(move |book, at| state::reserve(book, at, &call)).await
    }

    async fn extend(&self, call: Extend<'_>) -> Reply<Extension> {
        let (project, id, grant, asked) = (call.project.clone(), call.id, call.grant, call.asked);
        self.call(move |book, at| state::extend(book, at, Extend { project: &project, id, grant, asked })).await
    }

    async fn settle(&self, call: &Settle) -> Reply<Settlement> {
        let call = call.clone();
        self.call(move |book, at| state::settle(book, at, &call)).await
    }

    async fn usage(&self, project: &ProjectId) -> Reply<Usage> {
        let project = project.clone();
        self.call(move |book, at| state::usage(book, at, &project)).await
    }

    async fn history(&self, project: &ProjectId, days: u32) -> Reply<Vec<DayUsage>> {
        let project = project.clone();
        self.call(move |book, at| state::history(book, at, &project, days)).await
    }

    async fn audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage> {
        let filter = filter.clone();
        let page = move |book: &mut SqlBook<'_>, at: &Moment<'_>, project: &ProjectId| {
            state::audit(book, at, project, day, &filter, from, limit)
        };
        self.look(project.clone(), day, page).await
    }

    async fn verify(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification> {
        self.look(project.clone(), day, move |book, at, project| state::verify(book, at, project, day)).await
    }

    async fn set_allowance(&self, project: &ProjectId, exception: Option<&Override>) -> Reply<()> {
        let (project, exception) = (project.clone(), exception.cloned());
        self.call(move |book, _| state::set_allowance(book, &project, exception.as_ref())).await
    }

    async fn allowance(&self, project: &ProjectId) -> Reply<Option<Override>> {
        let project = project.clone();
        self.call(move |book, at| state::allowance(book, at, &project)).await
    }

    async fn record_link(&self, project: &ProjectId, link: &Link) -> Reply<()> {
        let (project, link) = (project.clone(), link.clone());
        self.call(move |book, at| state::record_link(book, at, &project, &link)).await
    }

    async fn links(&self, project: &ProjectId, after: Option<LinkId>, limit: usize) -> Reply<Vec<Link>> {
        let project = project.clone();
        self.call(move |book, at| state::links(book, at, &project, after, limit)).await
    }

    async fn revoke_link(&self, project: &ProjectId, id: LinkId) -> Reply<bool> {
        let project = project.clone();
        self.call(move |book, at| state::revoke_link(book, at, &project, id)).await
    }

    async fn adjust(&self, call: &Adjust) -> Reply<Adjustment> {
        let call = call.clone();
        self.call(move |book, at| state::adjust(book, at, &call)).await
    }

    async fn sweep(&self) -> Reply<usize> {
        self.call(|book, at| {
            state::forget(book, at, FORGET_PER_SWEEP)?;
            state::sweep(book, at)
        })
        .await
    }
}
