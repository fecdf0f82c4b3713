//! Calls that go in one script: usual ones and all others among them, each with its own answer.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use artifactd::artifact::ArtifactName;
use artifactd::ledger::redis::Redis;
use artifactd::ledger::{
    Adjust, Admission, Allowance, AuditFilter, Channel, Clock, Context, Extend, Ledger, LedgerTime, LinkId, MAX_AMOUNT,
    Outcome, Policy, RefusalReason, Reserve, Rules, Settle, Settlement, Subject, Unavailable,
};
use tokio::task::JoinSet;

use crate::redis::options;
use crate::servers::Server;
use crate::servers::redis::{ask, server, url};
use crate::support::{self, DAY, ManualClock, NOON, context, id, policy, project};

/// A ledger in a server of its own.
pub(super) struct Own {
    pub(super) server: Server,
    pub(super) clock: ManualClock,
    pub(super) ledger: Arc<Redis>,
    /// What its keys begin with.
    pub(super) base: String,
}

#[derive(Debug, Clone)]
pub(super) enum Call {
    Reserve(Reserve),
    Settle(Settle),
}

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Admission(Admission),
    Settlement(Settlement),
}

impl Own {
    pub(super) fn new(allowance: u64) -> Self {
        Self::by(policy(allowance))
    }

    /// One that rolls lines up beyond so many a day.
    pub(super) fn rolling_up(allowance: u64, max_entries: u64) -> Self {
        let base = policy(allowance);
        Self::by(Policy { rules: Rules { max_entries, ..base.rules.clone() }, ..base })
    }

    pub(super) fn by(policy: Policy) -> Self {
        let (server, clock, options) = (server(&[]), ManualClock::at(NOON), options());
        let base = format!("{}:1:{{p}}:", options.namespace);
        let url = url(server.address.port());
        let ledger = Redis::open_with_clock(&url, policy, options, clock.clone()).unwrap();
        Self { server, clock, ledger: Arc::new(ledger), base }
    }

    pub(super) fn ask(&self, words: &[&str]) -> String {
        ask(self.server.address.port(), words)
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.base)
    }

    /// A key of today.
    pub(super) async fn day(&self, name: &str) -> String {
        let day = self.ledger.usage(&project("p")).await.unwrap().reply.day;
        self.key(&format!("{day}:{name}"))
    }

    pub(super) fn record(&self, n: u128) -> String {
        self.key(&format!("id:{}", id(n)))
    }

    pub(super) async fn reserve(&self, n: u128, size: u64) -> Result<Admission, Unavailable> {
        Ok(self.ledger.reserve(&support::reserve(n, size, NOON + 10_000)).await?.reply)
    }

    pub(super) async fn settle(&self, n: u128, actual: u64, size: u64) -> Result<Settlement, Unavailable> {
        Ok(self.ledger.settle(&support::settle(n, actual, size, self.clock.now_ms())).await?.reply)
    }

    /// Makes calls. The server is held up meanwhile, so that all but the first two go in one script, those of
    /// each kind in this order.
    async fn together<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        calls: impl IntoIterator<Item = F>,
    ) -> Vec<T> {
        self.ask(&["CLIENT", "PAUSE", "300"]);
        let mut tasks = JoinSet::new();
        for (n, call) in calls.into_iter().enumerate() {
            tasks.spawn(async move { (n, call.await) });
            if n < 2 {
                let_it_go().await;
            }
        }
        let mut answers = tasks.join_all().await;
        answers.sort_by_key(|(n, _)| *n);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    pub(super) async fn reserves(&self, calls: Vec<Reserve>) -> Vec<Result<Admission, Unavailable>> {
        let one = |ledger: Arc<Redis>, call: Reserve| async move { Ok(ledger.reserve(&call).await?.reply) };
        self.together(calls.into_iter().map(|call| one(Arc::clone(&self.ledger), call))).await
    }

    pub(super) async fn settles(&self, calls: Vec<Settle>) -> Vec<Result<Settlement, Unavailable>> {
        let one = |ledger: Arc<Redis>, call: Settle| async move { Ok(ledger.settle(&call).await?.reply) };
        self.together(calls.into_iter().map(|call| one(Arc::clone(&self.ledger), call))).await
    }

    /// Makes calls of both kinds.
    pub(super) async fn calls(&self, calls: Vec<Call>) -> Vec<Result<Answer, Unavailable>> {
        let one = |ledger: Arc<Redis>, call: Call| async move {
            Ok(match call {
                Call::Reserve(call) => Answer::Admission(ledger.reserve(&call).await?.reply),
                Call::Settle(call) => Answer::Settlement(ledger.settle(&call).await?.reply),
            })
        };
        self.together(calls.into_iter().map(|call| one(Arc::clone(&self.ledger), call))).await
    }

    pub(super) async fn sums(&self) -> (u64, u64, u64) {
        let sums = self.ledger.verify(&project("p"), None).await.unwrap().reply;
        assert!(sums.balanced(), "{sums:?}");
        (sums.used, sums.reserved, sums.leases)
    }
}

/// A task gets as far as it can before it must wait for the server.
async fn let_it_go() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn reserve(n: u128, size: u64) -> Reserve {
    support::reserve(n, size, NOON + 10_000)
}

/// What is to be seen of an answer.
fn seen(answer: &Result<Admission, Unavailable>) -> String {
    match answer {
        Ok(Admission::Reserved(lease, standing)) => {
            format!("{} of {}+{}", lease.grant, standing.used, standing.reserved)
        }
        Ok(Admission::Refused(refusal)) => match refusal.reason {
            RefusalReason::Busy => format!("busy for {}", refusal.retry_after_ms.unwrap()),
            reason => reason.as_str().to_owned(),
        },
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn calls_that_are_not_simply_admitted_go_with_others_that_are() {
    let own = Own::new(1000);
    own.reserve(1, 40).await.unwrap();
    own.reserve(2, 7).await.unwrap();
    own.settle(2, 7, 7).await.unwrap();
    own.ask(&["SET", &own.record(18), "R today"]);
    own.ask(&["LPUSH", &own.record(19), "x"]);
    let by_unknown_link = Context { channel: Channel::Link, link_id: Some(LinkId(uuid::Uuid::nil())), ..context() };
    let answers = own
        .reserves(vec![
            reserve(100, 0),
            reserve(101, 0),
            reserve(10, 50),
            reserve(11, 4),
            reserve(1, 40),
            reserve(2, 7),
            Reserve { not_after: LedgerTime(NOON - 1), ..reserve(12, 9) },
            reserve(13, 300),
            reserve(13, 300),
            reserve(14, 1001),
            Reserve { context: by_unknown_link, ..reserve(15, 9) },
            reserve(16, 5),
            reserve(17, 700),
            reserve(18, 1),
            reserve(19, 1),
            reserve(20, 0),
            reserve(21, 994),
            reserve(22, 594),
        ])
        .await;
    let seen: Vec<_> = answers.iter().map(seen).collect();
    let (said, wrong): (Vec<_>, Vec<_>) = seen.iter().map(String::as_str).partition(|text| !text.contains(':'));
    let want = [
        "0 of 7+40",
        "0 of 7+40",
        "10 of 7+90",
        "4 of 7+94",
        "10 of 7+94",
        "Settled",
        "Stale",
        "10 of 7+394",
        "10 of 7+394",
        "too_large",
        "LinkRevoked",
        "5 of 7+399",
        "busy for 30000",
        "0 of 7+399",
        "spent",
        "10 of 7+993",
    ];
    assert_eq!(said, want);
    assert!(wrong[0].contains("no record") && wrong[1].contains("WRONGTYPE") && wrong.len() == 2, "{wrong:?}");
    assert_eq!(own.sums().await, (7, 993, 9));
    let usage = own.ledger.usage(&project("p")).await.unwrap().reply;
    assert_eq!((usage.open, usage.refused), (9, 3));
    assert_eq!(own.ask(&["GET", &own.record(18)]), "R today", "what is nonsense stays as it is");
}

#[tokio::test]
async fn the_earliest_end_may_be_that_of_a_lease_of_the_same_script() {
    let own = Own::new(100);
    own.reserve(1, 1).await.unwrap();
    own.settle(1, 1, 1).await.unwrap();
    let answers = own.reserves(vec![reserve(2, 101), reserve(5, 0), reserve(3, 50), reserve(4, 50)]).await;
    assert_eq!(answers.iter().map(seen).collect::<Vec<_>>(), ["too_large", "0 of 1+0", "10 of 1+50", "busy for 30000"]);
}

#[tokio::test]
async fn one_script_sweeps_no_more_leases_than_one_reserve() {
    let own = Own::new(100);
    for n in 1..=6 {
        own.reserve(n, 16).await.unwrap();
    }
    own.clock.step(own.ledger.rules().lease_ms);
    let reserve = |n, size| support::reserve(n, size, own.clock.now_ms());
    let answers =
        own.reserves(vec![reserve(100, 0), reserve(101, 0), reserve(10, 10), reserve(11, 10), reserve(12, 3)]).await;
    // Two leases were charged their grants.
    let want = ["0 of 0+96", "0 of 0+96", "10 of 20+74", "Again", "3 of 20+77"];
    assert_eq!(answers.iter().map(seen).collect::<Vec<_>>(), want);
}

#[tokio::test]
async fn settles_that_are_not_simply_charged_go_with_others_that_are() {
    let own = Own::new(10_000);
    let (p, rules) = (project("p"), own.ledger.rules().clone());
    for (n, size) in [(1, 40), (3, 20), (9, 6)] {
        own.reserve(n, size).await.unwrap();
    }
    own.settle(9, 6, 6).await.unwrap();
    own.clock.step(rules.lease_ms);
    // 1 and 3 are charged their grants, 10 each.
    assert_eq!(own.ledger.usage(&p).await.unwrap().reply.used, 26);
    let late = NOON + rules.lease_ms + 10_000;
    for (n, size) in [(10, 50), (11, 4), (12, 300), (13, 5), (14, 0), (100, 1), (101, 1)] {
        own.ledger.reserve(&support::reserve(n, size, late)).await.unwrap();
    }
    let asked = own.ledger.now().await.unwrap();
    own.ledger.extend(Extend { project: &p, id: id(12), grant: 300, asked }).await.unwrap();
    own.ask(&["SET", &own.record(18), "S"]);
    own.ask(&["LPUSH", &own.record(19), "x"]);
    let settle = |n, actual, size| support::settle(n, actual, size, own.clock.now_ms());
    let yesterday = settle(0, 1, 1).day.unwrap().plus(-1);
    let answers = own
        .settles(vec![
            settle(100, 1, 1),
            settle(101, 1, 1),
            settle(10, 20, 50),
            settle(11, 9, 4),
            settle(9, 0, 6),
            settle(997, 5, 5),
            settle(996, 0, 5),
            Settle { deadline: LedgerTime(0), ..settle(995, 5, 5) },
            Settle { day: None, ..settle(994, 5, 5) },
            Settle { day: Some(yesterday), ..settle(993, 3, 3) },
            settle(12, 299, 300),
            settle(18, 1, 1),
            settle(19, 1, 1),
            settle(1, 4, 40),
            settle(3, 10, 20),
            // The record knows better, of whom it is, too.
            Settle { context: Context { key_id: "other".to_owned(), ..context() }, ..settle(13, 5, 3) },
            settle(14, 0, 0),
            settle(10, 1, 50),
        ])
        .await;
    let seen = |answer: &Result<Settlement, Unavailable>| match answer {
        Ok(Settlement::Settled(charged)) => charged.to_string(),
        Ok(Settlement::TooLate) => "late".to_owned(),
        Err(error) => if error.to_string().contains("no record") { "?" } else { "WRONGTYPE" }.to_owned(),
    };
    let want =
        ["1", "1", "20", "4", "6", "5", "0", "late", "late", "3", "299", "?", "WRONGTYPE", "4", "10", "5", "0", "20"];
    assert_eq!(answers.iter().map(seen).collect::<Vec<_>>(), want);
    // 26 before; 10 to 13, 100 and 101 as they were settled; 997 beyond any reservation; 1 corrected.
    assert_eq!(own.sums().await, (26 + 20 + 4 + 299 + 5 + 2 + 5 - 6, 0, 0));
    let of_yesterday = own.ledger.verify(&p, Some(yesterday)).await.unwrap().reply;
    assert_eq!((of_yesterday.used, of_yesterday.balanced()), (3, true));
    let count = async |outcome| {
        let filter = AuditFilter { outcome: Some(outcome), ..AuditFilter::default() };
        own.ledger.audit(&p, None, &filter, None, 9).await.unwrap().reply.total_count
    };
    assert_eq!(count(Outcome::Completed).await, 8);
    assert_eq!((count(Outcome::Corrected).await, count(Outcome::Unreserved).await), (1, 1));
    let of_others = AuditFilter { key_id: Some("other".to_owned()), ..AuditFilter::default() };
    assert_eq!(own.ledger.audit(&p, None, &of_others, None, 9).await.unwrap().reply.total_count, 0);
    // What was looked at lies where it lay, and ends when it would have ended.
    assert_eq!(own.ask(&["GET", &own.record(18)]), "S");
    let lives: u64 = own.ask(&["PTTL", &own.record(9)]).parse().unwrap();
    assert!((rules.tombstone_ms - rules.lease_ms..=rules.tombstone_ms + 1000).contains(&lives), "{lives}");
    assert_eq!(own.ask(&["EXISTS", &own.record(995), &own.record(994)]), "0");
}

#[tokio::test]
async fn a_repeat_among_usual_settles_changes_nothing_and_they_do() {
    let own = Own::new(100);
    for n in 1..=5 {
        own.reserve(n, 10).await.unwrap();
    }
    own.settle(1, 1, 10).await.unwrap();
    let calls = [4, 5, 1, 2, 1, 3].map(|n| support::settle(n, 4, 10, NOON));
    let answers: Vec<_> = own.settles(calls.to_vec()).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [4, 4, 1, 4, 1, 4].map(Settlement::Settled));
    assert_eq!(own.sums().await, (17, 0, 0));
}

#[tokio::test]
async fn days_without_open_leases_leave_the_list() {
    let own = Own::new(100);
    for day in 0..4 {
        let now = own.clock.now_ms();
        for n in [2 * day, 2 * day + 1] {
            own.ledger.reserve(&support::reserve(n, 10, now)).await.unwrap();
        }
        // Of the second day one stays open.
        for n in [2 * day, 2 * day + 1].into_iter().filter(|n| *n != 3) {
            own.settle(n, 1, 10).await.unwrap();
        }
        own.clock.step(DAY);
    }
    let listed = own.ask(&["SMEMBERS", &own.key("days")]);
    let listed: BTreeSet<_> = listed.lines().collect();
    assert_eq!(listed, BTreeSet::from(["2026-11-30", "2026-12-01", "2026-12-02"]));
}

/// An account that is on the list says whether there is an override to be looked for; one that is off it does not.
#[tokio::test]
async fn an_override_counts_on_whatever_day_the_clock_says() {
    let own = Own::new(100);
    let p = project("p");
    let reserve = async |n: u128, size| {
        own.ledger.reserve(&support::reserve(n, size, own.clock.now_ms())).await.unwrap().reply.lease().is_some()
    };
    for n in 0..4 {
        assert!(reserve(n, 10).await);
        own.settle(n, 1, 10).await.unwrap();
        own.clock.step(DAY);
    }
    let bytes = |bytes| support::endless(Allowance::Bytes(bytes));
    own.ledger.set_allowance(&p, Some(&bytes(200))).await.unwrap();
    for day in [3, 1, 0, 2, 4] {
        own.clock.set(NOON + day * DAY);
        let n = 10 * (u128::from(day) + 1);
        assert!(reserve(n, 150).await, "day {day}");
        assert!(!reserve(n + 1, 100).await, "day {day}");
        own.settle(n, 0, 150).await.unwrap();
        assert!(reserve(n + 2, 120).await, "day {day}");
    }
    own.ledger.set_allowance(&p, None).await.unwrap();
    for day in [1, 4] {
        own.clock.set(NOON + day * DAY);
        assert!(!reserve(100 + u128::from(day), 101).await, "day {day}");
    }
    assert_eq!(own.ask(&["GETRANGE", &own.key("2026-12-03:account"), "48", "-1"]), "11100");
    own.clock.set(NOON + 4 * DAY + 40_000);
    assert!(reserve(200, 5).await);
    assert_eq!(own.ask(&["GETRANGE", &own.key("2026-12-03:account"), "48", "-1"]), "10100", "nothing to look for");
    own.ledger.set_allowance(&p, Some(&bytes(3))).await.unwrap();
    assert!(!reserve(201, 4).await);
}

/// Whatever a settle finds, an account holds what its numbers can hold.
#[tokio::test]
async fn a_charge_is_cut_where_the_account_has_no_room_and_holds_less_where_it_was_lost() {
    let own = Own::new(MAX_AMOUNT);
    own.reserve(1, 10).await.unwrap();
    own.reserve(2, 10).await.unwrap();
    let day = own.ledger.usage(&project("p")).await.unwrap().reply.day;
    let bytes = i64::try_from(MAX_AMOUNT - 13).unwrap();
    let (id, by, reason) = ("a".to_owned(), "op".to_owned(), String::new());
    own.ledger.adjust(&Adjust { project: project("p"), id, day, bytes, by, reason }).await.unwrap();
    for n in [1, 2] {
        assert_eq!(own.settle(n, 10, 10).await.unwrap(), Settlement::Settled(10));
    }
    assert_eq!(own.sums().await, (MAX_AMOUNT, 0, 0));

    let own = Own::new(100);
    own.reserve(1, 20).await.unwrap();
    own.ask(&["DEL", &own.key(&format!("{day}:account"))]);
    own.reserve(2, 5).await.unwrap();
    assert_eq!(own.settle(1, 20, 20).await.unwrap(), Settlement::Settled(20));
    let usage = own.ledger.usage(&project("p")).await.unwrap().reply;
    assert_eq!((usage.used, usage.reserved, usage.open), (20, 0, 0));
    assert_eq!(own.settle(2, 5, 5).await.unwrap(), Settlement::Settled(5));
    assert_eq!(own.sums().await, (25, 0, 0));
}

/// Where some of a script cannot be rolled up, those that were listed already are taken back with them.
#[tokio::test]
async fn settles_that_cannot_be_rolled_up_list_nothing() {
    let own = Own::rolling_up(1000, 5);
    for n in 1..=8 {
        own.reserve(n, 10).await.unwrap();
    }
    own.settle(1, 1, 10).await.unwrap();
    let (lines, rolled) = (own.day("lines").await, own.day("rolled").await);
    let before = own.ask(&["LRANGE", &lines, "0", "-1"]);
    own.ask(&["SET", &rolled, "x"]);
    let settles = || (2..=8).map(|n| support::settle(n, 2, 10, NOON)).collect::<Vec<_>>();
    let answers = own.settles(settles()).await;
    // The first two go before the others, of which two would have been listed.
    let listed = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!(answers[listed..].iter().all(Result::is_err) && listed <= 2, "{answers:?}");
    let lines = own.ask(&["LRANGE", &lines, "0", "-1"]);
    assert!(lines.starts_with(&before) && lines.lines().count() == 1 + listed, "{lines}");
    own.ask(&["DEL", &rolled]);
    assert!(own.settles(settles()).await.into_iter().all(|answer| answer.unwrap() == Settlement::Settled(2)));
    assert_eq!(own.sums().await, (15, 0, 0));
}

/// What is put back because the audit cannot be written is all that was there.
#[tokio::test]
async fn settles_that_cannot_be_listed_leave_the_leases_as_they_were() {
    let own = Own::new(1000);
    let by = |n: u128| Context { request_id: format!("r{n}"), ..context() };
    let calls = (1..=5).map(|n| Reserve { context: by(n), ..reserve(n, 10) });
    own.reserves(calls.collect()).await.into_iter().for_each(|answer| assert!(answer.unwrap().lease().is_some()));
    let records = || (1..=5).map(|n| own.ask(&["GET", &own.record(n)])).collect::<Vec<_>>();
    let (before, lines) = (records(), own.day("lines").await);
    own.ask(&["SET", &lines, "x"]);
    let settles = || (1..=5).map(|n| support::settle(n, 2, 10, NOON)).collect::<Vec<_>>();
    assert!(own.settles(settles()).await.iter().all(Result::is_err));
    assert_eq!(records(), before);
    own.ask(&["DEL", &lines]);
    assert!(own.settles(settles()).await.into_iter().all(|answer| answer.unwrap() == Settlement::Settled(2)));
    assert_eq!(own.sums().await, (10, 0, 0));
    let page = own.ledger.audit(&project("p"), None, &AuditFilter::default(), None, 99).await.unwrap().reply;
    let mut subjects: Vec<_> = page.entries.into_iter().map(|entry| entry.subject).collect();
    subjects.sort_by_key(|subject| format!("{subject:?}"));
    assert_eq!(subjects, (1..=5).map(|n| Subject::Read(by(n))).collect::<Vec<_>>(), "of whom the record says");
}

/// Lines are rolled up from the fourth on: some of a script are listed and some are not.
#[tokio::test]
async fn many_are_rolled_up_together() {
    let own = Own::rolling_up(1 << 40, 4);
    own.reserve(0, 1).await.unwrap();
    own.settle(0, 1, 1).await.unwrap();
    let by = |n: u128| Context { key_id: ["one", "two\t"][usize::try_from(n % 2).unwrap()].to_owned(), ..context() };
    let calls: Vec<_> = (1..=41).map(|n| Reserve { context: by(n), ..reserve(n, 100) }).collect();
    assert!(own.reserves(calls).await.into_iter().all(|answer| answer.unwrap().lease().is_some()));
    let outcomes = [Outcome::Completed, Outcome::Aborted, Outcome::Completed];
    let settle = |n: u128| {
        let outcome = outcomes[usize::try_from(n % 3).unwrap()];
        Settle { context: by(n), outcome, ..support::settle(n, u64::try_from(n).unwrap(), 100, NOON) }
    };
    for calls in [1..=21, 22..=41] {
        let answers = own.settles(calls.clone().map(settle).collect()).await;
        let charged: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        let want: Vec<_> = calls.map(|n| Settlement::Settled(u64::try_from(n).unwrap())).collect();
        assert_eq!(charged, want);
    }
    assert_eq!(own.sums().await, (1 + 41 * 42 / 2, 0, 0));
    let page = own.ledger.audit(&project("p"), None, &AuditFilter::default(), None, 99).await.unwrap().reply;
    assert_eq!(page.total_count, 42);
    // Four are listed; the others are lines of two keys and two outcomes.
    let mut seen: Vec<_> = page.entries.iter().map(|entry| (entry.count, entry.charged, entry.size)).collect();
    seen.sort_unstable();
    let sums = |key: u128, aborted: bool| {
        let of = (4..=41_u128).filter(|n| n % 2 == key && (n % 3 == 1) == aborted);
        let charged: u128 = of.clone().sum();
        (of.clone().count() as u64, i64::try_from(charged).unwrap(), of.count() as u64 * 100)
    };
    let mut want = vec![
        (1, 1, 1),
        (1, 1, 100),
        (1, 2, 100),
        (1, 3, 100),
        sums(0, false),
        sums(0, true),
        sums(1, false),
        sums(1, true),
    ];
    want.sort_unstable();
    assert_eq!(seen, want);
}

#[tokio::test]
async fn each_of_many_has_its_own_size_and_names() {
    let own = Own::new(1 << 53);
    own.reserve(1, 0).await.unwrap();
    let sizes = [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 52) - 1];
    let names = ["a", "日本/語 '\"%_;--", "cafe\u{301}", &"x".repeat(1024), &"é/".repeat(300)[..899]];
    let calls: Vec<_> = (0..75_usize)
        .map(|n| {
            let artifact = ArtifactName::parse(names[n % 5]).unwrap();
            let key_id = [String::new(), "\t\0\n".to_owned(), "k".repeat(3000)][n % 3].clone();
            let context = Context { artifact, key_id, request_id: format!("r{n}"), ..context() };
            // The largest once: together they would not fit.
            let size = if n < 5 { sizes[n] } else { sizes[n % 4] };
            Reserve { context, ..reserve(1000 + n as u128, size) }
        })
        .collect();
    let mut reserved = 0;
    for (call, answer) in calls.iter().zip(own.reserves(calls.clone()).await) {
        reserved += call.size;
        let Admission::Reserved(lease, standing) = answer.unwrap() else { panic!("{call:?}") };
        assert_eq!((lease.grant, standing.reserved), (call.size.min(10), reserved), "{call:?}");
    }
    assert_eq!(own.sums().await, (0, reserved, 76));
    let settles = calls.iter().zip(1000..).map(|(call, n)| Settle {
        context: call.context.clone(),
        ..support::settle(n, call.size / 2, call.size, NOON)
    });
    for (call, answer) in calls.iter().zip(own.settles(settles.collect()).await) {
        assert_eq!(answer.unwrap(), Settlement::Settled(call.size / 2), "{call:?}");
    }
    let used = calls.iter().map(|call| call.size / 2).sum();
    assert_eq!(own.sums().await, (used, 0, 1));
    let page = own.ledger.audit(&project("p"), None, &AuditFilter::default(), None, 99).await.unwrap().reply;
    assert_eq!(page.entries.len(), 75);
    for entry in &page.entries {
        let call = calls.iter().find(|call| call.id.to_string() == entry.id).unwrap();
        assert_eq!((&entry.subject, entry.size), (&Subject::Read(call.context.clone()), call.size));
    }
}

/// Calls of both kinds go in one script, and each gets its own answer.
#[tokio::test]
async fn reserves_go_with_settles_and_have_what_these_give_back() {
    let own = Own::new(100);
    for n in 1..=5 {
        own.reserve(n, 20).await.unwrap();
    }
    let settle = |n, actual| Call::Settle(support::settle(n, actual, 20, NOON));
    let calls = vec![
        settle(1, 1),
        settle(2, 2),
        Call::Reserve(reserve(6, 50)),
        settle(3, 3),
        Call::Reserve(reserve(7, 30)),
        settle(4, 4),
        settle(3, 9),
        Call::Reserve(reserve(8, 11)),
    ];
    let answers: Vec<_> = own.calls(calls).await.into_iter().map(Result::unwrap).collect();
    // All four had ended by then: 10 used, 20 reserved for the fifth.
    let seen = answers.into_iter().map(|answer| match answer {
        Answer::Settlement(Settlement::Settled(charged)) => charged.to_string(),
        Answer::Settlement(Settlement::TooLate) => "late".to_owned(),
        Answer::Admission(admission) => seen(&Ok(admission)),
    });
    let want = ["1", "2", "10 of 10+70", "3", "busy for 30000", "4", "3", "10 of 10+81"];
    assert_eq!(seen.collect::<Vec<_>>(), want);
    assert_eq!(own.sums().await, (10, 81, 3));
}

/// When the server's memory is full it takes no reserves, nor what they go with; the settles go once more.
#[tokio::test]
async fn settles_that_go_with_reserves_end_reads_though_memory_is_full() {
    let own = Own::new(1000);
    for n in 1..=5 {
        own.reserve(n, 20).await.unwrap();
    }
    own.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let settle = |n| Call::Settle(support::settle(n, 7, 20, NOON));
    let reserve = |n| Call::Reserve(reserve(n, 20));
    let calls = vec![settle(1), settle(2), reserve(6), settle(3), reserve(7), settle(4), settle(5)];
    for (call, answer) in calls.clone().into_iter().zip(own.calls(calls).await) {
        match (call, answer) {
            (Call::Settle(_), Ok(answer)) => assert_eq!(answer, Answer::Settlement(Settlement::Settled(7))),
            (Call::Reserve(_), Err(error)) => assert!(error.to_string().contains("OOM"), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(own.sums().await, (35, 0, 0));
}
