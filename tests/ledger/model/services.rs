//! The services of a history, and the two ledgers that answer them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use artifactd::artifact::{ArtifactName, ProjectId, TrialId};
use artifactd::ledger::{
    Adjust, Admission, At, AuditFilter, Channel, Clock, Context, Day, Extend, Extension, Lease, Ledger, LedgerTime,
    Link, LinkId, Outcome, Override, Policy, Reply, ReservationId, Reserve, Settle, Settlement,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use uuid::Uuid;

use super::history::{History, Op, SLOTS, filter};
use super::invariants::{self, Fate};
use super::links::Links;
use super::seen::Seen;
use crate::support::{ManualClock, MemoryLedger, id};

type Checked<T> = Result<T, TestCaseError>;

pub(super) fn trial(n: u128) -> TrialId {
    TrialId::parse(&format!("t{n}")).unwrap()
}

/// A call that was sent, and may arrive again.
#[derive(Debug, Clone)]
enum Sent {
    Reserve(Reserve),
    Extend(ProjectId, ReservationId, u64, LedgerTime),
    Settle(Settle),
    Record(ProjectId, Link),
    Revoke(ProjectId, LinkId),
}

/// A read, as its service knows it.
#[derive(Debug, Clone, Default)]
struct Read {
    call: Option<Reserve>,
    lease: Option<Lease>,
    handed: u64,
    settle: Option<Settle>,
}

pub(super) struct World<'a> {
    policy: Policy,
    plain: bool,
    ledger: Arc<dyn Ledger>,
    model: MemoryLedger,
    clock: ManualClock,
    reads: Vec<Read>,
    sent: Vec<Sent>,
    fates: BTreeMap<ReservationId, Fate>,
    links: Links,
    next: u128,
    seen: &'a Seen,
}

/// The same answer from both, at the same time.
fn same<T: PartialEq + Debug>(real: Reply<T>, model: Reply<T>) -> Checked<T> {
    let (At { now, reply }, model) = (real.unwrap(), model.unwrap());
    prop_assert_eq!(now, model.now);
    prop_assert_eq!(&reply, &model.reply, "the ledger answers {:?}, the model {:?}", &reply, &model.reply);
    Ok(reply)
}

impl<'a> World<'a> {
    pub(super) fn new(history: &History, ledger: Arc<dyn Ledger>, clock: ManualClock, seen: &'a Seen) -> Self {
        let model = MemoryLedger::new(history.policy.clone(), clock.clone());
        let (policy, plain) = (history.policy.clone(), history.plain);
        let reads = vec![Read::default(); SLOTS];
        let (sent, fates, links) = (Vec::new(), BTreeMap::new(), Links::default());
        Self { policy, plain, ledger, model, clock, reads, sent, fates, links, next: 0, seen }
    }

    fn now(&self) -> LedgerTime {
        LedgerTime(self.clock.now_ms())
    }

    fn day(&self, days_ago: i64) -> Day {
        self.policy.zone.days(self.now()).today.day.plus(-days_ago)
    }

    fn fresh(&mut self) -> ReservationId {
        self.next += 1;
        id(self.next)
    }

    pub(super) async fn play(&mut self, op: &Op) -> Checked<()> {
        match op {
            Op::Reserve { slot, size, link, lost } => self.reserve(*slot, *size, *link, *lost).await?,
            Op::Hand { slot, bytes } => self.hand(*slot, *bytes),
            Op::Extend { slot, more, delay, lost } => self.extend(*slot, *more, *delay, *lost).await?,
            Op::Settle { slot, outcome, lost } => self.settle(*slot, *outcome, *lost).await?,
            Op::Repeat { sent } => {
                if let Some(call) = self.sent.get(sent % self.sent.len().max(1)).cloned() {
                    self.send(call).await?;
                }
            }
            Op::Stray { size, actual, days_ago, age } => self.stray(*size, *actual, *days_ago, *age).await?,
            Op::Step { ms } => self.clock.step(*ms),
            Op::Back { ms } => self.clock.set(self.now().0 - ms),
            Op::Record { project, link, lasts } => {
                let project = project_of(*project);
                let link = self.links.make(&project, *link, self.now().plus(*lasts));
                self.send(Sent::Record(project, link)).await?;
            }
            Op::Revoke { project, link } => {
                self.send(Sent::Revoke(project_of(*project), LinkId(Uuid::from_u128(*link)))).await?;
            }
            Op::Links { project, after, limit } => {
                let (p, after) = (project_of(*project), after.map(|n| LinkId(Uuid::from_u128(n))));
                let (real, model) =
                    (self.ledger.links(&p, after, *limit).await, self.model.links(&p, after, *limit).await);
                self.links.check_listed(&p, self.now(), &same(real, model)?)?;
            }
            Op::Sweep => drop(same(self.ledger.sweep().await, self.model.sweep().await)?),
            Op::Usage { project } => self.compare_usage(*project).await?,
            Op::Audit { project, days_ago, from, limit, filter: n } => {
                self.compare_audit(*project, self.day(*days_ago), &filter(*n), *from, *limit).await?;
            }
            Op::Verify { project, days_ago } => self.compare_sums(*project, self.day(*days_ago)).await?,
            Op::Override { project, allowance, lasts } => {
                let until = lasts.map(|ms| self.now().plus(ms));
                let exception = allowance.map(|allowance| Override {
                    allowance,
                    until,
                    by: "op".to_owned(),
                    reason: "why".to_owned(),
                });
                let (p, exception) = (project_of(*project), exception.as_ref());
                same(self.ledger.set_allowance(&p, exception).await, self.model.set_allowance(&p, exception).await)?;
                same(self.ledger.allowance(&p).await, self.model.allowance(&p).await)?;
            }
            Op::Adjust { project, id, days_ago, bytes } => {
                let call = Adjust {
                    project: project_of(*project),
                    id: id.to_string(),
                    day: self.day(*days_ago),
                    bytes: *bytes,
                    by: "op".to_owned(),
                    reason: "why".to_owned(),
                };
                same(self.ledger.adjust(&call).await, self.model.adjust(&call).await)?;
            }
        }
        self.check_invariants()
    }

    fn check_invariants(&self) -> Checked<()> {
        let book = self.model.book.lock().unwrap();
        invariants::sums(&book)?;
        self.seen.lines(&book);
        if self.plain {
            let retention = i64::from(self.policy.rules.retention_days);
            invariants::fates(&book, &self.fates, self.day(retention))?;
        }
        Ok(())
    }

    async fn reserve(&mut self, slot: usize, size: u64, link: Option<u128>, lost: bool) -> Checked<()> {
        if self.reads[slot].settle.is_some() {
            self.reads[slot] = Read::default();
        }
        if self.reads[slot].call.is_none() {
            let n = self.next;
            let context = Context {
                key_id: format!("k{}", slot / 2 % 2),
                channel: if link.is_some() { Channel::Link } else { Channel::ALL[slot / 4 % 2] },
                trial: trial(n % 2),
                artifact: ArtifactName::parse("a").unwrap(),
                request_id: format!("r{n}"),
                link_id: link.map(|n| LinkId(Uuid::from_u128(n))),
            };
            let id = self.fresh();
            let not_after = self.now().plus(self.policy.rules.admission_ms);
            self.reads[slot].call = Some(Reserve { project: project_of(slot % 2), id, size, not_after, context });
        }
        let call = self.reads[slot].call.clone().unwrap();
        let answer = self.send(Sent::Reserve(call)).await?;
        if let (Some(Ok(lease)), false) = (answer, lost) {
            self.reads[slot].lease = Some(lease);
        }
        Ok(())
    }

    fn hand(&mut self, slot: usize, bytes: u64) {
        let now = self.now();
        let read = &mut self.reads[slot];
        let (Some(call), Some(lease), None) = (&read.call, read.lease, &read.settle) else { return };
        if now < lease.deadline {
            read.handed = (read.handed + bytes).min(lease.grant);
            self.fates.entry(call.id).or_default().handed = read.handed;
        }
    }

    async fn extend(&mut self, slot: usize, more: u64, delay: u64, lost: bool) -> Checked<()> {
        let read = &self.reads[slot];
        let (Some(call), Some(lease), None) = (&read.call, read.lease, &read.settle) else { return Ok(()) };
        let asked = LedgerTime(self.now().0 - delay);
        let sent = Sent::Extend(call.project.clone(), call.id, lease.grant + more, asked);
        match self.send(sent).await? {
            Some(Ok(lease)) if !lost => self.reads[slot].lease = Some(lease),
            // On any answer but Reserved nothing more is handed out.
            Some(Err(())) if !lost => self.reads[slot].lease = Some(Lease { grant: 0, ..lease }),
            _ => {}
        }
        Ok(())
    }

    async fn settle(&mut self, slot: usize, outcome: Outcome, lost: bool) -> Checked<()> {
        let read = self.reads[slot].clone();
        let Some(call) = read.call else { return Ok(()) };
        let settle = read.settle.unwrap_or(Settle {
            project: call.project,
            id: call.id,
            actual: read.handed,
            size: call.size,
            day: read.lease.map(|lease| lease.day),
            deadline: read.lease.map(|lease| lease.deadline).unwrap_or_default(),
            outcome,
            context: call.context,
        });
        self.reads[slot].settle = Some(settle.clone());
        self.send(Sent::Settle(settle)).await?;
        if !lost {
            self.reads[slot] = Read::default();
        }
        Ok(())
    }

    async fn stray(&mut self, size: u64, actual: u64, days_ago: i64, age: u64) -> Checked<()> {
        let settle = Settle {
            project: project_of(0),
            id: self.fresh(),
            actual,
            size,
            day: Some(self.day(days_ago)),
            deadline: LedgerTime(self.now().0 - age),
            outcome: Outcome::Aborted,
            context: Context {
                key_id: "k0".to_owned(),
                channel: Channel::Link,
                trial: trial(0),
                artifact: ArtifactName::parse("a").unwrap(),
                request_id: "stray".to_owned(),
                link_id: None,
            },
        };
        self.send(Sent::Settle(settle)).await.map(drop)
    }

    /// Lets a call arrive at both ledgers; answers the lease, or that there is none, where the call
    /// is about one.
    async fn send(&mut self, call: Sent) -> Checked<Option<Result<Lease, ()>>> {
        self.sent.push(call.clone());
        match call {
            Sent::Reserve(call) => {
                let known = self.model.book.lock().unwrap().records().any(|(_, id, _)| id == call.id);
                let reply = same(self.ledger.reserve(&call).await, self.model.reserve(&call).await)?;
                self.seen.admission(&reply, known);
                let Admission::Reserved(lease, _) = reply else { return Ok(None) };
                if let (false, Some(link)) = (known, call.context.link_id) {
                    self.links.check_live(&call.project, self.now(), link)?;
                    self.seen.note("admitted by a link");
                }
                let fate = self.fates.entry(call.id).or_default();
                fate.day.get_or_insert(lease.day);
                if !known {
                    let limit = self.model.allowance(&call.project).await.unwrap().reply;
                    let limit = limit.map_or(self.policy.allowance, |exception| exception.allowance);
                    invariants::admission(&self.model.book.lock().unwrap(), &call.project, lease.day, limit)?;
                }
                Ok(Some(Ok(lease)))
            }
            Sent::Extend(project, id, grant, asked) => {
                let call = Extend { project: &project, id, grant, asked };
                match same(self.ledger.extend(call).await, self.model.extend(call).await)? {
                    Extension::Reserved(lease) => Ok(Some(Ok(lease))),
                    Extension::Ended => {
                        self.seen.note("extension of what has ended");
                        Ok(Some(Err(())))
                    }
                }
            }
            Sent::Settle(call) => {
                let now = self.now();
                let known = self
                    .model
                    .book
                    .lock()
                    .unwrap()
                    .records()
                    .any(|(_, id, record)| id == call.id && record.state.until().is_none_or(|until| now <= until));
                let reply = same(self.ledger.settle(&call).await, self.model.settle(&call).await)?;
                self.seen.settlement(reply, call.day.is_some_and(|day| day < self.day(0)));
                let fate = self.fates.entry(call.id).or_default();
                if let Settlement::Settled(charged) = reply {
                    prop_assert_eq!(charged, call.actual.min(call.size), "I4: the settle that was accepted");
                    fate.forgotten |= !known && fate.day.is_some();
                    fate.settled = Some(charged);
                }
                Ok(None)
            }
            Sent::Record(project, link) => {
                let now = self.now();
                same(self.ledger.record_link(&project, &link).await, self.model.record_link(&project, &link).await)?;
                self.links.recorded(&project, now, link.id);
                Ok(None)
            }
            Sent::Revoke(project, id) => {
                let known =
                    same(self.ledger.revoke_link(&project, id).await, self.model.revoke_link(&project, id).await)?;
                self.links.revoked(&project, self.now(), id, known)?;
                self.seen.note(if known { "revoked a link" } else { "revoked nothing" });
                Ok(None)
            }
        }
    }

    async fn compare_usage(&self, project: usize) -> Checked<()> {
        let p = project_of(project);
        same(self.ledger.usage(&p).await, self.model.usage(&p).await)?;
        same(self.ledger.history(&p, 3).await, self.model.history(&p, 3).await).map(drop)
    }

    async fn compare_audit(
        &self,
        project: usize,
        day: Day,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Checked<()> {
        let (p, day) = (project_of(project), Some(day));
        let real = self.ledger.audit(&p, day, filter, from, limit).await;
        same(real, self.model.audit(&p, day, filter, from, limit).await).map(drop)
    }

    async fn compare_sums(&self, project: usize, day: Day) -> Checked<()> {
        let p = project_of(project);
        let sums = same(self.ledger.verify(&p, Some(day)).await, self.model.verify(&p, Some(day)).await)?;
        prop_assert!(sums.balanced(), "{sums:?}");
        Ok(())
    }

    /// Every account, every line, every sum.
    pub(super) async fn compare_books(&self) -> Checked<()> {
        for project in 0..2 {
            self.compare_usage(project).await?;
            for days_ago in -1..2 {
                self.compare_sums(project, self.day(days_ago)).await?;
                self.compare_audit(project, self.day(days_ago), &AuditFilter::default(), None, 1000).await?;
            }
        }
        self.check_invariants()
    }

    /// I7: a lease and W after the last call, and a full sweep, nothing is reserved.
    pub(super) async fn finish(&mut self) -> Checked<()> {
        self.compare_books().await?;
        self.clock.step(self.policy.rules.lease_ms + self.policy.rules.admission_ms);
        for _ in 0..=self.sent.len() {
            let swept = same(self.ledger.sweep().await, self.model.sweep().await)?;
            self.check_invariants()?;
            if swept < self.policy.rules.sweep_batch {
                break;
            }
        }
        prop_assert!(self.model.book.lock().unwrap().accounts().all(|(.., account)| account.reserved == 0), "I7");
        for project in 0..2 {
            // Also of days of which nobody asked any more.
            for days_ago in -1..=i64::from(self.policy.rules.retention_days) + 1 {
                let day = Some(self.day(days_ago));
                let sums = self.ledger.verify(&project_of(project), day).await.unwrap().reply;
                prop_assert_eq!((sums.reserved, sums.leases, sums.indexed), (0, 0, 0), "I7: {:?}", sums);
            }
        }
        self.compare_books().await
    }
}

fn project_of(n: usize) -> ProjectId {
    ProjectId::parse(["p", "q"][n]).unwrap()
}
