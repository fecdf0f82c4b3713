//! What the books say, and what operators change in them.

use super::super::book::{AdjustmentRecord, Book};
use super::super::{
    Adjust, Adjustment, Allowance, AuditFilter, AuditPage, Day, DayUsage, MAX_AMOUNT, MAX_PAGE, Override, Usage,
    Verification,
};
use super::account::{self, Line};
use super::{Moment, signed, sweep};
use crate::artifact::ProjectId;

/// The account today, after every due lease of today was swept.
///
/// # Errors
/// The book's.
pub fn usage<B: Book>(book: &mut B, at: &Moment<'_>, project: &ProjectId) -> Result<Usage, B::Error> {
    let (day, resets_at) = (at.today.day, at.today.end);
    sweep::whole_day(book, at, project, day)?;
    let allowance = allowance_in_force(book, at, project)?;
    let account = book.account(project, day)?;
    Ok(Usage {
        day,
        resets_at,
        allowance,
        used: account.used,
        reserved: account.reserved,
        open: account.open,
        refused: account.refused,
        earliest_end: book.earliest_deadline(project, day)?,
    })
}

/// The accounts of `days` days (1 to [`Rules::kept_days`](super::Rules::kept_days)), today's first,
/// after every due lease of each was swept.
///
/// # Errors
/// The book's.
pub fn history<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    days: u32,
) -> Result<Vec<DayUsage>, B::Error> {
    let days = i64::from(days.clamp(1, at.rules.kept_days()));
    let in_force = allowance_in_force(book, at, project)?;
    let mut rows = Vec::new();
    for day in (0..days).map(|ago| at.today.day.plus(-ago)) {
        sweep::whole_day(book, at, project, day)?;
        let account = book.account(project, day)?;
        rows.push(DayUsage {
            day,
            allowance: if day == at.today.day { Some(in_force) } else { account.allowance },
            used: account.used,
            reserved: account.reserved,
            refused: account.refused,
            entries: account.lines,
            count: account.counted,
        });
    }
    Ok(rows)
}

/// A page of the audit of a day, after every due lease of that day was swept.
///
/// # Errors
/// The book's.
pub fn audit<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    day: Option<Day>,
    filter: &AuditFilter,
    from: Option<u64>,
    limit: usize,
) -> Result<AuditPage, B::Error> {
    let day = day.unwrap_or(at.today.day);
    if day < at.first_kept() {
        return Ok(AuditPage { day, entries: Vec::new(), next: None, total_count: 0, total_charged: 0 });
    }
    sweep::whole_day(book, at, project, day)?;
    let (total_count, total_charged) = if *filter == AuditFilter::default() {
        // The account has these sums already (I3).
        let account = book.account(project, day)?;
        (account.counted, signed(account.used))
    } else {
        let totals = book.totals(project, day, filter)?;
        (totals.count, totals.charged)
    };
    let limit = limit.clamp(1, MAX_PAGE);
    let mut lines = book.lines(project, day, filter, from, limit + 1)?;
    let next = lines.get(limit).map(|(sequence, _)| *sequence);
    lines.truncate(limit);
    let entries = lines.into_iter().map(|(_, entry)| entry).collect();
    Ok(AuditPage { day, entries, next, total_count, total_charged })
}

/// Recomputes the sums of a day, after every due lease of that day was swept.
///
/// # Errors
/// The book's.
pub fn verify<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    day: Option<Day>,
) -> Result<Verification, B::Error> {
    let day = day.unwrap_or(at.today.day);
    if day < at.first_kept() {
        return Ok(Verification::default());
    }
    sweep::whole_day(book, at, project, day)?;
    book.recount(project, day)
}

/// Sets the allowance of a project, or with `None` returns it to the default.
///
/// # Errors
/// The book's.
pub fn set_allowance<B: Book>(book: &mut B, project: &ProjectId, exception: Option<&Override>) -> Result<(), B::Error> {
    book.put_exception(project, exception)
}

/// The allowance set for a project, if it is in force.
///
/// # Errors
/// The book's.
pub fn allowance<B: Book>(book: &mut B, at: &Moment<'_>, project: &ProjectId) -> Result<Option<Override>, B::Error> {
    Ok(book.exception(project)?.filter(|exception| exception.in_force(at.now)))
}

pub(super) fn allowance_in_force<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
) -> Result<Allowance, B::Error> {
    Ok(allowance(book, at, project)?.map_or(at.allowance, |exception| exception.allowance))
}

/// Corrects what was charged to a day, once per id. Whoever repeats it, it is the same call if day,
/// amount and reason are.
///
/// # Errors
/// The book's.
pub fn adjust<B: Book>(book: &mut B, at: &Moment<'_>, call: &Adjust) -> Result<Adjustment, B::Error> {
    if !at.takes(call.day) {
        return Ok(Adjustment::NoSuchDay);
    }
    // Beyond the retention it is forgotten, whether or not it has been deleted yet.
    let before = book.adjustment(&call.project, &call.id)?.filter(|before| before.day >= at.first_kept());
    let bytes = call.bytes.clamp(-signed(MAX_AMOUNT), signed(MAX_AMOUNT));
    if let Some(AdjustmentRecord { day, bytes: asked, reason, applied }) = before {
        let same = (day, asked, &reason) == (call.day, bytes, &call.reason);
        return Ok(if same { Adjustment::Applied(applied) } else { Adjustment::Conflict });
    }
    let line = Line::adjustment(call.id.clone(), call.by.clone(), call.reason.clone(), bytes);
    let applied = account::post(book, at, &call.project, call.day, line)?;
    let record = AdjustmentRecord { day: call.day, bytes, reason: call.reason.clone(), applied };
    book.put_adjustment(&call.project, &call.id, &record)?;
    Ok(Adjustment::Applied(applied))
}
