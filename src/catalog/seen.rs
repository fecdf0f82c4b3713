//! An artifact as a fresh look found it, and as it is remembered.
//!
//! Answers are made of a [`Found`] alone. What is remembered becomes one only by the store's own word:
//! when it opens that very version, or says of it that it is the present one.

use crate::artifact::media::Content;
use crate::artifact::{ArtifactName, Project, TrialId};
use crate::store::{ETag, Stat};

/// An artifact that exists, as the store has just said.
#[derive(Debug, Clone)]
pub struct Found {
    pub(super) project: Project,
    pub(super) trial: TrialId,
    pub(super) name: ArtifactName,
    pub(super) key: String,
    pub(super) stat: Stat,
    pub(super) kind: Option<Content>,
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

/// An artifact as it was seen a moment ago: reason enough to open that version, and for nothing else.
#[derive(Debug, Clone)]
pub struct Recalled(pub(super) Found);

impl Recalled {
    /// The validator of the version that an open would ask for. Strong.
    #[must_use]
    pub const fn etag(&self) -> &ETag {
        &self.0.stat.etag
    }

    /// What an open leads to if the version is still there; `None` where the `judgement` is that there is
    /// nothing to open, which is for a fresh look to say.
    pub fn opening<T>(self, judgement: impl FnOnce(&Stat) -> Option<T>) -> Option<(Seen, T)> {
        let opening = judgement(&self.0.stat)?;
        Some((Seen::Recalled(self), opening))
    }
}

/// A version to be read.
#[derive(Debug, Clone)]
pub enum Seen {
    /// The present one.
    Found(Found),
    /// One that was the present one a moment ago, and is opened only if it still is.
    Recalled(Recalled),
}

impl Seen {
    pub(super) const fn target(&self) -> &Found {
        match self {
            Self::Found(found) | Self::Recalled(Recalled(found)) => found,
        }
    }

    /// The project, whose allowance a read is charged to.
    #[must_use]
    pub const fn project(&self) -> &Project {
        &self.target().project
    }

    /// The trial.
    #[must_use]
    pub const fn trial(&self) -> &TrialId {
        &self.target().trial
    }

    /// The artifact's name.
    #[must_use]
    pub const fn name(&self) -> &ArtifactName {
        &self.target().name
    }

    /// The bytes to reserve.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.target().stat.size
    }

    /// What kind of file the version is, where its bytes were looked at before.
    #[must_use]
    pub const fn kind(&self) -> Option<Content> {
        self.target().kind
    }
}

impl From<Found> for Seen {
    fn from(found: Found) -> Self {
        Self::Found(found)
    }
}
