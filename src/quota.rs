//! The account books as people see them, and what operators change in them.

mod changes;
mod groups;
mod pages;
mod warnings;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::access::{Principal, QuotaManager, QuotaReader};
use crate::artifact::ProjectId;
use crate::error::{Error, Kind, Result};
use crate::ledger::{
    Adjust, Adjustment, Allowance, At, AuditFilter, AuditPage, Day, DayUsage, Ledger, LedgerTime, MAX_AMOUNT, Override,
    Refusal, Unavailable, Usage, Verification, state,
};
use crate::request::RequestId;

use changes::{Change, What};
pub use groups::{Group, GroupBy, Groups};
pub use pages::Pages;
pub use warnings::Warnings;

/// The days of a history that names no number.
const DEFAULT_DAYS: u32 = 7;
/// Days that are added up at once; further ones wait. Each holds its groups in memory.
const SCANS: usize = 2;
/// The longest reason of a change, characters: what a JSON Schema counts.
const MAX_REASON_CHARS: usize = 500;
/// The longest id of an adjustment, bytes.
const MAX_ADJUSTMENT_ID_BYTES: usize = 128;

/// Reads and changes the ledger on behalf of people.
pub struct Quota {
    ledger: Arc<dyn Ledger>,
    /// The zone whose midnight resets the allowance, an IANA name.
    zone: String,
    warnings: Arc<Warnings>,
    scans: Semaphore,
}

/// What an operator gives to a project instead of the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The allowance.
    pub allowance: Allowance,
    /// When the default is in force again; `None`: not until it is cleared. In the future.
    pub until: Option<LedgerTime>,
    /// Why: 1 to 500 characters, none of them a control character.
    pub reason: String,
}

/// What an operator charges to a day, or takes off it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// Names the correction, the same in every retry: 1 to 128 of `A-Z a-z 0-9 . _ : -`.
    pub id: String,
    /// A day that is kept, or tomorrow.
    pub day: Day,
    /// Bytes to charge, negative to take off; not 0, and within plus and minus [`MAX_AMOUNT`].
    pub bytes: i64,
    /// Why: 1 to 500 characters, none of them a control character.
    pub reason: String,
}

impl Quota {
    /// Reads `ledger`, whose days are those of `zone`.
    #[must_use]
    pub const fn new(ledger: Arc<dyn Ledger>, zone: String, warnings: Arc<Warnings>) -> Self {
        Self { ledger, zone, warnings, scans: Semaphore::const_new(SCANS) }
    }

    /// The zone whose midnight resets the allowance, an IANA name.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// When people are warned.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// The project's account today. Any key of the project may ask.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED`, `QUOTA_UNAVAILABLE`.
    pub async fn usage(&self, who: &Principal) -> Result<At<Usage>> {
        self.usage_of(&who.project()?.id).await
    }

    async fn usage_of(&self, project: &ProjectId) -> Result<At<Usage>> {
        let usage = self.ledger.usage(project).await.map_err(unavailable)?;
        self.warnings.note(project, usage.reply.day, usage.reply.allowance, usage.reply.used);
        Ok(usage)
    }

    /// The project's account today, and what a reservation of `bytes` bytes would be refused with
    /// now, if it would be: a dry run, which reserves nothing and is not counted. Any key of the
    /// project may ask.
    ///
    /// # Errors
    /// `INVALID_REQUEST` above [`MAX_AMOUNT`], `PROJECT_REQUIRED`, `QUOTA_UNAVAILABLE`.
    pub async fn check(&self, who: &Principal, bytes: u64) -> Result<(At<Usage>, Option<Refusal>)> {
        if bytes > MAX_AMOUNT {
            return Err(Error::new(Kind::InvalidRequest, format!("bytes is a whole number, 0 to {MAX_AMOUNT}.")));
        }
        let usage = self.usage(who).await?;
        Ok((usage, state::foresee(&usage.reply, usage.now, bytes)))
    }

    /// The accounts of the last `days` days (`None`: 7), today's first.
    ///
    /// # Errors
    /// `INVALID_REQUEST` if there are not so many, `QUOTA_UNAVAILABLE`.
    pub async fn history(&self, who: &QuotaReader, days: Option<u64>) -> Result<Vec<DayUsage>> {
        let kept = self.ledger.rules().kept_days();
        let days = days.map_or(Some(DEFAULT_DAYS.min(kept)), |days| u32::try_from(days).ok());
        let days = days.filter(|days| (1..=kept).contains(days)).ok_or_else(|| {
            Error::new(Kind::InvalidRequest, format!("days is from 1 to {kept}, today included: no more are kept."))
        })?;
        Ok(self.ledger.history(who.project(), days).await.map_err(unavailable)?.reply)
    }

    /// A page of the entries of `day` (`None`: today), newest first.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub async fn audit(
        &self,
        who: &QuotaReader,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Result<AuditPage> {
        let page = self.ledger.audit(who.project(), day, filter, from, limit).await;
        page.map(|at| at.reply).map_err(unavailable)
    }

    /// All entries of `day` (`None`: today) that `filter` admits, newest first, page by page.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub async fn pages(&self, who: &QuotaReader, day: Option<Day>, filter: AuditFilter) -> Result<Pages> {
        Pages::open(Arc::clone(&self.ledger), who.project().clone(), day, filter).await
    }

    /// The entries of `day` (`None`: today) that `filter` admits, added up.
    ///
    /// # Errors
    /// As [`Pages::next`].
    pub async fn groups(
        &self,
        who: &QuotaReader,
        day: Option<Day>,
        filter: AuditFilter,
        by: &[GroupBy],
    ) -> Result<Groups> {
        let _scan = self.scans.acquire().await.map_err(Error::internal)?;
        let mut pages = self.pages(who, day, filter).await?;
        let mut sums = groups::Sums::new(by);
        while let Some(entries) = pages.next().await? {
            entries.iter().for_each(|entry| sums.add(entry));
        }
        Ok(sums.groups(pages.day()))
    }

    /// Recomputes the sums of `day` (`None`: today).
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub async fn verify(&self, who: &QuotaReader, day: Option<Day>) -> Result<Verification> {
        self.ledger.verify(who.project(), day).await.map(|at| at.reply).map_err(unavailable)
    }

    /// What an operator gave to the project instead of the default, if that is in force.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub async fn exception(&self, who: &QuotaReader) -> Result<Option<Override>> {
        self.ledger.allowance(who.project()).await.map(|at| at.reply).map_err(unavailable)
    }

    /// Gives the project another allowance than the default, at once. The log has a line of it, under
    /// the request's id.
    ///
    /// # Errors
    /// `INVALID_REQUEST`, `QUOTA_UNAVAILABLE`.
    pub async fn set_exception(
        &self,
        who: &QuotaManager,
        request: &RequestId,
        exception: Exception,
    ) -> Result<Override> {
        let Exception { allowance, until, reason } = exception;
        require_reason(&reason)?;
        let now = self.ledger.now().await.map_err(unavailable)?;
        if until.is_some_and(|until| until <= now) {
            return Err(Error::new(Kind::InvalidRequest, "until lies in the future; leave it out for an open end."));
        }
        let set = Override { allowance, until, by: who.key_id().to_owned(), reason };
        self.put_exception(who, request, Some(&set)).await?;
        Ok(set)
    }

    /// Returns the project to the default allowance, at once. The log has a line of it, under the
    /// request's id.
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub async fn clear_exception(&self, who: &QuotaManager, request: &RequestId) -> Result<()> {
        self.put_exception(who, request, None).await
    }

    async fn put_exception(&self, who: &QuotaManager, request: &RequestId, to: Option<&Override>) -> Result<()> {
        let from = self.ledger.allowance(who.project()).await.map_err(unavailable)?.reply;
        let change = Change::begin(who, request, What::Allowance { to, from: from.as_ref() });
        self.ledger.set_allowance(who.project(), to).await.map_err(unavailable)?;
        change.done(None);
        Ok(())
    }

    /// Corrects what was charged to a day, once per id; answers the bytes charged. An account stays
    /// within 0 and [`MAX_AMOUNT`], so these may be fewer than asked for. The log has a line of it,
    /// under the request's id.
    ///
    /// # Errors
    /// `INVALID_REQUEST`, `ADJUSTMENT_CONFLICT`, `QUOTA_UNAVAILABLE`.
    pub async fn adjust(&self, who: &QuotaManager, request: &RequestId, correction: Correction) -> Result<i64> {
        let Correction { id, day, bytes, reason } = correction;
        let sound = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
        if !(1..=MAX_ADJUSTMENT_ID_BYTES).contains(&id.len()) || !id.bytes().all(sound) {
            let rule = format!("adjustment_id is 1 to {MAX_ADJUSTMENT_ID_BYTES} of A-Z a-z 0-9 . _ : -");
            return Err(Error::new(Kind::InvalidRequest, format!("{rule}, your own name for this correction.")));
        }
        if bytes == 0 || bytes.unsigned_abs() > MAX_AMOUNT {
            let rule = format!("bytes is a whole number, -{MAX_AMOUNT} to {MAX_AMOUNT} and not 0");
            return Err(Error::new(Kind::InvalidRequest, format!("{rule}: above 0 charges, below 0 gives back.")));
        }
        require_reason(&reason)?;
        let call = Adjust { project: who.project().clone(), id, day, bytes, by: who.key_id().to_owned(), reason };
        let change = Change::begin(who, request, What::Day(&call));
        match self.ledger.adjust(&call).await.map_err(unavailable)?.reply {
            Adjustment::Applied(applied) => {
                change.done(Some(applied));
                Ok(applied)
            }
            Adjustment::NoSuchDay => {
                change.refused();
                let days = self.ledger.rules().retention_days;
                let rule = format!("day is today, tomorrow, or one of the {days} days before today");
                Err(Error::new(Kind::InvalidRequest, format!("{rule}: others are not kept.")))
            }
            Adjustment::Conflict => {
                change.refused();
                Err(Error::new(
                    Kind::AdjustmentConflict,
                    "This adjustment_id was used for another day, amount or reason; nothing was changed. Take a new \
                     id for a new correction.",
                ))
            }
        }
    }
}

fn require_reason(reason: &str) -> Result<()> {
    if reason.trim().is_empty() || reason.chars().count() > MAX_REASON_CHARS || reason.chars().any(char::is_control) {
        let rule = format!("reason is 1 to {MAX_REASON_CHARS} characters of text in one line");
        return Err(Error::new(Kind::InvalidRequest, format!("{rule}: it is kept with the change.")));
    }
    Ok(())
}

fn unavailable(error: Unavailable) -> Error {
    Error::new(Kind::QuotaUnavailable, "The download ledger does not answer; try again shortly.").with_source(error)
}
