//! An admitted reservation while it is used: how much may be handed out now, and the task that
//! keeps the lease alive and settles it.
//!
//! One task goes with each reservation. It asks for credit ahead of need, renews the lease while the
//! reader is slow, cuts a reader that makes no progress, and settles at the end, however that comes:
//! completed, failed, or the guard dropped at any await. It begins when there is something to do: a
//! short read is over before its lease needs any care, so all that its task does is settle.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker, ready};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::clock::Uptime;
use super::desk::Desk;
use super::places::Place;
use crate::error::{Error, Kind, Result};
use crate::ledger::{Day, Extension, Lease, LedgerTime, Outcome, Reserve, Settle};
use crate::telemetry::metrics::{OutcomeLabels, metrics};
use crate::telemetry::request::Notes;

/// How long a failed extend waits before it is repeated, ms.
const RETRY_MS: u64 = 100;

/// An admitted reservation. Dropping it settles what was handed out.
pub struct Reservation {
    hold: Arc<Hold>,
    _place: Place,
}

/// What the guard and its task share.
pub(super) struct Hold {
    pub(super) desk: Arc<Desk>,
    /// What was asked for.
    pub(super) call: Reserve,
    pub(super) lease: Mutex<Held>,
    pub(super) begun: Uptime,
    pub(super) stir: Notify,
    /// Where the task runs, wherever the guard is dropped.
    pub(super) runtime: Handle,
    /// Of the request that reads.
    pub(super) notes: Option<Arc<Notes>>,
    /// Whoever stops the service waits for it: until the guard is gone, and the task has settled.
    pub(super) _unsettled: TaskTrackerToken,
}

pub(super) struct Held {
    /// Bytes handed out. Never changes once `ended` is set.
    handed: u64,
    /// What the ledger is known to hold.
    grant: u64,
    day: Day,
    deadline: LedgerTime,
    /// Past it nothing is handed out.
    fence: Uptime,
    renew_at: Uptime,
    /// Not before then is a failed extend repeated.
    retry_at: Uptime,
    progress_at: Uptime,
    /// The task has begun.
    kept: bool,
    /// The task knows that credit runs low.
    stirred: bool,
    ended: Option<Outcome>,
    waiting: Option<Waker>,
}

/// When a lease was won.
pub(super) struct Times {
    /// When the call that won it was first sent.
    pub(super) sent: Uptime,
    /// When its answer came.
    pub(super) answered: Uptime,
    /// The lease's time left, ms, as the answer said.
    pub(super) left: u64,
}

enum Step {
    Wait(u64),
    Extend(u64),
    Settle(Outcome),
}

impl Reservation {
    /// Takes an admitted lease into use.
    pub(super) fn open(
        hold: impl FnOnce(Mutex<Held>) -> Hold,
        desk: &Arc<Desk>,
        place: Place,
        lease: Lease,
        Times { sent, answered, left }: Times,
    ) -> Self {
        let held = Held {
            handed: 0,
            grant: lease.grant,
            day: lease.day,
            deadline: lease.deadline,
            fence: desk.fence(sent, left),
            renew_at: sent.plus(desk.renew_ms()),
            retry_at: sent,
            progress_at: answered,
            kept: false,
            stirred: false,
            ended: None,
            waiting: None,
        };
        metrics().reads.inc();
        let hold = Arc::new(hold(Mutex::new(held)));
        place.occupy(&hold);
        Self { hold, _place: place }
    }

    /// The bytes reserved.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.hold.call.size
    }

    /// Waits until at least one byte may be handed out, and counts up to `want` (not 0) as handed
    /// out: the answer, 1 to `want`.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE` if the lease ended: nothing more may be handed out.
    pub(super) fn poll_take(&self, cx: &mut TaskContext<'_>, want: u64) -> Poll<Result<u64>> {
        let now = Uptime::now();
        let mut held = self.hold.held();
        self.hold.cut_if_late(&mut held, now);
        if held.ended.is_some() {
            self.hold.stir(&mut held);
            return Poll::Ready(Err(lease_lost()));
        }
        let taken = want.min(held.grant - held.handed);
        held.handed += taken;
        if !held.stirred && self.hold.wants_credit(&held) {
            held.stirred = true;
            self.hold.stir(&mut held);
        }
        if taken == 0 {
            held.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        held.progress_at = now;
        Poll::Ready(Ok(taken))
    }

    /// Counts all of `want` bytes as handed out, waiting for credit where needed.
    pub(super) async fn take(&self, mut want: u64) -> Result<()> {
        poll_fn(|cx| {
            while want > 0 {
                want -= ready!(self.poll_take(cx, want))?;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Ends the reservation: what was handed out so far is settled, nothing more can be.
    pub(super) fn end(&self, outcome: Outcome) {
        let mut held = self.hold.held();
        held.end(outcome);
        self.hold.stir(&mut held);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end(Outcome::Aborted);
        metrics().reads.dec();
        if let Some(notes) = &self.hold.notes {
            notes.charge(self.hold.held().handed);
        }
    }
}

impl Held {
    fn end(&mut self, outcome: Outcome) {
        let nothing_went_out = self.handed == 0 && outcome != Outcome::Completed;
        self.ended.get_or_insert(if nothing_went_out { Outcome::Released } else { outcome });
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }
}

impl Hold {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the task of a read that was not over soon.
    pub(super) fn keep(self: &Arc<Self>) {
        let mut held = self.held();
        if !held.kept {
            self.stir(&mut held);
        }
    }

    /// Lets the task look what there is to do.
    fn stir(self: &Arc<Self>, held: &mut Held) {
        if std::mem::replace(&mut held.kept, true) {
            self.stir.notify_one();
        } else {
            self.runtime.spawn(Arc::clone(self).run());
        }
    }

    /// Ends what is still open past its fence.
    fn cut_if_late(&self, held: &mut Held, now: Uptime) {
        if held.ended.is_none() && now >= held.fence {
            tracing::warn!(reservation = %self.call.id, "the lease could not be renewed in time: the read is cut");
            held.end(Outcome::Failed);
        }
    }

    /// Half a step ahead, so that a stream does not wait for the answer.
    fn wants_credit(&self, held: &Held) -> bool {
        held.grant < self.call.size && held.handed.saturating_add(self.desk.credit() / 2) >= held.grant
    }

    async fn run(self: Arc<Self>) {
        let outcome = loop {
            match self.next_step() {
                Step::Settle(outcome) => break outcome,
                Step::Extend(grant) => self.extend(grant).await,
                Step::Wait(ms) => {
                    tokio::select! {
                        () = self.stir.notified() => {}
                        () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                    }
                }
            }
        };
        let labels = OutcomeLabels { outcome: outcome.as_str() };
        let age = Duration::from_millis(Uptime::now().since(self.begun)).as_secs_f64();
        metrics().reservation_seconds.with(&labels, |ages| ages.observe(age));
        let (actual, day, deadline) = {
            let held = self.held();
            (held.handed, held.day, held.deadline)
        };
        let call = Settle {
            project: self.call.project.clone(),
            id: self.call.id,
            actual,
            size: self.call.size,
            day: Some(day),
            deadline,
            outcome,
            context: self.call.context.clone(),
        };
        self.desk.settle(&call).await;
    }

    fn next_step(&self) -> Step {
        let mut held = self.held();
        let now = Uptime::now();
        self.cut_if_late(&mut held, now);
        if held.ended.is_none() && now.since(held.progress_at) >= self.desk.timing.stall_ms {
            tracing::info!(reservation = %self.call.id, "the read makes no progress: it is cut");
            held.end(Outcome::Aborted);
        }
        if let Some(outcome) = held.ended {
            return Step::Settle(outcome);
        }
        let may_ask = now >= held.retry_at;
        if may_ask && self.wants_credit(&held) {
            return Step::Extend(self.call.size.min(held.grant.saturating_add(self.desk.credit())));
        }
        if may_ask && now >= held.renew_at {
            return Step::Extend(held.grant);
        }
        let stall_at = held.progress_at.plus(self.desk.timing.stall_ms);
        let ask_at = if may_ask { held.renew_at } else { held.retry_at };
        Step::Wait(ask_at.min(stall_at).min(held.fence).since(now).max(1))
    }

    async fn extend(&self, grant: u64) {
        let sent = Uptime::now();
        let answer = self.desk.extend(&self.call.project, self.call.id, grant).await;
        let mut held = self.held();
        held.stirred = false;
        match answer {
            Ok((Extension::Reserved(lease), left)) => {
                held.grant = held.grant.max(lease.grant.min(self.call.size));
                held.deadline = held.deadline.max(lease.deadline);
                held.fence = held.fence.max(self.desk.fence(sent, left));
                held.renew_at = sent.plus(self.desk.renew_ms());
                if let Some(waiting) = held.waiting.take() {
                    waiting.wake();
                }
            }
            Ok((Extension::Ended, _)) => {
                metrics().lost_leases.inc();
                tracing::warn!(reservation = %self.call.id, "the ledger ended the lease: the read is cut");
                held.end(Outcome::Failed);
            }
            Err(error) => {
                tracing::warn!(reservation = %self.call.id, %error, "the lease is not extended yet");
                held.retry_at = Uptime::now().plus(RETRY_MS);
            }
        }
    }
}

fn lease_lost() -> Error {
    Error::new(Kind::QuotaUnavailable, "The ledger did not renew the reservation in time; read again shortly.")
}
