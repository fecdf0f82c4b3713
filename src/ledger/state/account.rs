//! The one place where accounts change: room taken and given back, charges posted with their
//! lines. Sums and lines are written together, so they agree (I2, I3).

use super::super::book::{Account, Book, RollKey};
use super::super::{Allowance, Context, Day, Entry, LedgerTime, MAX_AMOUNT, Outcome, ReservationId, Subject};
use super::{Moment, signed};
use crate::artifact::ProjectId;

const HOUR_MS: u64 = 3_600_000;

/// A line to be written, with the charge that is asked for.
pub(super) struct Line {
    id: String,
    subject: Subject,
    size: u64,
    charge: i64,
    outcome: Outcome,
    skip_zero: bool,
}

impl Line {
    /// The end of a reservation.
    pub(super) fn read(id: ReservationId, context: Context, size: u64, charge: i64, outcome: Outcome) -> Self {
        Self { id: id.to_string(), subject: Subject::Read(context), size, charge, outcome, skip_zero: false }
    }

    /// An operator's correction.
    pub(super) fn adjustment(id: String, by: String, reason: String, charge: i64) -> Self {
        let subject = Subject::Adjustment { by, reason };
        Self { id, subject, size: 0, charge, outcome: Outcome::Adjusted, skip_zero: false }
    }

    /// Not worth a line if nothing is charged.
    pub(super) fn unless_zero(self) -> Self {
        Self { skip_zero: true, ..self }
    }
}

/// Holds `size` bytes for a new lease, admitted by `allowance`; answers the account with it.
pub(super) fn take<B: Book>(
    book: &mut B,
    project: &ProjectId,
    day: Day,
    account: Account,
    size: u64,
    allowance: Allowance,
) -> Result<Account, B::Error> {
    let (reserved, open) = (account.reserved + size, account.open + 1);
    let account = Account { reserved, open, allowance: Some(allowance), ..account };
    book.put_account(project, day, &account)?;
    Ok(account)
}

/// Returns the room that an open lease held.
pub(super) fn give_back<B: Book>(book: &mut B, project: &ProjectId, day: Day, size: u64) -> Result<(), B::Error> {
    let account = book.account(project, day)?;
    let (reserved, open) = (account.reserved.saturating_sub(size), account.open.saturating_sub(1));
    book.put_account(project, day, &Account { reserved, open, ..account })
}

/// Charges the account and writes the line; answers what was charged.
pub(super) fn post<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    day: Day,
    line: Line,
) -> Result<i64, B::Error> {
    let mut account = book.account(project, day)?;
    let used = signed(account.used).saturating_add(line.charge).clamp(0, signed(MAX_AMOUNT));
    let charged = used - signed(account.used);
    if charged == 0 && line.skip_zero {
        return Ok(0);
    }
    account.used = used.unsigned_abs();
    account.counted += 1;
    let Line { id, subject, size, outcome, .. } = line;
    let entry = Entry { at: at.now, id, subject, size, charged, outcome, count: 1 };
    write(book, at, project, day, &mut account, entry)?;
    book.put_account(project, day, &account)?;
    Ok(charged)
}

/// Writes a line of its own, or, once the day has `max_entries`, adds to the rolled-up line of the
/// hour. Adjustments are few and always listed.
fn write<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    day: Day,
    account: &mut Account,
    entry: Entry,
) -> Result<(), B::Error> {
    let context = match &entry.subject {
        Subject::Read(context) if account.lines >= at.rules.max_entries => context,
        _ => {
            account.lines += 1;
            return book.put_line(project, day, account.lines, &entry, None);
        }
    };
    let hour = LedgerTime(at.now.0 - at.now.0 % HOUR_MS);
    let (key_id, channel) = (context.key_id.clone(), context.channel);
    let key = RollKey { hour, key_id: key_id.clone(), channel, outcome: entry.outcome };
    let (sequence, mut rolled) = match book.rolled(project, day, &key)? {
        Some(found) => found,
        None => {
            account.lines += 1;
            let subject = Subject::RolledUp { key_id, channel };
            let empty = Entry { at: hour, id: String::new(), subject, size: 0, charged: 0, count: 0, ..entry.clone() };
            (account.lines, empty)
        }
    };
    rolled.size = rolled.size.saturating_add(entry.size).min(MAX_AMOUNT);
    rolled.charged += entry.charged;
    rolled.count += 1;
    book.put_line(project, day, sequence, &rolled, Some(&key))
}
