//! What a script answered: the time, a word, and the values that the word announces.

use redis::Value;

use crate::ledger::{Channel, Day, LedgerTime, Outcome, RefusalReason, Unavailable};

/// The answer of a script, read from front to back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) now: LedgerTime,
    pub(super) word: String,
    values: std::vec::IntoIter<Value>,
}

/// The ledger answered what no script of this version answers.
pub(super) fn nonsense(what: &str) -> Unavailable {
    Unavailable(format!("Redis answered what is no {what}").into())
}

impl Answer {
    pub(super) fn new(value: Value) -> Result<Self, Unavailable> {
        let Value::Array(values) = value else { return Err(nonsense("list")) };
        let mut values = values.into_iter();
        let now = LedgerTime(number(values.next())?);
        let word = text(values.next())?;
        Ok(Self { now, word, values })
    }

    /// The answer to one call of a script that took several: a line of words, the first of which is the word.
    pub(super) fn of_words(now: LedgerTime, line: &str) -> Result<Self, Unavailable> {
        if let Some(why) = line.strip_prefix("failed ") {
            return Err(Unavailable(why.into()));
        }
        let mut words = line.split(' ').map(|word| Value::BulkString(word.as_bytes().to_vec()));
        let word = text(words.next())?;
        Ok(Self { now, word, values: words.collect::<Vec<_>>().into_iter() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.as_slice().is_empty()
    }

    pub(super) fn amount(&mut self) -> Result<u64, Unavailable> {
        number(self.values.next())
    }

    pub(super) fn time(&mut self) -> Result<LedgerTime, Unavailable> {
        self.amount().map(LedgerTime)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Unavailable> {
        match self.values.next() {
            Some(Value::Int(number)) => Ok(number),
            other => text(other)?.parse().map_err(|_| nonsense("number")),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, Unavailable> {
        text(self.values.next())
    }

    /// A value that may be absent: `''` or `-`.
    pub(super) fn maybe<T: std::str::FromStr>(&mut self) -> Result<Option<T>, Unavailable> {
        let text = match self.values.next() {
            Some(Value::Int(number)) => number.to_string(),
            other => text(other)?,
        };
        if text.is_empty() || text == "-" {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| nonsense("number"))
    }

    pub(super) fn day(&mut self) -> Result<Day, Unavailable> {
        Day::parse(&self.text()?).ok_or_else(|| nonsense("day"))
    }
}

/// When a script found that the day which it was told is not today.
pub(super) fn of_days(value: &Value) -> Option<LedgerTime> {
    match value {
        Value::Array(values) => match &values[..] {
            [Value::Int(now), Value::BulkString(word)] if word == b"days" => u64::try_from(*now).ok().map(LedgerTime),
            _ => None,
        },
        _ => None,
    }
}

/// What was answered to the calls of one project and kind, packed, or why they could not be executed.
type OfGroup<'a> = Result<&'a [u8], Unavailable>;

/// What was answered to each of so many groups of calls.
pub(super) fn of_groups(value: &Value, groups: usize) -> Result<Vec<OfGroup<'_>>, Unavailable> {
    let answers = match value {
        Value::Array(answers) if groups > 1 => answers,
        one => std::slice::from_ref(one),
    };
    if answers.len() == groups { answers.iter().map(of_group).collect() } else { Err(nonsense("packed answer")) }
}

fn of_group(value: &Value) -> Result<OfGroup<'_>, Unavailable> {
    match value {
        Value::BulkString(packed) => Ok(Ok(packed)),
        Value::Array(why) => match &why[..] {
            [Value::BulkString(why)] => Ok(Err(Unavailable(String::from_utf8_lossy(why).into()))),
            _ => Err(nonsense("packed answer")),
        },
        _ => Err(nonsense("packed answer")),
    }
}

fn number(value: Option<Value>) -> Result<u64, Unavailable> {
    match value {
        Some(Value::Int(number)) => u64::try_from(number).map_err(|_| nonsense("amount")),
        other => text(other)?.parse().map_err(|_| nonsense("amount")),
    }
}

fn text(value: Option<Value>) -> Result<String, Unavailable> {
    match value {
        Some(Value::BulkString(bytes)) => String::from_utf8(bytes).map_err(|_| nonsense("text")),
        Some(Value::SimpleString(text)) => Ok(text),
        _ => Err(nonsense("text")),
    }
}

pub(super) fn outcome(word: &str) -> Option<Outcome> {
    Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)
}

pub(super) fn channel(word: &str) -> Option<Channel> {
    Channel::ALL.into_iter().find(|channel| channel.as_str() == word)
}

pub(super) fn reason(word: &str) -> Option<RefusalReason> {
    [RefusalReason::Spent, RefusalReason::Busy, RefusalReason::TooLarge]
        .into_iter()
        .find(|reason| reason.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn values_are_read_in_turn_and_anything_else_is_nonsense() {
        let values = vec![Value::Int(5), bulk("word"), bulk("9007199254740991"), Value::Int(-3), bulk(""), bulk("x")];
        let mut answer = Answer::new(Value::Array(values)).unwrap();
        assert_eq!((answer.now, answer.word.as_str()), (LedgerTime(5), "word"));
        assert_eq!(answer.amount().unwrap(), (1 << 53) - 1);
        assert_eq!(answer.signed().unwrap(), -3);
        assert_eq!(answer.maybe::<u64>().unwrap(), None);
        assert!(answer.amount().is_err());
        assert!(answer.is_empty() && answer.text().is_err());
        for value in [Value::Nil, Value::Int(1), Value::Array(vec![]), Value::Array(vec![Value::Int(-1), bulk("w")])] {
            assert!(Answer::new(value).is_err());
        }
    }
}
