//! A front, a store that counts, a ledger, and two keys.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use url::Url;

use crate::access::{Authenticator, Capability, Credentials, KeyKind, Preset, Principal};
use crate::artifact::key::Layout;
use crate::artifact::{Project, ProjectId, WorkspaceId};
use crate::catalog::Catalog;
use crate::error::{Error, Kind, Result};
use crate::ledger::{Allowance, Embedded, Ledger, Policy, ResetZone, Rules, SystemClock, Usage};
use crate::link::SigningKeys;
use crate::links::Links;
use crate::listing::Listing;
use crate::mcp::calls::Calls;
use crate::mcp::gate::Gate;
use crate::mcp::tools::Services;
use crate::mcp::{Front, router};
use crate::read::{Reads, Timing};
use crate::store::{ETag, Folders, Kept, Listed, Opened, Page, Stat, Store, StoreError};
use crate::verdict::Verdicts;

/// May read.
pub(super) const READER: &str = "reader";
/// May list, not read.
pub(super) const LISTER: &str = "lister";

pub(super) struct World {
    router: Router,
    pub(super) store: Arc<Memory>,
    ledger: Arc<Embedded>,
    tracker: TaskTracker,
    _dir: tempfile::TempDir,
}

impl World {
    /// A trial `t` with these artifacts, in a project with this allowance.
    pub(super) fn new(allowance: u64, artifacts: &[(&str, &[u8])]) -> Self {
        Self::with_calls(allowance, artifacts, Calls::new(4, Duration::from_secs(45)))
    }

    /// The same, with these bounds on calls.
    pub(super) fn with_calls(allowance: u64, artifacts: &[(&str, &[u8])], calls: Calls) -> Self {
        Self::with(allowance, artifacts, calls, None)
    }

    /// The same, with signed links.
    pub(super) fn with_links(artifacts: &[(&str, &[u8])]) -> Self {
        let keys = SigningKeys::new([("2026-11".to_owned(), [7; 32])]).expect("keys");
        Self::with(1 << 40, artifacts, Calls::new(4, Duration::from_secs(45)), Some(keys))
    }

    fn with(allowance: u64, artifacts: &[(&str, &[u8])], calls: Calls, signing: Option<SigningKeys>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let policy = Policy { rules: Rules::default(), allowance: Allowance::Bytes(allowance), zone: ResetZone::UTC };
        let ledger = Arc::new(Embedded::open(dir.path().join("ledger.db"), policy, SystemClock).expect("a ledger"));
        let store = Arc::new(Memory::default());
        for (name, bytes) in artifacts {
            store.put(name, bytes);
        }
        let layout = Layout::parse("", "{project}/{trial}/", false).expect("a layout");
        let shared_store: Arc<dyn Store> = Arc::<Memory>::clone(&store);
        let catalog = Arc::new(Catalog::new(shared_store, layout));
        let tracker = TaskTracker::new();
        let shared_ledger: Arc<dyn Ledger> = Arc::<Embedded>::clone(&ledger);
        let public = Url::parse("https://files.example.com").expect("a URL");
        let links = signing.map(|keys| {
            let (catalog, ledger) = (Arc::clone(&catalog), Arc::clone(&shared_ledger));
            Arc::new(Links::new(Arc::new(Keys), catalog, ledger, Arc::new(SystemClock), Some(keys), Some(&public)))
        });
        let reads = Reads::new(Arc::clone(&catalog), shared_ledger, tracker.clone(), Timing::default());
        let front = Front {
            access: Arc::new(Keys),
            services: Services {
                links,
                listing: Arc::new(Listing::new(catalog)),
                reads: Arc::new(reads),
                verdicts: Verdicts::default(),
                base_url: "https://files.example.com".into(),
            },
            gate: Gate::new(Some(&public), &["proxy.internal".into()], &["https://app.example.com".into()]),
            calls,
            max_body_bytes: 1024,
        };
        Self { router: router(front), store, ledger, tracker, _dir: dir }
    }

    /// Sends a request as it is.
    pub(super) async fn send(&self, request: Request<Body>) -> (StatusCode, HeaderMap, Value) {
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("JSON") };
        (parts.status, parts.headers, value)
    }

    /// Calls a tool as a legacy client; the answer is the tool's result.
    pub(super) async fn call(&self, key: &str, tool: &str, arguments: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                          "params": {"name": tool, "arguments": arguments}});
        let (status, _, answer) = self.send(post(key).body(body.to_string().into()).expect("a request")).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["result"].clone()
    }

    /// Reads an artifact of the trial; the answer is the result.
    pub(super) async fn read(&self, name: &str, more: Value) -> Value {
        let mut arguments = json!({"trial_id": "t", "name": name});
        for (argument, value) in more.as_object().expect("an object") {
            arguments[argument] = value.clone();
        }
        self.call(READER, "envloop_trial_artifact_read", arguments).await
    }

    /// The bytes that open reads hold.
    pub(super) async fn reserved(&self) -> u64 {
        self.ledger.usage(&ProjectId::parse("p").expect("valid")).await.expect("a ledger").reply.reserved
    }

    /// The account when every open read has settled.
    pub(super) async fn settled(&self) -> Usage {
        self.tracker.close();
        self.tracker.wait().await;
        self.tracker.reopen();
        let project = ProjectId::parse("p").expect("valid");
        self.ledger.usage(&project).await.expect("a ledger").reply
    }
}

/// The head of a good request.
pub(super) fn post(key: &str) -> http::request::Builder {
    Request::post("/v1/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {key}"))
}

/// The one text of a result.
pub(super) fn text(result: &Value) -> &str {
    let blocks = result["content"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 1, "{result}");
    blocks[0]["text"].as_str().expect("a text")
}

struct Keys;

#[async_trait]
impl Authenticator for Keys {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        let capabilities = match credentials.key.as_deref() {
            Some(READER) => Preset::ReadOnly.capabilities(),
            Some(LISTER) => [Capability::JobsRead].into(),
            Some("foreign") => return Err(Error::new(Kind::ProjectAccessDenied, "Not yours.")),
            Some("panic") => return Err(Error::internal("keys")),
            _ => return Err(Error::new(Kind::Unauthenticated, "Send a key.")),
        };
        let project =
            Project { workspace: WorkspaceId::parse("w").expect("valid"), id: ProjectId::parse("p").expect("valid") };
        Ok(Principal { key_id: "k".into(), kind: KeyKind::Project, project: Some(project), capabilities })
    }

    async fn still(&self, _: &str, _: &Project) -> Result<Principal> {
        Err(Error::new(Kind::Unauthenticated, "Send a key."))
    }

    fn link_life_seconds(&self) -> u64 {
        crate::link::MAX_LIFE_SECONDS
    }
}

/// Objects in memory, of project `p` and trial `t`; counts the bytes that it hands out.
#[derive(Default)]
pub(super) struct Memory {
    objects: Mutex<BTreeMap<String, (Bytes, u64)>>,
    pub(super) handed_out: AtomicU64,
    /// So many opens find that the object has just changed.
    pub(super) changes: AtomicU64,
    /// How often it was asked for a page of names.
    pub(super) listings: AtomicU64,
    /// Opening never ends.
    pub(super) stuck: AtomicBool,
    /// Every stat finds this.
    pub(super) finds: Mutex<Option<fn() -> StoreError>>,
    /// Opening panics.
    pub(super) panics: AtomicBool,
}

impl Memory {
    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let mut objects = self.objects.lock().expect("no panic");
        let version = objects.len() as u64;
        objects.insert(format!("p/t/{name}"), (Bytes::copy_from_slice(bytes), version));
    }

    fn stat_of((bytes, version): &(Bytes, u64)) -> Stat {
        let etag = ETag::strong(format!("v{version}"));
        Stat { size: bytes.len() as u64, etag, modified: SystemTime::UNIX_EPOCH, kept: Kept::default() }
    }
}

#[async_trait]
impl Store for Memory {
    async fn stat(&self, key: &str) -> Result<Stat, StoreError> {
        if let Some(finds) = *self.finds.lock().expect("no panic") {
            return Err(finds());
        }
        self.objects.lock().expect("no panic").get(key).map(Self::stat_of).ok_or(StoreError::NotFound)
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        let objects = self.objects.lock().expect("no panic");
        let mut keys =
            objects.keys().filter(|key| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after));
        let listed = |key: &String| Listed { key: key.clone(), stat: Self::stat_of(&objects[key]) };
        let page: Vec<_> = keys.by_ref().take(limit).map(listed).collect();
        let next = keys.next().and_then(|_| page.last().map(|last| last.key.clone()));
        Ok(Page { objects: page, next, skipped: 0 })
    }

    async fn folders(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Folders, StoreError> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        let objects = self.objects.lock().expect("no panic");
        let names: BTreeSet<_> = objects.keys().filter_map(|key| key.strip_prefix(prefix)?.split_once('/')).collect();
        let names: BTreeSet<_> = names.into_iter().map(|(name, _)| name.to_owned()).collect();
        let mut names = names.into_iter().filter(|name| after.is_none_or(|after| name.as_str() > after));
        let page: Vec<_> = names.by_ref().take(limit).collect();
        let next = names.next().and_then(|_| page.last().cloned());
        Ok(Folders { names: page, next })
    }

    async fn open(&self, key: &str, of: &Stat, range: Range<u64>) -> Result<Opened, StoreError> {
        assert!(!self.panics.load(Ordering::SeqCst), "as a test wants it");
        if self.stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        assert!(range.start < range.end && range.end <= of.size, "a range that may be asked for");
        let changing = self.changes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if changing.is_ok() {
            return Err(StoreError::Changed);
        }
        let objects = self.objects.lock().expect("no panic");
        let object = objects.get(key).ok_or(StoreError::NotFound)?;
        let index = |at: u64| usize::try_from(at).expect("small");
        let bytes = object.0.slice(index(range.start)..index(range.end));
        self.handed_out.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        Ok(Opened { stat: of.clone(), body: futures_util::stream::iter([Ok(bytes)]).boxed() })
    }
}
