//! What a look found, and the looks of the last second: their files stay open, so that one that many ask
//! for is opened once.
//!
//! Whatever befalls a file itself shows in its ctime: a write, another name, another file in its place,
//! its removal. Each look asks for that, and where it need not show, no file stays open. Only a folder above it
//! can come to be another one unseen, or something be mounted there, for no longer than with the root.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::super::{Kept, Stat};
use super::root::{LOOK_AGAIN_AFTER, OpenFile, Version};

/// The most files that stay open after a look.
pub const MOST_OPEN: usize = 128;

/// As many of a process that may have so many descriptors: an eighth of them, or [`MOST_OPEN`] if that is less.
#[must_use]
pub fn most_open(descriptors: Option<u64>) -> usize {
    let share = descriptors.and_then(|all| usize::try_from(all / 8).ok());
    share.unwrap_or(MOST_OPEN).clamp(1, MOST_OPEN)
}

/// A file that a look opened, and what it said of it.
#[derive(Debug)]
pub(super) struct Looked {
    key: Arc<str>,
    file: OpenFile,
    stat: Stat,
    at: Instant,
}

impl Looked {
    pub(super) fn new(key: &str, file: OpenFile, at: Instant) -> Arc<Self> {
        let stat = file.version.stat();
        Arc::new(Self { key: key.into(), file, stat, at })
    }

    /// What the look says; it keeps the look.
    pub(super) fn stat(self: &Arc<Self>) -> Stat {
        Stat { kept: Kept::of(Arc::clone(self)), ..self.stat.clone() }
    }

    /// The file, if it is what `key` named in the version `of`.
    pub(super) fn file(&self, key: &str, of: &Stat) -> Option<OpenFile> {
        (*self.key == *key && self.stat == *of).then(|| self.file.clone())
    }

    fn is_young(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < LOOK_AGAIN_AFTER
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.stat.size == 0
    }

    /// Whether a new look would say the same.
    pub(super) fn holds(&self) -> bool {
        Version::of(&self.file.file).is_ok_and(|now| now == self.file.version)
    }
}

/// The looks of the last second.
#[derive(Debug)]
pub(super) struct Looks {
    recent: Mutex<Recent>,
    most: usize,
}

#[derive(Debug, Default)]
struct Recent {
    by_key: HashMap<Arc<str>, Arc<Looked>>,
    /// In the order of time. Of a key that was looked at again, the last one counts.
    in_order: VecDeque<Arc<Looked>>,
    /// Whether a task waits to close them.
    awaited: bool,
}

impl Looks {
    /// None yet; `most` of them at a time, at least 1.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { recent: Mutex::default(), most })
    }

    /// The last look at `key`, if it is young.
    pub(super) fn recall(&self, key: &str, now: Instant) -> Option<Arc<Looked>> {
        self.recent().by_key.get(key).filter(|looked| looked.is_young(now)).map(Arc::clone)
    }

    /// Keeps a look, unless the file is so young that it may change without its times telling, or lies where they
    /// do not tell. Whoever keeps the first one is to see to [`close_old`](Self::close_old): whether this one did.
    pub(super) fn keep(&self, looked: &Arc<Looked>) -> bool {
        if looked.stat.etag.is_weak() || !looked.file.tells() {
            return false;
        }
        let mut recent = self.recent();
        let old = recent.take_old(looked.at, self.most - 1);
        recent.by_key.insert(Arc::clone(&looked.key), Arc::clone(looked));
        recent.in_order.push_back(Arc::clone(looked));
        let first = !mem::replace(&mut recent.awaited, true);
        drop(recent);
        drop(old);
        first
    }

    /// Closes what is too old to be recalled. Whether anything is left.
    pub(super) fn close_old(&self, now: Instant) -> bool {
        let mut recent = self.recent();
        let old = recent.take_old(now, self.most);
        recent.awaited = !recent.in_order.is_empty();
        let left = recent.awaited;
        drop(recent);
        drop(old);
        left
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    /// Takes out the looks that are too old, and the oldest beyond `most`. Dropping them closes their files,
    /// which is not for under the lock.
    fn take_old(&mut self, now: Instant, most: usize) -> Vec<Arc<Looked>> {
        let mut old = Vec::new();
        while let Some(first) = self.in_order.front() {
            if self.in_order.len() <= most && first.is_young(now) {
                break;
            }
            if self.by_key.get(&first.key).is_some_and(|last| Arc::ptr_eq(last, first)) {
                self.by_key.remove(&first.key);
            }
            old.extend(self.in_order.pop_front());
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_descriptors_is_for_files_that_stay_open() {
        for (descriptors, want) in [(None, 128), (Some(1 << 20), 128), (Some(1024), 128), (Some(64), 8), (Some(4), 1)] {
            assert_eq!(most_open(descriptors), want, "{descriptors:?}");
        }
    }
}
