//! A project's trials and a trial's artifacts, sorted by bytes, page by page.

pub(crate) mod near;

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::Viewer;
use crate::artifact::{ArtifactName, MAX_NAME_BYTES, TrialId, media};
use crate::catalog::Catalog;
use crate::cursor;
use crate::error::{Error, Kind, Result};
use crate::store::Stat;

/// Items of a page if the caller names no limit.
pub const DEFAULT_LIMIT: usize = 25;
/// The largest page.
pub const MAX_LIMIT: usize = 100;
/// Store pages that one page may take where most of what the store holds cannot be named.
const MAX_ROUNDS: usize = 16;

/// What a caller asks of a listing. All parts are optional and checked here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Items of the page, 1 to [`MAX_LIMIT`]; default [`DEFAULT_LIMIT`].
    pub limit: Option<u64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Only names that begin with this text. Ignored for trials.
    pub prefix: Option<String>,
}

/// An artifact as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArtifactItem {
    /// The name as one URL path segment.
    pub artifact_id: String,
    /// The logical path.
    pub name: ArtifactName,
    /// Bytes.
    pub size: u64,
    /// By the name's extension, and inert: what the content is, only its bytes say.
    pub media_type: &'static str,
    /// The validator, as in the `ETag` header.
    pub etag: String,
    /// RFC 3339, UTC, whole seconds.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub modified_at: Timestamp,
    /// Always `uploaded`: the object store knows no other artifacts.
    pub upload_state: &'static str,
}

/// A page of artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArtifactPage {
    /// Sorted by the name's bytes.
    pub items: Vec<ArtifactItem>,
    /// Ask for the next page with this.
    pub next_cursor: Option<String>,
    /// Entries in the page's span that are not shown: no client could name them, or they are links
    /// or special files.
    // Not called `skipped`, which a client of the platform takes for a failure.
    pub omitted: u64,
}

/// A trial as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialItem {
    /// The trial.
    pub trial_id: TrialId,
}

/// A page of trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialPage {
    /// Sorted by bytes.
    pub items: Vec<TrialItem>,
    /// Ask for the next page with this.
    pub next_cursor: Option<String>,
}

impl ArtifactItem {
    pub(crate) fn new(name: ArtifactName, stat: &Stat) -> Self {
        let modified = Timestamp::try_from(stat.modified).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            artifact_id: name.artifact_id(),
            size: stat.size,
            media_type: media::media_type_by_name(name.as_str()),
            etag: stat.etag.to_string(),
            modified_at: Timestamp::from_second(modified.as_second()).unwrap_or(Timestamp::UNIX_EPOCH),
            upload_state: "uploaded",
            name,
        }
    }
}

/// Lists what a catalogue holds.
pub struct Listing {
    catalog: Arc<Catalog>,
}

impl Listing {
    /// Lists `catalog`.
    #[must_use]
    pub const fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog }
    }

    /// One artifact, fresh from the store.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub async fn artifact(&self, who: &Viewer, trial: &TrialId, name: &ArtifactName) -> Result<ArtifactItem> {
        let found = self.catalog.find(who, trial, name).await?;
        Ok(ArtifactItem::new(name.clone(), found.stat()))
    }

    /// A page of a trial's artifacts.
    ///
    /// # Errors
    /// `INVALID_LIMIT`, `INVALID_CURSOR`, `INVALID_NAME` (the prefix), `TRIAL_NOT_FOUND`,
    /// `STORE_UNAVAILABLE`.
    pub async fn artifacts(&self, who: &Viewer, trial: &TrialId, query: &ListQuery) -> Result<ArtifactPage> {
        let limit = page_limit(query.limit)?;
        let base = self.catalog.trial_prefix(who, trial);
        let prefix = base.narrowed(checked_prefix(query.prefix.as_deref().unwrap_or_default())?);
        let mut after = query.cursor.as_deref().map(|cursor| cursor::read(prefix.as_str(), cursor)).transpose()?;
        let mut page = ArtifactPage { items: Vec::new(), next_cursor: None, omitted: 0 };
        for _ in 0..MAX_ROUNDS {
            let found = self.catalog.list(&prefix, after.as_deref(), limit - page.items.len()).await?;
            page.omitted += found.skipped;
            for object in found.objects {
                match object.key.strip_prefix(base.as_str()).map(ArtifactName::parse) {
                    Some(Ok(name)) => page.items.push(ArtifactItem::new(name, &object.stat)),
                    _ => page.omitted += 1,
                }
            }
            after = found.next;
            if after.is_none() || page.items.len() == limit {
                break;
            }
        }
        if page.items.is_empty() && page.omitted == 0 {
            self.catalog.require_trial(who, trial).await?;
        }
        page.next_cursor = after.map(|after| cursor::write(prefix.as_str(), &after));
        Ok(page)
    }

    /// A page of the project's trials. Folders that are no trial ids are left out.
    ///
    /// # Errors
    /// `INVALID_LIMIT`, `INVALID_CURSOR`, `STORE_UNAVAILABLE`.
    pub async fn trials(&self, who: &Viewer, query: &ListQuery) -> Result<TrialPage> {
        let limit = page_limit(query.limit)?;
        let prefix = self.catalog.trials_prefix(who);
        let mut after = query.cursor.as_deref().map(|cursor| cursor::read(prefix.as_str(), cursor)).transpose()?;
        let mut items = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let found = self.catalog.folders(&prefix, after.as_deref(), limit - items.len()).await?;
            let ids = found.names.iter().filter_map(|name| TrialId::parse(name).ok());
            items.extend(ids.map(|trial_id| TrialItem { trial_id }));
            after = found.next;
            if after.is_none() || items.len() == limit {
                break;
            }
        }
        Ok(TrialPage { items, next_cursor: after.map(|after| cursor::write(prefix.as_str(), &after)) })
    }
}

/// How many items a page has, of this listing and of every other.
///
/// # Errors
/// `INVALID_LIMIT`.
pub(crate) fn page_limit(asked: Option<u64>) -> Result<usize> {
    match asked.map(usize::try_from) {
        None => Ok(DEFAULT_LIMIT),
        Some(Ok(limit)) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        Some(_) => Err(Error::new(Kind::InvalidLimit, format!("limit is a whole number from 1 to {MAX_LIMIT}."))),
    }
}

/// A prefix is plain text, so its last segment may be anything a name begins with; the segments
/// before it are whole and obey the rules of names.
pub(crate) fn checked_prefix(prefix: &str) -> Result<&str> {
    let (folders, last) = prefix.rsplit_once('/').map_or((None, prefix), |(folders, last)| (Some(folders), last));
    let sound = prefix.len() <= MAX_NAME_BYTES
        && folders.is_none_or(|folders| ArtifactName::parse(folders).is_ok())
        && !last.contains('\\')
        && !last.chars().any(char::is_control);
    if sound { Ok(prefix) } else { Err(Error::new(Kind::InvalidName, "prefix is the beginning of an artifact name.")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_bounds() {
        assert_eq!(page_limit(None).expect("default"), 25);
        assert_eq!(page_limit(Some(100)).expect("most"), 100);
        for bad in [0, 101, u64::MAX] {
            assert_eq!(page_limit(Some(bad)).expect_err("refused").kind(), &Kind::InvalidLimit);
        }
    }

    #[test]
    fn prefixes_stay_inside_the_trial() {
        for good in ["", "a", "a/", "a/b", "..", "..x", ".h", "日", "a/.."] {
            assert!(checked_prefix(good).is_ok(), "{good:?}");
        }
        for bad in ["../", "../a", "a/../b", "/", "/a", "a//b", "a\\b", "a\0", "a\n/b", &"p".repeat(1025)] {
            assert!(checked_prefix(bad).is_err(), "{bad:?}");
        }
    }
}
