//! Reserves and settles, many in one argument, and what is answered to each.
//!
//! A script pays as much as for a cheap command for each argument, each text that it makes and each value
//! that it answers. So what these calls say is packed, texts come as they are stored, and an answer names
//! only the calls that were not simply done. `reserve.lua` and `settle.lua` have the formats.

use uuid::fmt::Hyphenated;

use super::gather::Addressed;
use super::packed::{Packed, put_long, put_number, put_short};
use super::reply::{self, Answer, nonsense};
use super::{allowance, line};
use crate::ledger::{
    Admission, At, DaySpan, Lease, LedgerTime, MAX_AMOUNT, Refusal, Reply, Reserve, Rules, Settle, Settlement,
    Standing, Unavailable,
};

/// Stands where a day would: as long as one.
const NO_DAY: &str = "          ";

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// First, for it gives back what others reserve.
    Settle,
    Reserve,
}

/// The arguments of one call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    packed: Vec<u8>,
    /// What it holds if it is admitted, or is charged if it is what its caller takes it for, bytes.
    amount: u64,
    /// The most that its reserve grants, bytes.
    grant: u64,
}

impl Call {
    pub(super) fn reserve(call: &Reserve, rules: &Rules) -> Self {
        let mut packed = Vec::with_capacity(512);
        let (amount, grant) = (call.size, call.size.min(rules.credit_bytes));
        packed.extend_from_slice(call.id.encode(&mut [0; Hyphenated::LENGTH]).as_bytes());
        put_number(&mut packed, call.not_after.0);
        put_number(&mut packed, amount);
        put_short(&mut packed, &[&call.context.link_id.map(|link| link.to_string()).unwrap_or_default()]);
        let [held, granted] = [amount, grant].map(|number| number.to_string());
        put_long(&mut packed, &[&held, " ", &granted, " ", &line::context(&call.context)]);
        Self { kind: Kind::Reserve, packed, amount, grant }
    }

    pub(super) fn settle(call: &Settle, rules: &Rules) -> Self {
        let mut packed = Vec::with_capacity(1024);
        let outcome = call.outcome.as_str();
        let (size, actual) = (call.size.min(MAX_AMOUNT), call.actual.min(MAX_AMOUNT));
        let (amount, grant) = (actual.min(size), size.min(rules.credit_bytes));
        let (day, context) = (call.day.map(|day| day.to_string()), line::context(&call.context));
        let day = day.as_deref().unwrap_or_default();
        packed.extend_from_slice(call.id.encode(&mut [0; Hyphenated::LENGTH]).as_bytes());
        packed.extend_from_slice(if day.is_empty() { NO_DAY } else { day }.as_bytes());
        [amount, size, actual].into_iter().for_each(|number| put_number(&mut packed, number));
        // In parts, not formatted: every read pays for it.
        let [amount_text, size_text, granted, deadline] =
            [amount, size, grant, call.deadline.0.min(MAX_AMOUNT)].map(|number| number.to_string());
        put_short(&mut packed, &[&size_text, " ", &amount_text, " "]);
        put_short(&mut packed, &["R ", day, " ", &deadline, " ", &size_text, " ", &granted, " "]);
        put_short(&mut packed, &[" ", &amount_text, " ", &size_text, " ", outcome, " 1 "]);
        put_long(&mut packed, &[&context]);
        Self { kind: Kind::Settle, packed, amount, grant }
    }

    /// What `each.lua` knows the kind by.
    pub(super) fn letter(&self) -> u8 {
        match self.kind {
            Kind::Reserve => b'R',
            Kind::Settle => b'S',
        }
    }

    pub(super) fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// A call that tells its number by its first byte.
    #[cfg(test)]
    pub(super) fn numbered(n: usize) -> Self {
        Self { kind: Kind::Reserve, packed: vec![u8::try_from(n).expect("a small number")], amount: 0, grant: 0 }
    }
}

/// What is answered to a call.
#[derive(Debug)]
pub(super) enum Done {
    Reserve(Admission),
    /// And whether bytes were charged beyond any reservation.
    Settle(Settlement, bool),
}

/// What is answered to each of some calls.
pub(super) type Each = Result<Vec<Reply<Done>>, Unavailable>;

/// What `each.lua` answers to calls of one kind and project on that day.
pub(super) fn answers(calls: &[&Addressed], answer: &[u8], today: DaySpan) -> Each {
    match calls[0].1.kind {
        Kind::Reserve => admissions(calls, answer, today),
        Kind::Settle => settlements(calls, answer),
    }
}

/// Whether the next that is said is of the call with this number; if so it is read up to what is said.
fn is_named(packed: &mut Packed<'_>, number: usize) -> bool {
    let named = packed.0.first().is_some_and(|first| usize::from(*first) == number);
    named && packed.byte().is_ok()
}

fn ended<T>(packed: &Packed<'_>, each: Vec<T>) -> Result<Vec<T>, Unavailable> {
    if packed.is_empty() { Ok(each) } else { Err(nonsense("answer to a call")) }
}

/// What `reserve.lua` answers to calls on that day.
fn admissions(calls: &[&Addressed], answer: &[u8], today: DaySpan) -> Each {
    let mut packed = Packed(answer);
    let (now, deadline) = (LedgerTime(packed.number()?), LedgerTime(packed.number()?));
    let (mut used, mut reserved) = (packed.number()?, packed.number()?);
    let allowance = allowance(packed.short()?)?;
    let mut admissions = Vec::with_capacity(calls.len());
    for (number, (_, call)) in calls.iter().enumerate() {
        let words = if is_named(&mut packed, number) {
            (used, reserved) = (packed.number()?, packed.number()?);
            packed.long()?
        } else {
            reserved = reserved.saturating_add(call.amount);
            ""
        };
        let standing = Standing { day: today.day, allowance, used, reserved, resets_at: today.end };
        admissions.push(match words {
            "" => {
                let lease = Lease { grant: call.grant, day: today.day, deadline };
                Ok(At { now, reply: Done::Reserve(Admission::Reserved(lease, standing)) })
            }
            words => Answer::of_words(now, words).and_then(|answer| admission(answer, call.amount, standing)),
        });
    }
    ended(&packed, admissions)
}

fn admission(mut answer: Answer, requested: u64, standing: Standing) -> Reply<Done> {
    let now = answer.now;
    let reply = match answer.word.as_str() {
        "settled" => Admission::Settled,
        "expired" => Admission::Expired,
        "again" => Admission::Again,
        "stale" => Admission::Stale,
        "link_revoked" => Admission::LinkRevoked,
        "reserved" => {
            let lease = Lease { grant: answer.amount()?, day: answer.day()?, deadline: answer.time()? };
            Admission::Reserved(lease, standing)
        }
        "refused" => {
            // A size that no account holds comes back as it was sent.
            let requested_bytes = answer.amount()?;
            debug_assert!(requested_bytes == requested || requested <= MAX_AMOUNT);
            let limit_bytes = answer.amount()?;
            let reason = reply::reason(&answer.text()?).ok_or_else(|| nonsense("reason"))?;
            let (used_bytes, reserved_bytes) = (answer.amount()?, answer.amount()?);
            let resets_at = answer.time()?;
            let retry_after_ms = answer.maybe()?.map(|at| LedgerTime(at).since(now));
            Admission::Refused(Refusal {
                reason,
                limit_bytes,
                used_bytes,
                reserved_bytes,
                requested_bytes,
                resets_at,
                retry_after_ms,
            })
        }
        _ => return Err(nonsense("admission")),
    };
    Ok(At { now, reply: Done::Reserve(reply) })
}

/// What `settle.lua` answers to calls.
fn settlements(calls: &[&Addressed], answer: &[u8]) -> Each {
    let mut packed = Packed(answer);
    let now = LedgerTime(packed.number()?);
    let mut settlements = Vec::with_capacity(calls.len());
    for (number, (_, call)) in calls.iter().enumerate() {
        let words = if is_named(&mut packed, number) { packed.long()? } else { "" };
        settlements.push(match words {
            "" => Ok(At { now, reply: Done::Settle(Settlement::Settled(call.amount), false) }),
            words => Answer::of_words(now, words).and_then(settlement),
        });
    }
    ended(&packed, settlements)
}

fn settlement(mut answer: Answer) -> Reply<Done> {
    let reply = match answer.word.as_str() {
        "settled" => Done::Settle(Settlement::Settled(answer.amount()?), !answer.is_empty()),
        "late" => Done::Settle(Settlement::TooLate, false),
        _ => return Err(nonsense("settlement")),
    };
    Ok(At { now: answer.now, reply })
}
