//! What HTTP sees: who is let in, and that every answer is JSON.

use axum::body::Body;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Method, Request, StatusCode};
use serde_json::json;

use super::world::{LISTER, READER, World, post};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn world() -> World {
    World::new(1000, &[])
}

#[tokio::test]
async fn a_good_request_is_answered() {
    let (status, headers, answer) = world().send(post(READER).body(PING.into()).expect("a request")).await;
    assert_eq!((status, answer), (StatusCode::OK, json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    assert!(headers.contains_key("x-request-id"));
    assert!(!headers.contains_key("mcp-session-id"), "no session is ever made");
}

#[tokio::test]
async fn an_initialize_from_the_first_byte_to_the_last() {
    let body =
        json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let (_, _, answer) = world().send(post(LISTER).body(body.to_string().into()).expect("a request")).await;
    let result = &answer["result"];
    assert_eq!((&answer["id"], &result["protocolVersion"]), (&json!("i"), &json!("2025-06-18")));
    assert_eq!(result["capabilities"], json!({"tools": {}}));
    assert_eq!(result["serverInfo"]["name"], "artifactd");
}

#[tokio::test]
async fn a_discovery_in_the_modern_era() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                      "io.modelcontextprotocol/clientCapabilities": {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    let request = post(READER).header("mcp-protocol-version", "2026-07-28").header("mcp-method", "server/discover");
    let (status, _, answer) = world().send(request.body(body.to_string().into()).expect("a request")).await;
    let result = &answer["result"];
    assert_eq!((status, &result["resultType"]), (StatusCode::OK, &json!("complete")), "{answer}");
    assert!(result["supportedVersions"].as_array().expect("a list").contains(&json!("2026-07-28")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "artifactd");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "private");
}

#[tokio::test]
async fn a_notification_is_accepted_without_a_body() {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let (status, _, answer) = world().send(post(READER).body(body.into()).expect("a request")).await;
    assert_eq!((status, answer.is_null()), (StatusCode::ACCEPTED, true));
}

#[tokio::test]
async fn other_methods_are_told_the_one_there_is() {
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::PATCH, Method::OPTIONS] {
        let request = Request::builder().method(&method).uri("/v1/mcp").header("host", "localhost");
        let (status, headers, answer) = world().send(request.body(Body::empty()).expect("a request")).await;
        assert_eq!((status, &headers[ALLOW]), (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().expect("a value")));
        assert_eq!(answer["error"]["data"]["code"], "METHOD_NOT_ALLOWED", "{method}");
    }
}

#[tokio::test]
async fn the_key_is_checked_before_the_body_is_looked_at() {
    for (key, status, challenge, code) in [
        (None, 401, Some(r#"Bearer realm="artifactd""#), "UNAUTHENTICATED"),
        (Some("wrong"), 401, Some(r#"Bearer realm="artifactd", error="invalid_token""#), "UNAUTHENTICATED"),
        (Some("foreign"), 403, None, "PROJECT_ACCESS_DENIED"),
        (Some("panic"), 500, None, "INTERNAL_ERROR"),
    ] {
        let mut request = Request::post("/v1/mcp").header("host", "localhost");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let (got, headers, answer) = world().send(request.body("not json".into()).expect("a request")).await;
        assert_eq!(got.as_u16(), status, "{key:?}");
        assert_eq!(headers.get(WWW_AUTHENTICATE).map(|value| value.to_str().expect("text")), challenge);
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(status), &json!(code)));
        assert!(error["message"].as_str().expect("a message").starts_with(code));
        assert_eq!(error["data"]["request_id"], headers["x-request-id"].to_str().expect("text"));
    }
}

#[tokio::test]
async fn only_json_of_a_bounded_size_is_read() {
    let world = world();
    let send = |kind: &'static str, body: Vec<u8>| {
        let request = Request::post("/v1/mcp").header("host", "localhost").header("authorization", "Bearer reader");
        world.send(request.header("content-type", kind).body(body.into()).expect("a request"))
    };
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(send(kind, PING.into()).await.0, StatusCode::OK, "{kind}");
    }
    for kind in ["", "text/plain", "application/json-rpc", "application/x-www-form-urlencoded"] {
        let (status, _, answer) = send(kind, PING.into()).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        assert_eq!(answer["error"]["data"]["code"], "UNSUPPORTED_MEDIA_TYPE");
    }
    let padded = |length: usize| format!("{PING}{}", " ".repeat(length - PING.len())).into_bytes();
    assert_eq!(send("application/json", padded(1024)).await.0, StatusCode::OK);
    for length in [1025, 20 << 20] {
        let (status, _, answer) = send("application/json", padded(length)).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer["error"]["data"]["code"], "REQUEST_TOO_LARGE");
    }
}

#[tokio::test]
async fn hosts_and_origins_of_others_are_turned_away_before_the_key_is_checked() {
    for (name, value, code) in
        [("host", "evil.example", "HOST_DENIED"), ("origin", "https://evil.example", "ORIGIN_DENIED")]
    {
        let mut request = Request::post("/v1/mcp").body(Body::from(PING)).expect("a request");
        request.headers_mut().insert("host", "localhost".parse().expect("a value"));
        request.headers_mut().insert(name, value.parse().expect("a value"));
        let (status, headers, answer) = world().send(request).await;
        assert_eq!((status, &answer["error"]["data"]["code"]), (StatusCode::FORBIDDEN, &json!(code)));
        assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_call() {
    let origin = "https://files.example.com";
    let preflight = Request::options("/v1/mcp").header("host", "localhost").header("origin", origin);
    let (status, headers, _) = world().send(preflight.body(Body::empty()).expect("a request")).await;
    assert_eq!((status, &headers[ACCESS_CONTROL_ALLOW_ORIGIN]), (StatusCode::NO_CONTENT, &origin.parse().expect("v")));
    let allowed = headers["access-control-allow-headers"].to_str().expect("text");
    for header in ["authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"] {
        assert!(allowed.contains(header), "{header}");
    }
    let (status, headers, _) =
        world().send(post(READER).header("origin", origin).body(PING.into()).expect("a request")).await;
    assert_eq!((status, &headers[ACCESS_CONTROL_ALLOW_ORIGIN]), (StatusCode::OK, &origin.parse().expect("v")));
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_protocol() {
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "rm"}});
    let (status, _, answer) = world().send(post(READER).body(body.to_string().into()).expect("a request")).await;
    assert_eq!((status, &answer["id"], &answer["error"]["code"]), (StatusCode::OK, &json!(9), &json!(-32602)));
}
