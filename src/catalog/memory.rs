//! What is remembered of objects, for seconds. Pure but for its lock; the time is an argument.
//!
//! Only versions with a strong validator are kept, since only they can be asked for by name, and none
//! that is empty, since nothing of it is ever opened. What kind of file a version is belongs to its
//! validator and holds for as long as it is kept; that it is the present version, only for the life.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::artifact::media::Content;
use crate::store::{ETag, Kept, Stat};

/// The most that is kept, bytes: some 30,000 objects with keys of usual length.
const MOST_BYTES: usize = 8 << 20;
/// What an object takes besides its key and validator, bytes, about.
const EACH_BYTES: usize = 192;

/// A bounded memory by object key. What was seen of late stays longest.
pub(super) struct Memory {
    known: Mutex<Generations>,
    life: Duration,
}

/// When the young fill half of the room, they become the old, and those before them are forgotten.
struct Generations {
    young: HashMap<String, Known>,
    young_bytes: usize,
    old: HashMap<String, Known>,
    most_bytes: usize,
}

#[derive(Clone)]
struct Known {
    stat: Stat,
    kind: Option<Content>,
    at: Instant,
}

impl Memory {
    /// Recalls versions for `life`.
    pub(super) fn new(life: Duration) -> Self {
        Self::of_size(life, MOST_BYTES)
    }

    fn of_size(life: Duration, most_bytes: usize) -> Self {
        let known = Generations { young: HashMap::new(), young_bytes: 0, old: HashMap::new(), most_bytes };
        Self { known: Mutex::new(known), life }
    }

    /// The store just said that this is the present version of the object.
    pub(super) fn saw(&self, key: &str, stat: &Stat, now: Instant) {
        let mut known = self.known();
        let before = known.remove(key);
        if !stat.etag.is_weak() && stat.size > 0 {
            let kind = before.filter(|before| before.stat.etag.strong_eq(&stat.etag)).and_then(|before| before.kind);
            let stat = Stat { kept: Kept::default(), ..stat.clone() };
            known.insert(key, Known { stat, kind, at: now });
        }
    }

    /// The version that was seen within the life. It may be gone.
    pub(super) fn recall(&self, key: &str, now: Instant) -> Option<(Stat, Option<Content>)> {
        let known = self.known();
        let Known { stat, kind, at } = known.get(key)?;
        (now.saturating_duration_since(*at) < self.life).then(|| (stat.clone(), *kind))
    }

    /// What kind of file this version is, if its bytes were looked at.
    pub(super) fn kind(&self, key: &str, etag: &ETag) -> Option<Content> {
        self.known().get(key).filter(|known| known.stat.etag.strong_eq(etag))?.kind
    }

    /// The bytes of this version say that it is of this kind.
    pub(super) fn is_kind(&self, key: &str, etag: &ETag, kind: Content) {
        if let Some(known) = self.known().get_mut(key).filter(|known| known.stat.etag.strong_eq(etag)) {
            known.kind = Some(kind);
        }
    }

    /// The object is not what it was.
    pub(super) fn forget(&self, key: &str) {
        self.known().remove(key);
    }

    fn known(&self) -> MutexGuard<'_, Generations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&self, key: &str) -> Option<&Known> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Known> {
        self.young.get_mut(key).or_else(|| self.old.get_mut(key))
    }

    fn insert(&mut self, key: &str, known: Known) {
        self.young_bytes += bytes(key, &known);
        self.young.insert(key.to_owned(), known);
        if self.young_bytes > self.most_bytes / 2 {
            self.old = mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }

    fn remove(&mut self, key: &str) -> Option<Known> {
        let Some(known) = self.young.remove(key) else { return self.old.remove(key) };
        self.young_bytes -= bytes(key, &known);
        Some(known)
    }
}

fn bytes(key: &str, known: &Known) -> usize {
    EACH_BYTES + key.len() + known.stat.etag.opaque().len()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::artifact::media::ImageFormat;
    use crate::artifact::text::Encoding;

    const TEXT: Content = Content::Text(Encoding::Utf8);

    fn stat(size: u64, etag: ETag) -> Stat {
        Stat { size, etag, modified: SystemTime::UNIX_EPOCH, kept: Kept::default() }
    }

    fn strong(etag: &str) -> Stat {
        stat(10, ETag::strong(etag))
    }

    #[test]
    fn a_version_is_recalled_for_as_long_as_it_lives() {
        let (begun, memory) = (Instant::now(), Memory::new(Duration::from_secs(5)));
        let at = |ms| begun + Duration::from_millis(ms);
        assert_eq!(memory.recall("k", at(0)), None);
        memory.saw("k", &strong("v"), at(1_000));
        for (ms, known) in [(0, true), (1_000, true), (5_999, true), (6_000, false), (60_000, false)] {
            assert_eq!(memory.recall("k", at(ms)), known.then(|| (strong("v"), None)), "{ms}");
        }
        memory.saw("k", &strong("v"), at(60_000));
        assert!(memory.recall("k", at(64_999)).is_some(), "seen anew");
        memory.saw("k", &strong("w"), at(61_000));
        assert_eq!(memory.recall("k", at(61_000)), Some((strong("w"), None)), "the last that was seen");
        memory.forget("k");
        assert_eq!(memory.recall("k", at(61_000)), None);
    }

    #[test]
    fn what_cannot_be_asked_for_by_name_is_not_kept_and_takes_the_place_of_what_was() {
        for unfit in [stat(10, ETag::weak("v")), stat(0, ETag::strong("v"))] {
            let (now, memory) = (Instant::now(), Memory::new(Duration::from_secs(5)));
            memory.saw("k", &strong("v"), now);
            memory.saw("k", &unfit, now);
            assert_eq!(memory.recall("k", now), None, "{unfit:?}");
        }
    }

    #[test]
    fn nothing_lives_for_no_time() {
        let (now, memory) = (Instant::now(), Memory::new(Duration::ZERO));
        memory.saw("k", &strong("v"), now);
        assert_eq!(memory.recall("k", now), None);
    }

    #[test]
    fn a_kind_belongs_to_one_version() {
        let (begun, memory) = (Instant::now(), Memory::new(Duration::from_secs(5)));
        let (v, w) = (ETag::strong("v"), ETag::strong("w"));
        memory.is_kind("k", &v, TEXT);
        assert_eq!(memory.kind("k", &v), None, "nothing is known of it");
        memory.saw("k", &strong("v"), begun);
        memory.is_kind("k", &w, Content::Image(ImageFormat::Png));
        assert_eq!(memory.recall("k", begun), Some((strong("v"), None)), "it was another version");
        memory.is_kind("k", &v, TEXT);
        assert_eq!(memory.recall("k", begun), Some((strong("v"), Some(TEXT))));
        let later = begun + Duration::from_secs(600);
        assert_eq!((memory.recall("k", later), memory.kind("k", &v)), (None, Some(TEXT)), "bytes do not age");
        memory.saw("k", &strong("v"), later);
        assert_eq!(memory.recall("k", later), Some((strong("v"), Some(TEXT))), "kept with the version");
        assert_eq!(memory.kind("k", &ETag::weak("v")), None, "equal weak validators promise no equal bytes");
        memory.saw("k", &strong("w"), later);
        assert_eq!((memory.recall("k", later), memory.kind("k", &v)), (Some((strong("w"), None)), None));
    }

    #[test]
    fn it_is_bounded_by_size_and_keeps_what_was_seen_of_late() {
        const MOST: usize = 20 * EACH_BYTES;
        let (now, memory) = (Instant::now(), Memory::of_size(Duration::from_secs(5), MOST));
        let kept = |memory: &Memory| {
            let known = memory.known();
            let all = known.young.iter().chain(&known.old);
            all.map(|(key, known)| bytes(key, known)).sum::<usize>()
        };
        for number in 0..1_000 {
            memory.saw("often", &strong("v"), now);
            memory.saw(&format!("{number}{}", "k".repeat(number % 300)), &strong("v"), now);
            assert!(kept(&memory) <= MOST + EACH_BYTES + 301, "{number}");
            assert!(memory.recall("often", now).is_some(), "{number}");
        }
        assert!(kept(&memory) > MOST / 4, "it keeps something");
        for number in 0..1_000 {
            memory.forget(&format!("{number}{}", "k".repeat(number % 300)));
        }
        memory.forget("often");
        assert_eq!((kept(&memory), memory.known().young_bytes), (0, 0), "what is forgotten takes no room");
    }
}
