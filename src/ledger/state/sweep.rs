//! Expiry and forgetting: what happens when nobody calls.

use super::super::book::{Book, Record, State};
use super::super::{Day, Outcome, ReservationId};
use super::account::{self, Line};
use super::{Moment, signed};
use crate::artifact::ProjectId;

/// Expires one batch of due leases of all projects; answers how many.
///
/// # Errors
/// The book's.
pub fn sweep<B: Book>(book: &mut B, at: &Moment<'_>) -> Result<usize, B::Error> {
    let due = book.due_anywhere(at.now, at.rules.sweep_batch)?;
    for (project, id) in &due {
        expire(book, at, project, *id)?;
    }
    Ok(due.len())
}

/// Expires at most `limit` due leases of one day; answers whether more are due.
pub(super) fn of_day<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    day: Day,
    limit: usize,
) -> Result<bool, B::Error> {
    let due = book.due(project, day, at.now, limit.saturating_add(1))?;
    for id in due.iter().take(limit) {
        expire(book, at, project, *id)?;
    }
    Ok(due.len() > limit)
}

/// Expires every due lease of one day.
///
/// # Errors
/// The book's.
pub fn whole_day<B: Book>(book: &mut B, at: &Moment<'_>, project: &ProjectId, day: Day) -> Result<(), B::Error> {
    while of_day(book, at, project, day, at.rules.sweep_batch)? {}
    Ok(())
}

/// Charges a lease its grant, the most that can have gone out, and gives back the rest.
fn expire<B: Book>(book: &mut B, at: &Moment<'_>, project: &ProjectId, id: ReservationId) -> Result<(), B::Error> {
    let Some(Record { day, size, state: State::Reserved { grant, context, .. } }) = book.record(project, id)? else {
        return Ok(());
    };
    account::give_back(book, project, day, size)?;
    account::post(book, at, project, day, Line::read(id, context, size, signed(grant), Outcome::Expired))?;
    let state = State::Expired { charged: grant, until: at.tombstone() };
    book.put_record(project, id, &Record { day, size, state })
}

/// Deletes at most `limit` ids and links whose time is over, and about as much of days beyond the retention.
/// Changes no answer.
///
/// # Errors
/// The book's.
pub fn forget<B: Book>(book: &mut B, at: &Moment<'_>, limit: usize) -> Result<(), B::Error> {
    book.forget_records(at.now, limit)?;
    book.forget_links(at.now, limit)?;
    book.forget_days(at.first_kept(), limit)
}
