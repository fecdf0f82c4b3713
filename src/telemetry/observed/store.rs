//! The store's calls: how long until the answer begins, and what kind of answer; noted with the request, too.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use crate::store::{Folders, Opened, Page, Stat, Store, StoreError};
use crate::telemetry::health::{Health, Of};
use crate::telemetry::metrics::{Call, metrics};
use crate::telemetry::request::{Phase, took};

/// Another store, observed.
pub struct ObservedStore {
    inner: Arc<dyn Store>,
    health: Health,
}

impl ObservedStore {
    /// Observes `inner`, and tells `health` whether it answers.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, health: Health) -> Self {
        Self { inner, health }
    }

    fn note<T>(
        &self,
        phase: Phase,
        call: &Call,
        begun: Instant,
        answer: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let result = match &answer {
            Ok(_) => "ok",
            Err(StoreError::NotFound) => "not_found",
            Err(StoreError::Changed) => "changed",
            Err(StoreError::NotReady) => "not_ready",
            Err(StoreError::Encoded(_)) => "encoded",
            Err(StoreError::Unavailable(_)) => "unavailable",
        };
        let now = Instant::now();
        call.took(&metrics().store_seconds, result, now - begun);
        took(phase, begun, now);
        self.health.note(Of::Store, !matches!(answer, Err(StoreError::Unavailable(_))), now);
        answer
    }
}

#[async_trait]
impl Store for ObservedStore {
    async fn stat(&self, key: &str) -> Result<Stat, StoreError> {
        let begun = Instant::now();
        self.note(Phase::Stat, call!("stat"), begun, self.inner.stat(key).await)
    }

    fn recall(&self, key: &str) -> Option<Stat> {
        self.inner.recall(key)
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        let begun = Instant::now();
        self.note(Phase::Stat, call!("list"), begun, self.inner.list(prefix, after, limit).await)
    }

    async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError> {
        let begun = Instant::now();
        self.note(Phase::Stat, call!("folders"), begun, self.inner.folders(prefix, after, limit).await)
    }

    async fn open(&self, key: &str, of: &Stat, range: Range<u64>) -> Result<Opened, StoreError> {
        let begun = Instant::now();
        self.note(Phase::Store, call!("open"), begun, self.inner.open(key, of, range).await)
    }

    fn looks_cost(&self) -> bool {
        self.inner.looks_cost()
    }
}
