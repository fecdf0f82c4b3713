//! The transition table of the ledger, pure: every state and every call, written once over a
//! [`Book`]. Each ledger that keeps its own storage runs these functions; each other one is
//! compared with them.
//!
//! The time of a call is its [`Moment`]. A lease is due from its deadline on, but open until it is
//! swept. Every other state is remembered through its last moment and unknown afterwards, whether
//! or not it has been deleted yet; so when things are deleted never shows.
//!
//! Amounts stay within [`MAX_AMOUNT`]: a larger reservation is refused, the bound of an unlimited
//! account is that amount, and a charge that would leave 0 to [`MAX_AMOUNT`] (only a ledger that
//! lost its leases or an operator's correction can bring that about) is cut to what fits, its entry
//! with it, so that sums and entries always agree.

mod account;
mod admission;
mod links;
mod statement;
mod sweep;

#[cfg(test)]
mod tests;

use super::book::{Book, Record, State};
use super::{
    Allowance, Day, DaySpan, Extend, Extension, Lease, LedgerTime, MAX_AMOUNT, Outcome, ReservationId, Rules, Settle,
    Settlement,
};
use crate::artifact::ProjectId;
use account::Line;

pub use admission::{foresee, reserve};
pub use links::{links, record_link, revoke_link};
pub use statement::{adjust, allowance, audit, history, set_allowance, usage, verify};
pub use sweep::{forget, sweep, whole_day};

/// When a call is executed, and what it is executed by.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The ledger's clock.
    pub now: LedgerTime,
    /// The day that `now` lies in.
    pub today: DaySpan,
    /// The times and amounts of the protocol.
    pub rules: &'a Rules,
    /// The allowance of a project without an override.
    pub allowance: Allowance,
}

impl Moment<'_> {
    /// The first day that is still kept.
    #[must_use]
    pub fn first_kept(&self) -> Day {
        self.today.day.plus(-i64::from(self.rules.retention_days))
    }

    /// Whether charges to `day` are taken: a kept day, or tomorrow, where a clock that was set back
    /// may have admitted.
    fn takes(&self, day: Day) -> bool {
        self.first_kept() <= day && day <= self.today.day.plus(1)
    }

    const fn tombstone(&self) -> LedgerTime {
        self.now.plus(self.rules.tombstone_ms)
    }
}

/// What is known of an id at this moment.
fn known<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    id: ReservationId,
) -> Result<Option<Record>, B::Error> {
    let record = book.record(project, id)?;
    Ok(record.filter(|record| record.state.until().is_none_or(|until| at.now <= until)))
}

/// Raises the grant to `grant` (at most the size) and the deadline to a lease after the call was
/// first sent; neither ever falls. Only an open lease can be extended.
///
/// # Errors
/// The book's.
pub fn extend<B: Book>(book: &mut B, at: &Moment<'_>, call: Extend<'_>) -> Result<Extension, B::Error> {
    let Some(mut record) = known(book, at, call.project, call.id)? else {
        return Ok(Extension::Ended);
    };
    let State::Reserved { grant, deadline, .. } = &mut record.state else {
        return Ok(Extension::Ended);
    };
    *grant = (*grant).max(call.grant.min(record.size));
    *deadline = (*deadline).max(at.now.min(call.asked).plus(at.rules.lease_ms));
    let lease = Lease { grant: *grant, day: record.day, deadline: *deadline };
    book.put_record(call.project, call.id, &record)?;
    Ok(Extension::Reserved(lease))
}

/// Ends a reservation and charges what was handed out, which is cut to the reserved size.
///
/// After an expiry only the difference is charged: below the grant a `corrected` entry, above it an
/// `unreserved` one, and none where they are equal, for then the expiry's entry is the whole truth.
///
/// # Errors
/// The book's.
pub fn settle<B: Book>(book: &mut B, at: &Moment<'_>, call: &Settle) -> Result<Settlement, B::Error> {
    let Some(Record { day, size, state }) = known(book, at, &call.project, call.id)? else {
        return settle_unknown(book, at, call);
    };
    let actual = call.actual.min(size);
    let line = match state {
        State::Settled { charged, .. } => return Ok(Settlement::Settled(charged)),
        State::Refused { .. } => return settle_unknown(book, at, call),
        State::Reserved { context, .. } => {
            account::give_back(book, &call.project, day, size)?;
            Line::read(call.id, context, size, signed(actual), call.outcome)
        }
        State::Expired { charged, .. } => {
            let difference = signed(actual) - signed(charged);
            let outcome = if difference > 0 { Outcome::Unreserved } else { Outcome::Corrected };
            Line::read(call.id, call.context.clone(), size, difference, outcome).unless_zero()
        }
    };
    account::post(book, at, &call.project, day, line)?;
    mark_settled(book, at, call, day, size, actual)
}

/// A settle whose reservation the ledger does not hold: a release that overtook its reserve, a
/// reservation that a failover lost, or one that was forgotten long ago.
fn settle_unknown<B: Book>(book: &mut B, at: &Moment<'_>, call: &Settle) -> Result<Settlement, B::Error> {
    let size = call.size.min(MAX_AMOUNT);
    let actual = call.actual.min(size);
    if actual == 0 {
        return mark_settled(book, at, call, at.today.day, size, 0);
    }
    let believed = at.now <= call.deadline.plus(at.rules.unreserved_ms);
    match call.day {
        Some(day) if believed && at.takes(day) => {
            let line = Line::read(call.id, call.context.clone(), size, signed(actual), Outcome::Unreserved);
            account::post(book, at, &call.project, day, line)?;
            mark_settled(book, at, call, day, size, actual)
        }
        _ => Ok(Settlement::TooLate),
    }
}

fn mark_settled<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    call: &Settle,
    day: Day,
    size: u64,
    actual: u64,
) -> Result<Settlement, B::Error> {
    let state = State::Settled { charged: actual, until: at.tombstone() };
    book.put_record(&call.project, call.id, &Record { day, size, state })?;
    Ok(Settlement::Settled(actual))
}

/// An amount as a charge.
fn signed(amount: u64) -> i64 {
    i64::try_from(amount.min(MAX_AMOUNT)).expect("MAX_AMOUNT is below 2^63")
}
