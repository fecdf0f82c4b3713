//! The ledger's file: opening it, owning it, its tables.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::OpenError;

/// Stored in the file as `user_version`. A new version comes with a step that brings an old file up.
const VERSION: i64 = 3;

/// What an empty file that belongs to nobody has as its `application_id`.
const NO_APPLICATION: i64 = 0;
/// Marks a file as a ledger: "artl".
const APPLICATION: i64 = 0x6172_746c;

/// Statements that are kept prepared: more than the book has.
const STATEMENTS: usize = 64;

/// How long the reader waits where SQLite keeps it waiting, as it does while a log is recovered.
const READER_WAITS: Duration = Duration::from_secs(1);

/// A write-ahead log larger than this is cut back after a checkpoint, bytes.
const LOG_LIMIT: i64 = 64 << 20;

/// Every table is keyed by what it is looked up by, so that a call touches few pages. A lease is a
/// record with a deadline; every other record has a last moment.
const TABLES: &str = "
CREATE TABLE record (
    id         BLOB    NOT NULL,
    project    TEXT    NOT NULL,
    day        TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    amount     INTEGER NOT NULL,           -- the grant, or what was charged
    deadline   INTEGER,
    until      INTEGER,
    key_id     TEXT,                       -- a lease's context
    channel    TEXT,
    trial      TEXT,
    artifact   TEXT,
    request_id TEXT,
    link_id    BLOB,
    reason     TEXT,                       -- why and by what a reservation was refused
    bound      INTEGER,
    used       INTEGER,
    reserved   INTEGER,
    resets_at  INTEGER,
    retry_at   INTEGER,
    PRIMARY KEY (id, project)
) WITHOUT ROWID;
CREATE INDEX record_of_day ON record (project, day, deadline, id) WHERE deadline IS NOT NULL;
CREATE INDEX record_due ON record (deadline, project, id) WHERE deadline IS NOT NULL;
CREATE INDEX record_over ON record (until) WHERE until IS NOT NULL;

CREATE TABLE account (
    project    TEXT    NOT NULL,
    day        TEXT    NOT NULL,
    used       INTEGER NOT NULL,
    reserved   INTEGER NOT NULL,
    open       INTEGER NOT NULL,
    refused    INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    counted    INTEGER NOT NULL,
    allowance  INTEGER,                    -- of the last reservation; -1: unlimited
    PRIMARY KEY (project, day)
) WITHOUT ROWID;
CREATE INDEX account_day ON account (day);

CREATE TABLE line (
    project    TEXT    NOT NULL,
    day        TEXT    NOT NULL,
    sequence   INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    key_id     TEXT    NOT NULL,
    channel    TEXT,
    trial      TEXT,
    artifact   TEXT,
    request_id TEXT,
    link_id    BLOB,
    reason     TEXT,                       -- of an adjustment
    hour       INTEGER,                    -- of a rolled-up line
    size       INTEGER NOT NULL,
    charged    INTEGER NOT NULL,
    outcome    TEXT    NOT NULL,
    count      INTEGER NOT NULL,
    PRIMARY KEY (project, day, sequence)
) WITHOUT ROWID;
CREATE INDEX line_trial ON line (project, day, trial, sequence) WHERE trial IS NOT NULL;
CREATE UNIQUE INDEX line_hour ON line (project, day, hour, key_id, channel, outcome) WHERE hour IS NOT NULL;

CREATE TABLE exception (
    project    TEXT    NOT NULL PRIMARY KEY,
    allowance  INTEGER,                    -- NULL: unlimited
    until      INTEGER,
    set_by     TEXT    NOT NULL,
    reason     TEXT    NOT NULL
) WITHOUT ROWID;

CREATE TABLE adjustment (
    project    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    day        TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,           -- asked for
    reason     TEXT    NOT NULL,
    applied    INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;
CREATE INDEX adjustment_day ON adjustment (day);
";

/// Links came with version 2.
const LINKS: &str = "
CREATE TABLE link (
    project    TEXT    NOT NULL,
    id         BLOB    NOT NULL,
    key_id     TEXT    NOT NULL,
    trial      TEXT    NOT NULL,
    artifact   TEXT    NOT NULL,
    expires    INTEGER NOT NULL,
    revoked    INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;
CREATE INDEX link_over ON link (expires);
";
/// The columns that version 1 lacks.
const LINK_COLUMNS: &str = "
ALTER TABLE record ADD COLUMN link_id BLOB;
ALTER TABLE line ADD COLUMN link_id BLOB;
";

/// The columns that version 2 lacks. It had no way for operators to make adjustments.
const BOOK_COLUMNS: &str = "
ALTER TABLE account ADD COLUMN allowance INTEGER;
ALTER TABLE adjustment ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE adjustment ADD COLUMN reason TEXT NOT NULL DEFAULT '';
";

/// Tells the files of a ledger from others of the same names: device and inode of the file and of
/// its write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity([(u64, u64); 2]);

impl Identity {
    /// What lies at `path` now.
    ///
    /// # Errors
    /// One of the two cannot be found.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let one = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
        Ok(Self([one(path)?, one(&beside(path, "-wal"))?]))
    }
}

/// The file of that name with something added to it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Says, for as long as it lives, that the ledger's file is this process's own. The lock is on a file
/// beside it: closing any handle of the ledger's own file would drop the locks of SQLite.
#[derive(Debug)]
pub(super) struct Owned(#[expect(dead_code, reason = "it is held, and let go when it is dropped")] File);

impl Owned {
    fn claim(path: &Path) -> Result<Self, OpenError> {
        let file = File::options().create(true).truncate(false).write(true).open(beside(path, "-lock"));
        let file = file.map_err(OpenError::Lock)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::Owned),
            Err(TryLockError::Error(error)) => Err(OpenError::Lock(error)),
        }
    }
}

/// Opens the file, makes it this process's own, and creates the tables in an empty one.
pub(super) fn open(path: &Path) -> Result<(Connection, Owned), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_CREATE;
    let connection = connect(path, flags)?;
    let owned = Owned::claim(path)?;
    match (pragma(&connection, "application_id")?, pragma(&connection, "user_version")?) {
        (NO_APPLICATION, 0) if is_empty(&connection)? => create(&connection)?,
        (APPLICATION, VERSION) => {}
        (APPLICATION, 1) => upgrade(&connection, &[LINK_COLUMNS, LINKS, BOOK_COLUMNS])?,
        (APPLICATION, 2) => upgrade(&connection, &[BOOK_COLUMNS])?,
        (APPLICATION, version) => return Err(OpenError::Version(version)),
        _ => return Err(OpenError::Foreign),
    }
    Ok((connection, owned))
}

/// Opens the file once more after a failure. A file that has gone is an error: books that were
/// there a moment ago do not begin anew.
pub(super) fn reopen(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path, OpenFlags::empty())?;
    match (pragma(&connection, "application_id")?, pragma(&connection, "user_version")?) {
        (APPLICATION, VERSION) => Ok(connection),
        _ => Err(OpenError::Foreign),
    }
}

/// Opens the file, which the writer has open, to read.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(READER_WAITS)?;
    Ok(connection)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Asked to write, SQLite opens a file that it may only read all the same.
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(OpenError::ReadOnly);
    }
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // An answered call is on the disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)?;
    // Taking the write lock tells at once whether the file can be written.
    connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
    Ok(connection)
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;\n{TABLES}{LINKS}\nPRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {VERSION};\nCOMMIT;"
    ))
}

/// Brings a file of an earlier version up, by `steps`.
fn upgrade(connection: &Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let steps = steps.concat();
    connection.execute_batch(&format!("BEGIN IMMEDIATE;\n{steps}\nPRAGMA user_version = {VERSION};\nCOMMIT;"))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Owned,
            Some(ErrorCode::NotADatabase) => Self::Foreign,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            _ => Self::Storage(error),
        }
    }
}
