//! The object store as the catalogue: an artifact exists when its object does, and a trial exists
//! when it has objects.
//!
//! This is the only way to the store. Looking takes a [`Viewer`], reading takes a [`Reservation`]:
//! what a principal may not see is not there for it, and no byte is read that is not reserved.
//!
//! ```text
//! find    ──► store.stat ──────────► Found      answers are made of it; it can be opened
//!                                      ▲
//! recall  ──► a moment's memory ──► Recalled    it can only be opened: the store then says whether
//!                                               it is still the present version
//! ```

mod memory;
mod seen;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::memory::Memory;
use crate::access::Viewer;
use crate::artifact::key::Layout;
use crate::artifact::media::Content;
use crate::artifact::{ArtifactName, TrialId};
use crate::error::{Error, Kind, Result};
use crate::read::Reservation;
use crate::store::{Folders, Opened, Page, Stat, Store, StoreError};
use crate::telemetry::metrics::metrics;

pub use self::seen::{Found, Recalled, Seen};

/// Finds trials and artifacts below a layout.
pub struct Catalog {
    store: Arc<dyn Store>,
    layout: Layout,
    memory: Option<Memory>,
}

impl Catalog {
    /// The artifacts that `layout` finds in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, layout: Layout) -> Self {
        Self { store, layout, memory: None }
    }

    /// Remembers for `life` which versions were seen, where a look costs the store a request.
    #[must_use]
    pub fn remembering(self, life: Duration) -> Self {
        let memory = (self.store.looks_cost() && !life.is_zero()).then(|| Memory::new(life));
        Self { memory, ..self }
    }

    /// Looks an artifact up, fresh from the store.
    ///
    /// # Errors
    /// `TRIAL_NOT_FOUND`, `ARTIFACT_NOT_FOUND`, `ARTIFACT_NOT_READY`, `ARTIFACT_ENCODED`,
    /// `STORE_UNAVAILABLE`.
    pub async fn find(&self, who: &Viewer, trial: &TrialId, name: &ArtifactName) -> Result<Found> {
        let key = self.layout.object_key(who.project(), trial, name);
        match self.look(&key).await {
            Ok((stat, kind)) => Ok(found(who, trial, name, key, stat, kind)),
            Err(StoreError::NotFound) => {
                self.require_trial(who, trial).await?;
                Err(refuse(StoreError::NotFound))
            }
            Err(error) => Err(refuse(error)),
        }
    }

    /// The artifact as it was seen a moment ago, if it was. Asks the store nothing.
    #[must_use]
    pub fn recall(&self, who: &Viewer, trial: &TrialId, name: &ArtifactName) -> Option<Recalled> {
        let key = self.layout.object_key(who.project(), trial, name);
        let known = match &self.memory {
            Some(memory) => memory.recall(&key, Instant::now()),
            None => self.store.recall(&key).map(|stat| (stat, None)),
        };
        let Some((stat, kind)) = known else {
            metrics().recalled("miss");
            return None;
        };
        Some(Recalled(found(who, trial, name, key, stat, kind)))
    }

    /// What was remembered, if a fresh look finds the same.
    ///
    /// # Errors
    /// `ARTIFACT_CHANGED` if it does not: find it anew. `STORE_UNAVAILABLE`.
    pub async fn confirm(&self, Recalled(before): &Recalled) -> Result<Found> {
        match self.look(&before.key).await {
            Ok((stat, kind)) if stat == before.stat => Ok(Found { stat, kind, ..before.clone() }),
            Err(error @ StoreError::Unavailable(_)) => Err(refuse(error)),
            Ok(_) | Err(_) => Err(self.gone(&before.key)),
        }
    }

    /// The bytes of what was found say that it is of this kind.
    pub fn note_kind(&self, found: &Found, kind: Content) {
        if let Some(memory) = &self.memory {
            memory.is_kind(&found.key, &found.stat.etag, kind);
        }
    }

    /// Asks the store for a stat, and remembers it.
    async fn look(&self, key: &str) -> Result<(Stat, Option<Content>), StoreError> {
        let answer = self.store.stat(key).await;
        let Some(memory) = &self.memory else { return answer.map(|stat| (stat, None)) };
        match answer {
            Ok(stat) => {
                memory.saw(key, &stat, Instant::now());
                let kind = memory.kind(key, &stat.etag);
                Ok((stat, kind))
            }
            Err(error) => {
                memory.forget(key);
                Err(error)
            }
        }
    }

    /// What was remembered is not so any more.
    fn gone(&self, key: &str) -> Error {
        self.forget(key);
        metrics().recalled("stale");
        refuse(StoreError::Changed)
    }

    fn forget(&self, key: &str) {
        if let Some(memory) = &self.memory {
            memory.forget(key);
        }
    }

    /// Answers `TRIAL_NOT_FOUND` unless the trial holds at least one entry.
    ///
    /// # Errors
    /// `TRIAL_NOT_FOUND`, `STORE_UNAVAILABLE`.
    pub async fn require_trial(&self, who: &Viewer, trial: &TrialId) -> Result<()> {
        let page = self.list(&self.trial_prefix(who, trial), None, 1).await?;
        if page.objects.is_empty() && page.skipped == 0 && page.next.is_none() {
            return Err(Error::new(
                Kind::TrialNotFound,
                "This project has no trial of this id; GET /v1/trials lists those it has.",
            ));
        }
        Ok(())
    }

    /// Where a trial's artifacts lie.
    #[must_use]
    pub fn trial_prefix(&self, who: &Viewer, trial: &TrialId) -> Prefix {
        Prefix(self.layout.trial_prefix(who.project(), trial))
    }

    /// Where the project's trials lie.
    #[must_use]
    pub fn trials_prefix(&self, who: &Viewer) -> Prefix {
        Prefix(self.layout.trials_prefix(who.project()))
    }

    /// A page of objects, as [`Store::list`].
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`.
    pub async fn list(&self, prefix: &Prefix, after: Option<&str>, limit: usize) -> Result<Page> {
        let page = self.store.list(&prefix.0, after, limit).await.map_err(refuse)?;
        if let Some(memory) = &self.memory {
            let now = Instant::now();
            page.objects.iter().for_each(|object| memory.saw(&object.key, &object.stat, now));
        }
        Ok(page)
    }

    /// A page of folders, as [`Store::folders`].
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`.
    pub async fn folders(&self, prefix: &Prefix, after: Option<&str>, limit: usize) -> Result<Folders> {
        self.store.folders(&prefix.0, after, limit).await.map_err(refuse)
    }

    /// Opens bytes of the version that was seen and reserved, as [`Store::open`]. What was remembered is
    /// found by it.
    ///
    /// # Errors
    /// `ARTIFACT_CHANGED`, `ARTIFACT_NOT_FOUND`, `ARTIFACT_NOT_READY`, `ARTIFACT_ENCODED`,
    /// `STORE_UNAVAILABLE`. Of what was remembered only the first and the last: all else that there is to
    /// say of an artifact, a fresh look says.
    pub async fn open(&self, held: &Reservation, seen: Seen, range: Range<u64>) -> Result<(Found, Opened)> {
        debug_assert_eq!(held.size(), seen.size(), "what is read is what was reserved");
        let Found { key, stat, .. } = seen.target();
        let answer = self.store.open(key, stat, range).await;
        match (seen, answer) {
            (Seen::Found(found), Ok(opened)) => Ok((found, opened)),
            // The same bytes written anew are the same version, but no longer from the same time.
            (Seen::Recalled(Recalled(before)), Ok(opened)) if opened.stat.modified == before.stat.modified => {
                if let Some(memory) = &self.memory {
                    memory.saw(&before.key, &opened.stat, Instant::now());
                }
                metrics().recalled("hit");
                Ok((Found { stat: opened.stat.clone(), ..before }, opened))
            }
            (Seen::Recalled(Recalled(before)), Ok(_)) => Err(self.gone(&before.key)),
            (Seen::Recalled(Recalled(before)), Err(error)) if !matches!(error, StoreError::Unavailable(_)) => {
                Err(self.gone(&before.key))
            }
            (seen, Err(error)) => {
                self.forget(&seen.target().key);
                Err(refuse(error))
            }
        }
    }

    /// Opens the many artifacts that one reservation covers.
    #[must_use]
    pub fn opener(&self, _held: &Reservation) -> Opener {
        Opener(Arc::clone(&self.store))
    }
}

/// Opens, under one reservation, artifacts that a listing showed. Cheap to clone.
#[derive(Clone)]
pub struct Opener(Arc<dyn Store>);

impl Opener {
    /// Opens the whole of one artifact below `base`, in the version `of`, which is not empty.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open(&self, base: &Prefix, name: &ArtifactName, of: &Stat) -> Result<Opened, StoreError> {
        self.0.open(base.narrowed(name.as_str()).as_str(), of, 0..of.size).await
    }
}

/// A place in the store that a [`Viewer`] may look into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Narrows the place to keys that go on with `text`, which was checked to have no whole segment
    /// that a name may not have.
    pub(crate) fn narrowed(&self, text: &str) -> Self {
        Self(format!("{}{text}", self.0))
    }

    /// The keys' common beginning.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn found(who: &Viewer, trial: &TrialId, name: &ArtifactName, key: String, stat: Stat, kind: Option<Content>) -> Found {
    Found { project: who.project().clone(), trial: trial.clone(), name: name.clone(), key, stat, kind }
}

/// A store's error in the caller's terms.
pub(crate) fn refuse(error: StoreError) -> Error {
    match error {
        StoreError::NotFound => Error::new(
            Kind::ArtifactNotFound,
            "The trial has no artifact of this name; its listing shows the names it has.",
        ),
        StoreError::Changed => Error::new(
            Kind::ArtifactChanged,
            "The artifact keeps changing while it is read; read it again when its writer is done.",
        ),
        StoreError::NotReady => Error::new(
            Kind::ArtifactNotReady,
            "The artifact is in cold storage; ask the storage's owner to restore it first.",
        ),
        StoreError::Encoded(encoding) => Error::new(
            Kind::ArtifactEncoded,
            format!(
                "The artifact is stored under Content-Encoding {encoding:?} and cannot be served byte for byte; ask \
                     the storage's owner to store it without one."
            ),
        ),
        StoreError::Unavailable(source) => {
            Error::new(Kind::StoreUnavailable, "The object store does not answer; try again shortly.")
                .with_source(source)
        }
    }
}
