//! Running scripts: by the day that is today, until nothing is due, alone or together.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use redis::Value;

use super::Redis;
use super::calls::{Call, Each};
use super::gather::{Addressed, Gather, Lead, Told, Turn};
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
/// Reads what a script answered to the calls of a project on a day.
pub(super) type Read<T> = fn(&[Addressed], &[u8], DaySpan) -> Each<T>;

/// The lanes of projects that lie in one server: those of a lane share scripts. One script of each kind is under
/// way in a lane, so that with more lanes more are, and each holds fewer calls.
const LANES: [&str; 4] = ["0", "1", "2", "3"];

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
    async fn try_on(
        &self,
        deadline: Instant,
        script: &Script,
        bases: &[&str],
        arguments: Vec<&[u8]>,
    ) -> Result<Option<Value>, Unavailable> {
        let value = match bases {
            [base] if self.splits => {
                self.send(deadline, script, &[base, &keys::never_written(base)], arguments).await?
            }
            bases => self.send(deadline, script, bases, arguments).await?,
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

    /// The lane of the project whose keys begin with `base`: its own where projects lie in different servers.
    fn lane<'a>(&self, base: &'a str) -> &'a str {
        if self.splits {
            return base;
        }
        let mut hasher = DefaultHasher::new();
        base.hash(&mut hasher);
        LANES[usize::try_from(hasher.finish() % LANES.len() as u64).unwrap_or_default()]
    }

    /// Makes a call by a script that takes several, with others of the lane that wait.
    pub(super) async fn run_together<T>(
        &self,
        gather: &Gathered<T>,
        script: &Script,
        base: &str,
        call: Call,
        read: Read<T>,
    ) -> Reply<T> {
        let deadline = self.link.deadline();
        let call: Addressed = (base.into(), Arc::new(call));
        loop {
            match gather.join(self.lane(base), call.clone()) {
                Turn::Lead(lead) => return self.lead(deadline, script, lead, read).await,
                Turn::Wait(told) => match timeout_at(deadline, told).await {
                    Ok(Ok(Told::Lead(lead))) => return self.lead(deadline, script, lead, read).await,
                    Ok(Ok(Told::Answer(answer))) => return answer,
                    Ok(Err(_)) => {}
                    Err(_) => return Err(Unavailable("Redis did not answer in time".into())),
                },
            }
        }
    }

    /// Sends the calls and hands out the answers. If there are none, nobody knows what was executed.
    async fn lead<T>(&self, deadline: Instant, script: &Script, lead: Lead<Reply<T>>, read: Read<T>) -> Reply<T> {
        for _ in 0..DAY_CHANGES {
            match self.ask(deadline, script, lead.calls(), read).await {
                Ok(None) => {}
                Ok(Some(answers)) => {
                    return lead.answer(answers).unwrap_or_else(|| Err(nonsense("answer to a call")));
                }
                // The others may have time left: they are told to ask again.
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(error) => {
                    let answers = all_failed(&error, lead.calls().len());
                    let _ = lead.answer(answers);
                    return Err(error);
                }
            }
        }
        Err(jumps())
    }

    /// What a script answers to calls, those of a project one after the other; `None` if what was taken for today
    /// is another day.
    async fn ask<T>(
        &self,
        deadline: Instant,
        script: &Script,
        calls: &[Addressed],
        read: Read<T>,
    ) -> Result<Option<Vec<Reply<T>>>, Unavailable> {
        let today = self.today.load_full();
        let projects: Vec<_> = calls.chunk_by(|(one, _), (other, _)| one == other).collect();
        let bases: Vec<_> = projects.iter().map(|calls| &*calls[0].0).collect();
        let mut packed = vec![Vec::new(); projects.len()];
        packed[0].extend_from_slice(&today.packed);
        for (packed, calls) in packed.iter_mut().zip(&projects) {
            calls.iter().for_each(|(_, call)| packed.extend_from_slice(call.packed()));
        }
        let arguments = packed.iter().map(Vec::as_slice).collect();
        let Some(value) = self.try_on(deadline, script, &bases, arguments).await? else { return Ok(None) };
        let each = |(answer, calls): (Result<&[u8], Unavailable>, &[Addressed])| {
            let answers = answer.and_then(|answer| read(calls, answer, today.span));
            answers.unwrap_or_else(|error| all_failed(&error, calls.len()))
        };
        let answers = reply::of_projects(&value, projects.len())?;
        Ok(Some(answers.into_iter().zip(projects).flat_map(each).collect()))
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

/// The answers to so many calls that could not be executed.
fn all_failed<T>(error: &Unavailable, calls: usize) -> Vec<Reply<T>> {
    (0..calls).map(|_| Err(Unavailable(error.0.to_string().into()))).collect()
}

fn jumps() -> Unavailable {
    Unavailable("the clock of Redis jumps".into())
}
