//! What the rows of the tables say, and the one column that is written in a form of its own.

use rusqlite::Row;

use super::columns::{Whole, unreadable};
use crate::ledger::book::{LinkRecord, Record, Refused, State};
use crate::ledger::{Allowance, Context, Entry, LedgerTime, Link, Subject};

fn whole(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get::<_, Whole>(column).map(|Whole(number)| number)
}

/// An unlimited allowance, in a column of numbers.
const UNLIMITED: i64 = -1;

pub(super) fn read_allowance(column: i64) -> Allowance {
    u64::try_from(column).map_or(Allowance::Unlimited, Allowance::Bytes)
}

pub(super) fn write_allowance(allowance: Allowance) -> i64 {
    allowance.bytes().map_or(UNLIMITED, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn read_context(row: &Row<'_>) -> rusqlite::Result<Context> {
    Ok(Context {
        key_id: row.get("key_id")?,
        channel: row.get("channel")?,
        trial: row.get("trial")?,
        artifact: row.get("artifact")?,
        request_id: row.get("request_id")?,
        link_id: row.get("link_id")?,
    })
}

pub(super) fn read_link(row: &Row<'_>) -> rusqlite::Result<LinkRecord> {
    let link = Link {
        id: row.get("id")?,
        key_id: row.get("key_id")?,
        trial: row.get("trial")?,
        artifact: row.get("artifact")?,
        expires: row.get("expires")?,
    };
    Ok(LinkRecord { link, revoked: row.get("revoked")? })
}

/// The columns of a record, in the order in which [`read_record`] knows them: it is read too often to
/// look each up by its name.
macro_rules! record_columns {
    () => {
        "state, day, size, amount, deadline, until, key_id, channel, trial, artifact, request_id, link_id,
         reason, bound, used, reserved, resets_at, retry_at"
    };
}
pub(super) use record_columns;

pub(super) fn read_record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let whole = |column: usize| row.get::<_, Whole>(column).map(|Whole(number)| number);
    let amount = whole(3)?;
    let state = match row.get_ref(0)?.as_str()? {
        "reserved" => {
            let context = Context {
                key_id: row.get(6)?,
                channel: row.get(7)?,
                trial: row.get(8)?,
                artifact: row.get(9)?,
                request_id: row.get(10)?,
                link_id: row.get(11)?,
            };
            State::Reserved { grant: amount, deadline: row.get(4)?, context }
        }
        "settled" => State::Settled { charged: amount, until: row.get(5)? },
        "expired" => State::Expired { charged: amount, until: row.get(5)? },
        "refused" => {
            let refused = Refused {
                reason: row.get(12)?,
                limit: whole(13)?,
                used: whole(14)?,
                reserved: whole(15)?,
                resets_at: row.get(16)?,
                retry_at: row.get(17)?,
            };
            State::Refused { refused, until: row.get(5)? }
        }
        _ => return Err(unreadable("a state").into()),
    };
    Ok(Record { day: row.get(1)?, size: whole(2)?, state })
}

pub(super) fn read_line(row: &Row<'_>) -> rusqlite::Result<(u64, Entry)> {
    let subject = if let Some(reason) = row.get("reason")? {
        Subject::Adjustment { by: row.get("key_id")?, reason }
    } else if row.get::<_, Option<LedgerTime>>("hour")?.is_some() {
        Subject::RolledUp { key_id: row.get("key_id")?, channel: row.get("channel")? }
    } else {
        Subject::Read(read_context(row)?)
    };
    let entry = Entry {
        at: row.get("at")?,
        id: row.get("id")?,
        subject,
        size: whole(row, "size")?,
        charged: row.get("charged")?,
        outcome: row.get("outcome")?,
        count: whole(row, "count")?,
    };
    Ok((whole(row, "sequence")?, entry))
}
