//! A whole trial, or a part of it, as one ZIP file.
//!
//! ```text
//! plan (list, lay out) ──► reserve the archive's length ──► stream: open by etag, read ahead, count
//! ```
//!
//! The versions are those of the listing: each file is opened with its etag, so that one that has
//! changed since, or fails midway, cuts the stream. There is no clean end of a wrong archive.

pub mod layout;
mod stream;

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use self::layout::{Entry, Layout};
use crate::access::Viewer;
use crate::artifact::{ArtifactName, TrialId};
use crate::catalog::{Catalog, Prefix};
use crate::error::{Error, Kind, Result};
use crate::ledger::MAX_AMOUNT;
use crate::listing::checked_prefix;
use crate::store::{ETag, MAX_PAGE, Stat};

pub(crate) use self::stream::bytes;

/// Plans archives.
pub struct Archives {
    catalog: Arc<Catalog>,
    max_entries: usize,
}

/// What goes into an archive, and how long it is.
#[derive(Debug)]
pub struct Plan {
    trial: TrialId,
    prefix: String,
    base: Prefix,
    members: Vec<Member>,
    length: u64,
}

/// One file.
#[derive(Debug)]
struct Member {
    name: ArtifactName,
    stat: Stat,
}

impl Member {
    fn entry(&self) -> Entry<'_> {
        Entry { name: self.name.as_str(), size: self.stat.size, modified: self.stat.modified }
    }
}

impl Plan {
    /// The trial.
    #[must_use]
    pub const fn trial(&self) -> &TrialId {
        &self.trial
    }

    /// The length of the archive, bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The validator: the same while every file of it is of the same name, time and version. Weak, since
    /// another program may write other bytes around the same files.
    #[must_use]
    pub fn etag(&self) -> ETag {
        let mut hash = Sha256::new();
        for Member { name, stat } in &self.members {
            let modified = stat.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            hash.update(stat.size.to_be_bytes());
            hash.update(modified.as_nanos().to_be_bytes());
            // A file's own validator is weak only while the file is young; its text stays.
            for text in [name.as_str(), stat.etag.opaque()] {
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
        }
        let half = hash.finalize().iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte));
        ETag::weak(format!("{half:032x}"))
    }

    /// What the audit says was read: the names' common beginning and a star.
    #[must_use]
    pub fn label(&self) -> ArtifactName {
        let starred = ArtifactName::parse(&format!("{}*", self.prefix));
        starred.unwrap_or_else(|_| ArtifactName::parse("*").expect("a star is a name"))
    }
}

impl Archives {
    /// Archives of what is in `catalog`, of at most `max_entries` files each.
    #[must_use]
    pub const fn new(catalog: Arc<Catalog>, max_entries: usize) -> Self {
        Self { catalog, max_entries }
    }

    /// Lists the artifacts of a trial whose names begin with `prefix`, and lays the archive out.
    /// What no listing shows is not in it.
    ///
    /// # Errors
    /// `INVALID_NAME` (the prefix), `TRIAL_NOT_FOUND`, `ARTIFACT_NOT_FOUND` if no name begins so,
    /// `ARCHIVE_TOO_LARGE`, `STORE_UNAVAILABLE`.
    pub async fn plan(&self, who: &Viewer, trial: &TrialId, prefix: &str) -> Result<Plan> {
        let base = self.catalog.trial_prefix(who, trial);
        let narrowed = base.narrowed(checked_prefix(prefix)?);
        let (mut members, mut layout, mut after) = (Vec::new(), Layout::default(), None);
        loop {
            let page = self.catalog.list(&narrowed, after.as_deref(), MAX_PAGE).await?;
            for object in page.objects {
                let Some(Ok(name)) = object.key.strip_prefix(base.as_str()).map(ArtifactName::parse) else { continue };
                if members.len() == self.max_entries {
                    return Err(self.too_large());
                }
                let member = Member { name, stat: object.stat };
                layout.add(&member.entry()).ok_or_else(|| self.too_large())?;
                members.push(member);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if members.is_empty() {
            self.catalog.require_trial(who, trial).await?;
            return Err(Error::new(
                Kind::ArtifactNotFound,
                "The trial has no artifact whose name begins so; its listing shows the names it has.",
            ));
        }
        let length = layout.length().filter(|length| *length <= MAX_AMOUNT).ok_or_else(|| self.too_large())?;
        Ok(Plan { trial: trial.clone(), prefix: prefix.to_owned(), base, members, length })
    }

    fn too_large(&self) -> Error {
        let most = self.max_entries;
        Error::new(
            Kind::ArchiveTooLarge,
            format!("An archive has at most {most} files and 2^53 bytes; narrow it with ?prefix=."),
        )
    }
}
