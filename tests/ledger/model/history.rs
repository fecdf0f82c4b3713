//! What can happen, and how likely.

use artifactd::ledger::{Allowance, Channel, Outcome, Policy, ResetZone, Rules};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::NOON;

const HOUR: u64 = 3_600_000;

/// Reads that a history has under way at once.
pub(super) const SLOTS: usize = 10;

/// A step of a history. `slot` is a read of one of the services; `lost` means that its service never
/// sees the answer.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Sends the reserve of the slot's read, a new one if the last has ended; perhaps by a link.
    Reserve {
        slot: usize,
        size: u64,
        link: Option<u128>,
        lost: bool,
    },
    /// Hands out bytes, as far as grant and deadline allow.
    Hand {
        slot: usize,
        bytes: u64,
    },
    /// Asks for a larger grant; the call took `delay` ms to arrive.
    Extend {
        slot: usize,
        more: u64,
        delay: u64,
        lost: bool,
    },
    /// Ends the read and settles what was handed out.
    Settle {
        slot: usize,
        outcome: Outcome,
        lost: bool,
    },
    /// A call that was sent at some time arrives once more.
    Repeat {
        sent: usize,
    },
    /// A settle whose reservation nobody remembers.
    Stray {
        size: u64,
        actual: u64,
        days_ago: i64,
        age: u64,
    },
    /// Time passes.
    Step {
        ms: u64,
    },
    /// The clock is set back.
    Back {
        ms: u64,
    },
    Sweep,
    /// Records a link, for so long if it is new; else a late copy of the call that recorded it.
    Record {
        project: usize,
        link: u128,
        lasts: u64,
    },
    Revoke {
        project: usize,
        link: u128,
    },
    Links {
        project: usize,
        after: Option<u128>,
        limit: usize,
    },
    Usage {
        project: usize,
    },
    Audit {
        project: usize,
        days_ago: i64,
        from: Option<u64>,
        limit: usize,
        filter: usize,
    },
    Verify {
        project: usize,
        days_ago: i64,
    },
    Override {
        project: usize,
        allowance: Option<Allowance>,
        lasts: Option<u64>,
    },
    Adjust {
        project: usize,
        id: u8,
        days_ago: i64,
        bytes: i64,
    },
}

#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) policy: Policy,
    /// Compare all books after every step, which sweeps; otherwise only where the history asks.
    pub(super) inspect: bool,
    /// No adjustments and no roll-up: what each id was charged can be read from the entries.
    pub(super) plain: bool,
    /// When it begins.
    pub(super) start: u64,
    pub(super) ops: Vec<Op>,
}

/// Half of the histories know no adjustments. In a few the clock is set back. What is deleted when its
/// time is over does not come back with the time, so there no mark's time ends.
pub(super) fn history() -> impl Strategy<Value = History> {
    let turns_back = prop::bool::weighted(0.15);
    (policy(), start(), prop::bool::weighted(0.3), any::<bool>(), turns_back).prop_flat_map(
        |(mut policy, start, inspect, plain, turns_back)| {
            let steps = if inspect { 1..40 } else { 1..160usize };
            let single = op(policy.rules.clone(), plain).prop_map(|op| vec![op]);
            let ops = vec(prop_oneof![20 => single, 1 => crowd(policy.rules.lease_ms)], steps);
            if plain {
                policy.rules.max_entries = 1_000;
            }
            if turns_back {
                (policy.rules.admission_ms, policy.rules.tombstone_ms) = (12 * HOUR, 24 * HOUR);
            }
            let fits = move |op: &Op| match op {
                Op::Back { .. } => turns_back,
                Op::Step { ms } => !turns_back || *ms < 60_000,
                // The sweeper comes as much later as the clock was set back.
                Op::Sweep | Op::Record { .. } | Op::Revoke { .. } | Op::Links { .. } => !turns_back,
                _ => true,
            };
            ops.prop_map(move |ops| {
                let mut ops = ops.concat();
                ops.retain(fits);
                History { policy: policy.clone(), inspect, plain, start, ops }
            })
        },
    )
}

/// Some hours before clocks change somewhere, or none do.
fn start() -> impl Strategy<Value = u64> {
    let changes = ["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-03-08T01:00:00Z", "2026-11-01T01:00:00Z"];
    let before = changes.map(|text| u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_millisecond()).unwrap());
    prop_oneof![1 => Just(NOON), 1 => prop::sample::select(before.to_vec())]
}

fn policy() -> impl Strategy<Value = Policy> {
    let zone = prop::sample::select(vec!["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu"]);
    (allowance(), zone, 1..3usize, 1..4usize, 1..6u64, 1..12u64, 1..3u32).prop_map(
        |(allowance, zone, sweep_in_reserve, sweep_batch, max_entries, credit_bytes, retention_days)| {
            let defaults = Rules::default();
            let rules = Rules { credit_bytes, sweep_in_reserve, sweep_batch, max_entries, retention_days, ..defaults };
            Policy { rules, allowance, zone: ResetZone::parse(zone).unwrap() }
        },
    )
}

fn allowance() -> impl Strategy<Value = Allowance> {
    prop_oneof![6 => (0..60u64).prop_map(Allowance::Bytes), 1 => Just(Allowance::Unlimited)]
}

/// Reads of one project that all run out at one time, and one more that wants their room.
fn crowd(lease_ms: u64) -> impl Strategy<Value = Vec<Op>> {
    let reserve = |slot, size| Op::Reserve { slot, size, link: None, lost: false };
    (0..2usize, vec(1..16u64, SLOTS / 2)).prop_map(move |(project, sizes)| {
        let mut ops: Vec<_> = sizes.iter().enumerate().map(|(n, size)| reserve(project + 2 * n, *size)).collect();
        ops.insert(ops.len() - 1, Op::Step { ms: lease_ms });
        ops
    })
}

fn op(rules: Rules, plain: bool) -> impl Strategy<Value = Op> {
    let outcome = prop::sample::select(vec![Outcome::Completed, Outcome::Aborted, Outcome::Failed, Outcome::Released]);
    let lost = || prop::bool::weighted(0.15);
    let slot = || 0..SLOTS;
    let days_ago = || -2..4i64;
    let project = || 0..2usize;
    let step = prop_oneof![
        6 => 1..3_000u64,
        3 => Just(rules.admission_ms),
        3 => Just(rules.lease_ms / 2),
        3 => Just(rules.lease_ms),
        1 => Just(rules.unreserved_ms + 1),
        1 => Just(rules.tombstone_ms + 1),
        1 => Just(12 * HOUR),
    ];
    // No id is all zeros.
    let link = || 1..5u128;
    let by_link = prop::option::weighted(0.3, link());
    let size = prop_oneof![5 => 0..16u64, 1 => 0..50u64];
    let reads = prop_oneof![
        8 => (slot(), size, by_link, lost())
            .prop_map(|(slot, size, link, lost)| Op::Reserve { slot, size, link, lost }),
        5 => (slot(), 0..20u64).prop_map(|(slot, bytes)| Op::Hand { slot, bytes }),
        4 => (slot(), 0..15u64, 0..3_000u64, lost())
            .prop_map(|(slot, more, delay, lost)| Op::Extend { slot, more, delay, lost }),
        3 => (slot(), outcome, lost()).prop_map(|(slot, outcome, lost)| Op::Settle { slot, outcome, lost }),
        5 => any::<prop::sample::Index>().prop_map(|sent| Op::Repeat { sent: sent.index(1 << 16) }),
        4 => step.prop_map(|ms| Op::Step { ms }),
    ];
    let links = prop_oneof![
        3 => (project(), link(), prop_oneof![1 => 0..5_000u64, 3 => 0..600_000u64])
            .prop_map(|(project, link, lasts)| Op::Record { project, link, lasts }),
        1 => (project(), link()).prop_map(|(project, link)| Op::Revoke { project, link }),
        1 => (project(), prop::option::of(link()), 0..4usize)
            .prop_map(|(project, after, limit)| Op::Links { project, after, limit }),
    ];
    let age = prop_oneof![Just(0), Just(rules.unreserved_ms), Just(rules.unreserved_ms + 1)];
    let books = prop_oneof![
        2 => Just(Op::Sweep),
        2 => project().prop_map(|project| Op::Usage { project }),
        1 => project().prop_flat_map(move |project| (days_ago(), prop::option::of(0..9u64), 0..4usize, 0..6usize)
            .prop_map(move |(days_ago, from, limit, filter)| Op::Audit { project, days_ago, from, limit, filter })),
        1 => (project(), days_ago()).prop_map(|(project, days_ago)| Op::Verify { project, days_ago }),
        1 => (project(), prop::option::of(allowance()), prop::option::of(0..60_000u64))
            .prop_map(|(project, allowance, lasts)| Op::Override { project, allowance, lasts }),
        1 => (0..30u64, 0..40u64, days_ago(), age)
            .prop_map(|(size, actual, days_ago, age)| Op::Stray { size, actual, days_ago, age }),
    ];
    let adjust = (project(), 0..3u8, days_ago(), -30..30i64).prop_map(|(project, id, days_ago, bytes)| Op::Adjust {
        project,
        id,
        days_ago,
        bytes,
    });
    let back = (1..3_000u64).prop_map(|ms| Op::Back { ms });
    prop_oneof![8 => reads, 2 => books, 3 => links, 1 => back, u32::from(!plain) => adjust]
}

/// The filters that histories ask with.
pub(super) fn filter(n: usize) -> artifactd::ledger::AuditFilter {
    let none = artifactd::ledger::AuditFilter::default;
    match n {
        0 => none(),
        1 => artifactd::ledger::AuditFilter { key_id: Some("k1".to_owned()), ..none() },
        2 => artifactd::ledger::AuditFilter { channel: Some(Channel::Link), ..none() },
        3 => artifactd::ledger::AuditFilter { outcome: Some(Outcome::Expired), ..none() },
        4 => artifactd::ledger::AuditFilter { trial: Some(super::services::trial(0)), ..none() },
        _ => artifactd::ledger::AuditFilter { outcome: Some(Outcome::Adjusted), ..none() },
    }
}
