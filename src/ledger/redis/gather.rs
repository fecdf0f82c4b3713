//! Calls that go to the server together: those of one project, or of the projects that share a lane.
//!
//! The first call goes at once. Those that come while it is under way wait, and go in one script when
//! it is done; so a caller waits for nobody while there is no load, and under load many share the
//! costs of a script. One of those that waited leads the others: it sends their calls with its own and
//! hands out the answers. A leader that leaves takes nobody with it: the others are told, and ask again,
//! which every call of a ledger allows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::calls::Call;

/// Calls in one script, at most: the server answers nobody else meanwhile, and one takes about 7 µs.
const TOGETHER: usize = 64;

/// Gathers calls of one kind, by lane.
#[derive(Debug)]
pub(super) struct Gather<T> {
    lanes: Mutex<Lanes<T>>,
}

/// The lanes that have calls under way, and the calls that wait for them.
type Lanes<T> = HashMap<String, VecDeque<Waiting<T>>>;

/// A call, and what all keys of its project begin with.
pub(super) type Addressed = (Arc<str>, Arc<Call>);

#[derive(Debug)]
struct Waiting<T> {
    call: Addressed,
    caller: oneshot::Sender<Told<T>>,
}

/// What a caller who waited is told; nothing if the one who led it left.
#[derive(Debug)]
pub(super) enum Told<T> {
    Answer(T),
    Lead(Lead<T>),
}

/// What a caller does next.
#[derive(Debug)]
pub(super) enum Turn<T> {
    Lead(Lead<T>),
    Wait(oneshot::Receiver<Told<T>>),
}

/// The calls to send now, those of a project one after the other, the leader's own first. When it is dropped,
/// those that wait go next.
#[derive(Debug)]
pub(super) struct Lead<T> {
    gather: Arc<Gather<T>>,
    lane: String,
    calls: Vec<Addressed>,
    followers: Vec<oneshot::Sender<Told<T>>>,
}

impl<T> Gather<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { lanes: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(self: &Arc<Self>, lane: &str, call: Addressed) -> Turn<T> {
        let mut lanes = self.lock();
        if let Some(waiting) = lanes.get_mut(lane) {
            let (caller, told) = oneshot::channel();
            waiting.push_back(Waiting { call, caller });
            return Turn::Wait(told);
        }
        lanes.insert(lane.to_owned(), VecDeque::new());
        let (gather, lane) = (Arc::clone(self), lane.to_owned());
        Turn::Lead(Lead { gather, lane, calls: vec![call], followers: Vec::new() })
    }

    /// Lets those go that wait. Who has left meanwhile is passed over.
    fn next(self: &Arc<Self>, lane: &str) {
        let mut lanes = self.lock();
        let Some(waiting) = lanes.get_mut(lane) else { return };
        let mut next = Vec::new();
        while next.len() < TOGETHER
            && let Some(one) = waiting.pop_front()
        {
            if !one.caller.is_closed() {
                next.push(one);
            }
        }
        if next.is_empty() {
            lanes.remove(lane);
            return;
        }
        drop(lanes);
        // Calls of one project stay in their order.
        next.sort_by(|one, other| one.call.0.cmp(&other.call.0));
        let (calls, mut callers): (Vec<_>, Vec<_>) = next.into_iter().map(|one| (one.call, one.caller)).unzip();
        let leader = callers.remove(0);
        let (gather, lane) = (Arc::clone(self), lane.to_owned());
        // A leader that left just now drops what it was sent, and the next are let go.
        let _ = leader.send(Told::Lead(Lead { gather, lane, calls, followers: callers }));
    }
}

impl<T> Lead<T> {
    pub(super) fn calls(&self) -> &[Addressed] {
        &self.calls
    }

    /// Hands out the answers, which are in the order of the calls; returns the leader's own.
    pub(super) fn answer(mut self, answers: impl IntoIterator<Item = T>) -> Option<T> {
        let mut answers = answers.into_iter();
        let own = answers.next();
        for (follower, answer) in self.followers.drain(..).zip(answers) {
            // A caller that has gone needs no answer.
            let _ = follower.send(Told::Answer(answer));
        }
        own
    }
}

impl<T> Drop for Lead<T> {
    fn drop(&mut self) {
        self.gather.next(&self.lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(n: usize) -> Addressed {
        of("p", n)
    }

    fn of(project: &str, n: usize) -> Addressed {
        (project.into(), Arc::new(Call::numbered(n)))
    }

    fn lead<T>(turn: Turn<T>) -> Lead<T> {
        let Turn::Lead(lead) = turn else { panic!("a call is under way") };
        lead
    }

    fn wait<T>(turn: Turn<T>) -> oneshot::Receiver<Told<T>> {
        let Turn::Wait(told) = turn else { panic!("no call is under way") };
        told
    }

    fn numbers<T>(lead: &Lead<T>) -> Vec<usize> {
        lead.calls().iter().map(|(_, call)| call.packed()[0].into()).collect()
    }

    #[test]
    fn the_first_goes_at_once_and_the_others_together() {
        let gather = Gather::<usize>::new();
        let first = lead(gather.join("p", call(0)));
        assert_eq!(numbers(&first), [0]);
        let mut waiting: Vec<_> = (1..=TOGETHER + 1).map(|n| wait(gather.join("p", call(n)))).collect();
        lead(gather.join("q", call(9))).answer([9]);
        assert!(waiting[0].try_recv().is_err(), "the first is under way");
        assert_eq!(first.answer([0]), Some(0));

        let Ok(Told::Lead(second)) = waiting.remove(0).try_recv() else { panic!("nobody leads") };
        assert_eq!(numbers(&second), (1..=TOGETHER).collect::<Vec<_>>());
        let mut late = wait(gather.join("p", call(99)));
        assert_eq!(second.answer((1..=TOGETHER).map(|n| n * 10)), Some(10));
        let last = waiting.pop().unwrap();
        for (n, mut told) in waiting.into_iter().enumerate() {
            assert!(matches!(told.try_recv(), Ok(Told::Answer(answer)) if answer == (n + 2) * 10));
        }
        let mut last = last;
        let Ok(Told::Lead(third)) = last.try_recv() else { panic!("nobody leads") };
        assert_eq!(numbers(&third), [TOGETHER + 1, 99]);
        third.answer([1, 2]);
        assert!(matches!(late.try_recv(), Ok(Told::Answer(2))));
        assert!(gather.lock().is_empty(), "nothing is kept of what is done");
    }

    #[test]
    fn those_of_a_project_go_one_after_the_other_in_their_order() {
        let gather = Gather::<usize>::new();
        let first = lead(gather.join("lane", of("c", 0)));
        let projects = ["b", "a", "b", "c", "a", "b"];
        let mut waiting: Vec<_> =
            projects.iter().zip(1..).map(|(project, n)| wait(gather.join("lane", of(project, n)))).collect();
        drop(first);
        let Ok(Told::Lead(second)) = waiting[1].try_recv() else { panic!("the first of the first project leads") };
        assert_eq!(numbers(&second), [2, 5, 1, 3, 6, 4]);
        assert_eq!(second.answer([2, 5, 1, 3, 6, 4]), Some(2));
        for (n, mut told) in (1..).zip(waiting).filter(|(n, _)| *n != 2) {
            assert!(matches!(told.try_recv(), Ok(Told::Answer(answer)) if answer == n));
        }
    }

    #[test]
    fn who_leaves_takes_nobody_with_it() {
        let gather = Gather::<usize>::new();
        let first = lead(gather.join("p", call(0)));
        let gone = wait(gather.join("p", call(1)));
        let mut leads = wait(gather.join("p", call(2)));
        let mut follows = wait(gather.join("p", call(3)));
        drop(gone);
        drop(first);
        let Ok(Told::Lead(second)) = leads.try_recv() else { panic!("nobody leads") };
        assert_eq!(numbers(&second), [2, 3], "a call is not made for nobody");
        let mut waits = wait(gather.join("p", call(4)));
        drop(second);
        assert!(matches!(follows.try_recv(), Err(oneshot::error::TryRecvError::Closed)), "it is told");
        assert!(matches!(waits.try_recv(), Ok(Told::Lead(lead)) if numbers(&lead) == [4]));
        assert!(gather.lock().is_empty());
    }

    #[test]
    fn a_leader_that_never_learns_of_it_is_passed_over() {
        let gather = Gather::<usize>::new();
        let first = lead(gather.join("p", call(0)));
        let (leader, mut next) = (wait(gather.join("p", call(1))), wait(gather.join("p", call(2))));
        drop(first);
        let mut third = wait(gather.join("p", call(3)));
        drop(leader);
        assert!(matches!(next.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert!(matches!(third.try_recv(), Ok(Told::Lead(_))));
    }
}
