//! How the ledger's types are written into columns.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use uuid::Uuid;

use crate::artifact::{ArtifactName, ProjectId, TrialId};
use crate::ledger::{Channel, Day, LedgerTime, LinkId, Outcome, RefusalReason, ReservationId};

/// A whole number of bytes or of things. Values above 2^63 - 1, which no sum reaches, are written
/// as that; a negative one is not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole(pub(super) u64);

impl ToSql for Whole {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::try_from(self.0).unwrap_or(i64::MAX).into())
    }
}

impl FromSql for Whole {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        u64::try_from(number).map(Self).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

impl ToSql for LedgerTime {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::try_from(self.0).unwrap_or(i64::MAX).into())
    }
}

impl FromSql for LedgerTime {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Whole::column_result(value).map(|Whole(ms)| Self(ms))
    }
}

impl ToSql for Day {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.to_string().into())
    }
}

impl FromSql for Day {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::parse(value.as_str()?).ok_or_else(|| unreadable("a day"))
    }
}

/// Ids are written as their 16 bytes.
macro_rules! uuid {
    ($($name:ident, $what:literal;)*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.0.as_bytes().as_slice().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Uuid::from_slice(value.as_blob()?).map(Self).map_err(|_| unreadable($what))
            }
        }
    )*};
}

uuid! {
    ReservationId, "a reservation's id";
    LinkId, "a link's id";
}

/// Identifiers are written as their text and checked again when read.
macro_rules! identifier {
    ($($name:ident, $what:literal;)*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Self::parse(value.as_str()?).map_err(|_| unreadable($what))
            }
        }
    )*};
}

identifier! {
    ProjectId, "a project";
    TrialId, "a trial";
    ArtifactName, "an artifact";
}

/// Closed lists are written as their names.
macro_rules! name {
    ($($name:ident, $all:expr, $what:literal;)*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let text = value.as_str()?;
                $all.into_iter().find(|one| one.as_str() == text).ok_or_else(|| unreadable($what))
            }
        }
    )*};
}

name! {
    Channel, Channel::ALL, "a channel";
    Outcome, Outcome::ALL, "an outcome";
    RefusalReason, [RefusalReason::Spent, RefusalReason::Busy, RefusalReason::TooLarge], "a reason";
}

pub(super) fn unreadable(what: &'static str) -> FromSqlError {
    FromSqlError::Other(format!("the ledger's file holds {what} that is none").into())
}
