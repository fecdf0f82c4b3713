//! The account books as their readers see them.

use std::sync::Arc;

use crate::access::{Principal, QuotaReader};
use crate::error::{Error, Kind, Result};
use crate::ledger::{At, AuditFilter, AuditPage, Day, Ledger, Unavailable, Usage, Verification};

/// Reads the ledger on behalf of people.
pub struct Quota {
    ledger: Arc<dyn Ledger>,
    /// The zone whose midnight resets the allowance, an IANA name.
    zone: String,
}

impl Quota {
    /// Reads `ledger`, whose days are those of `zone`.
    #[must_use]
    pub const fn new(ledger: Arc<dyn Ledger>, zone: String) -> Self {
        Self { ledger, zone }
    }

    /// The zone whose midnight resets the allowance, an IANA name.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// The project's account today. Any key of the project may ask.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED`, `QUOTA_UNAVAILABLE`.
    pub async fn usage(&self, who: &Principal) -> Result<At<Usage>> {
        self.ledger.usage(&who.project()?.id).await.map_err(unavailable)
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
        let page = self.ledger.audit(&who.project().id, day, filter, from, limit).await;
        page.map(|at| at.reply).map_err(unavailable)
    }

    /// Recomputes the sums of `day` (`None`: today).
    ///
    /// # Errors
    /// `QUOTA_UNAVAILABLE`.
    pub async fn verify(&self, who: &QuotaReader, day: Option<Day>) -> Result<Verification> {
        self.ledger.verify(&who.project().id, day).await.map(|at| at.reply).map_err(unavailable)
    }
}

fn unavailable(error: Unavailable) -> Error {
    Error::new(Kind::QuotaUnavailable, "The download ledger does not answer; try again shortly.").with_source(error)
}
