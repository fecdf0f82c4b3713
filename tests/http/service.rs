//! One artifactd on a free port of loopback, over a scratch directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifactd::access::keys::{Access, Grant, KeyFile, Scope, WatchedKeys};
use artifactd::access::{Capability, Preset};
use artifactd::artifact::key::Layout;
use artifactd::artifact::{Project, ProjectId, WorkspaceId};
use artifactd::config::Config;
use artifactd::ledger::{Allowance, Embedded, Policy, ResetZone, Rules, SystemClock};
use artifactd::server::{Adapters, Server as Artifactd};
use artifactd::store::local::Local;
use artifactd::store::object::Objects;
use artifactd::store::{Limits, Store};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::probe::Probe;
use super::servers::{Server, azure};

pub struct Options {
    pub daily: Allowance,
    pub rules: Rules,
    pub settings: String,
    /// Settings of `[store]`.
    pub store: String,
    pub place: Place,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            daily: Allowance::Bytes(1 << 30),
            rules: Rules::default(),
            settings: String::new(),
            store: String::new(),
            place: Place::Directory,
        }
    }
}

/// Where the objects are.
pub enum Place {
    Directory,
    Memory,
    /// In this store, by whoever made it.
    Given(Arc<dyn Store>),
    /// An S3 server, which is given a bucket.
    S3(Server),
    /// An Azure Blob Storage server, which is given a container.
    Azure(Server),
}

impl Place {
    /// The store, and the client that fills it; none for a directory below `root`.
    async fn open(&self, root: &Path) -> (Arc<dyn Store>, Option<Arc<dyn ObjectStore>>) {
        let http = || ClientOptions::new().with_allow_http(true);
        match self {
            Self::Directory => (Arc::new(Local::open(root).expect("root")), None),
            Self::Memory => {
                let memory = Arc::new(InMemory::new());
                (Arc::new(Objects::memory(Arc::clone(&memory))), Some(memory))
            }
            Self::Given(store) => (Arc::clone(store), None),
            Self::S3(server) => {
                let made = Client::new().put(format!("{}/bucket", server.url())).send().await.expect("an answer");
                assert!(made.status().is_success(), "{made:?}");
                let builder = AmazonS3Builder::new().with_endpoint(server.url()).with_bucket_name("bucket");
                let builder = builder.with_region("us-east-1").with_access_key_id("test");
                let builder = builder.with_secret_access_key("test");
                let client = builder.clone().with_client_options(http()).build().expect("a client");
                let store = Objects::s3(builder, http(), Limits::default()).expect("a store");
                (Arc::new(store), Some(Arc::new(client)))
            }
            Self::Azure(server) => {
                azure::create_container(&server.url(), "container").await;
                let builder = MicrosoftAzureBuilder::new().with_account(azure::ACCOUNT).with_access_key(azure::KEY);
                let builder = builder.with_endpoint(format!("{}/{}", server.url(), azure::ACCOUNT));
                let builder = builder.with_container_name("container");
                let client = builder.clone().with_client_options(http()).build().expect("a client");
                let store = Objects::azure(builder, http(), Limits::default()).expect("a store");
                (Arc::new(store), Some(Arc::new(client)))
            }
        }
    }
}

pub struct Service {
    pub address: SocketAddr,
    pub store: Arc<Probe>,
    pub keys: Keys,
    pub access: Arc<WatchedKeys>,
    pub scratch: TempDir,
    /// Lives as long as what it serves.
    _place: Place,
    client: Client,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

pub struct Keys {
    pub read_only: String,
    pub automation: String,
    pub operator: String,
    pub personal: String,
    /// Sees, but does not download.
    pub viewer: String,
    pub foreign: String,
}

impl Service {
    /// Starts one over `files`: trial, name, content.
    pub async fn start(files: &[(&str, &str, &[u8])]) -> Self {
        Self::with(files, Options::default()).await
    }

    pub async fn with(files: &[(&str, &str, &[u8])], options: Options) -> Self {
        let scratch = TempDir::new().expect("scratch directory");
        let root = scratch.path().join("store");
        std::fs::create_dir(&root).expect("store");
        let (inner, objects) = options.place.open(&root).await;
        for (trial, name, content) in files {
            let Some(objects) = &objects else {
                put(&root, PROJECT, trial, name, content);
                continue;
            };
            let key = ObjectPath::parse(format!("{PROJECT}/{trial}/{name}")).expect("a key");
            objects.put(&key, content.to_vec().into()).await.expect("put");
        }
        let toml = scratch.path().join("artifactd.toml");
        let config = format!(
            "listen = \"127.0.0.1:0\"\n{}\n[store]\nurl = \"memory:///\"\n{}\n[ledger]\n\
             url = \"embedded:///x\"\n[access]\nkeys_file = \"x\"\n",
            options.settings, options.store
        );
        std::fs::write(&toml, config).expect("settings");
        let config = Config::load(Some(&toml), []).expect("settings");
        let policy =
            Policy { rules: options.rules, allowance: options.daily, zone: ResetZone::parse("UTC").expect("zone") };
        let ledger = Embedded::open(scratch.path().join("ledger.db"), policy, SystemClock).expect("ledger");
        let (keys, file) = keys(scratch.path());
        let store = Arc::new(Probe::new(inner));
        let access = Arc::new(WatchedKeys::open(file.as_path()).await.expect("keys"));
        let adapters = Adapters {
            store: store.clone(),
            layout: Layout::parse("", "{project}/{trial}/", false).expect("layout"),
            ledger: Arc::new(ledger),
            access: access.clone(),
            signing: config.signing_keys().expect("secrets"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let stop = CancellationToken::new();
        let task = tokio::spawn(Artifactd::new(adapters, &config).serve(listener, stop.clone()));
        let client = Client::builder().no_proxy().build().expect("client");
        Self { address, store, keys, access, scratch, _place: options.place, client, stop, task: Some(task) }
    }

    /// Writes another file into the store.
    pub fn put(&self, trial: &str, name: &str, content: &[u8]) {
        put(&self.scratch.path().join("store"), PROJECT, trial, name, content);
    }

    /// The same, when an object is opened next, before it is.
    pub fn put_before_open(&self, trial: &'static str, name: &'static str, content: Vec<u8>) {
        let root = self.scratch.path().join("store");
        self.store.before_open(move || put(&root, PROJECT, trial, name, &content));
    }

    /// The same, for the other project.
    pub fn put_foreign(&self, trial: &str, name: &str, content: &[u8]) {
        put(&self.scratch.path().join("store"), FOREIGN, trial, name, content);
    }

    pub fn request(&self, method: Method, path: &str, key: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address)).bearer_auth(key)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path, &self.keys.read_only).send().await.expect("an answer")
    }

    pub async fn json(&self, path: &str) -> Value {
        self.get(path).await.json().await.expect("JSON")
    }

    pub async fn post_mcp(&self, body: Value) -> Response {
        let request = self.request(Method::POST, "/v1/mcp", &self.keys.read_only);
        request.json(&body).send().await.expect("an answer")
    }

    /// Calls a tool; answers the result.
    pub async fn tool(&self, name: &str, arguments: Value) -> Value {
        let call = serde_json::json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments},
        });
        let reply: Value = self.post_mcp(call).await.json().await.expect("JSON");
        reply["result"].clone()
    }

    /// Waits until `/v1/quota` says what `done` looks for: settles run behind the answers.
    pub async fn quota_until(&self, done: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + Duration::from_secs(20);
        loop {
            let quota = self.json("/v1/quota").await;
            if done(&quota) {
                return quota;
            }
            assert!(Instant::now() < give_up, "the quota stays at {quota}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until nothing is reserved; answers the bytes used, which the audit agrees with.
    pub async fn settled(&self) -> u64 {
        let quota = self.quota_until(|quota| quota["open_reservations"] == 0).await;
        let sums = self.json("/v1/quota/audit/verify").await;
        assert_eq!(sums["balanced"], true, "{sums}");
        assert_eq!(sums["charged_bytes"], quota["used_bytes"]);
        quota["used_bytes"].as_u64().expect("a number")
    }

    /// Stops it as SIGTERM does, and waits until it has.
    pub async fn stop(&mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.expect("it stops in order");
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn put(root: &Path, project: &str, trial: &str, name: &str, content: &[u8]) {
    let path = root.join(project).join(trial).join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    std::fs::write(path, content).expect("written");
}

/// The project of every test, and one that is not its.
pub const PROJECT: &str = "demo";
const FOREIGN: &str = "other";

/// Adds a key for one project to a key file.
pub fn make_key(file: &Path, key_id: &str, project: &str, preset: Preset) -> String {
    add(file, key_id, Scope::Project(grant(project, Access::Preset(preset))))
}

fn add(file: &Path, key_id: &str, scope: Scope) -> String {
    let made = KeyFile::new(file).create_key(Some(key_id), scope, jiff::Timestamp::now(), None).expect("a key");
    made.0.expose().to_owned()
}

fn grant(project: &str, access: Access) -> Grant {
    let workspace = WorkspaceId::parse("default").expect("workspace");
    Grant { project: Project { workspace, id: ProjectId::parse(project).expect("project") }, access }
}

fn keys(scratch: &Path) -> (Keys, PathBuf) {
    let file = scratch.join("keys.toml");
    let sees = Access::List([Capability::JobsRead].into());
    let own = grant(PROJECT, Access::Preset(Preset::ReadOnly));
    let keys = Keys {
        read_only: make_key(&file, "read-only", PROJECT, Preset::ReadOnly),
        automation: make_key(&file, "automation", PROJECT, Preset::ProjectAutomation),
        operator: add(&file, "operator", Scope::Operator),
        personal: add(&file, "personal", Scope::Personal(vec![own])),
        viewer: add(&file, "viewer", Scope::Project(grant(PROJECT, sees))),
        foreign: make_key(&file, "foreign", FOREIGN, Preset::ReadOnly),
    };
    (keys, file)
}
