//! Whatever bytes come in, an answer of the protocol goes out.

use axum::body::Body;
use http::{HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::world::{READER, World, post};

/// A legal call, some bytes of which are changed, cut out or doubled; or any bytes.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let legal = prop_oneof![
        Just(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})),
        Just(json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {
            "name": "envloop_trial_artifact_read", "arguments": {"trial_id": "t", "name": "log", "offset": -4}}})),
        Just(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}})),
        Just(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
    ];
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..6);
    let changed = (legal, edits).prop_map(|(legal, edits)| {
        let mut bytes = legal.to_string().into_bytes();
        for (at, byte, how) in edits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    });
    prop_oneof![4 => changed, 1 => proptest::collection::vec(any::<u8>(), 0..200)]
}

fn headers() -> impl Strategy<Value = Vec<(HeaderName, HeaderValue)>> {
    let names = ["mcp-protocol-version", "mcp-method", "mcp-name", "content-encoding", "origin", "x-project-id"];
    let name = prop::sample::select(names.map(HeaderName::from_static).to_vec());
    let values = ["2026-07-28", "2025-06-18", "tools/list", "=?base64?dA==?=", "null", "", "http://localhost"];
    let value = prop_oneof![
        prop::sample::select(values.map(HeaderValue::from_static).to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20)
            .prop_filter_map("a header's value", |bytes| HeaderValue::from_bytes(&bytes).ok()),
    ];
    proptest::collection::vec((name, value), 0..4)
}

#[test]
fn any_bytes_get_an_answer_of_the_protocol() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let world = World::new(1 << 40, &[("log", b"text")]);
    let mut runner = TestRunner::new(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() });
    let outcome = runner.run(&(bodies(), headers()), |(body, headers)| {
        runtime.block_on(is_answered(&world, body, headers));
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

async fn is_answered(world: &World, body: Vec<u8>, headers: Vec<(HeaderName, HeaderValue)>) {
    let mut request = post(READER).body(Body::from(body)).expect("a request");
    for (name, value) in headers {
        request.headers_mut().append(name, value);
    }
    let (status, headers, answer) = world.send(request).await;
    if status == StatusCode::ACCEPTED {
        assert!(answer.is_null());
        return;
    }
    assert!(matches!(status.as_u16(), 200 | 400 | 401 | 403 | 404 | 413 | 415), "{status}");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(answer["jsonrpc"], "2.0");
    assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
    assert_ne!(answer["error"]["code"], -32603, "{answer}");
}
