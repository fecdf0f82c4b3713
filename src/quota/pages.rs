//! A whole day of the audit, page by page.

use std::sync::Arc;

use super::unavailable;
use crate::artifact::ProjectId;
use crate::error::{Error, Kind, Result};
use crate::ledger::{AuditFilter, AuditPage, Day, Entry, Ledger};

/// Entries taken from the ledger at a time.
const PAGE: usize = 250;

/// The entries of a day, newest first. Those that are written while it is read are not among them.
pub struct Pages {
    ledger: Arc<dyn Ledger>,
    project: ProjectId,
    filter: AuditFilter,
    day: Day,
    /// Fetched already, to know the day.
    first: Option<Vec<Entry>>,
    /// Where the next page begins, if there is one.
    from: Option<u64>,
}

impl Pages {
    /// Fetches the first page; the day of it is that of all.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub(super) async fn open(
        ledger: Arc<dyn Ledger>,
        project: ProjectId,
        day: Option<Day>,
        filter: AuditFilter,
    ) -> Result<Self> {
        // The ledger is asked for everything: for each page of a filtered listing it would add up
        // the whole day.
        let first = ledger.audit(&project, day, &AuditFilter::default(), None, PAGE).await;
        let AuditPage { day, entries, next, .. } = first.map_err(unavailable)?.reply;
        Ok(Self { ledger, project, filter, day, first: Some(entries), from: next })
    }

    /// The day.
    #[must_use]
    pub const fn day(&self) -> Day {
        self.day
    }

    /// The next entries that the filter admits, at least one; `None` after the last.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`; `INVALID_REQUEST` if the day ceased to be kept meanwhile.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>> {
        loop {
            let mut entries = match (self.first.take(), self.from) {
                (Some(entries), _) => entries,
                (None, None) => return Ok(None),
                (None, from) => {
                    let everything = AuditFilter::default();
                    let page = self.ledger.audit(&self.project, Some(self.day), &everything, from, PAGE).await;
                    let page = page.map_err(unavailable)?.reply;
                    // There was more: the day has gone out of the retention since.
                    if page.entries.is_empty() {
                        return Err(Error::new(Kind::InvalidRequest, "This day is no longer kept."));
                    }
                    self.from = page.next;
                    page.entries
                }
            };
            entries.retain(|entry| self.filter.admits(entry));
            if !entries.is_empty() {
                return Ok(Some(entries));
            }
        }
    }
}
