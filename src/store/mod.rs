//! The objects: where the bytes of artifacts come from.
//!
//! A store knows keys, not trials. It hands out what is there, says exactly how much of which
//! version it hands out, and never follows a link. What a key means is decided in
//! [`artifact::key`](crate::artifact::key).

mod buffers;
pub mod local;
pub mod object;
mod open;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

pub use self::open::{Limits, Located, OpenError, directory, open};

/// The longest page of any listing: what object stores give in one answer.
pub const MAX_PAGE: usize = 1000;

/// A validator (RFC 9110 §8.8.3): the opaque text without its quotes, and whether it is weak.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag {
    weak: bool,
    opaque: Arc<str>,
}

impl ETag {
    /// A strong validator: equal tags mean equal bytes.
    pub fn strong(opaque: impl Into<Arc<str>>) -> Self {
        Self { weak: false, opaque: opaque.into() }
    }

    /// A weak validator: equal tags mean equivalent content, and never serve as a precondition.
    pub fn weak(opaque: impl Into<Arc<str>>) -> Self {
        Self { weak: true, opaque: opaque.into() }
    }

    /// Reads the field value `"…"` or `W/"…"`; a value without quotes is taken as strong, as some
    /// stores send it. `None` if it holds a quote, a control character or a byte beyond ASCII.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (weak, rest) = match text.strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let opaque = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(rest);
        let legal = |b: u8| b == 0x21 || (0x23..=0x7e).contains(&b);
        (!opaque.is_empty() && opaque.bytes().all(legal)).then(|| Self { weak, opaque: opaque.into() })
    }

    /// Whether equal tags promise only equivalent content.
    #[must_use]
    pub const fn is_weak(&self) -> bool {
        self.weak
    }

    /// The text between the quotes.
    #[must_use]
    pub fn opaque(&self) -> &str {
        &self.opaque
    }

    /// The strong comparison (RFC 9110 §8.8.3.2): both strong and the same.
    #[must_use]
    pub fn strong_eq(&self, other: &Self) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// The weak comparison: the same, strong or not.
    #[must_use]
    pub fn weak_eq(&self, other: &Self) -> bool {
        self.opaque == other.opaque
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.opaque)
    }
}

/// What a store says of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub size: u64,
    /// The store's validator; a weak one made of size and modification time where it gives none.
    pub etag: ETag,
    /// Last modification.
    pub modified: SystemTime,
    /// What the store keeps so as not to look twice.
    pub kept: Kept,
}

/// What a store may keep between a look at an object and its opening, such as the open file; no one
/// else can see it. Two looks are equal whatever was kept.
#[derive(Clone, Default)]
pub struct Kept(Option<Arc<dyn Any + Send + Sync>>);

impl Kept {
    fn of(kept: Arc<impl Any + Send + Sync>) -> Self {
        Self(Some(kept))
    }

    fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_deref().and_then(|kept| kept.downcast_ref())
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Kept" } else { "Nothing" })
    }
}

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The whole key.
    pub key: String,
    /// As [`Store::stat`] would say it.
    pub stat: Stat,
}

/// A page of objects below a prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Sorted by the bytes of the key. A page may hold fewer than were asked for, even none, and
    /// still have a next one.
    pub objects: Vec<Listed>,
    /// Where the next page begins ([`Store::list`]'s `after`), if there may be one. Not always a key.
    pub next: Option<String>,
    /// Entries of this page's span that no client could name, or that are no regular files:
    /// left out.
    pub skipped: u64,
}

/// A page of the folders directly below a prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    /// Their names, without prefix and slash, in the order in which object stores have them: by the
    /// bytes of the name *and its slash*, so `a-b` stands before `a`. A page may hold fewer than were
    /// asked for, even none, and still have a next one.
    pub names: Vec<String>,
    /// Where the next page begins, if there may be one.
    pub next: Option<String>,
}

/// An object being read.
pub struct Opened {
    /// The version that the bytes belong to; the same as was asked for, checked.
    pub stat: Stat,
    /// Exactly the bytes asked for, in chunks that are never empty. Ends in an error, never early,
    /// where the store falls short, runs over, makes no progress or changes the object.
    pub body: BoxStream<'static, Result<Bytes, StoreError>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("stat", &self.stat).finish_non_exhaustive()
    }
}

/// Why a store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No object has this key (or it is a link, a folder, a device: no object either).
    #[error("no such object")]
    NotFound,
    /// The object is not the version that was asked for, or changed while it was read.
    #[error("the object changed")]
    Changed,
    /// The object is archived and must be restored first.
    #[error("the object is in cold storage")]
    NotReady,
    /// The object is stored under a Content-Encoding, and the store would transcode it.
    #[error("the object is stored under the content encoding {0:?}")]
    Encoded(String),
    /// The store is out of reach, refuses, stalls or answers nonsense. Worth a retry later.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// [`StoreError::Unavailable`] for any cause.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }
}

/// Objects by key.
///
/// Keys are `/`-separated paths without a leading slash; each segment is valid in an
/// [`ArtifactName`](crate::artifact::ArtifactName). What is listed can be read: key in = key out.
/// Every method bounds the lack of progress, never the total time.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Size and validator of one object, fresh from the store.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::NotReady`], [`StoreError::Encoded`],
    /// [`StoreError::Unavailable`].
    async fn stat(&self, key: &str) -> Result<Stat, StoreError>;

    /// What a look of a moment ago said, where the store has it at hand. It may not be so any more, and does to
    /// open that version: [`open`](Store::open) finds out. Strong, and not empty.
    fn recall(&self, _key: &str) -> Option<Stat> {
        None
    }

    /// Up to `limit` objects whose keys begin with `prefix` (plain text, not whole segments),
    /// sorted by the key's bytes, strictly after `after` (any key, or an earlier [`Page::next`]).
    /// A limit counts as at least 1 and at most [`MAX_PAGE`].
    ///
    /// Directory markers are no objects. Keys that break the rules of names, links and special
    /// files are counted in [`Page::skipped`]; one bad entry never fails the listing. A page costs
    /// the same wherever it lies and needs constant memory.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]. A prefix without objects is an empty page.
    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError>;

    /// Up to `limit` names of folders directly below `prefix` (empty or ending in `/`), in the order
    /// of [`Folders::names`], strictly after the name `after`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]. A prefix without folders is an empty page.
    async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError>;

    /// Opens the bytes `range` of the version `of`. The range is not empty and lies within
    /// `of.size`; a strong etag is sent as the precondition, and the answer's size, etag and length
    /// are compared with `of` before this returns.
    ///
    /// # Errors
    /// As [`stat`](Store::stat), and [`StoreError::Changed`], which may also be the answer where the
    /// object is gone.
    async fn open(&self, key: &str, of: &Stat, range: Range<u64>) -> Result<Opened, StoreError>;

    /// Whether [`stat`](Store::stat) costs so much that what was seen is worth remembering.
    fn looks_cost(&self) -> bool {
        false
    }
}

/// No store is ever asked for an empty range or one beyond the object: their answers differ.
fn check_range(of: &Stat, range: &Range<u64>) -> Result<(), StoreError> {
    let sound = range.start < range.end && range.end <= of.size;
    debug_assert!(sound, "the range {range:?} of {} bytes", of.size);
    if sound { Ok(()) } else { Err(StoreError::unavailable("a range outside of the object was asked for")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_read_and_written() {
        for (text, shown) in [("\"abc\"", "\"abc\""), ("W/\"abc\"", "W/\"abc\""), ("abc-1", "\"abc-1\"")] {
            assert_eq!(ETag::parse(text).expect(text).to_string(), shown);
        }
        for bad in ["", "\"\"", "\"a\"b\"", "a b", "\"a\nb\"", "é"] {
            assert_eq!(ETag::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn etags_compare_by_rfc_9110_8_8_3_2() {
        let (s1, s2, w1) = (ETag::strong("1"), ETag::strong("2"), ETag::weak("1"));
        assert!(s1.strong_eq(&s1) && !s1.strong_eq(&s2) && !w1.strong_eq(&w1) && !s1.strong_eq(&w1));
        assert!(s1.weak_eq(&w1) && w1.weak_eq(&w1) && !s1.weak_eq(&s2));
    }
}
