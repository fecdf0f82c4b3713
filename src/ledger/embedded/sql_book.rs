//! The book in SQLite tables: one statement per question.

use rusqlite::{Connection, OptionalExtension, Params, Row, named_params, params};
use uuid::Uuid;

use super::accounts::Accounts;
use super::columns::Whole;
use super::rows::{read_allowance, read_line, read_link, read_record, record_columns, write_allowance};
use crate::artifact::ProjectId;
use crate::ledger::book::{Account, AdjustmentRecord, Book, LinkRecord, Record, RollKey, State, Totals};
use crate::ledger::{
    Allowance, AuditFilter, Day, Entry, LedgerTime, Link, LinkId, Outcome, Override, ReservationId, Subject,
    Verification,
};
use crate::telemetry::metrics;

/// The tables inside the transaction that is open on the connection.
///
/// Accounts that were changed are written by [`flush`](SqlBook::flush).
pub(super) struct SqlBook<'c> {
    connection: &'c Connection,
    accounts: Accounts,
}

impl<'c> SqlBook<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, accounts: Accounts::default() }
    }

    /// Writes the accounts that were changed: before the transaction is committed, and before a
    /// statement asks for accounts by anything but their names.
    pub(super) fn flush(&mut self) -> rusqlite::Result<()> {
        let sql = "INSERT INTO account (project, day, used, reserved, open, refused, lines, counted, allowance)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                   ON CONFLICT DO UPDATE SET used = ?3, reserved = ?4, open = ?5, refused = ?6, lines = ?7,
                       counted = ?8, allowance = ?9";
        for (project, day, account) in self.accounts.take_changed() {
            let params = params![
                project,
                day,
                Whole(account.used),
                Whole(account.reserved),
                Whole(account.open),
                Whole(account.refused),
                Whole(account.lines),
                Whole(account.counted),
                account.allowance.map(write_allowance),
            ];
            self.run(sql, params)?;
        }
        Ok(())
    }

    fn run(&self, sql: &str, params: impl Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(params).map(|_| ())
    }

    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.connection.prepare_cached(sql)?.query_row(params, read)
    }

    fn many<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map(params, read)?.collect()
    }
}

/// A row bound as SQLite counts.
fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

macro_rules! sift {
    () => {
        "AND (:key_id IS NULL OR key_id = :key_id) AND (:channel IS NULL OR channel = :channel)
         AND (:outcome IS NULL OR outcome = :outcome) "
    };
}

/// The lines of a day that a filter admits. A trial is found by its index; the other parts sift.
macro_rules! matching {
    ($select:literal, $rest:literal) => {
        [
            concat!($select, " FROM line WHERE project = :project AND day = :day AND :trial IS NULL ", sift!(), $rest),
            concat!($select, " FROM line WHERE project = :project AND day = :day AND trial = :trial ", sift!(), $rest),
        ]
    };
}

const LINES: [&str; 2] = matching!("SELECT *", "AND sequence <= :from ORDER BY sequence DESC LIMIT :limit");
const TOTALS: [&str; 2] = matching!("SELECT COALESCE(SUM(count), 0), COALESCE(SUM(charged), 0)", "");

impl Book for SqlBook<'_> {
    type Error = rusqlite::Error;

    fn record(&mut self, project: &ProjectId, id: ReservationId) -> rusqlite::Result<Option<Record>> {
        let sql = concat!("SELECT ", record_columns!(), " FROM record WHERE id = ?1 AND project = ?2");
        self.one(sql, params![id, project], read_record).optional()
    }

    fn put_record(&mut self, project: &ProjectId, id: ReservationId, record: &Record) -> rusqlite::Result<()> {
        let (state, amount, deadline, context, refused) = match &record.state {
            State::Reserved { grant, deadline, context } => ("reserved", *grant, Some(*deadline), Some(context), None),
            State::Settled { charged, .. } => ("settled", *charged, None, None, None),
            State::Expired { charged, .. } => ("expired", *charged, None, None, None),
            State::Refused { refused, .. } => ("refused", 0, None, None, Some(refused)),
        };
        self.run(
            "INSERT OR REPLACE INTO record (id, project, day, size, state, amount, deadline, until, key_id, channel,
                 trial, artifact, request_id, link_id, reason, bound, used, reserved, resets_at, retry_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
            params![
                id,
                project,
                record.day,
                Whole(record.size),
                state,
                Whole(amount),
                deadline,
                record.state.until(),
                context.map(|context| &context.key_id),
                context.map(|context| context.channel),
                context.map(|context| &context.trial),
                context.map(|context| &context.artifact),
                context.map(|context| &context.request_id),
                context.and_then(|context| context.link_id),
                refused.map(|refused| refused.reason),
                refused.map(|refused| Whole(refused.limit)),
                refused.map(|refused| Whole(refused.used)),
                refused.map(|refused| Whole(refused.reserved)),
                refused.map(|refused| refused.resets_at),
                refused.and_then(|refused| refused.retry_at),
            ],
        )
    }

    fn due(
        &mut self,
        project: &ProjectId,
        day: Day,
        now: LedgerTime,
        limit: usize,
    ) -> rusqlite::Result<Vec<ReservationId>> {
        let sql = "SELECT id FROM record WHERE project = ?1 AND day = ?2 AND deadline <= ?3
                   ORDER BY deadline, id LIMIT ?4";
        self.many(sql, params![project, day, now, bound(limit)], |row| row.get(0))
    }

    fn due_anywhere(&mut self, now: LedgerTime, limit: usize) -> rusqlite::Result<Vec<(ProjectId, ReservationId)>> {
        let sql = "SELECT project, id FROM record WHERE deadline <= ?1 ORDER BY deadline, project, id LIMIT ?2";
        self.many(sql, params![now, bound(limit)], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn earliest_deadline(&mut self, project: &ProjectId, day: Day) -> rusqlite::Result<Option<LedgerTime>> {
        let sql = "SELECT MIN(deadline) FROM record WHERE project = ?1 AND day = ?2 AND deadline IS NOT NULL";
        self.one(sql, params![project, day], |row| row.get(0))
    }

    fn account(&mut self, project: &ProjectId, day: Day) -> rusqlite::Result<Account> {
        if let Some(account) = self.accounts.get(project, day) {
            return Ok(account);
        }
        let sql = "SELECT used, reserved, open, refused, lines, counted, allowance FROM account
                   WHERE project = ?1 AND day = ?2";
        let account = self.one(sql, params![project, day], |row| {
            let whole = |column: usize| row.get::<_, Whole>(column).map(|Whole(number)| number);
            Ok(Account {
                used: whole(0)?,
                reserved: whole(1)?,
                open: whole(2)?,
                refused: whole(3)?,
                lines: whole(4)?,
                counted: whole(5)?,
                allowance: row.get::<_, Option<i64>>(6)?.map(read_allowance),
            })
        });
        let account = account.optional()?.unwrap_or_default();
        self.accounts.keep(project, day, account, false);
        Ok(account)
    }

    fn put_account(&mut self, project: &ProjectId, day: Day, account: &Account) -> rusqlite::Result<()> {
        self.accounts.keep(project, day, *account, true);
        Ok(())
    }

    fn put_line(
        &mut self,
        project: &ProjectId,
        day: Day,
        sequence: u64,
        entry: &Entry,
        roll: Option<&RollKey>,
    ) -> rusqlite::Result<()> {
        if entry.outcome == Outcome::Unreserved {
            metrics().unreserved_entries.inc();
        }
        let context = entry.context();
        let reason = match &entry.subject {
            Subject::Adjustment { reason, .. } => Some(reason),
            Subject::Read(_) | Subject::RolledUp { .. } => None,
        };
        self.run(
            "INSERT OR REPLACE INTO line (project, day, sequence, at, id, key_id, channel, trial, artifact, request_id,
                 link_id, reason, hour, size, charged, outcome, count)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
            params![
                project,
                day,
                Whole(sequence),
                entry.at,
                entry.id,
                entry.key_id(),
                entry.channel(),
                context.map(|context| &context.trial),
                context.map(|context| &context.artifact),
                context.map(|context| &context.request_id),
                context.and_then(|context| context.link_id),
                reason,
                roll.map(|key| key.hour),
                Whole(entry.size),
                entry.charged,
                entry.outcome,
                Whole(entry.count),
            ],
        )
    }

    fn rolled(&mut self, project: &ProjectId, day: Day, key: &RollKey) -> rusqlite::Result<Option<(u64, Entry)>> {
        let sql = "SELECT * FROM line WHERE project = ?1 AND day = ?2 AND hour = ?3 AND key_id = ?4 AND channel = ?5
                   AND outcome = ?6";
        let params = params![project, day, key.hour, key.key_id, key.channel, key.outcome];
        self.one(sql, params, read_line).optional()
    }

    fn lines(
        &mut self,
        project: &ProjectId,
        day: Day,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> rusqlite::Result<Vec<(u64, Entry)>> {
        let params = named_params! {
            ":project": project, ":day": day, ":trial": filter.trial, ":key_id": filter.key_id,
            ":channel": filter.channel, ":outcome": filter.outcome,
            ":from": Whole(from.unwrap_or(u64::MAX)), ":limit": bound(limit),
        };
        self.many(LINES[usize::from(filter.trial.is_some())], params, read_line)
    }

    fn totals(&mut self, project: &ProjectId, day: Day, filter: &AuditFilter) -> rusqlite::Result<Totals> {
        let params = named_params! {
            ":project": project, ":day": day, ":trial": filter.trial, ":key_id": filter.key_id,
            ":channel": filter.channel, ":outcome": filter.outcome,
        };
        self.one(TOTALS[usize::from(filter.trial.is_some())], params, |row| {
            let Whole(count) = row.get(0)?;
            Ok(Totals { count, charged: row.get(1)? })
        })
    }

    fn recount(&mut self, project: &ProjectId, day: Day) -> rusqlite::Result<Verification> {
        let Account { used, reserved, .. } = self.account(project, day)?;
        let of_day = params![project, day];
        let pair = |row: &Row<'_>| Ok((row.get::<_, Whole>(0)?.0, row.get(1)?));
        let lines = "SELECT COUNT(*), COALESCE(SUM(charged), 0) FROM line WHERE project = ?1 AND day = ?2";
        let (entries, charged) = self.one(lines, of_day, pair)?;
        // The leases are counted without the index, so that it can be held against them.
        let leases = "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM record NOT INDEXED
                      WHERE project = ?1 AND day = ?2 AND state = 'reserved'";
        let (leases, leased) = self.one(leases, of_day, |row| {
            let (Whole(leases), Whole(leased)) = (row.get(0)?, row.get(1)?);
            Ok((leases, leased))
        })?;
        let indexed = "SELECT COUNT(*) FROM record INDEXED BY record_of_day
                       WHERE project = ?1 AND day = ?2 AND deadline IS NOT NULL";
        let Whole(indexed) = self.one(indexed, of_day, |row| row.get(0))?;
        Ok(Verification { entries, charged, used, reserved, leases, leased, indexed })
    }

    fn exception(&mut self, project: &ProjectId) -> rusqlite::Result<Option<Override>> {
        let sql = "SELECT * FROM exception WHERE project = ?1";
        let exception = self.one(sql, params![project], |row| {
            let allowance = row.get::<_, Option<Whole>>("allowance")?;
            Ok(Override {
                allowance: allowance.map_or(Allowance::Unlimited, |Whole(bytes)| Allowance::Bytes(bytes)),
                until: row.get("until")?,
                by: row.get("set_by")?,
                reason: row.get("reason")?,
            })
        });
        exception.optional()
    }

    fn put_exception(&mut self, project: &ProjectId, exception: Option<&Override>) -> rusqlite::Result<()> {
        let Some(exception) = exception else {
            return self.run("DELETE FROM exception WHERE project = ?1", params![project]);
        };
        self.run(
            "INSERT OR REPLACE INTO exception (project, allowance, until, set_by, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![project, exception.allowance.bytes().map(Whole), exception.until, exception.by, exception.reason],
        )
    }

    fn adjustment(&mut self, project: &ProjectId, id: &str) -> rusqlite::Result<Option<AdjustmentRecord>> {
        let sql = "SELECT day, bytes, reason, applied FROM adjustment WHERE project = ?1 AND id = ?2";
        let record = self.one(sql, params![project, id], |row| {
            Ok(AdjustmentRecord { day: row.get(0)?, bytes: row.get(1)?, reason: row.get(2)?, applied: row.get(3)? })
        });
        record.optional()
    }

    fn put_adjustment(&mut self, project: &ProjectId, id: &str, record: &AdjustmentRecord) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO adjustment (project, id, day, bytes, reason, applied)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.run(sql, params![project, id, record.day, record.bytes, record.reason, record.applied])
    }

    fn link(&mut self, project: &ProjectId, id: LinkId) -> rusqlite::Result<Option<LinkRecord>> {
        let sql = "SELECT * FROM link WHERE project = ?1 AND id = ?2";
        self.one(sql, params![project, id], read_link).optional()
    }

    fn put_link(&mut self, project: &ProjectId, record: &LinkRecord) -> rusqlite::Result<()> {
        let LinkRecord { link, revoked } = record;
        self.run(
            "INSERT OR REPLACE INTO link (project, id, key_id, trial, artifact, expires, revoked)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![project, link.id, link.key_id, link.trial, link.artifact, link.expires, revoked],
        )
    }

    fn live_links(
        &mut self,
        project: &ProjectId,
        now: LedgerTime,
        after: Option<LinkId>,
        limit: usize,
    ) -> rusqlite::Result<Vec<Link>> {
        let sql = "SELECT * FROM link WHERE project = ?1 AND id > ?2 AND NOT revoked AND expires >= ?3
                   ORDER BY id LIMIT ?4";
        // No id is all zeros: it begins with the time.
        let after = after.unwrap_or(LinkId(Uuid::nil()));
        self.many(sql, params![project, after, now, bound(limit)], |row| Ok(read_link(row)?.link))
    }

    fn forget_links(&mut self, now: LedgerTime, limit: usize) -> rusqlite::Result<()> {
        let sql = "DELETE FROM link WHERE (project, id) IN
                       (SELECT project, id FROM link WHERE expires < ?1 ORDER BY expires LIMIT ?2)";
        self.run(sql, params![now, bound(limit)])
    }

    fn forget_records(&mut self, now: LedgerTime, limit: usize) -> rusqlite::Result<()> {
        let sql = "DELETE FROM record WHERE (id, project) IN
                       (SELECT id, project FROM record WHERE until < ?1 ORDER BY until LIMIT ?2)";
        self.run(sql, params![now, bound(limit)])
    }

    fn forget_days(&mut self, first_kept: Day, limit: usize) -> rusqlite::Result<()> {
        self.flush()?;
        let adjustments = "DELETE FROM adjustment WHERE (project, id) IN
                               (SELECT project, id FROM adjustment WHERE day < ?1 LIMIT ?2)";
        self.run(adjustments, params![first_kept, bound(limit)])?;
        let sql = "SELECT project, day FROM account WHERE day < ?1 AND open = 0 LIMIT 1";
        let oldest = |row: &Row<'_>| Ok((row.get::<_, ProjectId>(0)?, row.get::<_, Day>(1)?));
        let Some((project, day)) = self.one(sql, params![first_kept], oldest).optional()? else {
            return Ok(());
        };
        let lines = "DELETE FROM line WHERE project = ?1 AND day = ?2 AND sequence IN
                         (SELECT sequence FROM line WHERE project = ?1 AND day = ?2 LIMIT ?3)";
        self.run(lines, params![project, day, bound(limit)])?;
        // The account goes last, so that what is left of its lines is found again.
        let account = "DELETE FROM account WHERE project = ?1 AND day = ?2
                       AND NOT EXISTS (SELECT 1 FROM line WHERE project = ?1 AND day = ?2)";
        self.run(account, params![project, day])
    }
}
