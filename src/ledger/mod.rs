//! The allowance: how many bytes a project may download in a day, and where every byte went.
//!
//! A read happens in two phases. Before the first byte, the whole size of the file is *reserved*
//! against the account (project × day); after the last, what was really handed out is *settled*:
//! charged, and the rest given back. A reservation is a lease. It must be *extended* while it is
//! used; one whose deadline passes *expires* and is charged its *grant*, the most that can have
//! gone out. So a crash can over-count by a credit step and never under-counts.
//!
//! ```text
//! (none) ──reserve──► Reserved(size, grant, deadline) ──extend*──► Reserved(size, grant', deadline')
//!    ├─ over the allowance: Refused, remembered until not_after
//!    ├─ more due leases than the sweep's bound: Again, nothing stored
//!    └─ executed later than its not_after: Stale, nothing stored
//! Reserved  ──settle(actual)───────► Settled(actual)   charge actual, give back size - actual
//! Reserved  ──deadline, swept──────► Expired(grant)    charge grant
//! Expired   ──late settle(actual)──► Settled(actual)   entry `corrected`: actual - grant
//! (unknown) ──settle(actual > 0)───► Settled(actual)   entry `unreserved`, on the day it carries
//! (unknown) ──settle(0) = release──► Settled(0)        a mark, so that a late reserve stores nothing
//! ```
//!
//! Every call is idempotent by the reservation's id: a caller that got no answer repeats the call.
//! [`state`] is the transition table itself, pure; every ledger is tested against it.

pub mod book;
pub mod clock;
pub mod day;
pub mod embedded;
pub mod memory;
pub mod redis;
pub mod state;

mod audit;
mod calls;
mod links;
mod rules;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::artifact::ProjectId;

pub use audit::{AuditFilter, AuditPage, DayUsage, Entry, Outcome, Subject, Usage, Verification};
pub use calls::{
    Adjust, Adjustment, Admission, Channel, Context, Extend, Extension, Lease, Refusal, RefusalReason, ReservationId,
    Reserve, Settle, Settlement, Standing,
};
pub use clock::{Clock, SystemClock};
pub use day::{Day, DaySpan, Days, ResetZone};
pub use embedded::Embedded;
pub use links::{Link, LinkId};
pub use redis::Redis;
pub use rules::{Allowance, Override, Policy, Rules, WarnAt};

/// The largest amount of bytes that a ledger holds: 2^53 - 1, exact in every JSON reader and in Lua.
pub const MAX_AMOUNT: u64 = (1 << 53) - 1;

/// The most entries in one [`AuditPage`], and links in one answer.
pub const MAX_PAGE: usize = 1000;

/// A moment by the ledger's clock: milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LedgerTime(pub u64);

impl LedgerTime {
    /// This moment, `ms` milliseconds later.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The moment as answers write it: RFC 3339 in UTC, milliseconds only where there are any.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        i64::try_from(self.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
    }

    /// Milliseconds from `earlier` until this moment; 0 if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// An answer, and the ledger's clock when it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At<T> {
    /// The ledger's clock.
    pub now: LedgerTime,
    /// The answer.
    pub reply: T,
}

/// The ledger did not answer. Whether the call was executed is unknown: repeat it with the same id.
#[derive(Debug, thiserror::Error)]
#[error("the ledger is unavailable: {0}")]
pub struct Unavailable(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// What a ledger's call answers.
pub type Reply<T> = Result<At<T>, Unavailable>;

/// The account books of every project.
///
/// Calls may be repeated, reordered and lost. Every implementation answers each history as
/// [`state`] does; the contract suite holds them to it. Amounts are bytes, times the ledger's own.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// The times and amounts that this ledger works by.
    fn rules(&self) -> &Rules;

    /// Changes the allowance of projects without an override, for every call from now on.
    fn set_default_allowance(&self, allowance: Allowance);

    /// Names the books. Another name than before tells that what they held was lost, and that they
    /// began anew. `None`: such a loss does not go unnoticed anyway.
    async fn identity(&self) -> Result<Option<String>, Unavailable> {
        Ok(None)
    }

    /// The ledger's clock.
    async fn now(&self) -> Result<LedgerTime, Unavailable>;

    /// Reserves; a known id answers its present state.
    async fn reserve(&self, call: &Reserve) -> Reply<Admission>;

    /// Raises the grant and the deadline of an open reservation; neither ever falls.
    async fn extend(&self, call: Extend<'_>) -> Reply<Extension>;

    /// Ends a reservation.
    async fn settle(&self, call: &Settle) -> Reply<Settlement>;

    /// The account today. Due leases are swept first.
    async fn usage(&self, project: &ProjectId) -> Reply<Usage>;

    /// The accounts of today and the days before it, today's first, `days` of them (1 to
    /// [`Rules::kept_days`]), also those on which nothing happened. Due leases of each are swept first.
    async fn history(&self, project: &ProjectId, days: u32) -> Reply<Vec<DayUsage>>;

    /// A page of at most `limit` (1 to [`MAX_PAGE`]) entries of `day` (`None`: today), newest first,
    /// beginning at `from` (a [`AuditPage::next`]; `None`: the newest). Due leases of that day are
    /// swept first. A day that is no longer kept is empty.
    async fn audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage>;

    /// Recomputes the sums of `day` (`None`: today). Due leases of that day are swept first. A day
    /// that is no longer kept is empty.
    async fn verify(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification>;

    /// Sets the allowance of a project, or with `None` returns it to the default. In force at once;
    /// what is reserved already stays reserved.
    async fn set_allowance(&self, project: &ProjectId, exception: Option<&Override>) -> Reply<()>;

    /// The allowance set for a project, if there is one and it is in force.
    async fn allowance(&self, project: &ProjectId) -> Reply<Option<Override>>;

    /// Records a link until it expires. Once its id is known, or its time is over, nothing changes.
    async fn record_link(&self, project: &ProjectId, link: &Link) -> Reply<()>;

    /// At most `limit` (1 to [`MAX_PAGE`]) links of a project that are neither revoked nor expired,
    /// by id, those with an id above `after`.
    async fn links(&self, project: &ProjectId, after: Option<LinkId>, limit: usize) -> Reply<Vec<Link>>;

    /// Revokes a link: no reservation by it is admitted any more. Answers whether the link is known,
    /// revoked or not. What is reserved already stays reserved.
    async fn revoke_link(&self, project: &ProjectId, id: LinkId) -> Reply<bool>;

    /// Corrects what was charged to a day, once per id.
    async fn adjust(&self, call: &Adjust) -> Reply<Adjustment>;

    /// Expires due leases of silent projects, one batch; answers how many it expired. Fewer than
    /// [`Rules::sweep_batch`] means that none are left. Also deletes a batch of what is no longer
    /// kept: ids and links past their time, days beyond the retention.
    async fn sweep(&self) -> Reply<usize>;
}
