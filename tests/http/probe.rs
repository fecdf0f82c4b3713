//! A store that counts what is read from it and can be told to stall, to fail or to lose a file's
//! end: what a real store cannot be made to show on cue.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use artifactd::store::{Folders, Opened, Page, Stat, Store, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

/// What opened bodies do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Give this many bytes, then nothing until the fault is lifted.
    StallAfter(u64),
    /// Give this many bytes, then an error.
    FailAfter(u64),
    /// Answer every open with a changed file.
    Changed,
    /// Answer everything with an outage.
    Outage,
}

pub struct Probe {
    inner: Arc<dyn Store>,
    fault: watch::Sender<Fault>,
    before_open: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    looks: AtomicU64,
    opens: AtomicU64,
    bytes: Arc<AtomicU64>,
}

impl Probe {
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let (fault, before_open) = (watch::Sender::new(Fault::None), Mutex::default());
        let (looks, opens) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { inner, fault, before_open, looks, opens, bytes: Arc::default() }
    }

    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Does `act` when an object is opened next, before it is.
    pub fn before_open(&self, act: impl FnOnce() + Send + 'static) {
        *self.before_open.lock().expect("unpoisoned") = Some(Box::new(act));
    }

    /// How often an object was looked at.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }

    /// How often an object was opened.
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::SeqCst)
    }

    /// Bytes that came out of opened objects.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    fn up(&self) -> Result<(), StoreError> {
        match *self.fault.borrow() {
            Fault::Outage => Err(StoreError::unavailable("told to")),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Store for Probe {
    async fn stat(&self, key: &str) -> Result<Stat, StoreError> {
        self.up()?;
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.inner.stat(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        self.up()?;
        self.inner.list(prefix, after, limit).await
    }

    async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError> {
        self.up()?;
        self.inner.folders(prefix, after, limit).await
    }

    async fn open(&self, key: &str, of: &Stat, range: Range<u64>) -> Result<Opened, StoreError> {
        self.up()?;
        self.opens.fetch_add(1, Ordering::SeqCst);
        if let Some(act) = self.before_open.lock().expect("unpoisoned").take() {
            act();
        }
        let fault = *self.fault.borrow();
        if fault == Fault::Changed {
            return Err(StoreError::Changed);
        }
        let Opened { stat, body } = self.inner.open(key, of, range).await?;
        let state = (body, self.fault.subscribe(), 0_u64, Bytes::new(), Arc::clone(&self.bytes));
        let body = stream::unfold(state, |(mut body, mut fault, mut given, mut held, bytes)| async move {
            loop {
                if held.is_empty() {
                    match body.next().await? {
                        Ok(chunk) => held = chunk,
                        Err(error) => return Some((Err(error), (body, fault, given, held, bytes))),
                    }
                }
                let now = *fault.borrow_and_update();
                let most = match now {
                    Fault::StallAfter(most) | Fault::FailAfter(most) => most.saturating_sub(given),
                    Fault::None | Fault::Changed | Fault::Outage => u64::MAX,
                };
                if most > 0 {
                    let take = held.len().min(usize::try_from(most).unwrap_or(usize::MAX));
                    let chunk = held.split_to(take);
                    given += take as u64;
                    bytes.fetch_add(take as u64, Ordering::SeqCst);
                    return Some((Ok(chunk), (body, fault, given, held, bytes)));
                }
                if matches!(now, Fault::FailAfter(_)) {
                    return Some((Err(StoreError::unavailable("told to")), (body, fault, given, held, bytes)));
                }
                fault.changed().await.ok()?;
            }
        });
        Ok(Opened { stat, body: body.boxed() })
    }

    fn looks_cost(&self) -> bool {
        self.inner.looks_cost()
    }
}
