//! The rows of the transition table.

use artifactd::ledger::{
    Admission, Allowance, Extend, Extension, Lease, LedgerTime, MAX_AMOUNT, Outcome, Policy, RefusalReason, Settle,
    Settlement,
};

use super::Subject;
use crate::support::{self, DAY, NOON, id, policy, project};

type Open = fn(Policy) -> Subject;

pub(crate) async fn reserving_holds_and_settling_charges(open: Open) {
    let it = open(policy(100));
    let lease = it.lease(1, 50).await;
    let deadline = LedgerTime(NOON + it.ledger.rules().lease_ms);
    assert_eq!((lease.grant, lease.deadline, lease.day.to_string().as_str()), (10, deadline, "2026-11-29"));
    assert_eq!(it.sums().await, (0, 50));
    assert_eq!(it.usage().await.open, 1);
    for actual in [7, 7, 50] {
        assert_eq!(it.settle(1, actual, 50).await, Settlement::Settled(7));
        assert_eq!(it.sums().await, (7, 0));
    }
    assert_eq!(it.lease(2, 0).await.grant, 0);
    assert_eq!(it.settle(2, 0, 0).await, Settlement::Settled(0));
    let sums = it.verify().await;
    assert_eq!((sums.entries, sums.charged), (2, 7));
}

pub(crate) async fn the_default_allowance_may_change(open: Open) {
    let it = open(policy(100));
    it.lease(1, 90).await;
    for (bytes, admitted) in [(95, false), (110, true)] {
        it.ledger.set_default_allowance(Allowance::Bytes(bytes));
        assert_eq!(it.usage().await.allowance, Allowance::Bytes(bytes));
        assert_eq!(it.reserve(u128::from(bytes), 10).await.lease().is_some(), admitted, "{bytes}");
    }
    assert_eq!(it.settle(1, 90, 90).await, Settlement::Settled(90), "what is reserved stays");
}

pub(crate) async fn a_known_id_answers_its_present_state(open: Open) {
    let it = open(policy(100));
    let lease = it.lease(1, 50).await;
    it.step(1_000);
    assert_eq!(it.reserve(1, 50).await.lease(), Some(lease));
    it.extend(1, 30).await;
    let extended = Lease { grant: 30, deadline: lease.deadline.plus(1_000), ..lease };
    assert_eq!(it.reserve_by(1, 50, 0).await.lease(), Some(extended));
    assert_eq!(it.sums().await, (0, 50));
    it.settle(1, 50, 50).await;
    assert_eq!(it.reserve(1, 50).await, Admission::Settled);
    it.lease(2, 5).await;
    it.step(it.ledger.rules().lease_ms);
    it.usage().await;
    assert_eq!(it.reserve(2, 5).await, Admission::Expired);
}

pub(crate) async fn a_refusal_says_why_and_is_remembered(open: Open) {
    let it = open(policy(100));
    it.lease(1, 60).await;
    it.settle(1, 60, 60).await;
    it.lease(2, 30).await;
    for (n, size, reason, retry) in [
        (3, 101, RefusalReason::TooLarge, None),
        (4, 41, RefusalReason::Spent, Some(DAY / 2)),
        (5, 11, RefusalReason::Busy, Some(30_000)),
    ] {
        let Admission::Refused(refusal) = it.reserve(n, size).await else { panic!("admitted {size}") };
        assert_eq!((refusal.reason, refusal.retry_after_ms), (reason, retry));
        assert_eq!((refusal.limit_bytes, refusal.used_bytes, refusal.reserved_bytes), (100, 60, 30));
        assert_eq!((refusal.requested_bytes, refusal.resets_at), (size, LedgerTime(NOON + DAY / 2)));
    }
    it.settle(2, 0, 30).await;
    let Admission::Refused(same) = it.reserve(5, 11).await else { panic!("admitted a late copy") };
    assert_eq!((same.reason, same.reserved_bytes), (RefusalReason::Busy, 30));
    assert_eq!(it.usage().await.refused, 3);
    assert_eq!(it.extend(5, 11).await, Extension::Ended);
    assert_eq!(it.settle(5, 4, 11).await, Settlement::Settled(4));
    it.step(it.ledger.rules().admission_ms + 1);
    it.lease(4, 36).await;
    it.verify().await;
}

pub(crate) async fn a_late_call_is_stale(open: Open) {
    let it = open(policy(100));
    assert_eq!(it.reserve_by(1, 50, NOON - 1).await, Admission::Stale);
    assert_eq!(it.sums().await, (0, 0));
    assert!(matches!(it.reserve_by(1, 50, NOON).await, Admission::Reserved(..)));
}

pub(crate) async fn again_until_all_due_are_swept(open: Open) {
    let it = open(policy(100));
    for n in 1..=5 {
        it.lease(n, 20).await;
    }
    it.step(it.ledger.rules().lease_ms);
    // Each attempt sweeps two of the five leases, which turns 40 held into 20 charged.
    assert_eq!(it.reserve(9, 50).await, Admission::Again);
    assert_eq!(it.reserve(9, 50).await, Admission::Again);
    assert!(matches!(it.reserve(9, 50).await, Admission::Reserved(..)));
    assert_eq!(it.sums().await, (50, 50));
    it.verify().await;
}

pub(crate) async fn extending_raises_and_never_lowers(open: Open) {
    let it = open(policy(100));
    let lease = it.lease(1, 50).await;
    it.step(5_000);
    let (now, p) = (NOON + 5_000, project("p"));
    for (grant, asked, want, deadline) in [
        (5, NOON, 10, lease.deadline),
        (20, now + 9_000, 20, lease.deadline.plus(5_000)),
        (15, NOON, 20, lease.deadline.plus(5_000)),
        (u64::MAX, u64::MAX, 50, lease.deadline.plus(5_000)),
    ] {
        let call = Extend { project: &p, id: id(1), grant, asked: LedgerTime(asked) };
        let want = Lease { grant: want, deadline, ..lease };
        assert_eq!(it.ledger.extend(call).await.unwrap().reply, Extension::Reserved(want));
    }
    assert_eq!(it.sums().await, (0, 50));
    it.settle(1, 1, 50).await;
    assert_eq!(it.extend(1, 50).await, Extension::Ended);
    assert_eq!(it.extend(2, 50).await, Extension::Ended);
}

pub(crate) async fn expiry_charges_the_grant_and_a_late_settle_corrects(open: Open) {
    for (actual, entries) in [(0, 2), (7, 2), (30, 1), (50, 2)] {
        let it = open(policy(100));
        it.lease(1, 50).await;
        it.extend(1, 30).await;
        it.step(it.ledger.rules().lease_ms - 1);
        assert_eq!(it.sums().await, (0, 50));
        it.step(1);
        assert_eq!(it.sums().await, (30, 0));
        for _ in 0..2 {
            assert_eq!(it.settle(1, actual, 50).await, Settlement::Settled(actual));
            assert_eq!(it.verify().await.entries, entries, "{actual}");
            assert_eq!(it.sums().await, (actual, 0));
        }
    }
}

pub(crate) async fn a_settle_may_exceed_the_grant(open: Open) {
    let it = open(policy(100));
    it.lease(1, 50).await;
    assert_eq!(it.settle(1, 50, 50).await, Settlement::Settled(50));
    it.lease(2, 50).await;
    assert_eq!(it.settle(2, 51, 99).await, Settlement::Settled(50), "but not the size");
    assert_eq!(it.sums().await, (100, 0));
    it.verify().await;
}

pub(crate) async fn unknown_settles(open: Open) {
    let it = open(policy(100));
    let call = support::settle(1, 30, 50, NOON);
    let late = it.ledger.rules().unreserved_ms;
    let aged = |n, age| Settle { id: id(n), deadline: LedgerTime(NOON - age), ..call.clone() };
    for (call, want, used) in [
        (call.clone(), Settlement::Settled(30), 30),
        (call.clone(), Settlement::Settled(30), 30),
        (aged(2, late), Settlement::Settled(30), 60),
        (aged(3, late + 1), Settlement::TooLate, 60),
        (Settle { id: id(4), day: None, ..call.clone() }, Settlement::TooLate, 60),
        (Settle { id: id(5), day: call.day.map(|day| day.plus(-1)), ..call.clone() }, Settlement::Settled(30), 60),
        (Settle { id: id(6), day: call.day.map(|day| day.plus(-99)), ..call.clone() }, Settlement::TooLate, 60),
    ] {
        assert_eq!(it.ledger.settle(&call).await.unwrap().reply, want);
        assert_eq!(it.sums().await.0, used);
    }
    assert_eq!(it.reserve(1, 50).await, Admission::Settled);
    assert_eq!(it.verify().await.entries, 2);
}

pub(crate) async fn a_release_overtakes_its_reserve(open: Open) {
    let it = open(policy(100));
    let release = support::settle(1, 0, 50, NOON);
    let release = Settle { day: None, deadline: LedgerTime(0), outcome: Outcome::Released, ..release };
    assert_eq!(it.ledger.settle(&release).await.unwrap().reply, Settlement::Settled(0));
    assert_eq!(it.reserve(1, 50).await, Admission::Settled);
    assert_eq!(it.verify().await.entries, 0);
}

pub(crate) async fn tombstones_end(open: Open) {
    let it = open(policy(100));
    it.lease(1, 50).await;
    it.settle(1, 10, 50).await;
    let old = Settle { deadline: LedgerTime(0), ..support::settle(1, 10, 50, NOON) };
    it.step(it.ledger.rules().tombstone_ms);
    it.ledger.sweep().await.unwrap();
    assert_eq!(it.ledger.settle(&old).await.unwrap().reply, Settlement::Settled(10));
    it.step(1);
    it.ledger.sweep().await.unwrap();
    assert_eq!(it.ledger.settle(&old).await.unwrap().reply, Settlement::TooLate);
    assert_eq!(it.sums().await, (10, 0));
}

pub(crate) async fn a_day_ends_in_mid_read(open: Open) {
    let it = open(policy(100));
    it.step(DAY / 2 - 1);
    let yesterday = it.lease(1, 100).await.day;
    it.lease(2, 0).await;
    it.step(1);
    let today = it.lease(3, 100).await.day;
    assert_eq!(today, yesterday.plus(1));
    let Extension::Reserved(lease) = it.extend(1, 60).await else { panic!("ended") };
    assert_eq!((lease.day, lease.grant), (yesterday, 60));
    assert_eq!(it.settle(1, 55, 100).await, Settlement::Settled(55));
    assert_eq!(it.sums().await, (0, 100));
    let old = it.ledger.verify(&project("p"), Some(yesterday)).await.unwrap().reply;
    assert!(old.balanced());
    assert_eq!((old.used, old.entries, old.reserved, old.leases), (55, 1, 0, 1));
    it.verify().await;
}

pub(crate) async fn amounts_have_a_bound(open: Open) {
    let it = open(Policy { allowance: Allowance::Unlimited, ..policy(0) });
    for (n, size) in [(1, MAX_AMOUNT + 1), (2, u64::MAX)] {
        let Admission::Refused(refusal) = it.reserve(n, size).await else { panic!("admitted {size}") };
        assert_eq!((refusal.reason, refusal.requested_bytes), (RefusalReason::TooLarge, size));
    }
    it.lease(3, MAX_AMOUNT).await;
    assert!(matches!(it.reserve(4, 1).await, Admission::Refused(_)));
    assert_eq!(it.settle(3, u64::MAX, u64::MAX).await, Settlement::Settled(MAX_AMOUNT));
    let beyond = Settle { size: u64::MAX, ..support::settle(5, u64::MAX, 0, NOON) };
    assert_eq!(it.ledger.settle(&beyond).await.unwrap().reply, Settlement::Settled(MAX_AMOUNT));
    assert_eq!(it.sums().await, (MAX_AMOUNT, 0));
    assert_eq!(it.usage().await.remaining(), None);
    it.verify().await;
}

pub(crate) async fn replies_carry_the_time(open: Open) {
    let it = open(policy(100));
    it.step(5);
    let now = LedgerTime(NOON + 5);
    assert_eq!(it.ledger.now().await.unwrap(), now);
    assert_eq!(it.ledger.reserve(&support::reserve(1, 1, NOON + 9)).await.unwrap().now, now);
    assert_eq!(it.ledger.settle(&support::settle(1, 1, 1, NOON)).await.unwrap().now, now);
    assert_eq!(it.ledger.usage(&project("p")).await.unwrap().now, now);
    assert_eq!(it.ledger.sweep().await.unwrap().now, now);
}
