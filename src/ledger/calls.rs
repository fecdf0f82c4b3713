//! The calls of a ledger and their answers.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::{Allowance, Day, LedgerTime, LinkId, Outcome};
use crate::artifact::{ArtifactName, ProjectId, TrialId};

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

    /// The id as text, in a buffer of 36 bytes.
    pub fn encode(self, buffer: &mut [u8; Hyphenated::LENGTH]) -> &str {
        self.0.hyphenated().encode_lower(buffer)
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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
    /// The link that was followed, where the channel is one. A reservation that names a link is
    /// admitted only while the ledger knows that link and it is not revoked.
    pub link_id: Option<LinkId>,
}

/// Asks for `size` bytes of today's allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The account.
    pub project: ProjectId,
    /// The same in every retry.
    pub id: ReservationId,
    /// The whole size of the file, bytes. Above [`MAX_AMOUNT`](super::MAX_AMOUNT) the answer is a
    /// refusal that is neither remembered nor counted.
    pub size: u64,
    /// Executed later than this, the call is [`Stale`](Admission::Stale). Set once per id.
    pub not_after: LedgerTime,
    /// For the entry.
    pub context: Context,
}

/// The present state of a reservation, as [`Ledger::reserve`](super::Ledger::reserve) answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Up to `grant` bytes may be handed out until `deadline`; and how today's account stands.
    Reserved(Lease, Standing),
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
    /// The link was revoked, or is not known: nothing is stored, and no later copy is admitted.
    LinkRevoked,
}

impl Admission {
    /// The lease of an admitted reservation.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Reserved(lease, _) => Some(*lease),
            Self::Settled | Self::Expired | Self::Refused(_) | Self::Again | Self::Stale | Self::LinkRevoked => None,
        }
    }
}

/// Today's account, the reservation just admitted included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Today.
    pub day: Day,
    /// The allowance in force.
    pub allowance: Allowance,
    /// Bytes charged.
    pub used: u64,
    /// Bytes held by open reservations.
    pub reserved: u64,
    /// When today ends.
    pub resets_at: LedgerTime,
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
    /// The allowance of the day, bytes; [`MAX_AMOUNT`](super::MAX_AMOUNT), the most that any account
    /// holds, if it is unlimited.
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

impl Refusal {
    /// How long to wait before asking again, whole seconds, at least 1; `None` where waiting does not
    /// help.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_ms.map(|ms| ms.div_ceil(1000).max(1))
    }
}

/// What stands in the way of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
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
    /// Bytes handed out; more than the reserved size counts as that size. Never changes once sent.
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

/// An operator's correction of a day. Executed once per id: a repeat says the same day, bytes and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjust {
    /// The account.
    pub project: ProjectId,
    /// Chosen by the operator, the same in every retry.
    pub id: String,
    /// The day to correct: one that is kept, or tomorrow.
    pub day: Day,
    /// Bytes to charge; negative to lower what was charged.
    pub bytes: i64,
    /// Who corrects: a key id.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// What became of an [`Adjust`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjustment {
    /// Applied, now or before, by this many bytes. An account stays within 0 and
    /// [`MAX_AMOUNT`](super::MAX_AMOUNT), so this may be less than was asked for.
    Applied(i64),
    /// The day is no longer kept, or later than tomorrow: nothing changed.
    NoSuchDay,
    /// The id was used for another day, amount or reason: nothing changed.
    Conflict,
}
