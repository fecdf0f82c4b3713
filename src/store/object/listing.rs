//! Pages of a listing: one request each, as a rule.
//!
//! The store is asked to begin after the cursor. One that ignores this, as some emulators do, is
//! walked from the start instead, and what lies before the cursor is left out.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::memory::InMemory;
use object_store::{Extensions, ObjectStore};

use super::super::{Folders, Limits, Listed, MAX_PAGE, Page, StoreError};
use super::listing_xml::{Dialect, Listing, Object};
use super::wire::{IsListing, Witness};
use super::{refusal, stat_from};
use crate::artifact::has_sound_segments;

/// After so many answers a page ends, as soon as it has come forward: a trial full of unsound keys
/// must not hold a caller for ever.
const REQUESTS_OF_A_PAGE: usize = 8;
/// After so many answers a listing that does not come forward is given up.
const MAX_REQUESTS: usize = 10_000;

/// Lists a store's keys.
#[derive(Clone)]
pub(super) struct Lister {
    source: Source,
    limits: Limits,
}

#[derive(Clone)]
enum Source {
    Remote(Arc<dyn PaginatedListStore>),
    Memory(Arc<InMemory>),
}

/// One request for a part of a listing.
struct Ask<'a> {
    prefix: &'a str,
    after: Option<&'a str>,
    folders: bool,
    token: Option<String>,
    entries: usize,
}

impl Lister {
    pub(super) fn remote(store: Arc<dyn PaginatedListStore>, limits: Limits) -> Self {
        Self { source: Source::Remote(store), limits }
    }

    pub(super) fn memory(store: Arc<InMemory>) -> Self {
        Self { source: Source::Memory(store), limits: Limits::default() }
    }

    /// [`Store::list`](crate::store::Store::list).
    pub(super) async fn objects(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        let limit = limit.clamp(1, MAX_PAGE);
        let mut page = Page::default();
        let mut ask = Ask { prefix, after, folders: false, token: None, entries: limit };
        // The last key of the page's span, sound or not.
        let mut position: Option<String> = None;
        for requests in 1..=MAX_REQUESTS {
            let listing = self.ask(&ask).await?;
            for Object { key, stat } in listing.objects {
                if after.is_some_and(|after| key.as_str() <= after) {
                    continue;
                }
                if page.objects.len() >= limit {
                    page.next = position;
                    return Ok(page);
                }
                position = Some(key.clone());
                if key.strip_suffix('/').is_some_and(has_sound_segments) {
                    continue; // A directory marker.
                }
                if has_sound_segments(&key) {
                    page.objects.push(Listed { key, stat });
                } else {
                    page.skipped += 1;
                }
            }
            let Some(token) = listing.token else { return Ok(page) };
            let enough = page.objects.len() >= limit || requests >= REQUESTS_OF_A_PAGE;
            if enough && position.is_some() {
                page.next = position;
                return Ok(page);
            }
            ask.token = Some(token);
            ask.entries = if position.is_some() { limit - page.objects.len() } else { MAX_PAGE };
        }
        Err(StoreError::unavailable("the listing does not come forward"))
    }

    /// [`Store::folders`](crate::store::Store::folders).
    pub(super) async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError> {
        let limit = limit.clamp(1, MAX_PAGE);
        let mut page = Folders::default();
        // Behind everything in the folder, whose keys go on with a slash: '0' is the next byte.
        let behind = after.map(|name| format!("{prefix}{name}0"));
        let seen = after.map(|name| format!("{prefix}{name}/"));
        let mut ask = Ask { prefix, after: behind.as_deref(), folders: true, token: None, entries: limit };
        for _ in 0..MAX_REQUESTS {
            let listing = self.ask(&ask).await?;
            let mut entries = 0;
            for folder in listing.folders {
                entries += 1;
                if seen.as_ref().is_some_and(|seen| folder <= *seen) {
                    continue;
                }
                let name = folder.strip_prefix(prefix).and_then(|name| name.strip_suffix('/'));
                let Some(name) = name.filter(|name| has_sound_segments(name)) else { continue };
                if page.names.len() >= limit {
                    page.next = page.names.last().cloned();
                    return Ok(page);
                }
                page.names.push(name.to_owned());
            }
            let Some(token) = listing.token else { return Ok(page) };
            if page.names.len() >= limit {
                page.next = page.names.last().cloned();
                return Ok(page);
            }
            ask.token = Some(token);
            // Objects beside the folders count in the store's answer: then ask for more at once.
            ask.entries = if entries == 0 { MAX_PAGE } else { limit };
        }
        Err(StoreError::unavailable("the listing does not come forward"))
    }

    async fn ask(&self, ask: &Ask<'_>) -> Result<Listing, StoreError> {
        let store = match &self.source {
            Source::Remote(store) => store,
            Source::Memory(store) => return in_memory(store, ask).await,
        };
        let witness = Witness::default();
        let mut extensions = Extensions::new();
        extensions.insert(witness.clone());
        extensions.insert(IsListing);
        let options = PaginatedListOptions {
            offset: ask.after.map(str::to_owned),
            delimiter: ask.folders.then_some(Cow::Borrowed("/")),
            max_keys: Some(ask.entries),
            page_token: ask.token.clone(),
            extensions,
        };
        let prefix = Some(ask.prefix).filter(|prefix| !prefix.is_empty());
        match tokio::time::timeout(self.limits.answer, store.list_paginated(prefix, options)).await {
            Ok(Ok(_)) => witness.take_listing().ok_or_else(|| StoreError::unavailable("the store sent no listing")),
            Ok(Err(error)) => Err(match refusal::of_error(error, &witness.notes()) {
                error @ StoreError::Unavailable(_) => error,
                error => StoreError::unavailable(error),
            }),
            Err(_) => Err(StoreError::unavailable("no answer in time")),
        }
    }
}

/// Everything in memory that the question is about, as one answer.
async fn in_memory(store: &InMemory, ask: &Ask<'_>) -> Result<Listing, StoreError> {
    let mut listing = Listing { dialect: Dialect::S3, objects: Vec::new(), folders: Vec::new(), token: None };
    let mut all = store.list(None);
    while let Some(meta) = all.try_next().await.map_err(StoreError::unavailable)? {
        let key = meta.location.as_ref();
        let Some(rest) = key.strip_prefix(ask.prefix) else { continue };
        if ask.after.is_some_and(|after| key <= after) {
            continue;
        }
        match rest.split_once('/') {
            Some((name, _)) if ask.folders => listing.folders.push(format!("{}{name}/", ask.prefix)),
            _ => {
                let stat = stat_from(meta.size, meta.last_modified.timestamp(), meta.e_tag.as_deref());
                listing.objects.push(Object { key: key.to_owned(), stat });
            }
        }
    }
    listing.objects.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    listing.folders.sort_unstable();
    listing.folders.dedup();
    Ok(listing)
}
