//! The ledger's calls: how long they take, what they tell of the books, and whether these are still
//! the same books.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;

use crate::artifact::ProjectId;
use crate::ledger::{
    Adjust, Adjustment, Admission, Allowance, AuditFilter, AuditPage, Day, DayUsage, Extend, Extension, Ledger,
    LedgerTime, Link, LinkId, Override, Reply, Reserve, Rules, Settle, Settlement, Unavailable, Usage, Verification,
};
use crate::telemetry::health::{Health, Of};
use crate::telemetry::metrics::{Call, ResultLabels, metrics};

/// Another ledger, observed.
pub struct ObservedLedger {
    inner: Arc<dyn Ledger>,
    health: Health,
    /// What the ledger called itself last.
    identity: Mutex<Option<String>>,
}

impl ObservedLedger {
    /// Observes `inner`, and tells `health` whether it answers and whether it lost what it held.
    #[must_use]
    pub fn new(inner: Arc<dyn Ledger>, health: Health) -> Self {
        Self { inner, health, identity: Mutex::default() }
    }

    fn note<T>(&self, call: &Call, begun: Instant, answer: Result<T, Unavailable>) -> Result<T, Unavailable> {
        let result = if answer.is_ok() { "ok" } else { "unavailable" };
        let now = Instant::now();
        call.took(&metrics().ledger_seconds, result, now - begun);
        self.health.note(Of::Ledger, answer.is_ok(), now);
        answer
    }

    fn recognise(&self, name: &str) {
        let mut known = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_deref().is_some_and(|known| known != name) {
            metrics().ledger_losses.inc();
            self.health.ledger_lost_data();
            tracing::error!(
                "the ledger lost what it held, or is another one than before: what was used today is counted anew; \
                 restore its data, or correct the accounts by POST /v1/projects/PROJECT/adjustments"
            );
        }
        *known = Some(name.to_owned());
    }
}

#[async_trait]
impl Ledger for ObservedLedger {
    fn rules(&self) -> &Rules {
        self.inner.rules()
    }

    fn set_default_allowance(&self, allowance: Allowance) {
        self.inner.set_default_allowance(allowance);
    }

    async fn identity(&self) -> Result<Option<String>, Unavailable> {
        let begun = Instant::now();
        let name = self.note(call!("identity"), begun, self.inner.identity().await)?;
        if let Some(name) = &name {
            self.recognise(name);
        }
        Ok(name)
    }

    async fn now(&self) -> Result<LedgerTime, Unavailable> {
        let begun = Instant::now();
        self.note(call!("now"), begun, self.inner.now().await)
    }

    async fn reserve(&self, call: &Reserve) -> Reply<Admission> {
        let begun = Instant::now();
        self.note(call!("reserve"), begun, self.inner.reserve(call).await)
    }

    async fn extend(&self, call: Extend<'_>) -> Reply<Extension> {
        let begun = Instant::now();
        self.note(call!("extend"), begun, self.inner.extend(call).await)
    }

    async fn settle(&self, call: &Settle) -> Reply<Settlement> {
        let begun = Instant::now();
        self.note(call!("settle"), begun, self.inner.settle(call).await)
    }

    async fn usage(&self, project: &ProjectId) -> Reply<Usage> {
        let begun = Instant::now();
        self.note(call!("usage"), begun, self.inner.usage(project).await)
    }

    async fn history(&self, project: &ProjectId, days: u32) -> Reply<Vec<DayUsage>> {
        let begun = Instant::now();
        self.note(call!("history"), begun, self.inner.history(project, days).await)
    }

    async fn audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage> {
        let begun = Instant::now();
        self.note(call!("audit"), begun, self.inner.audit(project, day, filter, from, limit).await)
    }

    async fn verify(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification> {
        let begun = Instant::now();
        self.note(call!("verify"), begun, self.inner.verify(project, day).await)
    }

    async fn set_allowance(&self, project: &ProjectId, exception: Option<&Override>) -> Reply<()> {
        let begun = Instant::now();
        self.note(call!("set_allowance"), begun, self.inner.set_allowance(project, exception).await)
    }

    async fn allowance(&self, project: &ProjectId) -> Reply<Option<Override>> {
        let begun = Instant::now();
        self.note(call!("allowance"), begun, self.inner.allowance(project).await)
    }

    async fn record_link(&self, project: &ProjectId, link: &Link) -> Reply<()> {
        let begun = Instant::now();
        self.note(call!("record_link"), begun, self.inner.record_link(project, link).await)
    }

    async fn links(&self, project: &ProjectId, after: Option<LinkId>, limit: usize) -> Reply<Vec<Link>> {
        let begun = Instant::now();
        self.note(call!("links"), begun, self.inner.links(project, after, limit).await)
    }

    async fn revoke_link(&self, project: &ProjectId, id: LinkId) -> Reply<bool> {
        let begun = Instant::now();
        self.note(call!("revoke_link"), begun, self.inner.revoke_link(project, id).await)
    }

    async fn adjust(&self, call: &Adjust) -> Reply<Adjustment> {
        let begun = Instant::now();
        self.note(call!("adjust"), begun, self.inner.adjust(call).await)
    }

    async fn sweep(&self) -> Reply<usize> {
        let begun = Instant::now();
        let answer = self.note(call!("sweep"), begun, self.inner.sweep().await);
        let result = if answer.is_ok() { "ok" } else { "failed" };
        metrics().sweeps.get_or_create(&ResultLabels { result }).inc();
        if let Ok(swept) = &answer {
            metrics().expired_leases.inc_by(swept.reply as u64);
        }
        answer
    }
}
