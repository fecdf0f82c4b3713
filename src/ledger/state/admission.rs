//! Reserving: the only way into the account.

use super::super::book::{Account, Book, Record, Refused, State};
use super::super::{
    Admission, Allowance, Lease, LedgerTime, MAX_AMOUNT, Refusal, RefusalReason, Reserve, Standing, Usage,
};
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
    let obstacle = |account: &Account| obstacle(bound(allowance), account.used, account.reserved, call.size);
    let day = at.today.day;
    let mut account = book.account(&call.project, day)?;
    match obstacle(&account) {
        None => {}
        Some(RefusalReason::TooLarge) => return refuse(book, at, call, account, allowance, RefusalReason::TooLarge),
        Some(_) => {
            let more = sweep::of_day(book, at, &call.project, day, at.rules.sweep_in_reserve)?;
            account = book.account(&call.project, day)?;
            match obstacle(&account) {
                None => {}
                Some(_) if more => return Ok(Admission::Again),
                Some(reason) => return refuse(book, at, call, account, allowance, reason),
            }
        }
    }
    let lease = Lease { grant: call.size.min(at.rules.credit_bytes), day, deadline: at.now.plus(at.rules.lease_ms) };
    let account = account::take(book, &call.project, day, account, call.size, allowance)?;
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
    let (day, resets_at) = (at.today.day, at.today.end);
    Standing { day, allowance, used: account.used, reserved: account.reserved, resets_at }
}

/// The most that an account holds, bytes.
const fn bound(allowance: Allowance) -> u64 {
    match allowance {
        Allowance::Bytes(limit) if limit < MAX_AMOUNT => limit,
        Allowance::Bytes(_) | Allowance::Unlimited => MAX_AMOUNT,
    }
}

/// The rule of admission: what stands in the way of `size` bytes; `None` if they fit.
const fn obstacle(limit: u64, used: u64, reserved: u64, size: u64) -> Option<RefusalReason> {
    if size > limit {
        Some(RefusalReason::TooLarge)
    } else if used.saturating_add(size) > limit {
        Some(RefusalReason::Spent)
    } else if used.saturating_add(reserved).saturating_add(size) > limit {
        Some(RefusalReason::Busy)
    } else {
        None
    }
}

/// From when on it is worth asking again, `earliest` being the first end of an open lease.
fn retry_at(
    reason: RefusalReason,
    now: LedgerTime,
    resets_at: LedgerTime,
    earliest: Option<LedgerTime>,
) -> Option<LedgerTime> {
    match reason {
        RefusalReason::TooLarge => None,
        RefusalReason::Spent => Some(resets_at),
        RefusalReason::Busy => {
            let latest = now.plus(BUSY_RETRY_MS);
            Some(earliest.unwrap_or(latest).min(latest))
        }
    }
}

/// What a reservation of `size` bytes would be refused with at `now`, if it would be, by an account
/// that stands as `usage` says. Changes nothing.
#[must_use]
pub fn foresee(usage: &Usage, now: LedgerTime, size: u64) -> Option<Refusal> {
    let limit = bound(usage.allowance);
    let reason = obstacle(limit, usage.used, usage.reserved, size)?;
    let retry_at = retry_at(reason, now, usage.resets_at, usage.earliest_end);
    let (used, reserved, resets_at) = (usage.used, usage.reserved, usage.resets_at);
    Some(refusal(now, size, &Refused { reason, limit, used, reserved, resets_at, retry_at }))
}

/// Turns the call away, counts it, and remembers it until the last copy of the call is stale.
fn refuse<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    call: &Reserve,
    account: Account,
    allowance: Allowance,
    reason: RefusalReason,
) -> Result<Admission, B::Error> {
    let (day, resets_at, limit) = (at.today.day, at.today.end, bound(allowance));
    let earliest = match reason {
        RefusalReason::Busy => book.earliest_deadline(&call.project, day)?,
        RefusalReason::Spent | RefusalReason::TooLarge => None,
    };
    let retry_at = retry_at(reason, at.now, resets_at, earliest);
    let refused = Refused { reason, limit, used: account.used, reserved: account.reserved, resets_at, retry_at };
    let answer = Admission::Refused(refusal(at.now, call.size, &refused));
    // Nothing can ever admit a size that no account holds: there is no late copy to turn away.
    if call.size <= MAX_AMOUNT {
        let account = Account { refused: account.refused + 1, allowance: Some(allowance), ..account };
        book.put_account(&call.project, day, &account)?;
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
