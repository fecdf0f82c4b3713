//! What a ledger tells about itself: the account of a day and the audit.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Allowance, Channel, Context, Day, LedgerTime};
use crate::artifact::TrialId;

/// How a reservation ended, as its entry says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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

/// What a line of the audit speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// One read.
    Read(Context),
    /// All further reads of one hour by one key and channel with one outcome, once a day has more
    /// lines than are kept.
    RolledUp {
        /// The key that asked.
        key_id: String,
        /// The way the reads came in.
        channel: Channel,
    },
    /// An operator's correction.
    Adjustment {
        /// Who corrected: a key id.
        by: String,
        /// Why.
        reason: String,
    },
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the reservation ended; the start of the hour (in UTC) for a rolled-up line.
    pub at: LedgerTime,
    /// The reservation, or the adjustment's own id; empty for a rolled-up line.
    pub id: String,
    /// Who read what, or who corrected why.
    pub subject: Subject,
    /// Bytes reserved.
    pub size: u64,
    /// Bytes charged; negative where a charge was lowered.
    pub charged: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// How many reservations the line stands for: 1, or more once entries are rolled up.
    pub count: u64,
}

impl Entry {
    /// Who read what, if the line is about one read.
    #[must_use]
    pub const fn context(&self) -> Option<&Context> {
        match &self.subject {
            Subject::Read(context) => Some(context),
            Subject::RolledUp { .. } | Subject::Adjustment { .. } => None,
        }
    }

    /// The key that read or corrected.
    #[must_use]
    pub fn key_id(&self) -> &str {
        match &self.subject {
            Subject::Read(context) => &context.key_id,
            Subject::RolledUp { key_id, .. } => key_id,
            Subject::Adjustment { by, .. } => by,
        }
    }

    /// The way the read came in; `None` for an adjustment.
    #[must_use]
    pub const fn channel(&self) -> Option<Channel> {
        match &self.subject {
            Subject::Read(context) => Some(context.channel),
            Subject::RolledUp { channel, .. } => Some(*channel),
            Subject::Adjustment { .. } => None,
        }
    }
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
    /// When the first of the open reservations ends unless it is extended; `None` without any.
    pub earliest_end: Option<LedgerTime>,
}

/// The account of a project on one day, as the history lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayUsage {
    /// The day.
    pub day: Day,
    /// Today the allowance in force, before today what the day's last reservation was judged by;
    /// `None` where nothing was asked for.
    pub allowance: Option<Allowance>,
    /// Bytes charged.
    pub used: u64,
    /// Bytes held by open reservations.
    pub reserved: u64,
    /// Reservations refused.
    pub refused: u64,
    /// Lines of the audit.
    pub entries: u64,
    /// How many reservations and adjustments they stand for.
    pub count: u64,
}

impl Usage {
    /// Bytes that may still be reserved; `None` without a bound.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.allowance.bytes().map(|limit| limit.saturating_sub(self.used.saturating_add(self.reserved)))
    }
}

/// Which entries to list. Rolled-up lines and adjustments speak of no trial, so a trial leaves them out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only this trial.
    pub trial: Option<TrialId>,
    /// Only this key; for adjustments the operator's.
    pub key_id: Option<String>,
    /// Only this channel.
    pub channel: Option<Channel>,
    /// Only this outcome.
    pub outcome: Option<Outcome>,
}

impl AuditFilter {
    /// Whether `entry` is to be listed.
    #[must_use]
    pub fn admits(&self, entry: &Entry) -> bool {
        self.trial.as_ref().is_none_or(|trial| entry.context().is_some_and(|context| context.trial == *trial))
            && self.key_id.as_ref().is_none_or(|key_id| entry.key_id() == key_id)
            && self.channel.is_none_or(|channel| entry.channel() == Some(channel))
            && self.outcome.is_none_or(|outcome| entry.outcome == outcome)
    }
}

/// A page of entries, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The day that they are of.
    pub day: Day,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
