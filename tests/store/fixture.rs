//! A store under test, and a way to put objects into it that is not the store's own.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifactd::store::local::Local;
use artifactd::store::object::Objects;
use artifactd::store::{Limits, Store};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tempfile::TempDir;

use crate::support::{Server, azure};

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    put: Put,
}

enum Put {
    Client(Arc<dyn ObjectStore>),
    Directory(TempDir),
    /// Keys that clients refuse go by plain requests.
    S3(Arc<dyn ObjectStore>, Server),
    Azure(Arc<dyn ObjectStore>, Server),
}

impl Fixture {
    pub(crate) fn memory() -> Self {
        let memory = Arc::new(InMemory::new());
        Self { store: Arc::new(Objects::memory(Arc::clone(&memory))), put: Put::Client(memory) }
    }

    pub(crate) fn directory() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { store: Arc::new(Local::open(dir.path()).unwrap()), put: Put::Directory(dir) }
    }

    pub(crate) async fn s3() -> Self {
        let server = s3_server().await;
        let builder = s3_builder(&server.url());
        let client = builder.clone().with_allow_http(true).build().unwrap();
        let store = Objects::s3(builder, plain_http(), Limits::default()).unwrap();
        Self { store: Arc::new(store), put: Put::S3(Arc::new(client), server) }
    }

    pub(crate) async fn gcs() -> Self {
        let server = s3_server().await;
        let builder = GoogleCloudStorageBuilder::new()
            .with_base_url(&server.url())
            .with_bucket_name("bucket")
            .with_skip_signature(true);
        // The server lets anyone read what is public, without a signature.
        let public = [("x-amz-acl".parse().unwrap(), "public-read".parse().unwrap())].into_iter().collect();
        let options = plain_http().with_default_headers(public);
        let client = s3_builder(&server.url()).with_client_options(options).build().unwrap();
        let store = Objects::gcs(builder, plain_http(), Limits::default()).unwrap();
        Self { store: Arc::new(store), put: Put::S3(Arc::new(client), server) }
    }

    pub(crate) async fn azure() -> Self {
        let server = Server::azurite();
        azure::create_container(&server.url(), "container").await;
        let builder = MicrosoftAzureBuilder::new()
            .with_account(azure::ACCOUNT)
            .with_access_key(azure::KEY)
            .with_endpoint(format!("{}/{}", server.url(), azure::ACCOUNT))
            .with_container_name("container");
        let client = builder.clone().with_allow_http(true).build().unwrap();
        let store = Objects::azure(builder, plain_http(), Limits::default()).unwrap();
        Self { store: Arc::new(store), put: Put::Azure(Arc::new(client), server) }
    }

    /// The server behind it, if there is one.
    pub(crate) fn server(&self) -> Option<&Server> {
        match &self.put {
            Put::S3(_, server) | Put::Azure(_, server) => Some(server),
            Put::Client(_) | Put::Directory(_) => None,
        }
    }

    /// Whether `a` and `a/b` may both be objects.
    pub(crate) fn is_flat(&self) -> bool {
        !matches!(self.put, Put::Directory(_))
    }

    pub(crate) async fn put(&self, key: &str, content: impl AsRef<[u8]>) {
        let content = content.as_ref().to_vec();
        match &self.put {
            Put::Directory(dir) => {
                let path = dir.path().join(key);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                write_anew(&path, &content);
            }
            Put::Client(client) | Put::S3(client, _) | Put::Azure(client, _) => {
                client.put(&Path::parse(key).unwrap(), content.into()).await.unwrap_or_else(|e| panic!("{key}: {e}"));
            }
        }
    }

    /// Puts below `prefix` what no client may be shown. How many entries that is.
    pub(crate) async fn put_unfit(&self, prefix: &str) -> u64 {
        match &self.put {
            Put::Directory(dir) => unfit_files(dir.path().join(prefix)),
            Put::Client(client) => {
                client.put(&Path::parse(format!("{prefix}back\\slash")).unwrap(), "x".into()).await.unwrap();
                1
            }
            Put::S3(_, server) => {
                let unfit = ["a//b", "ctl\u{1}", "back\\slash", "b//"];
                let markers = ["c-marker/", "marker/"];
                for key in unfit.iter().chain(&markers) {
                    let url = format!("{}/bucket/{}", server.url(), escape(&format!("{prefix}{key}")));
                    let put = reqwest::Client::new().put(url).body("").send().await.unwrap();
                    assert!(put.status().is_success(), "{key:?} {put:?}");
                }
                unfit.len() as u64
            }
            Put::Azure(_, server) => {
                let unfit = ["a//b", "b//"];
                for key in unfit.iter().chain(&["c-marker/", "marker/"]) {
                    let path = format!("container/{}", escape(&format!("{prefix}{key}")));
                    azure::put_blob(&server.url(), &path, b"x".to_vec()).await;
                }
                unfit.len() as u64
            }
        }
    }
}

/// Writes a file until its times tell: within one tick of the file system's clock they may not.
pub(crate) fn write_anew(path: &std::path::Path, content: &[u8]) {
    let times = || fs::metadata(path).ok().map(|meta| (meta.ctime(), meta.ctime_nsec()));
    let before = times();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        fs::write(path, content).unwrap();
        if times() != before {
            return;
        }
        assert!(Instant::now() < deadline, "the clock of {} stands still", path.display());
    }
}

/// An S3 server with an empty `bucket`.
async fn s3_server() -> Server {
    let server = Server::moto();
    let made = reqwest::Client::new().put(format!("{}/bucket", server.url())).send().await.unwrap();
    assert!(made.status().is_success(), "{made:?}");
    server
}

pub(crate) fn s3_builder(endpoint: &str) -> AmazonS3Builder {
    AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_bucket_name("bucket")
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
}

pub(crate) fn plain_http() -> ClientOptions {
    ClientOptions::new().with_allow_http(true)
}

fn escape(key: &str) -> String {
    utf8_percent_encode(key, NON_ALPHANUMERIC).to_string().replace("%2F", "/")
}

fn unfit_files(folder: PathBuf) -> u64 {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    fs::write(folder.join("back\\slash"), "x").unwrap();
    fs::write(folder.join("line\nfeed"), "x").unwrap();
    fs::create_dir(folder.join("ctl\u{1}")).unwrap();
    fs::write(folder.join("ctl\u{1}").join("inside"), "x").unwrap();
    symlink("/etc/passwd", folder.join("b-link")).unwrap();
    5
}
