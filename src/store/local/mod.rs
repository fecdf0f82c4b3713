//! A directory as a store: for one machine, for demonstrations, for a folder of trials as it is.
//!
//! Every path is resolved beneath the directory by the kernel, without following a symbolic link in
//! any segment. A directory that takes the place of the first one, or of a folder in it, is noticed within
//! about a second. Only regular files exist: links, FIFOs, sockets and devices are neither listed nor
//! opened. A file that the service may not read does not exist either, so that what is listed can be
//! read; listings count it as skipped.
//!
//! A file's validator is made of inode, size, mtime and ctime in nanoseconds. It is weak while the
//! file is younger than two seconds, since a file system's clock may not tell two writes of the same
//! moment apart.

mod looked;
mod read;
mod root;
mod walk;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Resource, getrlimit};
use tokio::time::Instant;

use self::looked::{Looked, Looks};
pub use self::looked::{MOST_OPEN, most_open};
use self::read::Reader;
use self::root::{Denial, LOOK_AGAIN_AFTER, OpenFile, Root};
use super::buffers::Buffers;
use super::{Folders, Opened, Page, Stat, Store, StoreError};
use crate::artifact::has_sound_segments;

/// How long one step on the file system (a page, a stat, a chunk) may take before the store counts as
/// unavailable.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// How many large buffers are lent at a time (32 MiB in all): two for each of 64 connections, as many as are
/// worth their while.
const MAX_LENT: usize = 128;

/// A store over a directory of this machine. Linux 5.6 or newer.
#[derive(Debug, Clone)]
pub struct Local {
    root: Arc<Root>,
    looks: Arc<Looks>,
    buffers: Arc<Buffers>,
}

impl Local {
    /// Opens the directory `path`, which may itself be reached through links: it is the operator's
    /// choice. Any path the system can name will do, also one that is not UTF-8.
    ///
    /// # Errors
    /// The directory is missing, is none, cannot be searched, or the kernel lacks `openat2`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let looks = Looks::new(most_open(getrlimit(Resource::Nofile).current));
        Ok(Self { root: Arc::new(Root::open(path)?), looks, buffers: Buffers::new(MAX_LENT) })
    }
}

#[async_trait]
impl Store for Local {
    async fn stat(&self, key: &str) -> Result<Stat, StoreError> {
        let now = Instant::now();
        if let Some(looked) = self.looks.recall(key, now).filter(|looked| looked.holds()) {
            return Ok(looked.stat());
        }
        let looked = Looked::new(key, self.open_file(key).await?, now);
        if self.looks.keep(&looked) {
            tokio::spawn(close_old(Arc::downgrade(&self.looks)));
        }
        Ok(looked.stat())
    }

    fn recall(&self, key: &str) -> Option<Stat> {
        let looked = self.looks.recall(key, Instant::now())?;
        (!looked.is_empty()).then(|| looked.stat())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let root = Arc::clone(&self.root);
        off_thread(move || walk::objects(&root, &prefix, after.as_deref(), limit))
            .await?
            .map_err(StoreError::unavailable)
    }

    async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let root = Arc::clone(&self.root);
        off_thread(move || walk::folders(&root, &prefix, after.as_deref(), limit))
            .await?
            .map_err(StoreError::unavailable)
    }

    async fn open(&self, key: &str, of: &Stat, range: Range<u64>) -> Result<Opened, StoreError> {
        super::check_range(of, &range)?;
        let file = match of.kept.get().and_then(|looked: &Looked| looked.file(key, of)) {
            // What took its place since has changed its ctime, which shows when it is read.
            Some(file) => file,
            None => {
                let file = self.open_file(key).await?;
                file.version.is(of).then_some(file).ok_or(StoreError::Changed)?
            }
        };
        Ok(Opened { stat: of.clone(), body: read::stream(Reader::new(file, range, Arc::clone(&self.buffers))).await? })
    }
}

impl Local {
    /// Opens a file at once if the kernel has its path at hand, and where it may block if not.
    async fn open_file(&self, key: &str) -> Result<OpenFile, StoreError> {
        if !has_sound_segments(key) {
            return Err(StoreError::NotFound);
        }
        let opened = match self.root.open_cached(key) {
            Some(opened) => opened,
            None => {
                let (root, key) = (Arc::clone(&self.root), key.to_owned());
                off_thread(move || root.open_file(&key)).await?
            }
        };
        opened.map_err(|denial| match denial {
            Denial::Absent | Denial::Unfit => StoreError::NotFound,
            Denial::Fault(error) => StoreError::unavailable(error),
        })
    }
}

/// Closes the files of looks that nobody asks for any more.
async fn close_old(looks: Weak<Looks>) {
    loop {
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        match looks.upgrade() {
            Some(looks) if looks.close_old(Instant::now()) => {}
            _ => break,
        }
    }
}

/// Runs file system work where it may block, and gives up waiting when it hangs.
async fn off_thread<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    match tokio::time::timeout(STALL_LIMIT, tokio::task::spawn_blocking(f)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(StoreError::unavailable(error)),
        Err(_) => Err(StoreError::unavailable("the file system makes no progress")),
    }
}
