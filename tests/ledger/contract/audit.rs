//! What the books say, and what operators change in them.

use artifactd::artifact::{ArtifactName, TrialId};
use artifactd::ledger::{
    Adjust, Adjustment, Admission, Allowance, At, AuditFilter, AuditPage, Channel, Context, DayUsage, LedgerTime,
    Outcome, Override, Policy, RefusalReason, Reserve, Rules, Settle, Settlement, Subject as Line, state,
};

use super::Subject;
use crate::support::{self, DAY, NOON, context, policy, project};

type Open = fn(Policy) -> Subject;

impl Subject {
    async fn read(&self, n: u128, bytes: u64, outcome: Outcome, context: Context) {
        let call = support::reserve(n, bytes, u64::MAX);
        self.ledger.reserve(&Reserve { context: context.clone(), ..call }).await.unwrap();
        let call = support::settle(n, bytes, bytes, self.now().await);
        self.ledger.settle(&Settle { outcome, context, ..call }).await.unwrap();
    }

    async fn audit(&self, filter: &AuditFilter, from: Option<u64>, limit: usize) -> AuditPage {
        self.ledger.audit(&project("p"), None, filter, from, limit).await.unwrap().reply
    }
}

fn charges(page: &AuditPage) -> Vec<i64> {
    page.entries.iter().map(|entry| entry.charged).collect()
}

pub(crate) async fn pages_and_totals(open: Open) {
    let it = open(policy(100));
    for n in 1..=5 {
        it.read(n, 1 << n, Outcome::Completed, context()).await;
    }
    let all = AuditFilter::default();
    let first = it.audit(&all, None, 2).await;
    it.read(6, 1, Outcome::Aborted, context()).await;
    let second = it.audit(&all, first.next, 2).await;
    let third = it.audit(&all, second.next, 2).await;
    assert_eq!((charges(&first), charges(&second), charges(&third)), (vec![32, 16], vec![8, 4], vec![2]));
    assert_eq!((third.next, third.total_count, third.total_charged), (None, 6, 63));
    let entry = &third.entries[0];
    assert_eq!(entry.subject, Line::Read(context()));
    assert_eq!((entry.at, entry.size, entry.outcome, entry.count), (LedgerTime(NOON), 2, Outcome::Completed, 1));
    assert_eq!(entry.id, support::id(1).to_string());
}

pub(crate) async fn what_a_settle_says_of_an_open_lease_counts_for_nothing(open: Open) {
    let it = open(policy(1000));
    let by = |key: &str| Context { key_id: key.to_owned(), ..context() };
    let call = support::settle(0, 7, 50, NOON);
    for (n, call) in (1..).zip([
        call.clone(),
        Settle { day: None, ..call.clone() },
        Settle { day: call.day.map(|day| day.plus(-1)), ..call.clone() },
        Settle { size: 5, ..call.clone() },
        Settle { size: 500, ..call.clone() },
        Settle { context: by("l"), ..call.clone() },
        Settle { context: by("a longer name"), ..call.clone() },
        Settle { context: by(""), ..call.clone() },
    ]) {
        it.lease(n, 50).await;
        let call = Settle { id: support::id(n), ..call };
        assert_eq!(it.ledger.settle(&call).await.unwrap().reply, Settlement::Settled(7));
        let page = it.audit(&AuditFilter::default(), None, 1).await;
        let entry = &page.entries[0];
        assert_eq!(page.total_charged, 7 * i64::try_from(n).unwrap(), "on the day of the lease: {call:?}");
        assert_eq!((entry.id.clone(), entry.size, entry.charged), (support::id(n).to_string(), 50, 7), "{call:?}");
        assert_eq!(entry.subject, Line::Read(context()), "{call:?}");
        assert_eq!(it.sums().await.1, 0);
    }
    it.verify().await;
}

pub(crate) async fn filters(open: Open) {
    let it = open(policy(1000));
    let trial = TrialId::parse("u").unwrap();
    let other = Context { trial: trial.clone(), ..context() };
    let link = Context { channel: Channel::Link, key_id: "other".to_owned(), ..other.clone() };
    it.read(1, 1, Outcome::Completed, context()).await;
    it.read(2, 20, Outcome::Aborted, other).await;
    it.read(3, 300, Outcome::Completed, link).await;
    let none = AuditFilter::default;
    for (filter, want) in [
        (AuditFilter { key_id: Some("k".to_owned()), ..none() }, vec![20, 1]),
        (AuditFilter { key_id: Some("nobody".to_owned()), ..none() }, vec![]),
        (AuditFilter { trial: Some(trial.clone()), ..none() }, vec![300, 20]),
        (AuditFilter { channel: Some(Channel::Http), ..none() }, vec![20, 1]),
        (AuditFilter { outcome: Some(Outcome::Completed), ..none() }, vec![300, 1]),
        (AuditFilter { trial: Some(trial), channel: Some(Channel::Link), ..none() }, vec![300]),
    ] {
        let page = it.audit(&filter, None, 10).await;
        assert_eq!(charges(&page), want, "{filter:?}");
        assert_eq!((page.total_count, page.total_charged), (want.len() as u64, want.iter().sum()), "{filter:?}");
        let mut one_by_one = Vec::new();
        let mut from = None;
        for _ in 0..want.len() {
            let page = it.audit(&filter, from, 1).await;
            one_by_one.extend(charges(&page));
            from = page.next;
        }
        assert_eq!((one_by_one, from), (want, None), "{filter:?}");
    }
}

pub(crate) async fn every_character_survives(open: Open) {
    let it = open(policy(100));
    for (n, name) in (1..).zip(["日本/語 '\"%_;--", "cafe\u{301}", "a\u{1F600}", "{}:[]\\n".trim_end_matches("\\n")])
    {
        let odd = Context {
            key_id: format!("k'{name}"),
            artifact: ArtifactName::parse(name).unwrap(),
            request_id: "r\u{0}\n'".to_owned(),
            link_id: None,
            ..context()
        };
        it.read(n, 1, Outcome::Completed, odd.clone()).await;
        let page = it.audit(&AuditFilter { key_id: Some(odd.key_id.clone()), ..Default::default() }, None, 9).await;
        assert_eq!(page.entries.iter().map(|entry| &entry.subject).collect::<Vec<_>>(), [&Line::Read(odd)]);
    }
}

pub(crate) async fn overrides(open: Open) {
    let it = open(policy(100));
    let p = project("p");
    let until = Some(LedgerTime(NOON + 1_000));
    let set = Override { allowance: Allowance::Bytes(10), until, by: "op".to_owned(), reason: "a trial".to_owned() };
    it.ledger.set_allowance(&p, Some(&set)).await.unwrap();
    assert_eq!(it.ledger.allowance(&p).await.unwrap().reply, Some(set));
    assert_eq!(it.usage().await.allowance, Allowance::Bytes(10));
    assert!(matches!(it.reserve(1, 11).await, Admission::Refused(_)));
    it.step(1_000);
    assert_eq!(it.ledger.allowance(&p).await.unwrap().reply, None);
    it.lease(2, 11).await;
    it.ledger.set_allowance(&p, Some(&support::endless(Allowance::Unlimited))).await.unwrap();
    it.lease(3, 1000).await;
    it.ledger.set_allowance(&p, None).await.unwrap();
    assert_eq!(it.usage().await.allowance, Allowance::Bytes(100));
    assert_eq!(it.sums().await, (0, 1011));
    assert!(matches!(it.reserve(4, 1).await, Admission::Refused(_)));
}

pub(crate) async fn adjustments(open: Open) {
    let it = open(policy(100));
    let day = it.usage().await.day;
    let call = |id: &str, days, bytes| Adjust {
        project: project("p"),
        id: id.to_owned(),
        day: day.plus(days),
        bytes,
        by: "op".to_owned(),
        reason: "a mistake".to_owned(),
    };
    for (call, want, used) in [
        (call("a", 0, 60), Adjustment::Applied(60), 60),
        (call("a", 0, 60), Adjustment::Applied(60), 60),
        (call("a", 0, 61), Adjustment::Conflict, 60),
        (call("a", -1, 60), Adjustment::Conflict, 60),
        (Adjust { reason: "a \"mistake\"".to_owned(), ..call("a", 0, 60) }, Adjustment::Conflict, 60),
        (Adjust { by: "another".to_owned(), ..call("a", 0, 60) }, Adjustment::Applied(60), 60),
        (call("b", 0, -70), Adjustment::Applied(-60), 0),
        (call("b", 0, -70), Adjustment::Applied(-60), 0),
        (call("c", -1, 5), Adjustment::Applied(5), 0),
        (call("d", -99, 5), Adjustment::NoSuchDay, 0),
        (call("e", 2, 5), Adjustment::NoSuchDay, 0),
    ] {
        assert_eq!(it.ledger.adjust(&call).await.unwrap().reply, want, "{call:?}");
        assert_eq!(it.sums().await, (used, 0), "{call:?}");
    }
    let page = it.audit(&AuditFilter { outcome: Some(Outcome::Adjusted), ..Default::default() }, None, 9).await;
    assert_eq!(charges(&page), [-60, 60]);
    assert_eq!(page.entries[1].subject, Line::Adjustment { by: "op".to_owned(), reason: "a mistake".to_owned() });
    it.verify().await;
}

pub(crate) async fn history_of_the_kept_days(open: Open) {
    let base = policy(100);
    let it = open(Policy { rules: Rules { retention_days: 3, max_entries: 1, ..base.rules.clone() }, ..base });
    let p = project("p");
    it.read(1, 30, Outcome::Completed, context()).await;
    it.read(2, 5, Outcome::Completed, context()).await;
    it.read(3, 4, Outcome::Completed, context()).await;
    assert!(matches!(it.reserve(4, 62).await, Admission::Refused(_)));
    it.lease(5, 20).await;
    it.step(DAY);
    it.ledger.set_allowance(&p, Some(&support::endless(Allowance::Unlimited))).await.unwrap();
    it.lease(6, 1000).await;
    it.step(2 * DAY);
    let rows = |days| it.ledger.history(&p, days);
    let today = it.usage().await.day;
    let kept = rows(4).await.unwrap().reply;
    let shown = |row: &DayUsage| (row.allowance, row.used, row.reserved, row.refused, row.entries, row.count);
    assert_eq!(kept.iter().map(|row| row.day).collect::<Vec<_>>(), (0..4).map(|n| today.plus(-n)).collect::<Vec<_>>());
    assert_eq!(
        kept.iter().map(shown).collect::<Vec<_>>(),
        [
            (Some(Allowance::Unlimited), 0, 0, 0, 0, 0),
            (None, 0, 0, 0, 0, 0),
            // Due leases are swept: each is charged its grant.
            (Some(Allowance::Unlimited), 10, 0, 0, 1, 1),
            (Some(Allowance::Bytes(100)), 49, 0, 1, 3, 4),
        ]
    );
    assert_eq!(rows(1).await.unwrap().reply, kept[..1]);
    assert_eq!(rows(2).await.unwrap().reply, kept[..2]);
    // No further back than days are kept, whatever is asked for.
    assert_eq!(rows(u32::MAX).await.unwrap().reply, kept);
    it.ledger.set_allowance(&p, None).await.unwrap();
    it.step(DAY);
    let kept = rows(4).await.unwrap().reply;
    assert_eq!((kept[0].allowance, kept[3].used, kept.len()), (Some(Allowance::Bytes(100)), 10, 4));
}

pub(crate) async fn what_is_foreseen_happens(open: Open) {
    let it = open(policy(100));
    it.read(1, 30, Outcome::Completed, context()).await;
    it.lease(2, 20).await;
    it.step(5_000);
    it.lease(3, 10).await;
    assert_eq!(it.usage().await.earliest_end, Some(LedgerTime(NOON + it.ledger.rules().lease_ms)));
    for (n, size, want) in [
        (10, 41, Some(RefusalReason::Busy)),
        (11, 71, Some(RefusalReason::Spent)),
        (12, 101, Some(RefusalReason::TooLarge)),
        (13, 40, None),
        (14, 1, Some(RefusalReason::Busy)),
    ] {
        let At { now, reply: usage } = it.ledger.usage(&project("p")).await.unwrap();
        let foreseen = state::foresee(&usage, now, size);
        assert_eq!(it.usage().await, usage, "looking changes nothing");
        assert_eq!(foreseen.as_ref().map(|refusal| refusal.reason), want, "{size}");
        match it.reserve(n, size).await {
            Admission::Refused(refusal) => assert_eq!(foreseen, Some(refusal), "{size}"),
            Admission::Reserved(..) => assert_eq!(foreseen, None, "{size}"),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn roll_up(open: Open) {
    let base = policy(1000);
    let it = open(Policy { rules: Rules { max_entries: 3, ..base.rules.clone() }, ..base });
    for n in 1..=20 {
        it.read(n, 1, Outcome::Completed, context()).await;
    }
    it.read(21, 5, Outcome::Aborted, context()).await;
    let page = it.audit(&AuditFilter::default(), None, 9).await;
    assert_eq!(charges(&page), [5, 17, 1, 1, 1]);
    assert_eq!((page.entries[1].count, page.entries[1].size), (17, 17));
    assert_eq!((page.total_count, page.total_charged), (21, 25));
    let sums = it.verify().await;
    assert_eq!((sums.entries, sums.used), (5, 25));
}

pub(crate) async fn retention(open: Open) {
    let it = open(policy(100));
    let (p, day) = (project("p"), it.usage().await.day);
    it.read(1, 7, Outcome::Completed, context()).await;
    it.step(u64::from(it.ledger.rules().retention_days) * DAY);
    it.ledger.sweep().await.unwrap();
    assert_eq!(it.ledger.verify(&p, Some(day)).await.unwrap().reply.used, 7);
    it.step(DAY);
    for _ in 0..3 {
        assert_eq!(it.ledger.verify(&p, Some(day)).await.unwrap().reply, Default::default());
        let page = it.ledger.audit(&p, Some(day), &AuditFilter::default(), None, 9).await.unwrap().reply;
        assert_eq!((page.entries.len(), page.total_count), (0, 0));
        it.ledger.sweep().await.unwrap();
    }
}
