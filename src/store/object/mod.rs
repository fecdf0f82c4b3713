//! Object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage, memory.
//!
//! `object_store` signs the requests and tries them again; a client of our own sends them (`client`), which
//! bounds what a slow reader holds. Most reads of S3 go a shorter way (`shortcut`). What `object_store` does
//! not tell is looked up on the wire (`wire.rs`): the keys of a listing as they are, the codes of refusals, the
//! storage class. Every answer is compared with what was asked for, since some servers ignore preconditions
//! and ranges.
//!
//! - An object under a Content-Encoding other than `identity` or `aws-chunked` is refused
//!   ([`StoreError::Encoded`]): its listed size is not always the size that is sent.
//! - An archived object is refused already by [`stat`](Store::stat) ([`StoreError::NotReady`]).
//! - Times are whole seconds: a stat has no finer ones, and listings must agree with it.

mod body;
mod client;
mod connect;
mod listing;
mod listing_xml;
mod refusal;
mod shortcut;
mod wire;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Extensions, GetOptions, GetRange, GetResult, ObjectStore};
use tokio::time::Instant;

use self::client::{Arrived, Asked};
use self::listing::Lister;
use self::shortcut::{Answered, Rest, Shortcut};
use self::wire::{Notes, Witness};
use super::{ETag, Folders, Kept, Limits, Opened, Page, Stat, Store, StoreError};
use crate::artifact::has_sound_segments;

pub use self::connect::BuildError;

/// A store of objects behind a bucket or container.
#[derive(Clone)]
pub struct Objects {
    /// For answers without a body: few retries.
    answers: Arc<dyn ObjectStore>,
    /// For bodies, which are taken up again where they broke off, however late.
    bodies: Arc<dyn ObjectStore>,
    /// A quicker way to bodies, for stores that have one.
    shortcut: Option<Arc<Shortcut>>,
    lister: Lister,
    limits: Limits,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("store", &self.answers).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Objects {
    /// A store in memory, over objects that the caller may go on changing.
    #[must_use]
    pub fn memory(objects: Arc<InMemory>) -> Self {
        Self {
            answers: Arc::clone(&objects) as _,
            bodies: Arc::clone(&objects) as _,
            shortcut: None,
            lister: Lister::memory(objects),
            limits: Limits::default(),
        }
    }

    /// Asks for an object, and gives the answer with what was noted of it on the wire.
    async fn get(
        &self,
        store: &dyn ObjectStore,
        path: &Path,
        mut options: GetOptions,
        deadline: Instant,
    ) -> Result<(GetResult, Notes), (StoreError, Notes)> {
        let witness = Witness::default();
        options.extensions.insert(witness.clone());
        match tokio::time::timeout_at(deadline, store.get_opts(path, options)).await {
            Ok(Ok(result)) => match refusal::of_answer(&result, &witness.notes()) {
                None => Ok((result, witness.notes())),
                Some(refusal) => Err((refusal, witness.notes())),
            },
            Ok(Err(error)) => Err((refusal::of_error(error, &witness.notes()), witness.notes())),
            Err(_) => Err((StoreError::unavailable("no answer in time"), witness.notes())),
        }
    }

    /// The body of an answer that came by the short way.
    fn body(
        &self,
        arrived: Arrived,
        key: Path,
        of: &Stat,
        range: Range<u64>,
    ) -> BoxStream<'static, Result<Bytes, StoreError>> {
        match arrived {
            Arrived::Whole(bytes) => stream::iter([Ok(bytes)]).boxed(),
            Arrived::Part(body) => {
                let length = range.end - range.start;
                let rest = Rest { body, store: Arc::clone(&self.bodies), key, etag: of.etag.clone(), range };
                body::exactly(rest.chunks(), length, self.limits)
            }
        }
    }
}

/// The key as it is: `Path::from` would escape it.
fn path_of(key: &str) -> Result<Path, StoreError> {
    Path::parse(key).ok().filter(|_| has_sound_segments(key)).ok_or(StoreError::NotFound)
}

#[async_trait]
impl Store for Objects {
    async fn stat(&self, key: &str) -> Result<Stat, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let deadline = Instant::now() + self.limits.answer;
        match self.get(&*self.answers, &path_of(key)?, options, deadline).await {
            Ok((result, _)) => Ok(stat_of(&result)),
            Err((error, _)) => Err(error),
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        self.lister.objects(prefix, after, limit).await
    }

    async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError> {
        self.lister.folders(prefix, after, limit).await
    }

    async fn open(&self, key: &str, of: &Stat, range: Range<u64>) -> Result<Opened, StoreError> {
        super::check_range(of, &range)?;
        let (path, deadline) = (path_of(key)?, Instant::now() + self.limits.answer);
        let mut extensions = Extensions::new();
        if let Some(shortcut) = &self.shortcut {
            match shortcut.open(&path, of, &range, deadline).await {
                Some(Asked::AsHoped(stat, arrived)) => {
                    return Ok(Opened { stat, body: self.body(arrived, path, of, range) });
                }
                Some(Asked::Otherwise(answer)) => drop(extensions.insert(Answered::new(answer))),
                None => {}
            }
            if let Some(lesson) = shortcut.lesson(&path) {
                extensions.insert(lesson);
            }
        }
        let whole = range == (0..of.size);
        let options = GetOptions {
            if_match: (!of.etag.is_weak()).then(|| of.etag.to_string()),
            range: (!whole).then(|| GetRange::Bounded(range.clone())),
            extensions,
            ..GetOptions::default()
        };
        let result = match self.get(&*self.bodies, &path, options, deadline).await {
            Ok((result, _)) => result,
            // An answer about another total is one about another version, whatever else it is.
            Err((StoreError::Unavailable(_), notes)) if notes.total.is_some_and(|total| total != of.size) => {
                return Err(StoreError::Changed);
            }
            Err((error, _)) => return Err(error),
        };
        let stat = stat_of(&result);
        let same = if of.etag.is_weak() { stat.etag.weak_eq(&of.etag) } else { stat.etag.strong_eq(&of.etag) };
        if stat.size != of.size || !same {
            return Err(StoreError::Changed);
        }
        if result.range != range {
            return Err(StoreError::unavailable("the store sent another range than it was asked for"));
        }
        let chunks = result.into_stream();
        Ok(Opened { stat, body: body::exactly(chunks, range.end - range.start, self.limits) })
    }

    fn looks_cost(&self) -> bool {
        true
    }
}

fn stat_of(result: &GetResult) -> Stat {
    let seconds = result.meta.last_modified.timestamp();
    stat_from(result.meta.size, seconds, result.meta.e_tag.as_deref())
}

/// Listings and answers give the same stat for the same version.
fn stat_from(size: u64, modified_seconds: i64, etag: Option<&str>) -> Stat {
    let modified = u64::try_from(modified_seconds).map(Duration::from_secs).unwrap_or_default();
    let etag = etag.and_then(ETag::parse).unwrap_or_else(|| ETag::weak(format!("{size:x}-{:x}", modified.as_secs())));
    let modified = UNIX_EPOCH.checked_add(modified).unwrap_or(SystemTime::UNIX_EPOCH);
    Stat { size, etag, modified, kept: Kept::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_broken_etag_is_replaced_by_a_weak_one_of_size_and_time() {
        for etag in [None, Some(""), Some("\"a\nb\"")] {
            assert_eq!(stat_from(255, 16, etag).etag, ETag::weak("ff-10"));
        }
        assert_eq!(stat_from(1, 1, Some("\"x\"")).etag, ETag::strong("x"));
        assert_eq!(stat_from(1, 1, Some("W/\"x\"")).etag, ETag::weak("x"));
        assert_eq!(stat_from(1, 1, Some("0x8D")).etag, ETag::strong("0x8D"));
        assert_eq!(stat_from(1, -5, None).modified, UNIX_EPOCH);
    }
}
