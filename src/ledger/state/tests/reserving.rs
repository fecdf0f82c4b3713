//! Rows and rules of reserve and extend.

use super::bench::{Bench, CREDIT, DAY, NOON};
use crate::ledger::{
    Admission, Allowance, Extension, Lease, LedgerTime, MAX_AMOUNT, Outcome, RefusalReason, Settlement,
};

#[test]
fn none_to_reserved_holds_the_size_and_grants_a_credit_step() {
    for (size, grant) in [(0, 0), (1, 1), (CREDIT, CREDIT), (CREDIT + 1, CREDIT), (100, CREDIT)] {
        let mut bench = Bench::new(100);
        let deadline = LedgerTime(NOON + bench.rules.lease_ms);
        assert_eq!(bench.lease(1, size), Lease { grant, day: bench.today(), deadline });
        assert_eq!(bench.sums(), (0, size));
        assert_eq!(bench.lines(), [], "a lease has no entry yet");
    }
}

#[test]
fn i1_an_admission_fits_to_the_byte() {
    let mut bench = Bench::new(100);
    bench.lease(1, 30);
    bench.settle(1, 20, 30);
    bench.lease(2, 30);
    assert!(matches!(bench.reserve(3, 51), Admission::Refused(_)));
    bench.lease(4, 50);
    assert!(matches!(bench.reserve(5, 1), Admission::Refused(_)));
    bench.lease(6, 0);
    assert_eq!(bench.sums(), (20, 80));
}

#[test]
fn a_refusal_says_what_stands_in_the_way_and_when_to_come_back() {
    use RefusalReason::{Busy, Spent, TooLarge};
    let to_midnight = DAY / 2;
    for (used, open, size, reason, retry_after_ms) in [
        (0, 0, 101, TooLarge, None),
        (100, 0, 101, TooLarge, None),
        (100, 0, 1, Spent, Some(to_midnight)),
        (60, 40, 41, Spent, Some(to_midnight)),
        (60, 40, 40, Busy, Some(30_000)),
        (0, 100, 100, Busy, Some(30_000)),
    ] {
        let mut bench = Bench::new(100);
        bench.lease(1, used);
        bench.settle(1, used, used);
        bench.lease(2, open);
        let refusal = bench.refused(3, size);
        assert_eq!((refusal.reason, refusal.retry_after_ms), (reason, retry_after_ms), "{used} {open} {size}");
        assert_eq!((refusal.limit_bytes, refusal.used_bytes, refusal.reserved_bytes), (100, used, open));
        assert_eq!((refusal.requested_bytes, refusal.resets_at), (size, LedgerTime(NOON + to_midnight)));
        assert_eq!(bench.sums(), (used, open), "nothing is held for it");
        assert_eq!(bench.usage().refused, 1);
    }
}

#[test]
fn a_busy_refusal_waits_for_the_earliest_lease_but_a_minute_at_most() {
    let mut bench = Bench::new(100);
    bench.rules.lease_ms = 90_000;
    bench.lease(1, 60);
    bench.step(20_000);
    bench.lease(2, 40);
    let retry_after = |bench: &mut Bench, n| match bench.reserve_by(n, 1, NOON + 60_000) {
        Admission::Refused(refusal) => refusal.retry_after_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(retry_after(&mut bench, 3), Some(60_000));
    bench.step(20_000);
    assert_eq!(retry_after(&mut bench, 4), Some(50_000));
    assert_eq!(retry_after(&mut bench, 3), Some(40_000), "a remembered one counts down");
}

#[test]
fn an_allowance_of_zero_is_not_unlimited() {
    let mut none = Bench::new(0);
    none.lease(1, 0);
    assert_eq!(none.refused(2, 1).reason, RefusalReason::TooLarge);
    let mut unlimited = Bench::new(0);
    unlimited.allowance = Allowance::Unlimited;
    unlimited.lease(1, MAX_AMOUNT);
    let refusal = unlimited.refused(2, 1);
    assert_eq!((refusal.reason, refusal.limit_bytes), (RefusalReason::Busy, MAX_AMOUNT), "no sum overflows");
}

#[test]
fn a_size_beyond_every_account_is_refused_and_leaves_no_trace() {
    for allowance in [Allowance::Unlimited, Allowance::Bytes(5), Allowance::Bytes(u64::MAX)] {
        for size in [MAX_AMOUNT + 1, u64::MAX] {
            let mut bench = Bench::new(0);
            bench.allowance = allowance;
            let refusal = bench.refused(1, size);
            assert_eq!((refusal.reason, refusal.requested_bytes), (RefusalReason::TooLarge, size));
            assert_eq!(bench.book, Bench::new(0).book);
        }
    }
}

#[test]
fn rule_2_a_known_id_answers_its_present_state() {
    let mut bench = Bench::new(100);
    let lease = bench.lease(1, 50);
    bench.step(1_000);
    assert_eq!(bench.reserve(1, 50).lease(), Some(lease), "the deadline stands");
    bench.extend(1, 30);
    let extended = Lease { grant: 30, deadline: lease.deadline.plus(1_000), ..lease };
    assert_eq!(bench.reserve(1, 50).lease(), Some(extended));
    assert_eq!(bench.sums(), (0, 50), "held once");
    bench.settle(1, 7, 50);
    assert_eq!(bench.reserve(1, 50), Admission::Settled);
    bench.expire(2, 50);
    assert_eq!(bench.reserve(2, 50), Admission::Expired);
    assert_eq!(bench.sums(), (7 + CREDIT, 0));
}

#[test]
fn rule_2_a_known_id_answers_also_after_its_not_after() {
    let mut bench = Bench::new(100);
    let lease = bench.lease(1, 50);
    assert_eq!(bench.reserve_by(1, 50, NOON - 1).lease(), Some(lease));
}

#[test]
fn rule_2_an_unknown_id_after_its_not_after_is_stale_and_stores_nothing() {
    let mut bench = Bench::new(100);
    assert_eq!(bench.reserve_by(1, 50, NOON - 1), Admission::Stale);
    assert_eq!(bench.book, Bench::new(0).book);
    assert!(matches!(bench.reserve_by(1, 50, NOON), Admission::Reserved(..)), "at not_after it is in time");
}

#[test]
fn rule_2_a_late_copy_does_not_raise_a_settled_lease_from_the_dead() {
    let mut bench = Bench::new(100);
    let not_after = NOON + bench.rules.admission_ms;
    bench.reserve_by(1, 50, not_after);
    bench.settle(1, 50, 50);
    bench.step(bench.rules.tombstone_ms + 1);
    assert_eq!(bench.reserve_by(1, 50, not_after), Admission::Stale);
    assert_eq!(bench.sums(), (50, 0));
}

#[test]
fn rule_3_a_refusal_is_final_until_its_not_after_also_when_room_appears() {
    let mut bench = Bench::new(100);
    bench.lease(1, 100);
    let not_after = NOON + bench.rules.admission_ms;
    let Admission::Refused(refusal) = bench.reserve_by(2, 10, not_after) else { panic!("admitted") };
    bench.settle(1, 0, 100);
    assert_eq!(bench.reserve_by(2, 10, not_after), Admission::Refused(refusal.clone()));
    bench.step(bench.rules.admission_ms);
    assert!(matches!(bench.reserve_by(2, 10, not_after), Admission::Refused(_)));
    bench.step(1);
    assert_eq!(bench.reserve_by(2, 10, not_after), Admission::Stale);
    assert_eq!((bench.sums(), bench.usage().refused), ((0, 0), 1), "counted once");
}

#[test]
fn rule_3_for_extend_and_settle_a_refusal_is_unknown() {
    let mut bench = Bench::new(10);
    bench.lease(1, 10);
    bench.refused(2, 5);
    assert_eq!(bench.extend(2, 5), Extension::Ended);
    assert_eq!(bench.settle(2, 3, 5), Settlement::Settled(3));
    assert_eq!(bench.lines(), [(Outcome::Unreserved, 5, 3)]);
    bench.refused(3, 5);
    assert_eq!(bench.settle(3, 0, 5), Settlement::Settled(0));
    assert_eq!(bench.reserve(3, 5), Admission::Settled);
}

#[test]
fn rule_4_due_leases_are_swept_before_anyone_is_refused() {
    let mut bench = Bench::new(100);
    bench.lease(1, 50);
    bench.lease(2, 50);
    bench.step(bench.rules.lease_ms - 1);
    assert!(matches!(bench.reserve(3, 80), Admission::Refused(_)), "a lease is open until its deadline");
    bench.step(1);
    bench.lease(4, 80);
    assert_eq!(bench.sums(), (2 * CREDIT, 80));
}

#[test]
fn rule_4_with_room_nothing_is_swept() {
    let mut bench = Bench::new(100);
    bench.lease(1, 50);
    bench.step(bench.rules.lease_ms);
    bench.lease(2, 50);
    assert_eq!(bench.sums(), (0, 100));
}

#[test]
fn rule_4_more_due_than_the_bound_answers_again_and_stores_nothing_of_the_id() {
    let mut bench = Bench::new(100);
    for n in 1..=5 {
        bench.lease(n, 20);
    }
    bench.step(bench.rules.lease_ms);
    // Each call sweeps two: 20 held become 10 used.
    assert_eq!(bench.reserve(9, 50), Admission::Again);
    assert_eq!(bench.sums(), (20, 60));
    assert!(bench.book.records().all(|(_, id, _)| id != super::bench::id(9)));
    assert_eq!(bench.reserve(9, 50), Admission::Again);
    assert_eq!(bench.sums(), (40, 20));
    bench.lease(9, 50);
    assert_eq!(bench.sums(), (50, 50));
}

#[test]
fn rule_4_exactly_the_bound_of_due_leases_is_no_reason_for_again() {
    let mut bench = Bench::new(100);
    bench.lease(1, 50);
    bench.lease(2, 50);
    bench.step(bench.rules.lease_ms);
    assert_eq!(bench.refused(3, 90).reason, RefusalReason::Spent);
}

#[test]
fn rule_4_leases_of_another_day_are_not_swept_for_today() {
    let mut bench = Bench::new(100);
    bench.lease(1, 100);
    bench.step(DAY);
    bench.lease(2, 100);
    bench.refused(3, 1);
    assert_eq!(bench.entries_of(bench.today().plus(-1)), []);
}

#[test]
fn i6_a_new_day_has_the_whole_allowance_and_old_leases_stay_in_theirs() {
    let mut bench = Bench::new(100);
    bench.step(DAY / 2 - 1);
    let yesterday = bench.lease(1, 100).day;
    bench.step(1);
    assert_eq!(bench.lease(2, 100).day, yesterday.plus(1));
    assert_eq!(bench.settle(1, 70, 100), Settlement::Settled(70));
    assert_eq!(bench.sums(), (0, 100));
    let old = bench.entries_of(yesterday);
    assert_eq!(old.iter().map(|entry| entry.charged).collect::<Vec<_>>(), [70]);
}

#[test]
fn reserved_extend_raises_grant_and_deadline_and_neither_ever_falls() {
    let mut bench = Bench::new(100);
    let lease = bench.lease(1, 50);
    let later = lease.deadline.0 + 5_000;
    bench.step(5_000);
    for (grant, asked, want_grant, want_deadline) in [
        (5, NOON, CREDIT, lease.deadline.0),
        (20, NOON, 20, lease.deadline.0),
        (20, bench.now, 20, later),
        (15, NOON + 1, 20, later),
        (50, bench.now, 50, later),
        (51, bench.now, 50, later),
        (u64::MAX, 0, 50, later),
    ] {
        let want = Lease { grant: want_grant, day: lease.day, deadline: LedgerTime(want_deadline) };
        assert_eq!(bench.extend_asked(1, grant, asked), Extension::Reserved(want), "{grant} {asked}");
    }
    assert_eq!(bench.sums(), (0, 50), "the whole size is held already");
}

#[test]
fn rule_5_an_estimate_ahead_of_the_ledger_prolongs_no_further_than_now() {
    let mut bench = Bench::new(100);
    let lease = bench.lease(1, 50);
    bench.step(1_000);
    let Extension::Reserved(extended) = bench.extend_asked(1, 20, u64::MAX) else { panic!("ended") };
    assert_eq!(extended.deadline, lease.deadline.plus(1_000));
}

#[test]
fn rule_5_a_lease_is_open_until_it_is_swept() {
    let mut bench = Bench::new(100);
    let lease = bench.lease(1, 50);
    bench.step(bench.rules.lease_ms);
    let extended = Lease { deadline: lease.deadline.plus(bench.rules.lease_ms), ..lease };
    assert_eq!(bench.extend(1, 0), Extension::Reserved(extended));
    assert_eq!(bench.sweep(), 0);
}

#[test]
fn rule_5_what_is_not_reserved_is_not_extended() {
    let mut bench = Bench::new(100);
    bench.lease(1, 50);
    bench.settle(1, 5, 50);
    bench.expire(2, 50);
    let before = bench.book.clone();
    for n in [1, 2, 3] {
        assert_eq!(bench.extend(n, 50), Extension::Ended);
    }
    assert_eq!(bench.book, before);
}
