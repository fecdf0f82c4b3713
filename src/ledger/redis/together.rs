//! Making reserves and settles, with others that wait: in one script, each with its own answer.

use std::sync::Arc;

use tokio::time::Instant;

use super::Redis;
use super::calls::{self, Call, Done, Kind};
use super::gather::{Addressed, Gather, Lead, Told, Turn};
use super::reply::{self, nonsense};
use super::run::{DAY_CHANGES, Today, jumps};
use crate::ledger::{Reply, Unavailable};

/// Calls on their way.
pub(super) type Gathered = Arc<Gather<Reply<Done>>>;

impl Redis {
    /// What calls share that may go in one script: on a server that holds all projects it is the same for all.
    const fn lane<'a>(&self, base: &'a str) -> &'a str {
        if self.splits { base } else { "" }
    }

    /// Makes a call by the script that takes several, with others of the lane.
    pub(super) async fn run_together(&self, base: &str, call: Call) -> Reply<Done> {
        let deadline = self.link.deadline();
        let last_turn = self.link.last_turn(deadline);
        let call: Addressed = (base.into(), Arc::new(call));
        loop {
            match self.calls.join(self.lane(base), call.clone(), last_turn) {
                Turn::Lead(lead) => return self.lead(deadline, lead).await,
                // Until its last turn, and then no longer than those who lead wait for Redis.
                Turn::Wait(told) => match told.await {
                    Ok(Told::Lead(lead)) => return self.lead(deadline, lead).await,
                    Ok(Told::Answer(answer)) => return answer,
                    Err(_) if Instant::now() < last_turn => {}
                    Err(_) => return Err(Unavailable("Redis is not free for the call in time".into())),
                },
            }
        }
    }

    /// Sends the calls and hands out the answers. If there are none, nobody knows what was executed.
    async fn lead(&self, deadline: Instant, mut lead: Lead<Reply<Done>>) -> Reply<Done> {
        lead.board().await;
        let calls: Vec<_> = lead.calls().iter().collect();
        let answers = match self.ask(deadline, &calls).await {
            // The others may have time left: they are told to ask again.
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(error) => self.ask_for_settles(deadline, &calls, &error).await,
            Ok(answers) => answers,
        };
        lead.answer(answers).unwrap_or_else(|| Err(nonsense("answer to a call")))
    }

    /// What is answered where a script was turned away with `error`, perhaps for want of memory: settles, which free
    /// it, go once more by themselves.
    async fn ask_for_settles(&self, deadline: Instant, calls: &[&Addressed], error: &Unavailable) -> Vec<Reply<Done>> {
        let settles: Vec<_> = calls.iter().copied().filter(|(_, call)| call.kind == Kind::Settle).collect();
        if settles.is_empty() || settles.len() == calls.len() {
            return all_failed(error, calls.len());
        }
        let settled = self.ask(deadline, &settles).await;
        let mut settled = settled.unwrap_or_else(|error| all_failed(&error, settles.len())).into_iter();
        let answer = |(_, call): &&Addressed| match call.kind {
            Kind::Settle => settled.next().unwrap_or_else(|| Err(nonsense("answer to a call"))),
            Kind::Reserve => Err(same(error)),
        };
        calls.iter().map(answer).collect()
    }

    /// What a script answers to calls, in their order.
    async fn ask(&self, deadline: Instant, calls: &[&Addressed]) -> Result<Vec<Reply<Done>>, Unavailable> {
        let scripts = self.scripts();
        let all = |kind| calls.iter().all(|(_, call)| call.kind == kind);
        let script = if all(Kind::Settle) {
            &scripts.settles
        } else if all(Kind::Reserve) {
            &scripts.reserves
        } else {
            &scripts.calls
        };
        let mut order: Vec<_> = (0..calls.len()).collect();
        order.sort_by_key(|n| (&calls[*n].0, calls[*n].1.kind));
        let sorted: Vec<_> = order.iter().map(|n| calls[*n]).collect();
        let alike = |one: &&Addressed, other: &&Addressed| one.0 == other.0 && one.1.kind == other.1.kind;
        let groups: Vec<Group<'_>> = sorted.chunk_by(alike).collect();
        let bases: Vec<_> = groups.iter().map(|group| &*group[0].0).collect();
        for _ in 0..DAY_CHANGES {
            let today = self.today.load_full();
            let packed = packed(&groups, &today);
            let arguments = packed.iter().map(Vec::as_slice).collect();
            let Some(value) = self.try_on(deadline, script, &bases, arguments).await? else { continue };
            let each = |(answer, group): (Result<&[u8], Unavailable>, Group<'_>)| {
                let answers = answer.and_then(|answer| calls::answers(group, answer, today.span));
                answers.unwrap_or_else(|error| all_failed(&error, group.len()))
            };
            let answers = reply::of_groups(&value, groups.len())?.into_iter().zip(groups).flat_map(each);
            let mut answers: Vec<_> = order.into_iter().zip(answers).collect();
            answers.sort_by_key(|(n, _)| *n);
            return Ok(answers.into_iter().map(|(_, answer)| answer).collect());
        }
        Err(jumps())
    }
}

/// Calls of one project and kind.
type Group<'a> = &'a [&'a Addressed];

/// What `each.lua` takes for each group.
fn packed(groups: &[Group<'_>], today: &Today) -> Vec<Vec<u8>> {
    let mut day = today.packed.as_slice();
    let pack = |group: &Group<'_>| {
        let length: usize = group.iter().map(|(_, call)| call.packed().len()).sum();
        let mut packed = Vec::with_capacity(day.len() + 1 + length);
        packed.extend_from_slice(std::mem::take(&mut day));
        packed.push(group[0].1.letter());
        group.iter().for_each(|(_, call)| packed.extend_from_slice(call.packed()));
        packed
    };
    groups.iter().map(pack).collect()
}

/// The answers to so many calls that could not be executed.
fn all_failed(error: &Unavailable, calls: usize) -> Vec<Reply<Done>> {
    (0..calls).map(|_| Err(same(error))).collect()
}

fn same(error: &Unavailable) -> Unavailable {
    Unavailable(error.0.to_string().into())
}
