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

pub mod day;

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

use crate::artifact::{ArtifactName, ProjectId, TrialId};

pub use day::Day;

/// The largest amount of bytes that a ledger holds: 2^53 - 1, exact in every JSON reader and in Lua.
pub const MAX_AMOUNT: u64 = (1 << 53) - 1;

/// A moment by the ledger's clock: milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LedgerTime(pub u64);

impl LedgerTime {
    /// This moment, `ms` milliseconds later.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this moment; 0 if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The times and amounts of the protocol. One set is shared by a ledger and its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How long a lease lives after its last extension, ms.
    pub lease_ms: u64,
    /// W: how long after it was first sent a reserve may still be executed, ms.
    pub admission_ms: u64,
    /// U: how long after its deadline an unknown settle is still taken, ms.
    pub unreserved_ms: u64,
    /// L: how long Settled and Expired ids are remembered, ms. More than
    /// max(`admission_ms`, `lease_ms` + `unreserved_ms`).
    pub tombstone_ms: u64,
    /// The credit step: the most that one reserve or extend grants, bytes.
    pub credit_bytes: u64,
    /// N: due leases swept inside one reserve.
    pub sweep_in_reserve: usize,
    /// Due leases swept by one step of the sweeper, of quota and of audit.
    pub sweep_batch: usize,
    /// Entries kept per project and day before further ones are rolled up.
    pub max_entries: u64,
    /// Days that entries and totals are kept.
    pub retention_days: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            lease_ms: 30_000,
            admission_ms: 10_000,
            unreserved_ms: 240_000,
            tombstone_ms: 300_000,
            credit_bytes: 8 << 20,
            sweep_in_reserve: 16,
            sweep_batch: 64,
            max_entries: 100_000,
            retention_days: 35,
        }
    }
}

/// What a project may download in a day. [`Unlimited`](Allowance::Unlimited) and 0 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// No bound; reads are still reserved, charged and audited.
    Unlimited,
    /// At most this many bytes, up to [`MAX_AMOUNT`].
    Bytes(u64),
}

impl Allowance {
    /// Whether `total` bytes are within the allowance.
    #[must_use]
    pub const fn covers(self, total: u64) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Bytes(limit) => total <= limit,
        }
    }

    /// The bound in bytes, if there is one.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Bytes(limit) => Some(limit),
        }
    }
}

/// Names one reservation: a UUIDv7 made once per answer and stat. Every retry of a call carries the
/// same id; a new stat takes a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(pub Uuid);

impl ReservationId {
    /// A fresh id.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for ReservationId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The way a read came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A coding agent's tool call.
    Mcp,
    /// An HTTP request with a key.
    Http,
    /// A signed link.
    Link,
}

impl Channel {
    /// Every channel, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Mcp, Self::Http, Self::Link];

    /// The name in entries and filters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Http => "http",
            Self::Link => "link",
        }
    }
}

/// Who read what: kept with the reservation for its audit entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The key that asked.
    pub key_id: String,
    /// The way it came in.
    pub channel: Channel,
    /// The trial read from.
    pub trial: TrialId,
    /// The artifact read.
    pub artifact: ArtifactName,
    /// The request, as answered in `X-Request-Id`.
    pub request_id: String,
}

/// Asks for `size` bytes of today's allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The account.
    pub project: ProjectId,
    /// The same in every retry.
    pub id: ReservationId,
    /// The whole size of the file, bytes, up to [`MAX_AMOUNT`].
    pub size: u64,
    /// Executed later than this, the call is [`Stale`](Admission::Stale). Set once per id.
    pub not_after: LedgerTime,
    /// For the entry.
    pub context: Context,
}

/// The present state of a reservation, as [`Ledger::reserve`] answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Up to `grant` bytes may be handed out until `deadline`.
    Reserved(Lease),
    /// The id is settled: serve nothing.
    Settled,
    /// The id expired: serve nothing.
    Expired,
    /// Over the allowance. Final for this id.
    Refused(Refusal),
    /// Too many due leases to sweep at once: nothing is stored, repeat the same call.
    Again,
    /// Executed after `not_after`: nothing is stored.
    Stale,
}

/// An open reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The most that may have been handed out so far, bytes.
    pub grant: u64,
    /// The day of the admission, which every charge goes to.
    pub day: Day,
    /// When it expires unless extended, by the ledger's clock.
    pub deadline: LedgerTime,
}

/// Why a reservation was refused, and when to come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What stands in the way.
    pub reason: RefusalReason,
    /// The allowance of the day, bytes.
    pub limit_bytes: u64,
    /// Bytes charged to the day so far.
    pub used_bytes: u64,
    /// Bytes held by open reservations.
    pub reserved_bytes: u64,
    /// Bytes that were asked for.
    pub requested_bytes: u64,
    /// When the day ends and the allowance is whole again.
    pub resets_at: LedgerTime,
    /// How long to wait before asking again, ms; `None` where waiting does not help.
    pub retry_after_ms: Option<u64>,
}

/// What stands in the way of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// What was used today leaves no room: wait for the reset.
    Spent,
    /// Open reservations hold the room: wait for the earliest to end.
    Busy,
    /// The file exceeds the whole allowance: waiting does not help.
    TooLarge,
}

impl RefusalReason {
    /// The name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spent => "spent",
            Self::Busy => "busy",
            Self::TooLarge => "too_large",
        }
    }
}

/// Asks for a larger grant, or for the same one to live on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extend<'a> {
    /// The account.
    pub project: &'a ProjectId,
    /// The reservation.
    pub id: ReservationId,
    /// The grant asked for, absolute, bytes; clamped to the reserved size.
    pub grant: u64,
    /// The caller's estimate of ledger time when it first sent this call. The new deadline is
    /// counted from it, so that a copy that arrives late prolongs nothing.
    pub asked: LedgerTime,
}

/// What became of an [`Extend`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// The lease as it stands now.
    Reserved(Lease),
    /// Not open any more: hand out nothing more, settle.
    Ended,
}

/// Ends a reservation: charges `actual` and gives back the rest. `actual` = 0 is a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The account.
    pub project: ProjectId,
    /// The reservation.
    pub id: ReservationId,
    /// Bytes handed out, at most `size`. Never changes once sent.
    pub actual: u64,
    /// The size that was reserved.
    pub size: u64,
    /// The day of the admission, for a ledger that lost the reservation; `None` if no admission
    /// was ever answered (then `actual` is 0).
    pub day: Option<Day>,
    /// The last deadline that the caller knows; 0 if none.
    pub deadline: LedgerTime,
    /// How the read ended, for the entry.
    pub outcome: Outcome,
    /// For the entry, if the ledger lost the reservation.
    pub context: Context,
}

/// What became of a [`Settle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// Settled, now or before: the bytes charged.
    Settled(u64),
    /// The ledger no longer knows the id and the call is too old to be believed: nothing changed.
    TooLate,
}

/// How a reservation ended, as its entry says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All that was asked for went out.
    Completed,
    /// The client left, or was cut for not reading.
    Aborted,
    /// The store or the service failed midway.
    Failed,
    /// The lease ran out; its grant was charged.
    Expired,
    /// A settle after the expiry lowered the charge.
    Corrected,
    /// A charge for which the ledger held no reservation, or more than it had granted.
    Unreserved,
    /// Nothing was handed out.
    Released,
    /// An operator's correction.
    Adjusted,
}

impl Outcome {
    /// Every outcome, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::Aborted,
        Self::Failed,
        Self::Expired,
        Self::Corrected,
        Self::Unreserved,
        Self::Released,
        Self::Adjusted,
    ];

    /// The name in entries and filters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Corrected => "corrected",
            Self::Unreserved => "unreserved",
            Self::Released => "released",
            Self::Adjusted => "adjusted",
        }
    }
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the reservation ended.
    pub at: LedgerTime,
    /// The reservation, or the adjustment's own id.
    pub id: String,
    /// Who read what; `None` for an adjustment and for rolled-up entries.
    pub context: Option<Context>,
    /// Bytes reserved.
    pub size: u64,
    /// Bytes charged; negative where a charge was lowered.
    pub charged: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// How many reservations the line stands for: 1, or more once entries are rolled up.
    pub count: u64,
}

/// The account of a project today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Today.
    pub day: Day,
    /// When today ends.
    pub resets_at: LedgerTime,
    /// The allowance in force.
    pub allowance: Allowance,
    /// Bytes charged.
    pub used: u64,
    /// Bytes held by open reservations.
    pub reserved: u64,
    /// Open reservations.
    pub open: u64,
    /// Reservations refused.
    pub refused: u64,
}

impl Usage {
    /// Bytes that may still be reserved; `None` without a bound.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.allowance.bytes().map(|limit| limit.saturating_sub(self.used.saturating_add(self.reserved)))
    }
}

/// Which entries to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only this trial.
    pub trial: Option<TrialId>,
    /// Only this key.
    pub key_id: Option<String>,
    /// Only this channel.
    pub channel: Option<Channel>,
    /// Only this outcome.
    pub outcome: Option<Outcome>,
}

/// A page of entries, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
    /// How many reservations all matching entries of the day stand for.
    pub total_count: u64,
    /// The sum of the charges of all matching entries of the day, bytes.
    pub total_charged: i64,
}

/// The sums of a day, recomputed from what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    /// Lines of the audit.
    pub entries: u64,
    /// The sum of their charges, bytes.
    pub charged: i64,
    /// What the account says was used, bytes.
    pub used: u64,
    /// What the account says is reserved, bytes.
    pub reserved: u64,
    /// Open leases.
    pub leases: u64,
    /// The sum of their sizes, bytes.
    pub leased: u64,
    /// Leases in the deadline index.
    pub indexed: u64,
}

impl Verification {
    /// Whether I2 and I3 hold.
    #[must_use]
    pub fn balanced(&self) -> bool {
        i64::try_from(self.used) == Ok(self.charged) && self.reserved == self.leased && self.leases == self.indexed
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

    /// A page of the entries of `day` (`None`: today), newest first, beginning at `from` (a
    /// [`AuditPage::next`]; `None`: the newest). Due leases are swept first.
    async fn audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage>;

    /// Recomputes the sums of `day` (`None`: today). Due leases are swept first.
    async fn verify(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification>;

    /// Expires due leases of silent projects, one batch; answers how many it expired. Fewer than
    /// [`Rules::sweep_batch`] means that none are left.
    async fn sweep(&self) -> Reply<usize>;
}
