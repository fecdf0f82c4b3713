//! Running scripts: by the day that is today, until nothing is due.

use std::sync::Arc;

use tokio::time::Instant;

use redis::Value;

use super::Redis;
use super::keys;
use super::packed::put_number;
use super::reply::{self, Answer};
use super::scripts::Script;
use crate::ledger::{DaySpan, LedgerTime, Policy, Unavailable};

/// How often one call may find that the day has changed under it.
pub(super) const DAY_CHANGES: usize = 4;
/// Batches swept before one answer: more leases than any project has.
const SWEEPS: usize = 100_000;

/// The day that is taken for today, and how scripts are told.
#[derive(Debug)]
pub(super) struct Today {
    pub(super) span: DaySpan,
    /// As `today.lua` takes it.
    pub(super) packed: Vec<u8>,
}

impl Today {
    pub(super) fn at(policy: &Policy, now: LedgerTime) -> Self {
        let span = policy.zone.days(now).today;
        let mut packed = Vec::new();
        put_number(&mut packed, span.start.0);
        put_number(&mut packed, span.end.0);
        for day in [span.day, span.day.plus(-i64::from(policy.rules.retention_days)), span.day.plus(1)] {
            packed.extend_from_slice(day.to_string().as_bytes());
        }
        Self { span, packed }
    }
}

/// The answer of a call, and the day that is today.
type Answered = Result<(Answer, DaySpan), Unavailable>;

impl Redis {
    /// Runs a script that concerns no project.
    pub(super) async fn run_bare(&self, script: &Script, arguments: &[&str]) -> Result<Answer, Unavailable> {
        let arguments = arguments.iter().map(|text| text.as_bytes()).collect();
        Answer::new(self.send(self.link.deadline(), script, &[&self.names.projects()], arguments).await?)
    }

    pub(super) async fn send(
        &self,
        deadline: Instant,
        script: &Script,
        keys: &[&str],
        mut arguments: Vec<&[u8]>,
    ) -> Result<Value, Unavailable> {
        let told = self.clock.as_ref().map(|clock| clock.now_ms().to_string());
        arguments.extend(told.as_ref().map(String::as_bytes));
        self.link.run(deadline, script, keys, &arguments).await
    }

    /// Runs a script of the projects whose keys begin with `bases`, of a single one where slots move;
    /// `arguments` begin with a day that is taken for today. `None` if it is another, which then is taken for
    /// today.
    pub(super) async fn try_on(
        &self,
        deadline: Instant,
        script: &Script,
        bases: &[&str],
        arguments: Vec<&[u8]>,
    ) -> Result<Option<Value>, Unavailable> {
        let value = if self.splits {
            let never_written = keys::never_written(bases[0]);
            self.send(deadline, script, &[bases, &[&*never_written]].concat(), arguments).await?
        } else {
            self.send(deadline, script, bases, arguments).await?
        };
        match reply::of_days(&value) {
            None => Ok(Some(value)),
            Some(now) => {
                self.today.store(Arc::new(Today::at(&self.policy, now)));
                Ok(None)
            }
        }
    }

    /// Runs a script of the project whose keys begin with `base`; `arguments` are made for the day that
    /// turns out to be today. Answers that day, too.
    pub(super) async fn run_with(
        &self,
        script: &Script,
        base: &str,
        arguments: impl Fn(&DaySpan) -> Vec<String>,
    ) -> Answered {
        for _ in 0..DAY_CHANGES {
            let today = self.today.load_full();
            let more = arguments(&today.span);
            let all = std::iter::once(&*today.packed).chain(more.iter().map(String::as_bytes)).collect();
            if let Some(value) = self.try_on(self.link.deadline(), script, &[base], all).await? {
                return Ok((Answer::new(value)?, today.span));
            }
        }
        Err(jumps())
    }

    /// As [`run_with`](Redis::run_with), until all due leases were swept that the script sweeps.
    pub(super) async fn run_swept(
        &self,
        script: &Script,
        base: &str,
        arguments: impl Fn(&DaySpan) -> Vec<String>,
    ) -> Answered {
        for _ in 0..SWEEPS {
            let (answer, today) = self.run_with(script, base, &arguments).await?;
            if answer.word != "again" {
                return Ok((answer, today));
            }
        }
        Err(Unavailable("leases run out faster than they are swept".into()))
    }
}

pub(super) fn jumps() -> Unavailable {
    Unavailable("the clock of Redis jumps".into())
}
