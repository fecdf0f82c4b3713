//! What the transitions of [`state`](super::state) need of a storage, and what they keep in it.
//!
//! A [`Book`] stores and finds; it decides nothing. Whoever drives the transitions makes each of
//! them atomic: after an error, everything that the transition wrote is undone.

use super::{
    Allowance, AuditFilter, Channel, Context, Day, Entry, LedgerTime, Link, LinkId, Outcome, Override, RefusalReason,
    ReservationId, Verification,
};
use crate::artifact::ProjectId;

/// What is remembered of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The day of the admission, or of the call that made the mark.
    pub day: Day,
    /// The size asked for, bytes.
    pub size: u64,
    /// What became of it.
    pub state: State,
}

/// The states of an id that a ledger knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// An open lease.
    Reserved {
        /// The most that may have been handed out, bytes.
        grant: u64,
        /// The lease is due from this moment on.
        deadline: LedgerTime,
        /// For the entry.
        context: Context,
    },
    /// Ended by its settle: remembered until `until`, inclusive.
    Settled {
        /// What was charged, bytes.
        charged: u64,
        /// The last moment at which the id is known.
        until: LedgerTime,
    },
    /// Ended by the sweep: remembered until `until`, inclusive.
    Expired {
        /// What was charged, bytes.
        charged: u64,
        /// The last moment at which the id is known.
        until: LedgerTime,
    },
    /// Turned away: remembered until `until`, inclusive.
    Refused {
        /// Why.
        refused: Refused,
        /// The last moment at which the id is known.
        until: LedgerTime,
    },
}

impl State {
    /// The last moment at which the id is known; `None` for an open lease, which only settling or
    /// sweeping ends.
    #[must_use]
    pub const fn until(&self) -> Option<LedgerTime> {
        match self {
            Self::Reserved { .. } => None,
            Self::Settled { until, .. } | Self::Expired { until, .. } | Self::Refused { until, .. } => Some(*until),
        }
    }
}

/// A refusal as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// What stood in the way.
    pub reason: RefusalReason,
    /// The bound that was judged by, bytes.
    pub limit: u64,
    /// Bytes charged at that moment.
    pub used: u64,
    /// Bytes reserved at that moment.
    pub reserved: u64,
    /// When the day ends.
    pub resets_at: LedgerTime,
    /// From when on it is worth asking again.
    pub retry_at: Option<LedgerTime>,
}

/// A link as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRecord {
    /// The link.
    pub link: Link,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// The sums of a project and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// Bytes charged, 0 to [`MAX_AMOUNT`](super::MAX_AMOUNT).
    pub used: u64,
    /// The sizes of the open leases, bytes.
    pub reserved: u64,
    /// Open leases.
    pub open: u64,
    /// Reservations refused.
    pub refused: u64,
    /// Lines of the audit; also the sequence number of the newest.
    pub lines: u64,
    /// What the lines stand for.
    pub counted: u64,
    /// What the day's last reservation was judged by; `None` if there was none.
    pub allowance: Option<Allowance>,
}

/// What is remembered of an adjustment: what was asked for, and what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjustmentRecord {
    /// The day that was corrected.
    pub day: Day,
    /// Bytes asked for, within plus and minus [`MAX_AMOUNT`](super::MAX_AMOUNT).
    pub bytes: i64,
    /// Why.
    pub reason: String,
    /// Bytes charged.
    pub applied: i64,
}

/// Names the line that further entries of an hour are added to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RollKey {
    /// The start of the hour, UTC.
    pub hour: LedgerTime,
    /// The key that asked.
    pub key_id: String,
    /// The way the reads came in.
    pub channel: Channel,
    /// How they ended.
    pub outcome: Outcome,
}

/// The sums of the lines that match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// What the lines stand for.
    pub count: u64,
    /// Their charges, bytes.
    pub charged: i64,
}

/// A storage of the account books of every project.
pub trait Book {
    /// How the storage fails.
    type Error;

    /// What is stored of an id, also when its time is over.
    fn record(&mut self, project: &ProjectId, id: ReservationId) -> Result<Option<Record>, Self::Error>;

    /// Stores what is remembered of an id, in place of what was.
    fn put_record(&mut self, project: &ProjectId, id: ReservationId, record: &Record) -> Result<(), Self::Error>;

    /// At most `limit` leases of the day with a deadline at or before `now`, by deadline, then id.
    fn due(
        &mut self,
        project: &ProjectId,
        day: Day,
        now: LedgerTime,
        limit: usize,
    ) -> Result<Vec<ReservationId>, Self::Error>;

    /// At most `limit` leases of any account with a deadline at or before `now`, by deadline.
    fn due_anywhere(&mut self, now: LedgerTime, limit: usize) -> Result<Vec<(ProjectId, ReservationId)>, Self::Error>;

    /// The earliest deadline of the day's leases.
    fn earliest_deadline(&mut self, project: &ProjectId, day: Day) -> Result<Option<LedgerTime>, Self::Error>;

    /// The sums of a project and day; zero if there are none.
    fn account(&mut self, project: &ProjectId, day: Day) -> Result<Account, Self::Error>;

    /// Stores the sums of a project and day.
    fn put_account(&mut self, project: &ProjectId, day: Day, account: &Account) -> Result<(), Self::Error>;

    /// Stores a line of the audit under its sequence number, in place of what was. `roll` names a
    /// rolled-up line for [`rolled`](Book::rolled).
    fn put_line(
        &mut self,
        project: &ProjectId,
        day: Day,
        sequence: u64,
        entry: &Entry,
        roll: Option<&RollKey>,
    ) -> Result<(), Self::Error>;

    /// The rolled-up line of that name and its sequence number.
    fn rolled(&mut self, project: &ProjectId, day: Day, key: &RollKey) -> Result<Option<(u64, Entry)>, Self::Error>;

    /// At most `limit` lines that match, by falling sequence number, none above `from`.
    fn lines(
        &mut self,
        project: &ProjectId,
        day: Day,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Entry)>, Self::Error>;

    /// The sums of all lines that match.
    fn totals(&mut self, project: &ProjectId, day: Day, filter: &AuditFilter) -> Result<Totals, Self::Error>;

    /// What the account says, and the same sums recomputed from lines, leases and deadline index.
    fn recount(&mut self, project: &ProjectId, day: Day) -> Result<Verification, Self::Error>;

    /// The allowance set for a project, also when its time is over.
    fn exception(&mut self, project: &ProjectId) -> Result<Option<Override>, Self::Error>;

    /// Sets or clears the allowance of a project.
    fn put_exception(&mut self, project: &ProjectId, exception: Option<&Override>) -> Result<(), Self::Error>;

    /// What is remembered of the adjustment of this id.
    fn adjustment(&mut self, project: &ProjectId, id: &str) -> Result<Option<AdjustmentRecord>, Self::Error>;

    /// Remembers an adjustment as long as its day is kept, instead of one of the same id whose day
    /// is not.
    fn put_adjustment(&mut self, project: &ProjectId, id: &str, record: &AdjustmentRecord) -> Result<(), Self::Error>;

    /// What is stored of a link, also when its time is over.
    fn link(&mut self, project: &ProjectId, id: LinkId) -> Result<Option<LinkRecord>, Self::Error>;

    /// Stores a link, in place of what was.
    fn put_link(&mut self, project: &ProjectId, record: &LinkRecord) -> Result<(), Self::Error>;

    /// At most `limit` links that are not revoked and expire at or after `now`, by id, those above
    /// `after`.
    fn live_links(
        &mut self,
        project: &ProjectId,
        now: LedgerTime,
        after: Option<LinkId>,
        limit: usize,
    ) -> Result<Vec<Link>, Self::Error>;

    /// Deletes at most `limit` links that expired before `now`, the oldest first.
    fn forget_links(&mut self, now: LedgerTime, limit: usize) -> Result<(), Self::Error>;

    /// Deletes at most `limit` records whose time was over before `now`, the oldest first.
    fn forget_records(&mut self, now: LedgerTime, limit: usize) -> Result<(), Self::Error>;

    /// Deletes about `limit` lines, accounts and adjustments of days before `first_kept`. An
    /// account with open leases stays.
    fn forget_days(&mut self, first_kept: Day, limit: usize) -> Result<(), Self::Error>;
}
