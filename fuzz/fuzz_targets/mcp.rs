//! Whatever a client sends to the MCP endpoint, one answer of the protocol comes back, soon.
//!
//! An input is a request as it is written down: the method, header lines, an empty line, the body.
//! What a good request needs and the input does not say is added, so that most inputs get past the
//! key and the content type. Its body is also sent as the arguments of both tools.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use artifactd::access::{Authenticator, Credentials, KeyKind, Preset, Principal};
use artifactd::artifact::key::Layout;
use artifactd::artifact::{Project, ProjectId, WorkspaceId};
use artifactd::catalog::Catalog;
use artifactd::config::Config;
use artifactd::error::{Error, Kind, Result};
use artifactd::ledger::{Allowance, Embedded, Policy, ResetZone, Rules, SystemClock};
use artifactd::listing::Listing;
use artifactd::mcp::{Front, router};
use artifactd::read::Reads;
use artifactd::store::object::Objects;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// The slowest answer. Nothing that a request asks for here takes a hundredth of it.
const SOON: Duration = Duration::from_secs(5);
/// The longest text, in UTF-16 code units: what `docs/mcp.md` promises.
const LONGEST_TEXT: usize = 48_000;

static SERVICE: LazyLock<(Runtime, Router)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let router = runtime.block_on(service());
    (runtime, router)
});

fuzz_target!(|input: &[u8]| {
    let (head, body) = split(input);
    let (runtime, router) = &*SERVICE;
    runtime.block_on(async {
        answered(router, request(head, body)).await;
        let Ok(arguments @ Value::Object(_)) = serde_json::from_slice(body) else { return };
        for tool in ["envloop_trial_artifact_read", "envloop_trial_artifacts_list"] {
            let call = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call",
                              "params": {"name": tool, "arguments": arguments}});
            let answer = answered(router, request(b"POST", call.to_string().as_bytes())).await;
            assert_eq!(answer["id"], "a");
            if let Some(result) = answer.get("result") {
                is_shown_safely(result);
            }
        }
    });
});

fn split(input: &[u8]) -> (&[u8], &[u8]) {
    match input.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&input[..at], &input[at + 2..]),
        None => (b"POST", input),
    }
}

fn request(head: &[u8], body: &[u8]) -> Request<Body> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let method = lines.next().and_then(|line| Method::from_bytes(line).ok()).unwrap_or(Method::POST);
    let mut request = Request::new(Body::from(body.to_vec()));
    *request.method_mut() = method;
    *request.uri_mut() = "/v1/mcp".parse().expect("a path");
    let headers = request.headers_mut();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    for (name, value) in [("host", "localhost"), ("content-type", "application/json"), ("authorization", "Bearer k")] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    request
}

/// Sends a request; answers the message that came back, `null` if none was due.
async fn answered(router: &Router, request: Request<Body>) -> Value {
    let (method, answer) = (request.method().clone(), router.clone().oneshot(request));
    let response = tokio::time::timeout(SOON, answer).await.expect("an answer in time").expect("infallible");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    if matches!(parts.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        assert!(body.is_empty());
        return Value::Null;
    }
    let expected = [200, 400, 401, 403, 404, 405, 413, 415];
    assert!(expected.contains(&parts.status.as_u16()), "{}", parts.status);
    assert_eq!(parts.headers["content-type"], "application/json");
    if method == Method::HEAD {
        return Value::Null;
    }
    let message: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(message["jsonrpc"], "2.0");
    assert_ne!(message.get("result").is_some(), message.get("error").is_some(), "{message}");
    assert_ne!(message["error"]["code"], -32603, "{message}");
    message
}

/// A tool's result holds what clients take, no more, and nothing that a terminal would obey.
fn is_shown_safely(result: &Value) {
    assert!(result["isError"].is_boolean());
    for block in result["content"].as_array().expect("blocks") {
        match block["type"].as_str() {
            Some("text") => {
                let text = block["text"].as_str().expect("text");
                assert!(text.encode_utf16().count() <= LONGEST_TEXT, "{} bytes", text.len());
                assert!(!text.contains(|c: char| c.is_control() && !"\t\r\n".contains(c)), "{text:?}");
            }
            Some("image") => assert_eq!(block["mimeType"], "image/png"),
            other => panic!("{other:?}"),
        }
    }
}

async fn service() -> Router {
    let settings = [("ARTIFACTD_STORE__URL", "memory:///"), ("ARTIFACTD_LEDGER__URL", "embedded:///x")];
    let settings = settings.into_iter().chain([("ARTIFACTD_ACCESS__KEYS_FILE", "\"x\"")]);
    let config = Config::load(None, settings.map(|(name, value)| (name.into(), value.into()))).expect("settings");

    let objects = Arc::new(InMemory::new());
    for (name, content) in files() {
        let key = object_store::path::Path::parse(format!("p/t/{name}")).expect("a key");
        objects.put(&key, content.into()).await.expect("put");
    }
    let layout = Layout::parse("", "{project}/{trial}/", false).expect("a layout");
    let catalog = Arc::new(Catalog::new(Arc::new(Objects::memory(objects)), layout));

    // It stays when the process is gone; the system clears its memory and temporary files.
    let folder = tempfile::Builder::new().prefix("fuzz-mcp").tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let path = folder.expect("a folder").keep().join("ledger.db");
    let policy = Policy { rules: Rules::default(), allowance: Allowance::Unlimited, zone: ResetZone::UTC };
    let ledger = Arc::new(Embedded::open(path, policy, SystemClock).expect("a ledger"));
    let reads = Reads::new(Arc::clone(&catalog), ledger, TaskTracker::new(), config.timing());
    router(Front::new(Arc::new(AnyKey), Arc::new(Listing::new(catalog)), Arc::new(reads), &config))
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut png = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(3, 3).write_to(&mut png, image::ImageFormat::Png).expect("a picture");
    let utf16 = "\u{feff}\u{1f642} UTF-16\r\n".repeat(200).encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        ("log", b"\x1b[31mred\x1b[0m \xff \xe2\x80\xae reversed\r\n".repeat(3000)),
        ("agent/utf16", utf16),
        ("agent/a ~%41+caf\u{e9}", b"{\"reward\": 1.0}\n".to_vec()),
        ("shot.png", png.into_inner()),
        ("broken.png", b"\x89PNG\r\n\x1a\n\0\0".to_vec()),
        ("all.zip", b"PK\x03\x04\x14\0\0\0\0\0".repeat(1000)),
        ("empty", Vec::new()),
    ]
}

/// Whoever sends a key may read.
struct AnyKey;

#[async_trait::async_trait]
impl Authenticator for AnyKey {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        if credentials.key.is_none() {
            return Err(Error::new(Kind::Unauthenticated, "Send a key."));
        }
        let workspace = WorkspaceId::parse("w").expect("valid");
        let project = Project { workspace, id: ProjectId::parse("p").expect("valid") };
        let capabilities = Preset::ReadOnly.capabilities();
        Ok(Principal { key_id: "k".into(), kind: KeyKind::Project, project: Some(project), capabilities })
    }

    async fn still(&self, _: &str, _: &Project) -> Result<Principal> {
        Err(Error::new(Kind::Unauthenticated, "Send a key."))
    }
}
