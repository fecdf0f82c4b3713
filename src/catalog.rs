//! The object store as the catalogue: an artifact exists when its object does, and a trial exists
//! when it has objects.
//!
//! This is the only way to the store. Looking takes a [`Viewer`], reading takes a [`Reservation`]:
//! what a principal may not see is not there for it, and no byte is read that is not reserved.

use std::ops::Range;
use std::sync::Arc;

use crate::access::Viewer;
use crate::artifact::key::Layout;
use crate::artifact::{ArtifactName, Project, TrialId};
use crate::error::{Error, Kind, Result};
use crate::read::Reservation;
use crate::store::{Folders, Opened, Page, Stat, Store, StoreError};
use crate::telemetry::request::{Phase, timed};

/// Finds trials and artifacts below a layout.
pub struct Catalog {
    store: Arc<dyn Store>,
    layout: Layout,
}

/// An artifact that exists, as a fresh stat saw it.
#[derive(Debug, Clone)]
pub struct Found {
    project: Project,
    trial: TrialId,
    name: ArtifactName,
    key: String,
    stat: Stat,
}

impl Found {
    /// The project, whose allowance a read is charged to.
    #[must_use]
    pub const fn project(&self) -> &Project {
        &self.project
    }

    /// The trial.
    #[must_use]
    pub const fn trial(&self) -> &TrialId {
        &self.trial
    }

    /// The artifact's name.
    #[must_use]
    pub const fn name(&self) -> &ArtifactName {
        &self.name
    }

    /// Size and validator.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }
}

impl Catalog {
    /// The artifacts that `layout` finds in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, layout: Layout) -> Self {
        Self { store, layout }
    }

    /// Looks an artifact up, fresh from the store.
    ///
    /// # Errors
    /// `TRIAL_NOT_FOUND`, `ARTIFACT_NOT_FOUND`, `ARTIFACT_NOT_READY`, `ARTIFACT_ENCODED`,
    /// `STORE_UNAVAILABLE`.
    pub async fn find(&self, who: &Viewer, trial: &TrialId, name: &ArtifactName) -> Result<Found> {
        let project = who.project();
        let key = self.layout.object_key(project, trial, name);
        match timed(Phase::Stat, self.store.stat(&key)).await {
            Ok(stat) => Ok(Found { project: project.clone(), trial: trial.clone(), name: name.clone(), key, stat }),
            Err(StoreError::NotFound) => {
                self.require_trial(who, trial).await?;
                Err(refuse(StoreError::NotFound))
            }
            Err(error) => Err(refuse(error)),
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
        timed(Phase::Stat, self.store.list(&prefix.0, after, limit)).await.map_err(refuse)
    }

    /// A page of folders, as [`Store::folders`].
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`.
    pub async fn folders(&self, prefix: &Prefix, after: Option<&str>, limit: usize) -> Result<Folders> {
        timed(Phase::Stat, self.store.folders(&prefix.0, after, limit)).await.map_err(refuse)
    }

    /// Opens bytes of the version that was found and reserved, as [`Store::open`].
    ///
    /// # Errors
    /// `ARTIFACT_CHANGED`, `ARTIFACT_NOT_FOUND`, `ARTIFACT_NOT_READY`, `ARTIFACT_ENCODED`,
    /// `STORE_UNAVAILABLE`.
    pub async fn open(&self, held: &Reservation, found: &Found, range: Range<u64>) -> Result<Opened> {
        debug_assert_eq!(held.size(), found.stat.size, "what is read is what was reserved");
        self.store.open(&found.key, &found.stat, range).await.map_err(refuse)
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
