//! Running scripts: by the day that is today, until nothing is due, alone or together.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::Redis;
use super::gather::{Call, Gather, Lead, Told, Turn};
use super::keys;
use super::reply::{Answer, nonsense};
use super::scripts::Script;
use crate::ledger::{DaySpan, LedgerTime, Policy, Unavailable};

/// How often one call may find that the day has changed under it.
const DAY_CHANGES: usize = 4;
/// Batches swept before one answer: more leases than any project has.
const SWEEPS: usize = 100_000;

/// The day that is taken for today, and how scripts are told.
#[derive(Debug)]
pub(super) struct Today {
    pub(super) span: DaySpan,
    day: String,
    start: String,
    end: String,
    first_kept: String,
    tomorrow: String,
}

impl Today {
    pub(super) fn at(policy: &Policy, now: LedgerTime) -> Self {
        let span = policy.zone.days(now).today;
        Self {
            span,
            day: span.day.to_string(),
            start: span.start.0.to_string(),
            end: span.end.0.to_string(),
            first_kept: span.day.plus(-i64::from(policy.rules.retention_days)).to_string(),
            tomorrow: span.day.plus(1).to_string(),
        }
    }
}

/// The answer of a call, and the day that is today.
type Answered = Result<(Answer, DaySpan), Unavailable>;
/// Calls of one kind on their way.
pub(super) type Gathered = Arc<Gather<Answered>>;

impl Redis {
    /// Runs a script that concerns no project.
    pub(super) async fn run_bare(&self, script: &Script, arguments: &[&str]) -> Result<Answer, Unavailable> {
        self.send(self.link.deadline(), script, &[&self.names.projects()], arguments.to_vec()).await
    }

    pub(super) async fn send(
        &self,
        deadline: Instant,
        script: &Script,
        keys: &[&str],
        mut arguments: Vec<&str>,
    ) -> Result<Answer, Unavailable> {
        let told = self.clock.as_ref().map(|clock| clock.now_ms().to_string());
        arguments.extend(told.as_deref());
        Answer::new(self.link.run(deadline, script, keys, &arguments).await?)
    }

    /// Runs a script of the project whose keys begin with `base`, by the day that is taken for today;
    /// `None` if it is another, which then is taken for today.
    async fn try_on<'a>(
        &self,
        today: &'a Today,
        deadline: Instant,
        script: &Script,
        (base, key): (&'a str, &str),
        more: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Answer>, Unavailable> {
        let mut all = vec![base, &*today.day, &*today.start, &*today.end, &*today.first_kept, &*today.tomorrow];
        all.extend(more);
        let answer = self.send(deadline, script, &[key, &keys::never_written(base)], all).await?;
        if answer.word != "days" {
            return Ok(Some(answer));
        }
        self.today.store(Arc::new(Today::at(&self.policy, answer.now)));
        Ok(None)
    }

    /// Runs a script of the project whose keys begin with `base`; `key` and `arguments` are made for
    /// the day that turns out to be today. Answers that day, too.
    pub(super) async fn run_with(
        &self,
        script: &Script,
        base: &str,
        key: impl Fn(&str, &DaySpan) -> String,
        arguments: impl Fn(&DaySpan) -> Vec<String>,
    ) -> Answered {
        for _ in 0..DAY_CHANGES {
            let today = self.today.load_full();
            let (key, more) = (key(base, &today.span), arguments(&today.span));
            let more = more.iter().map(String::as_str);
            if let Some(answer) = self.try_on(&today, self.link.deadline(), script, (base, &key), more).await? {
                return Ok((answer, today.span));
            }
        }
        Err(jumps())
    }

    /// Makes a call by a script that takes several, with others of the project that wait.
    pub(super) async fn run_together(&self, gather: &Gathered, script: &Script, base: &str, call: Call) -> Answered {
        let deadline = self.link.deadline();
        loop {
            match gather.join(base, Arc::clone(&call)) {
                Turn::Lead(lead) => return self.lead(deadline, script, base, lead).await,
                Turn::Wait(told) => match timeout_at(deadline, told).await {
                    Ok(Ok(Told::Lead(lead))) => return self.lead(deadline, script, base, lead).await,
                    Ok(Ok(Told::Answer(answer))) => return answer,
                    Ok(Err(_)) => {}
                    Err(_) => return Err(Unavailable("Redis did not answer in time".into())),
                },
            }
        }
    }

    /// Sends the calls and hands out the answers. If there are none, nobody knows what was executed.
    async fn lead(&self, deadline: Instant, script: &Script, base: &str, lead: Lead<Answered>) -> Answered {
        for _ in 0..DAY_CHANGES {
            let today = self.today.load_full();
            let calls = lead.calls().iter().flat_map(|call| call.iter().map(String::as_str));
            match self.try_on(&today, deadline, script, (base, base), calls).await {
                Ok(Some(answer)) => {
                    let answers = answer.each().map(|answer| Ok((answer?, today.span)));
                    return lead.answer(answers).unwrap_or_else(|| Err(nonsense("answer to a call")));
                }
                Ok(None) => {}
                // The others may have time left: they are told to ask again.
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(error) => {
                    let copy = || Err(Unavailable(error.to_string().into()));
                    let _ = lead.answer(std::iter::repeat_with(copy));
                    return Err(error);
                }
            }
        }
        Err(jumps())
    }

    /// As [`run_with`](Redis::run_with), until all due leases were swept that the script sweeps.
    pub(super) async fn run_swept(
        &self,
        script: &Script,
        base: &str,
        key: impl Fn(&str, &DaySpan) -> String,
        arguments: impl Fn(&DaySpan) -> Vec<String>,
    ) -> Answered {
        for _ in 0..SWEEPS {
            let (answer, today) = self.run_with(script, base, &key, &arguments).await?;
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
