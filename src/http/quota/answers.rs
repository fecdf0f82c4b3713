//! What the account's endpoints answer: the types are the contract, and the API's description is
//! made of them.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::artifact::{ArtifactName, ProjectId, TrialId};
use crate::ledger::book::Totals;
use crate::ledger::{
    Allowance, Channel, Context, Day, DayUsage, Entry, LedgerTime, LinkId, MAX_AMOUNT, Outcome, Override,
    RefusalReason, Subject, Usage, Verification,
};
use crate::quota::{Group, GroupBy, Groups};

/// An allowance as answers write it: a number of bytes, or `"unlimited"`.
#[derive(Debug, Clone, Copy)]
pub(super) struct DailyBytes(Allowance);

impl Serialize for DailyBytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0.bytes() {
            Some(bytes) => s.serialize_u64(bytes),
            None => s.serialize_str("unlimited"),
        }
    }
}

impl JsonSchema for DailyBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DailyBytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Bytes that the project may download a day.",
            "oneOf": [{"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT}, {"const": "unlimited"}],
        })
    }
}

/// The account of a project today.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Account<'a> {
    /// The project.
    pub(super) project_id: &'a ProjectId,
    /// Today, in the zone.
    pub(super) day: Day,
    /// The zone whose midnight resets the allowance, an IANA name.
    pub(super) zone: &'a str,
    #[serde(flatten)]
    pub(super) balance: Balance,
    /// Reservations that are open now.
    pub(super) open_reservations: u64,
    /// Reservations that were refused today.
    pub(super) refused: u64,
    /// From this percentage of use on, answers warn.
    pub(super) warn_percent: u8,
    /// Whether that is reached.
    pub(super) warning: bool,
}

/// How much there is, and how much is left.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(in crate::http) struct Balance {
    daily_bytes: DailyBytes,
    /// Bytes charged today.
    used_bytes: u64,
    /// Bytes held by open reservations.
    reserved_bytes: u64,
    /// Bytes that may still be reserved; null without a bound.
    remaining_bytes: Option<u64>,
    /// When today ends and the allowance is whole again.
    #[schemars(with = "String", extend("format" = "date-time"))]
    resets_at: Timestamp,
}

impl Balance {
    pub(in crate::http) fn of(usage: &Usage) -> Self {
        Self {
            daily_bytes: DailyBytes(usage.allowance),
            used_bytes: usage.used,
            reserved_bytes: usage.reserved,
            remaining_bytes: usage.remaining(),
            resets_at: usage.resets_at.timestamp(),
        }
    }
}

/// Whether a reservation would be admitted now.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Foresight {
    /// Whether it would.
    pub(super) admitted: bool,
    /// Why not.
    pub(super) reason: Option<RefusalReason>,
    /// When to ask again, s; null where it is admitted, or where waiting does not help.
    pub(super) retry_after_seconds: Option<u64>,
    /// Bytes asked about.
    pub(super) requested_bytes: u64,
    #[serde(flatten)]
    pub(super) balance: Balance,
}

/// The accounts of the last days.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct History<'a> {
    /// The zone of the days, an IANA name.
    pub(super) zone: &'a str,
    /// Today's first.
    pub(super) items: Vec<HistoryDay>,
}

/// The account of a project on one day.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HistoryDay {
    day: Day,
    /// What the day's last reservation was judged by; null where nothing was asked for.
    daily_bytes: Option<DailyBytes>,
    /// Bytes charged.
    used_bytes: u64,
    /// Bytes held by open reservations.
    reserved_bytes: u64,
    /// Reservations refused.
    refused: u64,
    /// Lines of the audit.
    entries: u64,
    /// How many reservations and adjustments they stand for.
    count: u64,
}

impl From<&DayUsage> for HistoryDay {
    fn from(row: &DayUsage) -> Self {
        Self {
            day: row.day,
            daily_bytes: row.allowance.map(DailyBytes),
            used_bytes: row.used,
            reserved_bytes: row.reserved,
            refused: row.refused,
            entries: row.entries,
            count: row.count,
        }
    }
}

/// The books of a day, added up anew.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Verified {
    /// Lines of the audit.
    entries: u64,
    /// The sum of their charges, bytes.
    charged_bytes: i64,
    /// What the account says was used.
    used_bytes: u64,
    /// What the account says is reserved.
    reserved_bytes: u64,
    /// Open leases.
    leases: u64,
    /// Whether entries and leases add up to what the account says.
    balanced: bool,
}

impl From<Verification> for Verified {
    fn from(sums: Verification) -> Self {
        Self {
            entries: sums.entries,
            charged_bytes: sums.charged,
            used_bytes: sums.used,
            reserved_bytes: sums.reserved,
            leases: sums.leases,
            balanced: sums.balanced(),
        }
    }
}

/// Sums of entries.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(super) struct Sums {
    /// How many reservations and adjustments the entries stand for.
    count: u64,
    /// Their charges, bytes.
    charged_bytes: i64,
}

impl From<Totals> for Sums {
    fn from(Totals { count, charged }: Totals) -> Self {
        Self { count, charged_bytes: charged }
    }
}

/// A page of the audit of a day.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditPage<'a> {
    pub(super) day: Day,
    /// The newest first.
    pub(super) items: Vec<AuditEntry<'a>>,
    /// Ask for the next page with this.
    pub(super) next_cursor: Option<String>,
    /// Sums of all that the filter admits, on whatever page.
    pub(super) totals: Sums,
}

/// One line of the audit.
///
/// A line about one read names trial, artifact, request and link; one that stands for many reads
/// does not, and one of an operator says why instead.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditEntry<'a> {
    /// When the reservation ended; the start of the hour for a line that stands for many.
    #[schemars(with = "String", extend("format" = "date-time"))]
    at: Timestamp,
    /// The reservation, or the adjustment's own id; empty for a line that stands for many.
    id: &'a str,
    /// The key that read, or corrected.
    key_id: &'a str,
    /// The way in; null for an adjustment.
    channel: Option<Channel>,
    /// Bytes reserved.
    size_bytes: u64,
    /// Bytes charged; negative where a charge was lowered.
    charged_bytes: i64,
    outcome: Outcome,
    /// How many reservations the line stands for.
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial_id: Option<&'a TrialId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<&'a ArtifactName>,
    /// As answered in `X-Request-Id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// The link that was followed, null for a read with a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_id: Option<Option<LinkId>>,
    /// Why an operator corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> From<&'a Entry> for AuditEntry<'a> {
    fn from(entry: &'a Entry) -> Self {
        let context: Option<&Context> = entry.context();
        let reason = match &entry.subject {
            Subject::Adjustment { reason, .. } => Some(reason.as_str()),
            Subject::Read(_) | Subject::RolledUp { .. } => None,
        };
        Self {
            at: entry.at.timestamp(),
            id: &entry.id,
            key_id: entry.key_id(),
            channel: entry.channel(),
            size_bytes: entry.size,
            charged_bytes: entry.charged,
            outcome: entry.outcome,
            count: entry.count,
            trial_id: context.map(|context| &context.trial),
            artifact: context.map(|context| &context.artifact),
            request_id: context.map(|context| context.request_id.as_str()),
            link_id: context.map(|context| context.link_id),
            reason,
        }
    }
}

/// The entries of a day added up by what they have in common.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditGroups {
    day: Day,
    /// What they are grouped by.
    group_by: Vec<GroupBy>,
    /// By their charges, the largest first; at most 1000.
    groups: Vec<AuditGroup>,
    /// The groups beyond those.
    others: OtherGroups,
    totals: Sums,
}

/// The sums of one group; it names what it was grouped by, null where entries have none.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<Option<Channel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial_id: Option<Option<TrialId>>,
    #[serde(flatten)]
    sums: Sums,
}

/// The sums of the groups that are not listed one by one.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OtherGroups {
    /// How many there are.
    groups: usize,
    #[serde(flatten)]
    sums: Sums,
}

impl AuditGroups {
    pub(super) fn new(found: Groups, by: &[GroupBy]) -> Self {
        let named = |what| by.contains(&what);
        let group = |(Group { key_id, channel, trial }, sums): (Group, Totals)| AuditGroup {
            key_id: named(GroupBy::Key).then_some(key_id),
            channel: named(GroupBy::Channel).then_some(channel),
            trial_id: named(GroupBy::Trial).then_some(trial),
            sums: sums.into(),
        };
        Self {
            day: found.day,
            group_by: by.to_vec(),
            groups: found.groups.into_iter().map(group).collect(),
            others: OtherGroups { groups: found.others.0, sums: found.others.1.into() },
            totals: found.totals.into(),
        }
    }
}

/// What a project is allowed beside the default.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProjectAllowance<'a> {
    pub(super) project_id: &'a ProjectId,
    /// What is in force instead of the default; null if the default is.
    #[serde(rename = "override")]
    pub(super) exception: Option<AllowanceOverride<'a>>,
}

/// What an operator gave to a project instead of the default.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AllowanceOverride<'a> {
    daily_bytes: DailyBytes,
    /// When the default is in force again; null: not until it is cleared.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    until: Option<Timestamp>,
    /// The key that set it.
    by: &'a str,
    /// Why.
    reason: &'a str,
}

impl<'a> From<&'a Override> for AllowanceOverride<'a> {
    fn from(Override { allowance, until, by, reason }: &'a Override) -> Self {
        Self { daily_bytes: DailyBytes(*allowance), until: until.map(LedgerTime::timestamp), by, reason }
    }
}

/// A correction that was applied.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Adjusted<'a> {
    pub(super) project_id: &'a ProjectId,
    /// As it was sent.
    pub(super) adjustment_id: &'a str,
    pub(super) day: Day,
    /// Bytes asked for.
    pub(super) bytes: i64,
    /// Bytes applied: an account never falls below 0.
    pub(super) applied_bytes: i64,
    /// As it was sent.
    pub(super) reason: &'a str,
}
