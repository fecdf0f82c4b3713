//! Audit, roll-up, overrides, adjustments, retention.

use super::bench::{Bench, DAY, NOON, context, project};
use crate::artifact::{ProjectId, TrialId};
use crate::ledger::state;
use crate::ledger::{
    Adjust, Adjustment, Admission, Allowance, AuditFilter, AuditPage, Channel, Context, LedgerTime, MAX_AMOUNT,
    MAX_PAGE, Outcome, Override, Settle, Subject, Verification,
};

const HOUR: u64 = 3_600_000;

impl Bench {
    fn audit(&mut self, filter: &AuditFilter, from: Option<u64>, limit: usize) -> AuditPage {
        self.run(|book, at| state::audit(book, at, &project(), None, filter, from, limit))
    }

    fn verify(&mut self) -> Verification {
        self.run(|book, at| state::verify(book, at, &project(), None))
    }

    fn read(&mut self, n: u128, bytes: u64, outcome: Outcome, context: Context) {
        let call = Settle { outcome, context, ..self.settle_call(n, bytes, bytes) };
        let reserve = crate::ledger::Reserve {
            project: project(),
            id: call.id,
            size: bytes,
            not_after: LedgerTime(u64::MAX),
            context: call.context.clone(),
        };
        self.run(|book, at| state::reserve(book, at, &reserve));
        self.settle_with(&call);
    }

    fn adjust(&mut self, id: &str, days: i64, bytes: i64) -> Adjustment {
        let day = self.today().plus(days);
        let (by, reason) = ("operator".to_owned(), "why".to_owned());
        let call = Adjust { project: project(), id: id.to_owned(), day, bytes, by, reason };
        self.run(|book, at| state::adjust(book, at, &call))
    }

    fn exception(&mut self, allowance: Allowance, until: Option<u64>) {
        let until = until.map(LedgerTime);
        let exception = Override { allowance, until, by: "operator".to_owned(), reason: "why".to_owned() };
        self.run(|book, _| state::set_allowance(book, &project(), Some(&exception)));
    }
}

#[test]
fn usage_says_what_the_day_has_left() {
    let mut bench = Bench::new(100);
    bench.lease(1, 30);
    bench.settle(1, 20, 30);
    bench.lease(2, 40);
    bench.refused(3, 90);
    let usage = bench.usage();
    assert_eq!((usage.day, usage.resets_at), (bench.today(), LedgerTime(NOON + DAY / 2)));
    assert_eq!((usage.used, usage.reserved, usage.open, usage.refused), (20, 40, 1, 1));
    assert_eq!((usage.allowance, usage.remaining()), (Allowance::Bytes(100), Some(40)));
    bench.allowance = Allowance::Unlimited;
    assert_eq!(bench.usage().remaining(), None);
    bench.allowance = Allowance::Bytes(10);
    assert_eq!(bench.usage().remaining(), Some(0));
}

#[test]
fn the_audit_lists_newest_first_page_by_page() {
    let mut bench = Bench::new(100);
    for n in 1..=5 {
        bench.read(n, u64::try_from(n).expect("small"), Outcome::Completed, context("k"));
    }
    let everything = AuditFilter::default();
    let (mut from, mut seen) = (None, Vec::new());
    for _ in 0..3 {
        let page = bench.audit(&everything, from, 2);
        assert_eq!((page.total_count, page.total_charged), (5, 15), "of the whole day");
        seen.extend(page.entries.iter().map(|entry| entry.charged));
        from = page.next;
    }
    assert_eq!((seen, from), (vec![5, 4, 3, 2, 1], None));
    let first = bench.audit(&everything, None, 2);
    bench.read(6, 6, Outcome::Completed, context("k"));
    let second = bench.audit(&everything, first.next, 2);
    assert_eq!(second.entries[0].charged, 3, "a new entry moves no page");
    assert_eq!(bench.audit(&everything, None, 0).entries.len(), 1);
    assert_eq!(bench.audit(&everything, None, MAX_PAGE + 1).next, None);
}

#[test]
fn a_filter_admits_what_has_all_its_parts() {
    let mut bench = Bench::new(1000);
    let link = Context { channel: Channel::Link, ..context("other") };
    let trial = TrialId::parse("u").expect("valid");
    bench.read(1, 1, Outcome::Completed, context("k"));
    bench.read(2, 20, Outcome::Aborted, Context { trial: trial.clone(), ..context("k") });
    bench.read(3, 300, Outcome::Completed, Context { trial: trial.clone(), ..link });
    bench.adjust("a", 0, -5);
    let none = AuditFilter::default;
    for (filter, want) in [
        (none(), vec![-5, 300, 20, 1]),
        (AuditFilter { key_id: Some("k".to_owned()), ..none() }, vec![20, 1]),
        (AuditFilter { key_id: Some("operator".to_owned()), ..none() }, vec![-5]),
        (AuditFilter { trial: Some(trial.clone()), ..none() }, vec![300, 20]),
        (AuditFilter { channel: Some(Channel::Link), ..none() }, vec![300]),
        (AuditFilter { channel: Some(Channel::Mcp), ..none() }, vec![]),
        (AuditFilter { outcome: Some(Outcome::Completed), ..none() }, vec![300, 1]),
        (AuditFilter { trial: Some(trial), outcome: Some(Outcome::Completed), ..none() }, vec![300]),
    ] {
        let page = bench.audit(&filter, None, 10);
        let charges: Vec<_> = page.entries.iter().map(|entry| entry.charged).collect();
        assert_eq!(charges, want, "{filter:?}");
        assert_eq!((page.total_count, page.total_charged), (want.len() as u64, want.iter().sum()), "{filter:?}");
    }
}

#[test]
fn rule_8_quota_audit_and_verify_sweep_every_due_lease_of_the_day() {
    let many = |bench: &mut Bench| {
        for n in 1..=7 {
            bench.lease(n, 10);
        }
        bench.step(bench.rules.lease_ms);
    };
    let mut bench = Bench::new(100);
    many(&mut bench);
    assert_eq!(bench.audit(&AuditFilter::default(), None, 10).entries.len(), 7);
    let mut bench = Bench::new(100);
    many(&mut bench);
    let sums = bench.verify();
    assert_eq!((sums.entries, sums.charged, sums.used), (7, 70, 70));
    assert_eq!((sums.reserved, sums.leases, sums.leased, sums.indexed), (0, 0, 0, 0));
}

#[test]
fn rule_8_the_day_that_is_asked_for_is_the_day_that_is_swept() {
    let mut bench = Bench::new(100);
    bench.step(DAY / 2 - 1);
    let yesterday = bench.lease(1, 10).day;
    bench.step(1);
    bench.lease(2, 20);
    bench.step(bench.rules.lease_ms);
    let sums = bench.run(|book, at| state::verify(book, at, &project(), Some(yesterday)));
    assert_eq!((sums.used, sums.reserved, sums.leases), (10, 0, 0));
    assert_eq!(bench.sums(), (0, 20), "and no other");
}

#[test]
fn verify_recounts_what_is_open() {
    let mut bench = Bench::new(100);
    bench.lease(1, 30);
    bench.lease(2, 20);
    bench.settle(2, 5, 20);
    let sums = bench.verify();
    assert!(sums.balanced());
    assert_eq!((sums.entries, sums.charged, sums.used), (1, 5, 5));
    assert_eq!((sums.reserved, sums.leases, sums.leased, sums.indexed), (30, 1, 30, 1));
    for broken in [
        Verification { used: 6, ..sums },
        Verification { charged: 4, ..sums },
        Verification { leased: 31, ..sums },
        Verification { indexed: 0, ..sums },
    ] {
        assert!(!broken.balanced(), "{broken:?}");
    }
}

#[test]
fn i3_beyond_max_entries_reads_are_rolled_up_by_hour_key_channel_and_outcome() {
    let mut bench = Bench::new(1000);
    bench.rules.max_entries = 2;
    let mcp = Context { channel: Channel::Mcp, ..context("k") };
    bench.read(1, 1, Outcome::Completed, context("k"));
    bench.read(2, 2, Outcome::Completed, context("k"));
    bench.read(3, 4, Outcome::Completed, context("k"));
    bench.read(4, 8, Outcome::Completed, context("k"));
    bench.read(5, 16, Outcome::Aborted, context("k"));
    bench.read(6, 32, Outcome::Completed, context("other"));
    bench.read(7, 64, Outcome::Completed, mcp);
    bench.step(HOUR);
    bench.read(8, 128, Outcome::Completed, context("k"));
    bench.adjust("a", 0, -1);
    let page = bench.audit(&AuditFilter::default(), None, 20);
    let lines: Vec<_> = page.entries.iter().map(|e| (e.at.0, e.size, e.charged, e.count)).rev().collect();
    let hour = NOON + HOUR;
    assert_eq!(
        lines,
        [
            (NOON, 1, 1, 1),
            (NOON, 2, 2, 1),
            (NOON, 12, 12, 2),
            (NOON, 16, 16, 1),
            (NOON, 32, 32, 1),
            (NOON, 64, 64, 1),
            (hour, 128, 128, 1),
            (hour, 0, -1, 1)
        ]
    );
    assert_eq!((page.total_count, page.total_charged), (9, 254));
    let rolled = &page.entries[5];
    assert_eq!(rolled.subject, Subject::RolledUp { key_id: "k".to_owned(), channel: Channel::Http });
    assert_eq!((rolled.id.as_str(), rolled.outcome), ("", Outcome::Completed));
    assert_eq!(
        bench.audit(&AuditFilter { channel: Some(Channel::Mcp), ..Default::default() }, None, 9).total_charged,
        64
    );
    assert!(bench.verify().balanced());
}

#[test]
fn an_override_is_in_force_until_its_end() {
    let mut bench = Bench::new(100);
    bench.exception(Allowance::Bytes(10), Some(NOON + 1_000));
    bench.lease(1, 10);
    bench.refused(2, 1);
    assert_eq!(bench.usage().allowance, Allowance::Bytes(10));
    bench.step(999);
    bench.refused(3, 1);
    bench.step(1);
    bench.lease(4, 1);
    assert_eq!(bench.usage().allowance, Allowance::Bytes(100));
    bench.exception(Allowance::Unlimited, None);
    bench.lease(5, 1000);
    bench.run(|book, _| state::set_allowance(book, &project(), None));
    bench.refused(6, 1);
    assert_eq!(bench.sums().1, 1011, "what is reserved stays reserved");
}

#[test]
fn an_override_is_of_one_project() {
    let mut bench = Bench::new(100);
    bench.exception(Allowance::Bytes(0), None);
    let other = ProjectId::parse("q").expect("valid");
    assert_eq!(bench.run(|book, at| state::usage(book, at, &other)).allowance, Allowance::Bytes(100));
    assert!(bench.run(|book, at| state::allowance(book, at, &other)).is_none());
    assert!(bench.run(|book, at| state::allowance(book, at, &project())).is_some());
}

#[test]
fn an_adjustment_is_applied_once_as_an_entry() {
    let mut bench = Bench::new(100);
    for _ in 0..2 {
        assert_eq!(bench.adjust("a", 0, 60), Adjustment::Applied(60));
    }
    for (days, bytes) in [(0, 1), (-1, 60)] {
        assert_eq!(bench.adjust("a", days, bytes), Adjustment::Conflict);
    }
    assert_eq!((bench.sums(), bench.lines()), ((60, 0), vec![(Outcome::Adjusted, 0, 60)]));
    let entry = &bench.entries_of(bench.today())[0];
    assert_eq!((entry.id.as_str(), entry.key_id(), entry.channel()), ("a", "operator", None));
    bench.refused(1, 41);
    bench.lease(2, 40);
}

#[test]
fn an_adjustment_leaves_the_account_between_empty_and_full() {
    let mut bench = Bench::new(100);
    assert_eq!(bench.adjust("a", 0, 5), Adjustment::Applied(5));
    assert_eq!(bench.adjust("b", 0, i64::MIN), Adjustment::Applied(-5));
    assert_eq!(bench.adjust("b", 0, i64::MIN), Adjustment::Applied(-5));
    assert_eq!(bench.adjust("c", 0, i64::MAX), Adjustment::Applied((1 << 53) - 1));
    assert_eq!(bench.sums(), (MAX_AMOUNT, 0));
    assert!(matches!(bench.reserve(1, 1), Admission::Refused(_)));
}

#[test]
fn an_adjustment_needs_a_day_that_is_kept() {
    let mut bench = Bench::new(100);
    let kept = i64::from(bench.rules.retention_days);
    for (id, days, want) in [
        ("a", -kept, Adjustment::Applied(1)),
        ("b", -kept - 1, Adjustment::NoSuchDay),
        ("c", 1, Adjustment::Applied(1)),
        ("d", 2, Adjustment::NoSuchDay),
    ] {
        assert_eq!(bench.adjust(id, days, 1), want, "{days}");
    }
}

#[test]
fn a_day_is_kept_for_the_retention_and_is_empty_afterwards() {
    let mut bench = Bench::new(100);
    let day = bench.today();
    bench.read(1, 7, Outcome::Completed, context("k"));
    bench.adjust("a", 0, 1);
    let on = |bench: &mut Bench| {
        let page =
            bench.run(|book, at| state::audit(book, at, &project(), Some(day), &AuditFilter::default(), None, 9));
        let sums = bench.run(|book, at| state::verify(book, at, &project(), Some(day)));
        (page.total_charged, page.entries.len(), sums.used, sums.entries)
    };
    bench.step(u64::from(bench.rules.retention_days) * DAY);
    bench.run(|book, at| state::forget(book, at, 100));
    assert_eq!(on(&mut bench), (8, 2, 8, 2));
    bench.step(DAY);
    assert_eq!(on(&mut bench), (0, 0, 0, 0), "before it is deleted");
    bench.run(|book, at| state::forget(book, at, 100));
    assert_eq!(bench.book, Bench::new(0).book, "nothing of it is left");
}
