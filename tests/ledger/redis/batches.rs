//! Random calls that go together, of several projects: each is answered as if it had come alone and in its turn,
//! and the books are the same.

use std::sync::Arc;

use artifactd::ledger::{
    AuditFilter, Clock, Context, Ledger, LedgerTime, Outcome, Policy, Reserve, Rules, Settle, Unavailable,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::lanes::scripts;
use super::together::{self, Answer, Own};
use crate::support::{self, DAY, MemoryLedger, NOON, context, policy, project};

const PROJECTS: u8 = 5;
/// So few that most come more than once.
const IDS: u8 = 6;
/// After two calls so many go in one script.
const IN_ONE_SCRIPT: usize = 60;

/// A call of the project's read with this number.
#[derive(Debug, Clone)]
struct Call {
    project: u8,
    id: u8,
    size: u64,
    /// Of a settle: what it says was handed out, who asks, whether it knows its day, and how the read ended.
    actual: u64,
    asks: u8,
    knows_its_day: bool,
    outcome: Outcome,
    /// Of a reserve: whether it comes too late.
    stale: bool,
}

#[derive(Debug, Clone)]
struct Batch {
    step_ms: u64,
    kind: Kind,
    calls: Vec<Call>,
}

#[derive(Debug, Clone)]
enum Kind {
    Reserves,
    Settles,
    /// Both, of one project: each call is a settle or is not.
    Both(Vec<bool>),
}

fn call() -> impl Strategy<Value = Call> {
    let outcome = prop_oneof![Just(Outcome::Completed), Just(Outcome::Aborted), Just(Outcome::Failed)];
    let flags = (0..2u8, prop::bool::weighted(0.9), prop::bool::weighted(0.05));
    (0..PROJECTS, 0..IDS, 0..40u64, 0..40u64, flags, outcome).prop_map(
        |(project, id, size, actual, (asks, knows_its_day, stale), outcome)| Call {
            project,
            id,
            // The size of a read does not change, but for strangers.
            size: if size < 36 { u64::from(id) * 5 } else { size },
            actual,
            asks,
            knows_its_day,
            outcome,
            stale,
        },
    )
}

fn batch() -> impl Strategy<Value = Batch> {
    let step = prop_oneof![6 => 0..2_000u64, 2 => Just(30_000), 1 => Just(300_001), 1 => Just(DAY / 2)];
    let settles = prop::collection::vec(any::<bool>(), IN_ONE_SCRIPT);
    let kind = prop_oneof![Just(Kind::Reserves), Just(Kind::Settles), settles.prop_map(Kind::Both)];
    (step, kind, prop::collection::vec(call(), 1..70)).prop_map(|(step_ms, kind, mut calls)| {
        if matches!(kind, Kind::Both(_)) {
            calls.truncate(IN_ONE_SCRIPT);
            calls.iter_mut().for_each(|call| call.project = 0);
        }
        Batch { step_ms, kind, calls }
    })
}

impl Call {
    fn context(&self) -> Context {
        Context { key_id: format!("k{}", self.asks), request_id: format!("r{}", self.id), ..context() }
    }

    fn id(&self) -> u128 {
        // An id is of one project alone.
        100 * u128::from(self.project) + u128::from(self.id) + 1
    }

    fn reserve(&self, now: u64) -> Reserve {
        let not_after = if self.stale { now - 1 } else { now + 5_000 };
        let project = project(&format!("p{}", self.project));
        Reserve { project, context: self.context(), ..support::reserve(self.id(), self.size, not_after) }
    }

    /// Its lease is taken to be as old as the last batch.
    fn settle(&self, now: u64, leased: u64) -> Settle {
        let call = support::settle(self.id(), self.actual, self.size, leased);
        let day = call.day.filter(|_| self.knows_its_day);
        let (project, context) = (project(&format!("p{}", self.project)), self.context());
        let deadline = LedgerTime(call.deadline.0.min(now + 30_000));
        Settle { project, context, day, deadline, outcome: self.outcome, ..call }
    }
}

fn said<T: std::fmt::Debug>(answer: &Result<T, Unavailable>) -> String {
    format!("{answer:?}")
}

/// Plays the batches to a ledger in Redis, all calls of each at once, and to the model one after the other; answers
/// how many settles went by themselves, and how many scripts for them.
async fn play(batches: &[Batch]) -> (usize, u32) {
    // No more is due than one reserve sweeps: scripts share what they may sweep.
    let base = policy(150);
    let rules = Rules { sweep_in_reserve: 64, max_entries: 3, ..base.rules.clone() };
    let policy = Policy { rules, ..base };
    let own = Own::by(policy.clone());
    let model = MemoryLedger::new(policy, own.clock.clone());
    // The sweeper knows the projects, and the server the scripts.
    for n in 0..PROJECTS {
        for ledger in [&*own.ledger as &dyn Ledger, &model] {
            let first =
                Reserve { project: project(&format!("p{n}")), ..support::reserve(9_000 + u128::from(n), 1, NOON) };
            ledger.reserve(&first).await.unwrap();
            let project = first.project.clone();
            ledger.settle(&Settle { project, ..support::settle(9_000 + u128::from(n), 1, 1, NOON) }).await.unwrap();
        }
    }
    let (mut settled, mut ran, mut leased) = (0, 0, NOON);
    for (nth, Batch { step_ms, kind, calls: batch }) in (9_100..).zip(batches) {
        own.clock.step(*step_ms);
        if matches!(kind, Kind::Both(_)) {
            // The sweeper knows the project again, so that no reserve has to tell it first.
            let first = Reserve { project: project("p0"), ..support::reserve(nth, 0, own.clock.now_ms()) };
            for ledger in [&*own.ledger as &dyn Ledger, &model] {
                assert!(ledger.reserve(&first).await.unwrap().reply.lease().is_some());
            }
        }
        let now = own.ledger.now().await.unwrap().0;
        let settles = |n: usize| match kind {
            Kind::Reserves => false,
            Kind::Settles => true,
            Kind::Both(settles) => settles[n],
        };
        let calls: Vec<_> = batch
            .iter()
            .enumerate()
            .map(|(n, call)| {
                if settles(n) {
                    together::Call::Settle(call.settle(now, leased))
                } else {
                    together::Call::Reserve(call.reserve(now))
                }
            })
            .collect();
        if !matches!(kind, Kind::Settles) {
            leased = now;
        }
        // Of what goes in one script the settles go first.
        let mut order: Vec<_> = (0..calls.len()).collect();
        order.sort_by_key(|n| if *n < 2 { (false, false, *n) } else { (true, !settles(*n), *n) });
        let mut want = vec![String::new(); calls.len()];
        for n in order {
            want[n] = match &calls[n] {
                together::Call::Reserve(call) => {
                    said(&model.reserve(call).await.map(|answer| Answer::Admission(answer.reply)))
                }
                together::Call::Settle(call) => {
                    said(&model.settle(call).await.map(|answer| Answer::Settlement(answer.reply)))
                }
            };
        }
        let before = scripts(&own);
        let got: Vec<_> = own.calls(calls).await.iter().map(said).collect();
        // Reserves may have to put their project on the list first.
        if matches!(kind, Kind::Settles) {
            ran += scripts(&own) - before;
            settled += batch.len();
        }
        for (n, call) in batch.iter().enumerate() {
            assert_eq!(got[n], want[n], "call {n} of {}: {call:?} {batch:#?}", batch.len());
        }
    }
    for n in 0..PROJECTS {
        let project = project(&format!("p{n}"));
        let (own, model) = (&*own.ledger as &dyn Ledger, &model as &dyn Ledger);
        let usage = (own.usage(&project).await.unwrap().reply, model.usage(&project).await.unwrap().reply);
        assert_eq!(usage.0, usage.1);
        for days_ago in 0..4 {
            let day = Some(usage.0.day.plus(-days_ago));
            let sums = own.verify(&project, day).await.unwrap().reply;
            assert_eq!(sums, model.verify(&project, day).await.unwrap().reply);
            assert!(sums.balanced(), "{sums:?}");
            let all = AuditFilter::default();
            let pages = (
                own.audit(&project, day, &all, None, 1000).await.unwrap().reply,
                model.audit(&project, day, &all, None, 1000).await.unwrap().reply,
            );
            assert_eq!(pages.0.total_charged, pages.1.total_charged);
            let lines = |entries: &[artifactd::ledger::Entry]| {
                let mut lines: Vec<_> = entries.iter().map(|entry| format!("{entry:?}")).collect();
                lines.sort_unstable();
                lines
            };
            assert_eq!(lines(&pages.0.entries), lines(&pages.1.entries));
        }
    }
    (settled, ran)
}

#[test]
fn calls_that_go_together_are_answered_as_if_one_came_after_the_other() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases = 12 * Config::default().cases / 256;
    let sums = Arc::new(std::sync::Mutex::new((0, 0)));
    for _ in crate::servers::rounds() {
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
        let played = TestRunner::new(config).run(&prop::collection::vec(batch(), 1..10), |batches| {
            let (settled, scripts) = runtime.block_on(play(&batches));
            let mut sums = sums.lock().unwrap();
            *sums = (sums.0 + settled, sums.1 + usize::try_from(scripts).unwrap());
            Ok(())
        });
        if let Err(failure) = played {
            panic!("{failure}");
        }
    }
    let (settled, scripts) = *sums.lock().unwrap();
    assert!(scripts * 3 < settled, "{scripts} scripts for {settled} settles");
}
