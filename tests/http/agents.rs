//! The endpoint over its own wire: with the official Rust client, which Codex is built on, and with
//! the names and limits that settings give it.

use std::collections::HashMap;

use reqwest::Method;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use super::probe::Fault;
use super::service::{Options, Service};

const FILES: &[(&str, &str, &[u8])] = &[("t1", "agent/trial.log", b"first\nlast\n")];
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn transport(service: &Service, key: &str) -> StreamableHttpClientTransport<reqwest::Client> {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/v1/mcp", service.address));
    let client = reqwest::Client::builder().no_proxy().build().expect("client");
    StreamableHttpClientTransport::with_client(client, config.auth_header(key.to_owned()))
}

#[tokio::test]
async fn the_rust_client_lists_and_reads() {
    let service = Service::start(FILES).await;
    let client = ().serve(transport(&service, &service.keys.read_only)).await.expect("it connects");
    let about = client.peer_info().expect("the server says who it is");
    assert_eq!(serde_json::to_value(&about).expect("JSON")["serverInfo"]["name"], "artifactd");

    let tools = client.list_all_tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["envloop_trial_artifacts_list", "envloop_trial_artifact_read"]);

    for (name, failed, says) in
        [("agent/trial.log", false, "first\nlast\n"), ("trial.log", true, "Nearest names: \"agent/trial.log\".")]
    {
        let Value::Object(arguments) = json!({"trial_id": "t1", "name": name}) else { panic!("an object") };
        let call = CallToolRequestParams::new("envloop_trial_artifact_read").with_arguments(arguments);
        let result = serde_json::to_value(client.call_tool(call).await.expect("a result")).expect("JSON");
        assert_eq!(result["isError"], failed, "{result}");
        assert!(result["content"][0]["text"].as_str().expect("text").contains(says), "{result}");
    }
    client.cancel().await.expect("it ends");
}

#[tokio::test]
async fn the_rust_client_is_turned_away_with_a_wrong_key() {
    let service = Service::start(FILES).await;
    let outcome = ().serve(transport(&service, "epk_none")).await;
    assert!(outcome.is_err(), "it must not connect");
}

#[tokio::test]
async fn names_come_from_the_settings() {
    let settings = "public_url = \"https://artifacts.example.com\"\n[http]\nallowed_hosts = [\"proxy.internal\"]\n\
                    allowed_origins = [\"https://app.example.com\"]\n";
    let service = Service::with(FILES, Options { settings: settings.into(), ..Options::default() }).await;
    let post = |headers: HashMap<&'static str, &'static str>| {
        let mut request = service.request(Method::POST, "/v1/mcp", &service.keys.read_only);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.header("content-type", "application/json").body(PING).send()
    };
    for (name, value, status) in [
        ("host", "artifacts.example.com", 200),
        ("host", "proxy.internal:8080", 200),
        ("host", "evil.example", 403),
        ("origin", "https://app.example.com", 200),
        ("origin", "https://artifacts.example.com", 200),
        ("origin", "https://evil.example", 403),
    ] {
        let answer = post(HashMap::from([(name, value)])).await.expect("an answer");
        assert_eq!(answer.status(), status, "{name}: {value}");
        let readable = answer.headers().get("access-control-allow-origin").map(|value| value.to_str().expect("text"));
        assert_eq!(readable, (name == "origin" && status == 200).then_some(value));
        assert_eq!(answer.json::<Value>().await.expect("JSON")["jsonrpc"], "2.0");
    }
}

#[tokio::test]
async fn limits_come_from_the_settings() {
    let settings = "[limits]\nmcp_body_bytes = 1024\nmcp_calls_per_key = 1\nmcp_call_seconds = 1\n";
    let service = Service::with(FILES, Options { settings: settings.into(), ..Options::default() }).await;
    let request = service.request(Method::POST, "/v1/mcp", &service.keys.read_only);
    let long = format!("{PING}{}", " ".repeat(1024));
    let answer = request.header("content-type", "application/json").body(long).send().await.expect("an answer");
    assert_eq!(answer.status(), 413);

    service.store.set(Fault::StallAfter(0));
    let read = || service.tool("envloop_trial_artifact_read", json!({"trial_id": "t1", "name": "agent/trial.log"}));
    let (one, other) = tokio::join!(read(), read());
    let mut codes: Vec<_> = [&one, &other].map(|result| result["content"][0]["text"].as_str().expect("text")).into();
    codes.sort_unstable();
    assert!(codes[0].starts_with("STORE_UNAVAILABLE: The call was given up after 1 s"), "{codes:?}");
    assert!(codes[1].starts_with("TOO_MANY_REQUESTS: This key has 1 calls running"), "{codes:?}");
    service.store.set(Fault::None);
    assert_eq!(read().await["isError"], false);
    assert_eq!(service.settled().await, 11, "what was given up costs nothing");
}
