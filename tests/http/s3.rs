//! As much of S3 as a service asks for, which writes down what it was asked and can be told to behave
//! as lesser stores do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use artifactd::store::object::Objects;
use artifactd::store::{Limits, Store};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{Method, StatusCode, header};
use object_store::ClientOptions;
use object_store::aws::AmazonS3Builder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::service::PROJECT;

/// How it differs from S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Not at all.
    Honest,
    /// It does not look at If-Match.
    IgnoresIfMatch,
    /// It gives no ETag.
    NoETag,
    /// Its objects are other ones whenever they are opened.
    Restless,
}

pub struct S3 {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    manner: Manner,
    objects: Mutex<BTreeMap<String, Object>>,
    asked: Mutex<Vec<String>>,
}

#[derive(Clone)]
struct Object {
    bytes: Bytes,
    etag: String,
    modified: u64,
}

impl S3 {
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared { manner, objects: Mutex::default(), asked: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { address, shared, task }
    }

    /// A client of it.
    pub fn store(&self) -> Arc<dyn Store> {
        let builder = AmazonS3Builder::new().with_endpoint(format!("http://{}", self.address));
        let builder = builder.with_bucket_name("bucket").with_region("us-east-1");
        let builder = builder.with_access_key_id("test").with_secret_access_key("test");
        let http = ClientOptions::new().with_allow_http(true);
        Arc::new(Objects::s3(builder, http, Limits::default()).expect("a store"))
    }

    /// Puts an artifact of trial `t1`; its time is so many seconds after the beginning of all time.
    pub fn put(&self, name: &str, bytes: impl Into<Bytes>, etag: &str, modified: u64) {
        let object = Object { bytes: bytes.into(), etag: format!("\"{etag}\""), modified };
        self.shared.objects.lock().expect("no panic").insert(format!("{PROJECT}/t1/{name}"), object);
    }

    pub fn delete(&self, name: &str) {
        self.shared.objects.lock().expect("no panic").remove(&format!("{PROJECT}/t1/{name}"));
    }

    /// What it was asked since this was last asked: method and key, the range, and `=` if the version was
    /// named.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.asked.lock().expect("no panic"))
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let field = |name: header::HeaderName| Some(request.headers().get(name)?.to_str().expect("text").to_owned());
    let path = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8().expect("UTF-8");
    let key = path.strip_prefix("/bucket").expect("the bucket").trim_start_matches('/').to_owned();
    let (range, if_match) = (field(header::RANGE), field(header::IF_MATCH));
    let mut line = if key.is_empty() { "LIST".to_owned() } else { format!("{} {key}", request.method()) };
    if let Some(range) = &range {
        write!(line, " {range}").expect("text");
    }
    line.push_str(if if_match.is_some() { " =" } else { "" });
    shared.asked.lock().expect("no panic").push(line);
    if key.is_empty() {
        return shared.list(request.uri().query().unwrap_or_default());
    }
    let object = shared.objects.lock().expect("no panic").get(&key).cloned();
    let Some(mut object) = object else { return refusal(StatusCode::NOT_FOUND, "NoSuchKey") };
    if shared.manner == Manner::Restless && request.method() == Method::GET {
        object.etag = "\"another\"".into();
    }
    if shared.manner != Manner::IgnoresIfMatch && if_match.is_some_and(|etag| etag != object.etag) {
        return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    }
    shared.content(request.method() == Method::HEAD, &object, range.as_deref())
}

impl Shared {
    fn content(&self, head: bool, object: &Object, range: Option<&str>) -> Response {
        let total = object.bytes.len();
        let mut response = Response::builder().header(header::LAST_MODIFIED, httpdate::fmt_http_date(time(object)));
        if self.manner != Manner::NoETag {
            response = response.header(header::ETAG, &object.etag);
        }
        let mut bytes = object.bytes.clone();
        if let Some((first, last)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) {
            let (first, last) = (first.parse::<usize>().expect("digits"), last.parse::<usize>().expect("digits"));
            if first >= total {
                return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
            }
            let last = last.min(total - 1);
            bytes = bytes.slice(first..=last);
            let content_range = format!("bytes {first}-{last}/{total}");
            response = response.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_RANGE, content_range);
        }
        let response = response.header(header::CONTENT_LENGTH, bytes.len());
        response.body(if head { Body::empty() } else { Body::from(bytes) }).expect("a response")
    }

    /// A page of what begins with the prefix; all of it, as it is short.
    fn list(&self, query: &str) -> Response {
        let parameters: BTreeMap<String, String> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let of = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        let mut xml = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
        for (key, object) in &*self.objects.lock().expect("no panic") {
            if key.starts_with(&of("prefix")) && *key > of("start-after") {
                let modified = jiff::Timestamp::try_from(time(object)).expect("a time");
                let (size, etag) = (object.bytes.len(), object.etag.replace('"', "&quot;"));
                write!(xml, "<Contents><Key>{key}</Key><LastModified>{modified}</LastModified><Size>{size}</Size>")
                    .expect("text");
                write!(xml, "<ETag>{etag}</ETag></Contents>").expect("text");
            }
        }
        xml.push_str("</ListBucketResult>");
        xml.into_response()
    }
}

fn time(object: &Object) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(object.modified)
}

fn refusal(status: StatusCode, code: &str) -> Response {
    (status, format!("<Error><Code>{code}</Code></Error>")).into_response()
}
