//! Calls that go to the server together: those that may share a script are of one lane.
//!
//! A call that finds nothing under way goes at once, so nobody waits while there is no load. A second script may be
//! on its way while the first is executed, so that server and service both have work. Other calls wait, and go
//! in one script as soon as one of the two is done. Before a second script leaves, those calls come along that are
//! just about to be made, up to half of all, so that the two share the load.
//!
//! One call of a script leads the others: it sends them with its own and hands out the answers. A leader that
//! leaves takes nobody with it: the others are told, and ask again, which every call of a ledger allows. So are those
//! told that waited too long for their turn: nobody is led by a call that has no time left, and none needs a timer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::calls::Call;

/// Calls in one script, at most: the server answers nobody else meanwhile, and one takes about 7 µs.
const TOGETHER: usize = 64;
/// Scripts of a lane that are under way, at most.
const SCRIPTS: usize = 2;

/// Gathers calls by lane.
#[derive(Debug)]
pub(super) struct Gather<T> {
    lanes: Mutex<Lanes<T>>,
}

/// The lanes that have calls under way.
type Lanes<T> = HashMap<String, Lane<T>>;

#[derive(Debug)]
struct Lane<T> {
    /// How many scripts are under way, and how many calls in them.
    scripts: usize,
    calls: usize,
    /// One of the scripts has not left yet: those that wait may come along.
    boarding: bool,
    waiting: VecDeque<Waiting<T>>,
}

/// A call, and what all keys of its project begin with.
pub(super) type Addressed = (Arc<str>, Arc<Call>);

#[derive(Debug)]
struct Waiting<T> {
    call: Addressed,
    caller: oneshot::Sender<Told<T>>,
    until: Instant,
}

/// What a caller who waited is told; nothing if the one who led it left, or its time to wait was over.
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

/// The calls to send now, the leader's own first. When it is dropped, those that wait go next.
#[derive(Debug)]
pub(super) struct Lead<T> {
    gather: Arc<Gather<T>>,
    lane: String,
    calls: Vec<Addressed>,
    followers: Vec<oneshot::Sender<Told<T>>>,
    boarding: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { scripts: 0, calls: 0, boarding: false, waiting: VecDeque::new() }
    }
}

impl<T> Lane<T> {
    fn is_full(&self) -> bool {
        self.boarding || self.scripts == SCRIPTS
    }

    /// Begins a script of so many calls; whether others may come along.
    fn begin(&mut self, calls: usize) -> bool {
        self.boarding = self.scripts > 0;
        self.scripts += 1;
        self.calls += calls;
        self.boarding
    }

    /// The next that wait, at most so many. Who has left meanwhile is passed over, and whose time is over.
    fn take(&mut self, most: usize) -> (Vec<Addressed>, Vec<oneshot::Sender<Told<T>>>) {
        let (most, now) = (most.min(self.waiting.len()), Instant::now());
        let (mut calls, mut callers) = (Vec::with_capacity(most), Vec::with_capacity(most));
        while calls.len() < most
            && let Some(one) = self.waiting.pop_front()
        {
            if now < one.until && !one.caller.is_closed() {
                calls.push(one.call);
                callers.push(one.caller);
            }
        }
        (calls, callers)
    }
}

impl<T> Gather<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { lanes: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the lane. A call that is not about to be sent waits `until` then, or a little longer: the next script
    /// that goes leaves it behind.
    pub(super) fn join(self: &Arc<Self>, lane: &str, call: Addressed, until: Instant) -> Turn<T> {
        let mut lanes = self.lock();
        let boarding = match lanes.get_mut(lane) {
            Some(of) if of.is_full() => {
                let (caller, told) = oneshot::channel();
                of.waiting.push_back(Waiting { call, caller, until });
                return Turn::Wait(told);
            }
            Some(of) => of.begin(1),
            None => lanes.entry(lane.to_owned()).or_default().begin(1),
        };
        let (gather, lane) = (Arc::clone(self), lane.to_owned());
        Turn::Lead(Lead { gather, lane, calls: vec![call], followers: Vec::new(), boarding })
    }

    /// Lets those go that wait, if they may.
    fn next(self: &Arc<Self>, lane: &str) {
        let mut lanes = self.lock();
        let Some(of) = lanes.get_mut(lane).filter(|of| !of.is_full()) else { return };
        let (calls, mut callers) = of.take(TOGETHER);
        if calls.is_empty() {
            if of.scripts == 0 {
                lanes.remove(lane);
            }
            return;
        }
        let boarding = of.begin(calls.len());
        drop(lanes);
        let leader = callers.remove(0);
        let (gather, lane) = (Arc::clone(self), lane.to_owned());
        // A leader that left just now drops what it was sent, and the next are let go.
        let _ = leader.send(Told::Lead(Lead { gather, lane, calls, followers: callers, boarding }));
    }
}

impl<T> Lead<T> {
    /// Waits, if another script is under way, for those that are about to make a call: most often they were
    /// answered together with the leader.
    pub(super) async fn board(&mut self) {
        if !self.boarding {
            return;
        }
        yield_now().await;
        let mut lanes = self.gather.lock();
        let of = lanes.get_mut(&self.lane).expect("a lane stays while a script of it is under way");
        let half = (of.calls + of.waiting.len()).div_ceil(SCRIPTS).min(TOGETHER);
        let (calls, callers) = of.take(half.saturating_sub(self.calls.len()));
        of.calls += calls.len();
        (of.boarding, self.boarding) = (false, false);
        drop(lanes);
        self.calls.extend(calls);
        self.followers.extend(callers);
        // The other script may have come back meanwhile.
        self.gather.next(&self.lane);
    }

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
        if let Some(of) = self.gather.lock().get_mut(&self.lane) {
            of.scripts -= 1;
            of.calls -= self.calls.len();
            of.boarding &= !self.boarding;
        }
        self.gather.next(&self.lane);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call(n: usize) -> Addressed {
        ("p".into(), Arc::new(Call::numbered(n)))
    }

    fn join<T>(gather: &Arc<Gather<T>>, lane: &str, call: Addressed) -> Turn<T> {
        gather.join(lane, call, Instant::now() + Duration::from_secs(600))
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

    fn told<T>(told: &mut oneshot::Receiver<Told<T>>) -> Lead<T> {
        let Ok(Told::Lead(lead)) = told.try_recv() else { panic!("it does not lead") };
        lead
    }

    /// Two scripts of one call each, under way.
    async fn two_under_way<T>(gather: &Arc<Gather<T>>) -> [Lead<T>; 2] {
        let first = lead(join(gather, "p", call(0)));
        let mut second = lead(join(gather, "p", call(1)));
        second.board().await;
        assert_eq!((numbers(&first), numbers(&second)), (vec![0], vec![1]), "nobody waits");
        [first, second]
    }

    #[tokio::test]
    async fn two_go_at_once_and_the_others_together() {
        let gather = Gather::<usize>::new();
        let [first, second] = two_under_way(&gather).await;
        let mut waiting: Vec<_> = (2..TOGETHER + 3).map(|n| wait(join(&gather, "p", call(n)))).collect();
        lead(join(&gather, "q", call(9))).answer([9]);
        assert!(waiting[0].try_recv().is_err(), "two are under way");
        assert_eq!(second.answer([10]), Some(10));

        let mut third = told(&mut waiting.remove(0));
        third.board().await;
        assert_eq!(numbers(&third), (2..TOGETHER + 2).collect::<Vec<_>>());
        let mut last = waiting.pop().unwrap();
        assert_eq!(third.answer((2..TOGETHER + 2).map(|n| n * 10)), Some(20));
        for (n, mut told) in (3..).zip(waiting) {
            assert!(matches!(told.try_recv(), Ok(Told::Answer(answer)) if answer == n * 10));
        }
        let fourth = told(&mut last);
        assert_eq!(numbers(&fourth), [TOGETHER + 2]);
        drop((first, fourth));
        assert!(gather.lock().is_empty(), "nothing is kept of what is done");
    }

    #[tokio::test]
    async fn those_about_to_call_come_along_up_to_half_of_all() {
        let gather = Gather::<usize>::new();
        let first = lead(join(&gather, "p", call(0)));
        let mut second = lead(join(&gather, "p", call(1)));
        let mut waiting: Vec<_> = (2..10).map(|n| wait(join(&gather, "p", call(n)))).collect();
        second.board().await;
        assert_eq!(numbers(&second), [1, 2, 3, 4, 5]);
        // Those left go as soon as the first is done, and of those that come meanwhile up to half of all.
        drop(first);
        let mut third = told(&mut waiting[4]);
        let mut late = [10, 11, 12, 13].map(|n| wait(join(&gather, "p", call(n))));
        third.board().await;
        assert_eq!(numbers(&third), (6..13).collect::<Vec<_>>());
        drop(third);
        assert_eq!(numbers(&told(&mut late[3])), [13]);
    }

    #[tokio::test]
    async fn while_one_boards_nobody_passes_it() {
        let gather = Gather::<usize>::new();
        let first = lead(join(&gather, "p", call(0)));
        let mut second = lead(join(&gather, "p", call(1)));
        let mut waits = wait(join(&gather, "p", call(2)));
        drop(first);
        assert!(waits.try_recv().is_err());
        second.board().await;
        assert_eq!(numbers(&second), [1]);
        assert_eq!(numbers(&told(&mut waits)), [2], "the place of the first is free");
    }

    #[tokio::test]
    async fn who_leaves_takes_nobody_with_it() {
        let gather = Gather::<usize>::new();
        let [first, second] = two_under_way(&gather).await;
        let gone = wait(join(&gather, "p", call(2)));
        let [mut leads, mut follows] = [3, 4].map(|n| wait(join(&gather, "p", call(n))));
        drop(gone);
        drop(first);
        let third = told(&mut leads);
        assert_eq!(numbers(&third), [3, 4], "a call is not made for nobody");
        let mut waits = wait(join(&gather, "p", call(5)));
        // It leaves while it waits for those that come along.
        drop(third);
        assert!(matches!(follows.try_recv(), Err(oneshot::error::TryRecvError::Closed)), "it is told");
        assert_eq!(numbers(&told(&mut waits)), [5]);
        drop(second);
        assert!(gather.lock().is_empty());
    }

    #[tokio::test]
    async fn a_leader_that_never_learns_of_it_is_passed_over() {
        let gather = Gather::<usize>::new();
        let [first, _second] = two_under_way(&gather).await;
        let (leader, mut next) = (wait(join(&gather, "p", call(2))), wait(join(&gather, "p", call(3))));
        drop(first);
        let mut third = wait(join(&gather, "p", call(4)));
        drop(leader);
        assert!(matches!(next.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert_eq!(numbers(&told(&mut third)), [4]);
    }

    #[tokio::test]
    async fn who_waited_too_long_is_told_and_neither_leads_nor_follows() {
        let gather = Gather::<usize>::new();
        let [first, second] = two_under_way(&gather).await;
        let mut late = [2, 3].map(|n| wait(gather.join("p", call(n), Instant::now())));
        let mut next = wait(join(&gather, "p", call(4)));
        let mut later = wait(gather.join("p", call(5), Instant::now()));
        drop(first);
        let third = told(&mut next);
        assert_eq!(numbers(&third), [4]);
        drop((second, third));
        for late in late.iter_mut().chain([&mut later]) {
            assert!(matches!(late.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        }
        assert!(gather.lock().is_empty());
    }
}
