//! A ledger in memory with a clock to step, and short ways to call it.

use std::convert::Infallible;

use uuid::Uuid;

use crate::artifact::{ArtifactName, ProjectId, TrialId};
use crate::ledger::memory::MemoryBook;
use crate::ledger::state::{self, Moment};
use crate::ledger::{
    Admission, Allowance, Channel, Context, Day, Entry, Extend, Extension, Lease, LedgerTime, Outcome, Refusal,
    ReservationId, Reserve, ResetZone, Rules, Settle, Settlement, Usage,
};

/// A noon, so that a test reaches midnight only when it means to.
pub(super) const NOON: u64 = 1_796_040_000_000;
pub(super) const DAY: u64 = 86_400_000;
/// The credit step of the tests, bytes.
pub(super) const CREDIT: u64 = 10;

pub(super) struct Bench {
    pub(super) book: MemoryBook,
    pub(super) now: u64,
    pub(super) allowance: Allowance,
    pub(super) rules: Rules,
}

pub(super) fn ok<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

pub(super) fn id(n: u128) -> ReservationId {
    ReservationId(Uuid::from_u128(n))
}

pub(super) fn project() -> ProjectId {
    ProjectId::parse("p").expect("valid")
}

pub(super) fn context(key_id: &str) -> Context {
    Context {
        key_id: key_id.to_owned(),
        channel: Channel::Http,
        trial: TrialId::parse("t").expect("valid"),
        artifact: ArtifactName::parse("a.txt").expect("valid"),
        request_id: "r".to_owned(),
        link_id: None,
    }
}

impl Bench {
    pub(super) fn new(allowance: u64) -> Self {
        let rules = Rules { credit_bytes: CREDIT, sweep_in_reserve: 2, sweep_batch: 3, ..Rules::default() };
        Self { book: MemoryBook::default(), now: NOON, allowance: Allowance::Bytes(allowance), rules }
    }

    pub(super) fn at(&self) -> Moment<'_> {
        let now = LedgerTime(self.now);
        Moment { now, today: ResetZone::UTC.days(now).today, rules: &self.rules, allowance: self.allowance }
    }

    /// Runs a transition, then recounts yesterday, today and tomorrow.
    pub(super) fn run<T>(
        &mut self,
        transition: impl FnOnce(&mut MemoryBook, &Moment<'_>) -> Result<T, Infallible>,
    ) -> T {
        use crate::ledger::book::Book;
        let mut book = std::mem::take(&mut self.book);
        let reply = ok(transition(&mut book, &self.at()));
        for days in -1..=1 {
            let recount = ok(book.recount(&project(), self.today().plus(days)));
            assert!(recount.balanced(), "{recount:?}");
        }
        self.book = book;
        reply
    }

    pub(super) fn today(&self) -> Day {
        self.at().today.day
    }

    pub(super) fn step(&mut self, ms: u64) {
        self.now += ms;
    }

    pub(super) fn reserve_by(&mut self, n: u128, size: u64, not_after: u64) -> Admission {
        let not_after = LedgerTime(not_after);
        let call = Reserve { project: project(), id: id(n), size, not_after, context: context("k") };
        self.run(|book, at| state::reserve(book, at, &call))
    }

    pub(super) fn reserve(&mut self, n: u128, size: u64) -> Admission {
        self.reserve_by(n, size, self.now + self.rules.admission_ms)
    }

    /// Reserves where it must succeed.
    pub(super) fn lease(&mut self, n: u128, size: u64) -> Lease {
        match self.reserve(n, size) {
            Admission::Reserved(lease, _) => lease,
            other => panic!("{other:?}"),
        }
    }

    /// Reserves where it must be turned away.
    pub(super) fn refused(&mut self, n: u128, size: u64) -> Refusal {
        match self.reserve(n, size) {
            Admission::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn extend_asked(&mut self, n: u128, grant: u64, asked: u64) -> Extension {
        let project = project();
        let call = Extend { project: &project, id: id(n), grant, asked: LedgerTime(asked) };
        self.run(|book, at| state::extend(book, at, call))
    }

    pub(super) fn extend(&mut self, n: u128, grant: u64) -> Extension {
        self.extend_asked(n, grant, self.now)
    }

    pub(super) fn settle_call(&self, n: u128, actual: u64, size: u64) -> Settle {
        Settle {
            project: project(),
            id: id(n),
            actual,
            size,
            day: Some(self.today()),
            deadline: LedgerTime(self.now + self.rules.lease_ms),
            outcome: Outcome::Completed,
            context: context("k"),
        }
    }

    pub(super) fn settle_with(&mut self, call: &Settle) -> Settlement {
        self.run(|book, at| state::settle(book, at, call))
    }

    pub(super) fn settle(&mut self, n: u128, actual: u64, size: u64) -> Settlement {
        let call = self.settle_call(n, actual, size);
        self.settle_with(&call)
    }

    pub(super) fn sweep(&mut self) -> usize {
        self.run(state::sweep)
    }

    /// A lease that nobody settles, expired.
    pub(super) fn expire(&mut self, n: u128, size: u64) {
        self.lease(n, size);
        self.step(self.rules.lease_ms);
        assert_eq!(self.sweep(), 1);
    }

    pub(super) fn usage(&mut self) -> Usage {
        self.run(|book, at| state::usage(book, at, &project()))
    }

    /// Bytes used and reserved today.
    pub(super) fn sums(&mut self) -> (u64, u64) {
        use crate::ledger::book::Book;
        let account = ok(self.book.account(&project(), self.at().today.day));
        (account.used, account.reserved)
    }

    /// Today's lines, oldest first: outcome, size, bytes charged.
    pub(super) fn lines(&self) -> Vec<(Outcome, u64, i64)> {
        self.entries_of(self.today()).iter().map(|entry| (entry.outcome, entry.size, entry.charged)).collect()
    }

    pub(super) fn entries_of(&self, day: Day) -> Vec<Entry> {
        self.book.entries().filter(|(_, of, _)| *of == day).map(|(.., entry)| entry.clone()).collect()
    }
}
