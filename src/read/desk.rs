//! Talking to the ledger so that every answer is safe to act on: the same id in every retry, short
//! bounded waits on the way in, patient repeats on the way out.

use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use rand::RngExt as _;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::clock::{LedgerClock, Uptime};
use super::places::Places;
use super::reservation::{Hold, Reservation, Times};
use crate::artifact::ProjectId;
use crate::error::{Error, Kind, Result};
use crate::ledger::{
    Admission, At, Context, Extend, Extension, Ledger, LedgerTime, MAX_AMOUNT, Outcome, Refusal, RefusalReason,
    ReservationId, Reserve, Settle, Settlement, Standing, Unavailable,
};
use crate::telemetry::metrics::{ChannelLabels, metrics};
use crate::telemetry::request::Notes;

/// How long reads wait for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// The longest that a request waits for its admission, retries included, ms.
    pub admission_ms: u64,
    /// The longest that one call of the ledger may take, ms.
    pub call_ms: u64,
    /// A read that hands out nothing for so long is cut, ms.
    pub stall_ms: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self { admission_ms: 2_000, call_ms: 1_000, stall_ms: 60_000 }
    }
}

pub(super) struct Desk {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) clock: LedgerClock,
    pub(super) tracker: TaskTracker,
    pub(super) timing: Timing,
    pub(super) places: Arc<Places>,
    pub(super) rounds: Once,
}

impl Desk {
    /// The most that one call grants, bytes.
    pub(super) fn credit(&self) -> u64 {
        self.ledger.rules().credit_bytes
    }

    /// A lease is renewed every third of its life.
    pub(super) fn renew_ms(&self) -> u64 {
        self.ledger.rules().lease_ms / 3
    }

    /// Until when a lease may be used that had `left` ms when the call sent at `sent` was answered.
    /// A quarter of its life is kept as margin for clocks that run unequally.
    pub(super) fn fence(&self, sent: Uptime, left: u64) -> Uptime {
        sent.plus(left.saturating_sub(self.ledger.rules().lease_ms / 4))
    }

    /// Reserves `size` bytes.
    ///
    /// # Errors
    /// `DOWNLOAD_QUOTA_EXCEEDED`, `QUOTA_UNAVAILABLE`, `LINK_REVOKED`, `TOO_MANY_REQUESTS`, `OVERLOADED`.
    pub(super) async fn admit(
        self: &Arc<Self>,
        project: &ProjectId,
        size: u64,
        context: Context,
    ) -> Result<(Reservation, At<Standing>)> {
        if size > MAX_AMOUNT {
            return Err(Error::internal(format!("a store reports a size of {size} bytes")));
        }
        let place = self.places.take(project)?;
        self.rounds.call_once(|| drop(tokio::spawn(go_round(Arc::downgrade(self)))));
        let until = Instant::now() + Duration::from_millis(self.timing.admission_ms);
        let (id, not_after) = (ReservationId::new(), LedgerTime::default());
        let mut call = Reserve { project: project.clone(), id, size, not_after, context };
        // A second id only if the first was judged by a wrong estimate of the ledger's time.
        for _ in 0..2 {
            let sent = Uptime::now();
            call.not_after = self.estimate(sent, until).await?.plus(self.ledger.rules().admission_ms);
            let asked = Asked { desk: self, call: Some(&call) };
            let (At { now, reply }, answered) = self.reserve(&call, until).await?;
            match reply {
                // Nothing may be handed out on it any more: it is released.
                Admission::Reserved(lease, _) if answered >= self.fence(sent, lease.deadline.since(now)) => break,
                Admission::Reserved(lease, standing) => {
                    asked.answered();
                    let hold = |lease| Hold {
                        desk: Arc::clone(self),
                        call,
                        lease,
                        begun: answered,
                        stir: Notify::new(),
                        runtime: Handle::current(),
                        notes: Notes::current(),
                        _unsettled: self.tracker.token(),
                    };
                    let times = Times { sent, answered, left: lease.deadline.since(now) };
                    let held = Reservation::open(hold, self, place, lease, times);
                    return Ok((held, At { now, reply: standing }));
                }
                Admission::Refused(refusal) => {
                    asked.answered();
                    return Err(quota_exceeded(At { now, reply: refusal }));
                }
                Admission::Stale => {
                    asked.answered();
                    call.id = ReservationId::new();
                }
                Admission::LinkRevoked => {
                    asked.answered();
                    return Err(Error::new(Kind::LinkRevoked, "This link was revoked; ask for a new one."));
                }
                // Neither can answer an id that was never used; whatever it is, it is released.
                Admission::Settled | Admission::Expired | Admission::Again => break,
            }
        }
        Err(quota_unavailable())
    }

    /// The ledger's time `now`; asks the ledger if what is known is too old.
    async fn estimate(&self, now: Uptime, until: Instant) -> Result<LedgerTime> {
        if let Some(estimate) = self.clock.estimate(now) {
            return Ok(estimate);
        }
        let now = self.timely(until, self.ledger.now()).await?;
        self.clock.note(now, Uptime::now());
        Ok(now)
    }

    /// Repeats one reserve, the same to the letter, until it is answered or the time is up. Says when the answer
    /// came, too.
    async fn reserve(&self, call: &Reserve, until: Instant) -> Result<(At<Admission>, Uptime)> {
        let mut backoff = Backoff::new(25, 500);
        loop {
            let answer = self.timely(until, self.ledger.reserve(call)).await;
            match answer {
                Ok(At { now, reply: Admission::Again }) => self.clock.note(now, Uptime::now()),
                Ok(at) => {
                    let answered = Uptime::now();
                    self.clock.note(at.now, answered);
                    return Ok((at, answered));
                }
                Err(error) => {
                    let pause = backoff.next();
                    if Instant::now() + pause >= until {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                }
            }
            if Instant::now() >= until {
                return Err(quota_unavailable());
            }
        }
    }

    /// Makes a call that may take until `until`, and no longer than a call may.
    async fn timely<T>(&self, until: Instant, call: impl Future<Output = Result<T, Unavailable>>) -> Result<T> {
        within(until.min(self.call_ends()), call).await
    }

    /// When a call that begins now has taken too long.
    fn call_ends(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.timing.call_ms)
    }

    /// Extends once. The answer comes with the time that the lease had left, ms.
    pub(super) async fn extend(&self, project: &ProjectId, id: ReservationId, grant: u64) -> Result<(Extension, u64)> {
        let until = self.call_ends();
        let asked = self.estimate(Uptime::now(), until).await?;
        let At { now, reply } = within(until, self.ledger.extend(Extend { project, id, grant, asked })).await?;
        self.clock.note(now, Uptime::now());
        let left = match &reply {
            Extension::Reserved(lease) => lease.deadline.since(now),
            Extension::Ended => 0,
        };
        Ok((reply, left))
    }

    /// Settles a read, repeating until the ledger answers or would not believe the call any more.
    pub(super) async fn settle(&self, call: &Settle) {
        let rules = self.ledger.rules();
        self.repeat(call, rules.lease_ms.saturating_add(rules.unreserved_ms)).await;
    }

    /// Releases what may or may not have been reserved, repeating for as long as there can be a
    /// lease: later it has expired by itself.
    async fn release(&self, call: &Settle) {
        let rules = self.ledger.rules();
        self.repeat(call, rules.admission_ms.saturating_add(rules.lease_ms)).await;
    }

    async fn repeat(&self, call: &Settle, patience_ms: u64) {
        let give_up = Uptime::now().plus(patience_ms);
        let mut backoff = Backoff::new(50, 2_000);
        loop {
            match within(self.call_ends(), self.ledger.settle(call)).await {
                Ok(At { now, reply }) => {
                    self.clock.note(now, Uptime::now());
                    match reply {
                        Settlement::Settled(bytes) => {
                            let channel = call.context.channel.as_str();
                            metrics().charged_bytes.with(&ChannelLabels { channel }, |charged| charged.inc_by(bytes));
                        }
                        Settlement::TooLate => {
                            metrics().late_settles.inc();
                            tracing::error!(reservation = %call.id, actual = call.actual, "the settle came too late");
                        }
                    }
                    return;
                }
                Err(error) if Uptime::now() >= give_up => {
                    metrics().abandoned_settles.inc();
                    tracing::error!(reservation = %call.id, actual = call.actual, ?error, "the settle was not taken");
                    return;
                }
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }
}

/// Begins the tasks of reads that are not over soon: long before a lease needs to be renewed, or a
/// reader that stalls cut.
async fn go_round(desk: Weak<Desk>) {
    while let Some(desk) = desk.upgrade() {
        desk.places.open().iter().for_each(Hold::keep);
        let pause = (desk.renew_ms().min(desk.timing.stall_ms) / 2).max(1);
        drop(desk);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// A reserve that is on its way. Dropped without its answer, it is released: it may yet be executed.
struct Asked<'a> {
    desk: &'a Arc<Desk>,
    call: Option<&'a Reserve>,
}

impl Asked<'_> {
    fn answered(mut self) {
        self.call = None;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(call) = self.call else { return };
        let desk = Arc::clone(self.desk);
        let release = Settle {
            project: call.project.clone(),
            id: call.id,
            actual: 0,
            size: call.size,
            day: None,
            deadline: LedgerTime(0),
            outcome: Outcome::Released,
            context: call.context.clone(),
        };
        self.desk.tracker.spawn(async move { desk.release(&release).await });
    }
}

/// Pauses that double up to a bound, each drawn from the upper half of its span.
struct Backoff {
    ms: u64,
    most_ms: u64,
}

impl Backoff {
    const fn new(first_ms: u64, most_ms: u64) -> Self {
        Self { ms: first_ms, most_ms }
    }

    fn next(&mut self) -> Duration {
        let pause = rand::rng().random_range(self.ms / 2..=self.ms);
        self.ms = self.most_ms.min(self.ms * 2);
        Duration::from_millis(pause)
    }
}

async fn within<T>(until: Instant, call: impl Future<Output = Result<T, Unavailable>>) -> Result<T> {
    match tokio::time::timeout_at(until, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(quota_unavailable().with_source(error)),
        Err(elapsed) => Err(quota_unavailable().with_source(elapsed)),
    }
}

fn quota_unavailable() -> Error {
    Error::new(
        Kind::QuotaUnavailable,
        "The download ledger does not answer, and nothing is read without it; try again shortly.",
    )
}

fn quota_exceeded(refusal: At<Refusal>) -> Error {
    let Refusal { reason, limit_bytes, used_bytes, reserved_bytes, requested_bytes, .. } = refusal.reply;
    let state = format!(
        "The read reserves the whole file, {requested_bytes} bytes; of today's allowance of {limit_bytes} bytes, \
         {used_bytes} are used and {reserved_bytes} reserved by open reads."
    );
    let advice = match reason {
        RefusalReason::Spent => "Come back after the reset, or ask the project's owner for a larger allowance.",
        RefusalReason::Busy => "Come back when an open read has ended.",
        RefusalReason::TooLarge => "The file exceeds the whole allowance: ask the project's owner for a larger one.",
    };
    Error::new(Kind::DownloadQuotaExceeded(Box::new(refusal)), format!("{state} {advice}"))
}
