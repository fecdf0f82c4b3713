//! Requests made to hurt: each is a clean 4xx, and the service stays up.

use reqwest::Method;
use serde_json::{Value, json};

use super::raw;
use super::service::Service;

async fn service() -> Service {
    Service::start(&[("t1", "a.txt", b"hello"), ("t2", "secret", b"secret")]).await
}

async fn alive(service: &Service) {
    assert_eq!(service.get("/v1/trials/t1/artifacts/a.txt/content").await.text().await.expect("text"), "hello");
}

#[tokio::test]
async fn paths_that_climb_or_hide() {
    let service = service().await;
    let long = "x".repeat(5 * 1024);
    for target in [
        "/v1/trials/../trials/t1/artifacts",
        "/v1/trials/%2e%2e/artifacts",
        "/v1/trials/t1%2F..%2Ft2/artifacts",
        "/v1/trials/t1/artifacts/../../t2/artifacts/secret/content",
        "/v1/trials/t1/artifacts/..%2Ft2%2Fsecret/content",
        "/v1/trials/t1/artifacts/..~1t2~1secret/content",
        "/v1/trials/t1/artifacts/%2e%2e~1t2~1secret/content",
        "/v1/trials/t1/artifacts/%252e%252e~1t2~1secret/content",
        "/v1/trials/t1/artifacts/a.txt%00/content",
        "/v1/trials/t1/artifacts/%00/content",
        "/v1/trials/t1/artifacts/a%5C..%5Cb/content",
        "/v1/trials/t1/artifacts/a\\b/content",
        "/v1/trials/t1/artifacts/%FF%FE/content",
        "/v1/trials/t1/artifacts/C:~1x/content",
        "/v1/trials/t1/artifacts//content",
        "/v1/trials/t1/artifacts/a~1~1b/content",
        "/v1/trials//artifacts",
        &format!("/v1/trials/{long}/artifacts"),
        &format!("/v1/trials/t1/artifacts/{long}/content"),
        &format!("/v1/trials/t1/artifacts?prefix={long}"),
        &format!("/v1/trials/t1/artifacts?cursor={long}"),
    ] {
        let answer = raw::send(service.address, &raw::request("GET", target, &service.keys.read_only, "")).await;
        assert!((400..500).contains(&answer.status), "{} for {target}", answer.status);
        let problem = answer.json();
        assert!(problem["code"].is_string() && problem["detail"].is_string(), "{target}: {}", answer.head);
        assert!(!String::from_utf8_lossy(&answer.body).contains("secret\""), "{target}");
    }
    alive(&service).await;
    assert_eq!(service.settled().await, 5);
}

/// What a proxy and this service could each read differently.
#[tokio::test]
async fn heads_with_two_meanings() {
    let service = service().await;
    let key = &service.keys.read_only;
    let bearer = format!("Authorization: Bearer {key}\r\n");
    for (extra, status, code) in [
        (bearer.as_str(), 401, "UNAUTHENTICATED"),
        ("Authorization: Bearer epk_0\r\n", 401, "UNAUTHENTICATED"),
        ("X-Project-ID: demo\r\nX-Project-ID: other\r\n", 400, "INVALID_REQUEST"),
        ("X-Workspace-ID: default\r\nX-Workspace-ID: other\r\n", 400, "INVALID_REQUEST"),
        ("Host: other\r\n", 400, "INVALID_REQUEST"),
    ] {
        let answer = raw::send(service.address, &raw::request("GET", "/v1/me", key, extra)).await;
        assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{extra}");
    }
    let nameless = format!("GET /v1/me HTTP/1.1\r\nConnection: close\r\n{bearer}\r\n");
    assert_eq!(raw::send(service.address, nameless.as_bytes()).await.status, 400);
    let old = format!("GET /v1/me HTTP/1.0\r\n{bearer}\r\n");
    assert_eq!(raw::send(service.address, old.as_bytes()).await.status, 200, "HTTP/1.0 has no Host");
    let answer = raw::send(service.address, &raw::request("GET", "/v1/trials/t1/artifacts?prefix=%FF", key, "")).await;
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("INVALID_REQUEST")));
    let stranger = raw::request("POST", "http://evil.example/v1/mcp", key, "Content-Type: application/json\r\n");
    assert_eq!(raw::send(service.address, &stranger).await.status, 403);
    alive(&service).await;
}

#[tokio::test]
async fn wrong_methods_say_which_are_right() {
    let service = service().await;
    for (method, path) in [
        ("POST", "/v1/trials/t1/artifacts/a.txt/content"),
        ("PUT", "/v1/trials/t1/artifacts/a.txt"),
        ("DELETE", "/v1/trials/t1/artifacts"),
        ("PATCH", "/v1/me"),
        ("BREW", "/v1/quota"),
    ] {
        let answer = raw::send(service.address, &raw::request(method, path, &service.keys.read_only, "")).await;
        assert_eq!((answer.status, &answer.json()["code"]), (405, &json!("METHOD_NOT_ALLOWED")), "{method} {path}");
        assert!(answer.header("allow").expect("Allow").contains("GET"), "{method} {path}: {}", answer.head);
    }
    for method in ["GET", "DELETE", "PUT"] {
        let answer = raw::send(service.address, &raw::request(method, "/v1/mcp", &service.keys.read_only, "")).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    alive(&service).await;
}

#[tokio::test]
async fn floods() {
    let service = service().await;
    let key = &service.keys.read_only;
    let twenty_mb = vec![b' '; 20_000_000];
    let mut large =
        raw::request("POST", "/v1/mcp", key, "Content-Type: application/json\r\nContent-Length: 20000000\r\n");
    large.extend_from_slice(&twenty_mb);
    let answer = raw::send(service.address, &large).await;
    assert_eq!(answer.status, 413);
    assert!(answer.json()["error"]["message"].is_string(), "{}", String::from_utf8_lossy(&answer.body));

    let mut large = raw::request("POST", "/v1/trials", key, "Content-Length: 20000000\r\n");
    large.extend_from_slice(&twenty_mb);
    assert_eq!(raw::send(service.address, &large).await.status, 405);

    let many: String = (0..20_000).map(|i| format!("X-Flood-{i}: 1\r\n")).collect();
    assert_eq!(raw::send(service.address, &raw::request("GET", "/v1/me", key, &many)).await.status, 431);
    let long = format!("X-Flood: {}\r\n", "x".repeat(1 << 20));
    assert_eq!(raw::send(service.address, &raw::request("GET", "/v1/me", key, &long)).await.status, 431);
    let target = format!("/{}", "x".repeat(1 << 20));
    assert!((400..500).contains(&raw::send(service.address, &raw::request("GET", &target, key, "")).await.status));
    assert_eq!(raw::send(service.address, b"nonsense\r\n\r\n").await.status, 400);
    alive(&service).await;
}

#[tokio::test]
async fn mcp_bodies_that_are_no_call() {
    let service = service().await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_params = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#);
    for (body, code) in [
        (format!("[{call},{call}]"), -32600),
        ("[]".to_owned(), -32600),
        (deep, -32700),
        (deep_params, -32700),
        (String::new(), -32700),
        ("{".to_owned(), -32700),
        ("nonsense".to_owned(), -32700),
        ("\u{0}".to_owned(), -32700),
        ("17".to_owned(), -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#.to_owned(), -32600),
    ] {
        let request = service.request(Method::POST, "/v1/mcp", &service.keys.read_only);
        let answer =
            request.header("content-type", "application/json").body(body.clone()).send().await.expect("an answer");
        let short: String = body.chars().take(60).collect();
        assert_eq!(answer.status(), 400, "{short}");
        let reply: Value = answer.json().await.expect("JSON");
        assert_eq!(reply["error"]["code"], code, "{short}: {reply}");
    }
    alive(&service).await;
}

#[tokio::test]
async fn clients_that_dawdle_or_vanish() {
    use tokio::io::AsyncWriteExt as _;
    let service = service().await;
    let mut open = Vec::new();
    for part in [
        "",
        "GET",
        "GET /v1/me HTTP/1.1\r\nHost: x\r\n",
        "POST /v1/mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
    ] {
        let mut stream = tokio::net::TcpStream::connect(service.address).await.expect("it listens");
        stream.write_all(part.as_bytes()).await.expect("sent");
        open.push(stream);
    }
    alive(&service).await;
    drop(open);
    alive(&service).await;
}
