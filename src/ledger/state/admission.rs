//! Reserving: the only way into the account.

use super::super::book::{Account, Book, Record, Refused, State};
use super::super::{Admission, Allowance, Lease, LedgerTime, MAX_AMOUNT, Refusal, RefusalReason, Reserve, Standing};
use super::{Moment, account, known, links, statement, sweep};
use crate::artifact::ProjectId;

/// The longest that a `busy` refusal asks to wait, ms.
const BUSY_RETRY_MS: u64 = 60_000;

/// Reserves `size` bytes of today's allowance. A known id answers its present state.
///
/// # Errors
/// The book's.
pub fn reserve<B: Book>(book: &mut B, at: &Moment<'_>, call: &Reserve) -> Result<Admission, B::Error> {
    if let Some(record) = known(book, at, &call.project, call.id)? {
        return present(book, at, &call.project, &record);
    }
    if at.now > call.not_after {
        return Ok(Admission::Stale);
    }
    if let Some(link) = call.context.link_id
        && !links::is_live(book, at, &call.project, link)?
    {
        return Ok(Admission::LinkRevoked);
    }
    let allowance = statement::allowance_in_force(book, at, &call.project)?;
    let limit = allowance.bytes().unwrap_or(MAX_AMOUNT).min(MAX_AMOUNT);
    let day = at.today.day;
    let mut account = book.account(&call.project, day)?;
    if call.size > limit {
        return refuse(book, at, call, account, limit);
    }
    let fits = |account: &Account| account.taken() + call.size <= limit;
    if !fits(&account) {
        let more = sweep::of_day(book, at, &call.project, day, at.rules.sweep_in_reserve)?;
        account = book.account(&call.project, day)?;
        if !fits(&account) {
            return if more { Ok(Admission::Again) } else { refuse(book, at, call, account, limit) };
        }
    }
    let lease = Lease { grant: call.size.min(at.rules.credit_bytes), day, deadline: at.now.plus(at.rules.lease_ms) };
    let account = account::take(book, &call.project, day, account, call.size)?;
    let state = State::Reserved { grant: lease.grant, deadline: lease.deadline, context: call.context.clone() };
    book.put_record(&call.project, call.id, &Record { day, size: call.size, state })?;
    Ok(Admission::Reserved(lease, standing(at, allowance, &account)))
}

fn present<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    record: &Record,
) -> Result<Admission, B::Error> {
    Ok(match &record.state {
        State::Reserved { grant, deadline, .. } => {
            let lease = Lease { grant: *grant, day: record.day, deadline: *deadline };
            let allowance = statement::allowance_in_force(book, at, project)?;
            Admission::Reserved(lease, standing(at, allowance, &book.account(project, at.today.day)?))
        }
        State::Settled { .. } => Admission::Settled,
        State::Expired { .. } => Admission::Expired,
        State::Refused { refused, .. } => Admission::Refused(refusal(at.now, record.size, refused)),
    })
}

const fn standing(at: &Moment<'_>, allowance: Allowance, account: &Account) -> Standing {
    Standing { allowance, used: account.used, reserved: account.reserved, resets_at: at.today.end }
}

/// Turns the call away, counts it, and remembers it until the last copy of the call is stale.
fn refuse<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    call: &Reserve,
    account: Account,
    limit: u64,
) -> Result<Admission, B::Error> {
    let (day, resets_at) = (at.today.day, at.today.end);
    let (reason, retry_at) = if call.size > limit {
        (RefusalReason::TooLarge, None)
    } else if account.used + call.size > limit {
        (RefusalReason::Spent, Some(resets_at))
    } else {
        let latest = at.now.plus(BUSY_RETRY_MS);
        let earliest = book.earliest_deadline(&call.project, day)?.unwrap_or(latest);
        (RefusalReason::Busy, Some(earliest.min(latest)))
    };
    let refused = Refused { reason, limit, used: account.used, reserved: account.reserved, resets_at, retry_at };
    let answer = Admission::Refused(refusal(at.now, call.size, &refused));
    // Nothing can ever admit a size that no account holds: there is no late copy to turn away.
    if call.size <= MAX_AMOUNT {
        book.put_account(&call.project, day, &Account { refused: account.refused + 1, ..account })?;
        let state = State::Refused { refused, until: call.not_after };
        book.put_record(&call.project, call.id, &Record { day, size: call.size, state })?;
    }
    Ok(answer)
}

fn refusal(now: LedgerTime, requested_bytes: u64, refused: &Refused) -> Refusal {
    Refusal {
        reason: refused.reason,
        limit_bytes: refused.limit,
        used_bytes: refused.used,
        reserved_bytes: refused.reserved,
        requested_bytes,
        resets_at: refused.resets_at,
        retry_after_ms: refused.retry_at.map(|retry_at| retry_at.since(now)),
    }
}
