//! What is remembered of answers, and for how long. Pure; the time is an argument.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::Refusal;
use crate::access::Principal;

/// For how long an answer is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lives {
    /// Without asking again. So long a key that was withdrawn may still be used.
    pub fresh: Duration,
    /// A refusal, without asking again. So long a new key may have to wait that was used too early.
    pub refused: Duration,
    /// What was good, while the platform does not answer; counted from its answer.
    pub grace: Duration,
    /// How long after a question without an answer the next is asked.
    pub pause: Duration,
}

/// What to do about a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Advice {
    /// Take this.
    Take(Result<Principal, Refusal>),
    /// Ask.
    Ask,
    /// The platform did not answer a moment ago, and nothing is known that could stand in.
    Unavailable,
}

#[derive(Debug, Clone, Default)]
struct Known {
    good: Option<(Principal, Instant)>,
    refused: Option<(Refusal, Instant)>,
    /// The last question that was not answered, since the last answer.
    unanswered: Option<Instant>,
}

/// A bounded memory by question.
#[derive(Debug)]
pub(super) struct Memory<Q> {
    lives: Lives,
    most: usize,
    known: HashMap<Q, Known>,
}

impl<Q: Eq + Hash + Clone> Memory<Q> {
    /// Remembers at most `most` questions, at least 1.
    pub(super) fn new(lives: Lives, most: usize) -> Self {
        Self { lives, most: most.max(1), known: HashMap::new() }
    }

    pub(super) fn look(&self, question: &Q, now: Instant) -> Advice {
        let Some(known) = self.known.get(question) else { return Advice::Ask };
        let within = |at: Instant, life| now.saturating_duration_since(at) < life;
        if let Some((refusal, at)) = &known.refused {
            return if within(*at, self.lives.refused) { Advice::Take(Err(*refusal)) } else { Advice::Ask };
        }
        if let Some((principal, at)) = &known.good
            && within(*at, self.lives.fresh)
        {
            return Advice::Take(Ok(principal.clone()));
        }
        if known.unanswered.is_none_or(|at| !within(at, self.lives.pause)) {
            return Advice::Ask;
        }
        known.stand_in(self.lives, now)
    }

    pub(super) fn answered(&mut self, question: &Q, answer: Result<Principal, Refusal>, now: Instant) {
        let known = match answer {
            Ok(principal) => Known { good: Some((principal, now)), ..Known::default() },
            Err(refusal) => Known { refused: Some((refusal, now)), ..Known::default() },
        };
        self.put(question, known, now);
    }

    /// Notes that no answer came; says what stands in for it.
    pub(super) fn unanswered(&mut self, question: &Q, now: Instant) -> Advice {
        let mut known = self.known.get(question).cloned().unwrap_or_default();
        known.refused = None;
        known.unanswered = Some(now);
        let advice = known.stand_in(self.lives, now);
        self.put(question, known, now);
        advice
    }

    fn put(&mut self, question: &Q, known: Known, now: Instant) {
        if self.known.len() >= self.most && !self.known.contains_key(question) {
            self.make_room(now);
        }
        self.known.insert(question.clone(), known);
    }

    /// Forgets what is over; then refusals, which whoever makes up keys fills the memory with; then
    /// the oldest eighth, so that this is rarely done.
    fn make_room(&mut self, now: Instant) {
        let lives = self.lives;
        self.known.retain(|_, known| known.last_use(lives) > now);
        if self.known.len() >= self.most {
            self.known.retain(|_, known| known.good.is_some());
        }
        if self.known.len() >= self.most {
            let mut ends: Vec<_> = self.known.values().map(|known| known.last_use(lives)).collect();
            ends.sort_unstable();
            let bound = ends[self.most / 8];
            self.known.retain(|_, known| known.last_use(lives) > bound);
        }
    }
}

impl Known {
    fn stand_in(&self, lives: Lives, now: Instant) -> Advice {
        match &self.good {
            Some((principal, at)) if now.saturating_duration_since(*at) < lives.grace => {
                Advice::Take(Ok(principal.clone()))
            }
            _ => Advice::Unavailable,
        }
    }

    /// Until when it can matter.
    fn last_use(&self, lives: Lives) -> Instant {
        let ends = [
            self.good.as_ref().map(|(_, at)| *at + lives.fresh.max(lives.grace)),
            self.refused.as_ref().map(|(_, at)| *at + lives.refused),
            self.unanswered.map(|at| at + lives.pause),
        ];
        ends.into_iter().flatten().max().expect("something is known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::KeyKind;

    const LIVES: Lives = Lives {
        fresh: Duration::from_secs(10),
        refused: Duration::from_secs(5),
        grace: Duration::from_secs(60),
        pause: Duration::from_secs(1),
    };

    fn principal(key_id: &str) -> Principal {
        Principal { key_id: key_id.into(), kind: KeyKind::Personal, project: None, capabilities: [].into() }
    }

    /// What is advised at a moment, in short.
    fn advice(memory: &Memory<u32>, question: u32, now: Instant) -> &'static str {
        match memory.look(&question, now) {
            Advice::Take(Ok(_)) => "good",
            Advice::Take(Err(_)) => "refused",
            Advice::Ask => "ask",
            Advice::Unavailable => "unavailable",
        }
    }

    #[test]
    fn how_long_answers_are_good() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut memory = Memory::new(LIVES, 10);
        assert_eq!(advice(&memory, 1, at(0)), "ask");
        memory.answered(&1, Ok(principal("k")), at(0));
        memory.answered(&2, Err(Refusal::UnknownKey), at(0));
        for (question, ms, want) in
            [(1, 9_999, "good"), (1, 10_000, "ask"), (2, 4_999, "refused"), (2, 5_000, "ask"), (3, 0, "ask")]
        {
            assert_eq!(advice(&memory, question, at(ms)), want, "{question} at {ms}");
        }
        // The platform does not answer from the tenth second on.
        memory.unanswered(&1, at(10_000));
        memory.unanswered(&2, at(10_000));
        for (question, ms, want) in [
            (1, 10_000, "good"),
            (1, 10_999, "good"),
            (1, 11_000, "ask"),
            (2, 10_500, "unavailable"),
            (2, 11_000, "ask"),
        ] {
            assert_eq!(advice(&memory, question, at(ms)), want, "{question} at {ms}");
        }
        memory.unanswered(&1, at(59_999));
        assert_eq!(advice(&memory, 1, at(59_999)), "good");
        assert_eq!(advice(&memory, 1, at(60_000)), "unavailable", "the grace is over");
        memory.answered(&1, Err(Refusal::UnknownKey), at(61_000));
        assert_eq!(advice(&memory, 1, at(61_001)), "refused");
        memory.unanswered(&1, at(70_000));
        assert_eq!(advice(&memory, 1, at(70_001)), "unavailable", "what was refused has no grace");
    }

    #[test]
    fn made_up_keys_do_not_push_out_good_ones() {
        let now = Instant::now();
        let mut memory = Memory::new(LIVES, 16);
        for question in 0..8 {
            memory.answered(&question, Ok(principal("k")), now);
        }
        for question in 100..10_000 {
            memory.answered(&question, Err(Refusal::UnknownKey), now);
            assert!(memory.known.len() <= 16);
        }
        assert!((0..8).all(|question| advice(&memory, question, now) == "good"));
        for question in 0..1_000 {
            memory.answered(&question, Ok(principal("k")), now + Duration::from_millis(question.into()));
            assert!(memory.known.len() <= 16);
        }
        assert_eq!(advice(&memory, 999, now + Duration::from_secs(1)), "good", "the newest is kept");
    }
}
