//! Rows and rules of settle, release and expiry.

use super::bench::{Bench, CREDIT, DAY, context, id, project};
use crate::ledger::state;
use crate::ledger::{Admission, LedgerTime, MAX_AMOUNT, Outcome, Settle, Settlement, Subject};

#[test]
fn reserved_to_settled_charges_actual_and_gives_back_the_rest() {
    use Outcome::{Aborted, Completed, Failed, Released};
    for (actual, outcome) in [(50, Completed), (0, Completed), (7, Aborted), (10, Failed), (0, Released)] {
        let mut bench = Bench::new(100);
        bench.lease(1, 50);
        let call = Settle { outcome, ..bench.settle_call(1, actual, 50) };
        assert_eq!(bench.settle_with(&call), Settlement::Settled(actual));
        assert_eq!(bench.sums(), (actual, 0));
        assert_eq!(bench.lines(), [(outcome, 50, i64::try_from(actual).expect("small"))]);
    }
}

#[test]
fn the_entry_says_who_read_what_when() {
    let mut bench = Bench::new(100);
    bench.lease(1, 50);
    bench.step(1_234);
    let call = Settle { context: context("not the one that reserved"), ..bench.settle_call(1, 5, 50) };
    bench.settle_with(&call);
    let [entry] = &bench.entries_of(bench.today())[..] else { panic!("one entry") };
    assert_eq!(entry.subject, Subject::Read(context("k")));
    assert_eq!((entry.at, entry.id.as_str(), entry.count), (LedgerTime(bench.now), id(1).to_string().as_str(), 1));
}

#[test]
fn rule_6_a_settle_may_exceed_the_grant_but_not_the_size() {
    for (actual, charged) in [(CREDIT + 1, CREDIT + 1), (50, 50), (51, 50), (u64::MAX, 50)] {
        let mut bench = Bench::new(100);
        bench.lease(1, 50);
        assert_eq!(bench.settle(1, actual, u64::MAX), Settlement::Settled(charged));
        assert_eq!(bench.sums(), (charged, 0));
    }
}

#[test]
fn rule_6_settled_again_answers_the_stored_amount() {
    let mut bench = Bench::new(100);
    bench.lease(1, 50);
    bench.settle(1, 7, 50);
    let before = bench.book.clone();
    for actual in [7, 0, 50] {
        assert_eq!(bench.settle(1, actual, 50), Settlement::Settled(7));
    }
    assert_eq!(bench.book, before);
}

#[test]
fn reserved_to_expired_charges_the_grant() {
    for (size, extended, charged) in [(5, 0, 5), (50, 0, CREDIT), (50, 30, 30), (0, 0, 0)] {
        let mut bench = Bench::new(100);
        bench.lease(1, size);
        bench.extend(1, extended);
        bench.step(bench.rules.lease_ms - 1);
        assert_eq!(bench.sweep(), 0, "not before the deadline");
        bench.step(1);
        assert_eq!(bench.sweep(), 1);
        assert_eq!(bench.sums(), (charged, 0));
        assert_eq!(bench.lines(), [(Outcome::Expired, size, i64::try_from(charged).expect("small"))]);
        assert_eq!(bench.sweep(), 0, "once");
    }
}

#[test]
fn expired_to_settled_corrects_the_charge() {
    use Outcome::{Corrected, Expired, Unreserved};
    for (actual, line) in [
        (0, Some((Corrected, 50, -10))),
        (7, Some((Corrected, 50, -3))),
        (CREDIT, None),
        (12, Some((Unreserved, 50, 2))),
        (50, Some((Unreserved, 50, 40))),
        (51, Some((Unreserved, 50, 40))),
    ] {
        let mut bench = Bench::new(100);
        bench.expire(1, 50);
        let charged = actual.min(50);
        for again in 0..2 {
            assert_eq!(bench.settle(1, actual, 50), Settlement::Settled(charged), "{actual} {again}");
            assert_eq!(bench.sums(), (charged, 0));
            let want: Vec<_> = [(Expired, 50, 10)].into_iter().chain(line).collect();
            assert_eq!(bench.lines(), want, "{actual} {again}");
        }
        assert_eq!(bench.reserve(1, 50), Admission::Settled);
    }
}

#[test]
fn i6_an_expiry_and_its_correction_belong_to_the_day_of_admission() {
    let mut bench = Bench::new(100);
    bench.step(DAY / 2 - 1);
    let admitted = bench.lease(1, 50).day;
    bench.step(bench.rules.lease_ms);
    assert_ne!(bench.today(), admitted);
    bench.sweep();
    bench.settle(1, 4, 50);
    let charges: Vec<_> = bench.entries_of(admitted).iter().map(|entry| entry.charged).collect();
    assert_eq!((charges, bench.sums()), (vec![10, -6], (0, 0)));
}

#[test]
fn unknown_to_settled_charges_unreserved_on_the_day_it_carries() {
    let mut bench = Bench::new(100);
    let yesterday = bench.today().plus(-1);
    let call = Settle { day: Some(yesterday), ..bench.settle_call(1, 30, 50) };
    for _ in 0..2 {
        assert_eq!(bench.settle_with(&call), Settlement::Settled(30));
        assert_eq!(bench.sums(), (0, 0));
        let lines: Vec<_> = bench.entries_of(yesterday).iter().map(|e| (e.outcome, e.size, e.charged)).collect();
        assert_eq!(lines, [(Outcome::Unreserved, 50, 30)]);
    }
    assert_eq!(bench.reserve(1, 50), Admission::Settled);
}

#[test]
fn rule_6_an_unknown_settle_is_believed_until_u_after_its_deadline() {
    let late = Bench::new(0).rules.unreserved_ms;
    for (after, want) in [(late, Settlement::Settled(30)), (late + 1, Settlement::TooLate)] {
        let mut bench = Bench::new(100);
        let call = Settle { deadline: LedgerTime(bench.now - after), ..bench.settle_call(1, 30, 50) };
        assert_eq!(bench.settle_with(&call), want);
        assert_eq!(bench.book == Bench::new(0).book, want == Settlement::TooLate, "too late changes nothing");
    }
}

#[test]
fn rule_6_an_unknown_settle_needs_a_day_that_is_kept() {
    let mut bench = Bench::new(100);
    let kept = i64::from(bench.rules.retention_days);
    for (n, days, taken) in [(1, -kept, true), (2, -kept - 1, false), (3, 1, true), (4, 2, false)] {
        let call = Settle { day: Some(bench.today().plus(days)), ..bench.settle_call(n, 30, 50) };
        assert_eq!(bench.settle_with(&call) == Settlement::Settled(30), taken, "{days}");
    }
    let call = Settle { day: None, ..bench.settle_call(5, 30, 50) };
    assert_eq!(bench.settle_with(&call), Settlement::TooLate);
}

#[test]
fn rule_6_a_release_overtakes_its_reserve() {
    let mut bench = Bench::new(100);
    let release =
        Settle { day: None, deadline: LedgerTime(0), outcome: Outcome::Released, ..bench.settle_call(1, 0, 50) };
    assert_eq!(bench.settle_with(&release), Settlement::Settled(0));
    assert_eq!(bench.lines(), [], "nothing was reserved, nothing is said");
    assert_eq!(bench.reserve(1, 50), Admission::Settled, "the late reserve finds the mark");
    assert_eq!(bench.sums(), (0, 0));
}

#[test]
fn rule_7_tombstones_live_through_their_last_moment() {
    for expire in [false, true] {
        let mut bench = Bench::new(100);
        if expire {
            bench.expire(1, 50);
        } else {
            bench.lease(1, 50);
            bench.settle(1, 10, 50);
        }
        let call = Settle { deadline: LedgerTime(0), ..bench.settle_call(1, 10, 50) };
        bench.step(bench.rules.tombstone_ms);
        let mut last = Bench { book: bench.book.clone(), now: bench.now, ..Bench::new(100) };
        assert_eq!(last.settle_with(&call), Settlement::Settled(10));
        bench.step(1);
        assert_eq!(bench.settle_with(&call), Settlement::TooLate);
        assert_eq!(bench.sums(), (10, 0));
    }
}

#[test]
fn rule_7_a_correction_renews_the_tombstone() {
    let mut bench = Bench::new(100);
    bench.expire(1, 50);
    bench.step(bench.rules.tombstone_ms);
    bench.settle(1, 4, 50);
    bench.step(bench.rules.tombstone_ms);
    assert_eq!(bench.settle(1, 9, 50), Settlement::Settled(4));
}

#[test]
fn rule_8_a_sweep_expires_a_batch_of_all_projects_by_deadline() {
    let mut bench = Bench::new(100);
    for n in [4, 3, 2, 1] {
        bench.lease(n, 5);
        bench.step(1);
    }
    bench.step(bench.rules.lease_ms);
    assert_eq!(bench.sweep(), bench.rules.sweep_batch);
    assert_eq!(bench.reserve(4, 5), Admission::Expired, "the earliest deadline first");
    assert!(matches!(bench.reserve(1, 5), Admission::Reserved(..)));
    assert_eq!((bench.sweep(), bench.sweep()), (1, 0));
}

#[test]
fn i7_a_lease_and_a_sweep_after_the_last_call_nothing_is_reserved() {
    let mut bench = Bench::new(100);
    for n in 1..=7 {
        bench.lease(n, 10);
        bench.extend(n, 10);
    }
    bench.step(bench.rules.lease_ms);
    assert_eq!(bench.usage().reserved, 0, "however many batches it takes");
    assert_eq!(bench.usage().open, 0);
}

#[test]
fn forgetting_deletes_what_is_over_and_changes_no_answer() {
    let mut bench = Bench::new(100);
    bench.lease(1, 5);
    bench.settle(1, 5, 5);
    bench.refused(2, 200);
    bench.step(bench.rules.tombstone_ms);
    bench.lease(3, 5);
    bench.run(|book, at| state::forget(book, at, 10));
    let left: Vec<_> = bench.book.records().map(|(_, id, _)| id).collect();
    assert_eq!(left, [id(1), id(3)], "remembered through the last moment; a lease until it ends");
    bench.step(1);
    bench.run(|book, at| state::forget(book, at, 10));
    assert_eq!(bench.book.records().count(), 1);
    assert_eq!(bench.sums(), (5, 5));
}

#[test]
fn an_account_is_never_fuller_than_full() {
    let mut bench = Bench::new(100);
    let call = Settle { size: u64::MAX, ..bench.settle_call(1, u64::MAX, 0) };
    assert_eq!(bench.settle_with(&call), Settlement::Settled(MAX_AMOUNT));
    bench.settle(2, 30, 30);
    assert_eq!(bench.sums(), (MAX_AMOUNT, 0));
    let charges: Vec<_> = bench.lines().iter().map(|line| line.2).collect();
    assert_eq!(charges, [(1 << 53) - 1, 0], "the entries agree with the sum");
    let usage = bench.usage();
    assert_eq!(usage.remaining(), Some(0));
    assert_eq!(
        bench.run(|book, at| state::audit(book, at, &project(), None, &Default::default(), None, 9)).total_count,
        2
    );
}
