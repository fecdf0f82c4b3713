//! What can happen, and how likely.

use artifactd::ledger::{Allowance, Channel, Outcome, Policy, ResetZone, Rules};
use proptest::collection::vec;
use proptest::prelude::*;

/// Reads that a history has under way at once.
pub(super) const SLOTS: usize = 6;

/// A step of a history. `slot` is a read of one of the services; `lost` means that its service never
/// sees the answer.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Sends the reserve of the slot's read, a new one if the last has ended.
    Reserve {
        slot: usize,
        size: u64,
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
    Sweep,
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
    pub(super) ops: Vec<Op>,
}

pub(super) fn history() -> impl Strategy<Value = History> {
    (policy(), prop::bool::weighted(0.3), any::<bool>()).prop_flat_map(|(policy, inspect, plain)| {
        let steps = if inspect { 1..20 } else { 1..60usize };
        vec(op(policy.rules.clone(), plain), steps).prop_map(move |ops| {
            let mut policy = policy.clone();
            if plain {
                policy.rules.max_entries = 1_000;
            }
            History { policy, inspect, plain, ops }
        })
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let zone = prop::sample::select(vec!["UTC", "America/Santiago", "Asia/Kolkata"]);
    (allowance(), zone, 1..4usize, 1..4usize, 1..6u64, 1..12u64, 1..3u32).prop_map(
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
        1 => Just(12 * 3_600_000u64),
    ];
    let reads = prop_oneof![
        8 => (slot(), 0..40u64, lost()).prop_map(|(slot, size, lost)| Op::Reserve { slot, size, lost }),
        5 => (slot(), 0..20u64).prop_map(|(slot, bytes)| Op::Hand { slot, bytes }),
        4 => (slot(), 0..15u64, 0..3_000u64, lost())
            .prop_map(|(slot, more, delay, lost)| Op::Extend { slot, more, delay, lost }),
        6 => (slot(), outcome, lost()).prop_map(|(slot, outcome, lost)| Op::Settle { slot, outcome, lost }),
        5 => any::<prop::sample::Index>().prop_map(|sent| Op::Repeat { sent: sent.index(1 << 16) }),
        4 => step.prop_map(|ms| Op::Step { ms }),
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
    prop_oneof![8 => reads, 2 => books, u32::from(!plain) => adjust]
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
