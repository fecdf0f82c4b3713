//! Running scripts: by the day that is today, until nothing is due, alone or together.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use redis::Value;

use super::Redis;
use super::calls::{Call, Each};
use super::gather::{Gather, Lead, Told, Turn};
use super::keys;
use super::packed::put_number;
use super::reply::{self, Answer, nonsense};
use super::scripts::Script;
use crate::ledger::{DaySpan, LedgerTime, Policy, Reply, Unavailable};

/// How often one call may find that the day has changed under it.
const DAY_CHANGES: usize = 4;
/// Batches swept before one answer: more leases than any project has.
const SWEEPS: usize = 100_000;

/// The day that is taken for today, and how scripts are told.
#[derive(Debug)]
pub(super) struct Today {
    pub(super) span: DaySpan,
    /// As `today.lua` takes it.
    packed: Vec<u8>,
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
/// Calls of one kind on their way.
pub(super) type Gathered<T> = Arc<Gather<Reply<T>>>;
/// Reads what a script answered to calls on a day.
pub(super) type Read<T> = fn(&[Arc<Call>], &[u8], DaySpan) -> Each<T>;

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

    /// Runs a script of the project whose keys begin with `base`; `arguments` begin with a day that is taken
    /// for today. `None` if it is another, which then is taken for today.
    async fn try_on(
        &self,
        deadline: Instant,
        script: &Script,
        base: &str,
        arguments: Vec<&[u8]>,
    ) -> Result<Option<Value>, Unavailable> {
        let value = if self.splits {
            self.send(deadline, script, &[base, &keys::never_written(base)], arguments).await?
        } else {
            self.send(deadline, script, &[base], arguments).await?
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
            if let Some(value) = self.try_on(self.link.deadline(), script, base, all).await? {
                return Ok((Answer::new(value)?, today.span));
            }
        }
        Err(jumps())
    }

    /// Makes a call by a script that takes several, with others of the project that wait.
    pub(super) async fn run_together<T>(
        &self,
        gather: &Gathered<T>,
        script: &Script,
        base: &str,
        call: Call,
        read: Read<T>,
    ) -> Reply<T> {
        let deadline = self.link.deadline();
        let call = Arc::new(call);
        loop {
            match gather.join(base, Arc::clone(&call)) {
                Turn::Lead(lead) => return self.lead(deadline, script, base, lead, read).await,
                Turn::Wait(told) => match timeout_at(deadline, told).await {
                    Ok(Ok(Told::Lead(lead))) => return self.lead(deadline, script, base, lead, read).await,
                    Ok(Ok(Told::Answer(answer))) => return answer,
                    Ok(Err(_)) => {}
                    Err(_) => return Err(Unavailable("Redis did not answer in time".into())),
                },
            }
        }
    }

    /// Sends the calls and hands out the answers. If there are none, nobody knows what was executed.
    async fn lead<T>(
        &self,
        deadline: Instant,
        script: &Script,
        base: &str,
        lead: Lead<Reply<T>>,
        read: Read<T>,
    ) -> Reply<T> {
        for _ in 0..DAY_CHANGES {
            let today = self.today.load_full();
            let mut packed = today.packed.clone();
            lead.calls().iter().for_each(|call| packed.extend_from_slice(call.packed()));
            let answers = match self.try_on(deadline, script, base, vec![&packed]).await {
                Ok(None) => continue,
                Ok(Some(value)) => reply::packed(&value).and_then(|answer| read(lead.calls(), answer, today.span)),
                Err(error) => Err(error),
            };
            return match answers {
                Ok(answers) => lead.answer(answers).unwrap_or_else(|| Err(nonsense("answer to a call"))),
                // The others may have time left: they are told to ask again.
                Err(error) if Instant::now() >= deadline => Err(error),
                Err(error) => {
                    let copy = || Err(Unavailable(error.to_string().into()));
                    let _ = lead.answer(std::iter::repeat_with(copy));
                    Err(error)
                }
            };
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

fn jumps() -> Unavailable {
    Unavailable("the clock of Redis jumps".into())
}
