//! The one thread that owns the file. Calls queue up; what has queued is executed as one
//! transaction, so that many callers share one write to the disk (group commit).
//!
//! If a transaction fails it is undone whole and its calls are executed again one by one, each in a
//! transaction of its own: one that cannot succeed does not take others with it. A call whose own
//! transaction fails is answered [`Unavailable`] and has changed nothing. After a failure other than
//! a full disk the file is closed and opened anew before the next transaction.
//!
//! SQLite would go on writing to a file that was unlinked, and the next start would know nothing of
//! it. So each transaction begins with a look whether the path still names the open file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

use super::schema::{Identity, Owned};
use super::sql_book::SqlBook;
use super::{OpenError, schema};
use crate::ledger::state::{self, Moment};
use crate::ledger::{At, Clock, DaySpan, LedgerTime, Policy, Reply, Unavailable};

/// Calls in one transaction, at most.
const BATCH: usize = 256;
/// Ids forgotten by each transaction for each of its calls: more than a call can leave behind.
const FORGET_PER_CALL: usize = 2;

/// A call on its way through the queue. It may be executed more than once; only the last counts.
pub(super) trait Job: Send {
    /// Executes the call inside the open transaction.
    fn run(&mut self, book: &mut SqlBook<'_>, at: &Moment<'_>) -> rusqlite::Result<()>;
    /// Answers the caller: the transaction is on the disk, or the call changed nothing.
    fn answer(self: Box<Self>, outcome: Result<(), OpenError>);
}

/// The [`Job`] of any transition.
struct Call<T, F> {
    transition: F,
    reply: Option<At<T>>,
    caller: oneshot::Sender<Reply<T>>,
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnMut(&mut SqlBook<'_>, &Moment<'_>) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, book: &mut SqlBook<'_>, at: &Moment<'_>) -> rusqlite::Result<()> {
        self.reply = Some(At { now: at.now, reply: (self.transition)(book, at)? });
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), OpenError>) {
        let Self { reply, caller, .. } = *self;
        let reply = outcome
            .map_err(|error| Unavailable(error.into()))
            .and_then(|()| reply.ok_or_else(|| Unavailable("the call was not executed".into())));
        // A caller that has gone needs no answer.
        let _ = caller.send(reply);
    }
}

/// A job for a transition, and where its answer will arrive.
pub(super) fn job<T, F>(transition: F) -> (Box<dyn Job>, oneshot::Receiver<Reply<T>>)
where
    T: Send + 'static,
    F: FnMut(&mut SqlBook<'_>, &Moment<'_>) -> rusqlite::Result<T> + Send + 'static,
{
    let (caller, answer) = oneshot::channel();
    (Box::new(Call { transition, reply: None, caller }), answer)
}

/// The owner of the file.
pub(super) struct Writer {
    path: PathBuf,
    /// With what the path named when it was opened.
    connection: Option<(Connection, Identity)>,
    policy: Arc<ArcSwap<Policy>>,
    clock: Arc<dyn Clock>,
    today: DaySpan,
    /// Until the writer ends.
    _owned: Owned,
}

impl Writer {
    pub(super) fn open(path: PathBuf, policy: Arc<ArcSwap<Policy>>, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let (connection, owned) = schema::open(&path)?;
        let connection = Some(identified(connection, &path)?);
        let today = policy.load().zone.days(LedgerTime(clock.now_ms())).today;
        Ok(Self { path, connection, policy, clock, today, _owned: owned })
    }

    /// Works until every sender has gone and the queue is empty.
    pub(super) fn work(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        let mut batch = Vec::with_capacity(BATCH);
        while queue.blocking_recv_many(&mut batch, BATCH) > 0 {
            self.execute(std::mem::take(&mut batch));
        }
    }

    pub(super) fn execute(&mut self, mut batch: Vec<Box<dyn Job>>) {
        match self.transaction(&mut batch) {
            Err(_) if batch.len() > 1 => {
                for mut job in batch {
                    let outcome = self.transaction(std::slice::from_mut(&mut job));
                    job.answer(outcome);
                }
            }
            Ok(()) => batch.into_iter().for_each(|job| job.answer(Ok(()))),
            Err(error) => {
                if let Some(job) = batch.pop() {
                    job.answer(Err(error));
                }
            }
        }
    }

    /// All of `jobs`, or nothing.
    fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), OpenError> {
        let (connection, identity) = match self.connection.take() {
            Some(open) => open,
            None => identified(schema::reopen(&self.path)?, &self.path)?,
        };
        if !Identity::of(&self.path).is_ok_and(|now| now == identity) {
            // Kept open: the file may be put back, and this process still owns it.
            self.connection = Some((connection, identity));
            return Err(OpenError::Removed);
        }
        match self.attempt(&connection, jobs) {
            Ok(()) => self.connection = Some((connection, identity)),
            Err(error) => {
                // The transaction may have been rolled back already; then this fails and is right.
                let _ = connection.execute_batch("ROLLBACK");
                if connection.is_autocommit() && is_harmless(&error) {
                    self.connection = Some((connection, identity));
                }
                return Err(OpenError::Storage(error));
            }
        }
        Ok(())
    }

    fn attempt(&mut self, connection: &Connection, jobs: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let policy = self.policy.load_full();
        let mut book = SqlBook::new(connection);
        for job in jobs.iter_mut() {
            let at = self.moment(&policy);
            job.run(&mut book, &at)?;
        }
        let at = self.moment(&policy);
        state::forget(&mut book, &at, FORGET_PER_CALL * jobs.len())?;
        book.flush()?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn moment<'p>(&mut self, policy: &'p Policy) -> Moment<'p> {
        let now = LedgerTime(self.clock.now_ms());
        if !self.today.contains(now) {
            self.today = policy.zone.days(now).today;
        }
        Moment { now, today: self.today, rules: &policy.rules, allowance: policy.allowance }
    }
}

fn identified(connection: Connection, path: &Path) -> Result<(Connection, Identity), OpenError> {
    Ok((connection, Identity::of(path).map_err(|_| OpenError::Removed)?))
}

/// Whether the connection is as good as before: what failed was a full disk or a single value.
fn is_harmless(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), None | Some(ErrorCode::DiskFull))
}

#[cfg(test)]
mod tests;
