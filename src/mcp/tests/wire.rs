//! Raw requests and their whole answers: the table says what each is for and which status it gets;
//! the files below `tests/golden/wire` hold the rest.

use std::fmt::Write as _;

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use super::golden::check;
use super::world::World;

const V: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const CALL: &str = "envloop_trial_artifact_read";

/// One request, and the status of its answer.
struct Row {
    title: &'static str,
    status: u16,
    method: Method,
    /// Headers besides, or in place of, those of a good request; an empty value takes one away, and
    /// a `+` before a name adds a second one.
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

fn row(status: u16, title: &'static str, headers: &[(&'static str, &'static str)], body: impl ToString) -> Row {
    Row { title, status, method: Method::POST, headers: headers.to_vec(), body: body.to_string().into_bytes() }
}

fn with_method(method: Method, status: u16, title: &'static str, headers: &[(&'static str, &'static str)]) -> Row {
    Row { method, ..row(status, title, headers, "") }
}

fn legacy(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                             "io.modelcontextprotocol/clientCapabilities": {}});
    legacy(method, &params)
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

fn read() -> Value {
    json!({"name": CALL, "arguments": {"trial_id": "t", "name": "none"}})
}

fn http_rows() -> Vec<Row> {
    let origin = ("origin", "https://app.example.com");
    vec![
        row(200, "no Accept is needed", &[], ping()),
        row(200, "Accept of JSON only", &[("accept", "application/json")], ping()),
        row(200, "Accept of a stream only", &[("accept", "text/event-stream")], ping()),
        row(200, "Content-Type with a parameter", &[("content-type", "application/json; charset=utf-8")], ping()),
        row(200, "a charset has no meaning", &[("content-type", "application/json; charset=utf-16")], ping()),
        row(200, "a session id is ignored", &[("mcp-session-id", "s")], ping()),
        row(200, "Content-Encoding of identity", &[("content-encoding", "identity")], ping()),
        row(200, "the host of the public address", &[("host", "files.example.com")], ping()),
        row(200, "a listed host, any port", &[("host", "proxy.internal:8443")], ping()),
        row(200, "a listed origin", &[origin], ping()),
        row(200, "an origin of loopback", &[("origin", "http://localhost:6274")], ping()),
        row(401, "no key", &[("authorization", "")], ping()),
        row(401, "no key, no JSON", &[("authorization", "")], "x"),
        row(401, "a wrong key", &[("authorization", "Bearer wrong")], ping()),
        row(401, "another scheme", &[("authorization", "Basic cmVhZGVyOg==")], ping()),
        row(403, "a key without access to the project", &[("authorization", "Bearer foreign")], ping()),
        row(400, "two keys", &[("+authorization", "Bearer reader")], ping()),
        row(400, "two projects", &[("x-project-id", "p"), ("+x-project-id", "q")], ping()),
        row(403, "another host", &[("host", "evil.example")], ping()),
        row(403, "no host", &[("host", "")], ping()),
        row(403, "two hosts", &[("+host", "localhost")], ping()),
        row(403, "another origin", &[("origin", "https://evil.example")], ping()),
        row(403, "an opaque origin", &[("origin", "null")], ping()),
        row(403, "two origins", &[origin, ("+origin", "https://app.example.com")], ping()),
        row(415, "no Content-Type", &[("content-type", "")], ping()),
        row(415, "text", &[("content-type", "text/plain")], ping()),
        row(415, "a form", &[("content-type", "application/x-www-form-urlencoded")], ping()),
        row(400, "two Content-Types", &[("+content-type", "application/json")], ping()),
        row(415, "a body in gzip", &[("content-encoding", "gzip")], ping()),
        row(415, "a body in two encodings", &[("content-encoding", "gzip, identity")], ping()),
        row(413, "a body over the limit", &[], format!("{}{}", ping(), " ".repeat(1024))),
        with_method(Method::GET, 405, "GET: there is no stream", &[("accept", "text/event-stream")]),
        with_method(Method::DELETE, 405, "DELETE: there is no session", &[("mcp-session-id", "s")]),
        with_method(Method::PUT, 405, "PUT", &[]),
        with_method(Method::OPTIONS, 405, "OPTIONS without an origin", &[]),
        with_method(
            Method::OPTIONS,
            204,
            "preflight of a listed origin, without a key",
            &[origin, ("authorization", "")],
        ),
        with_method(Method::OPTIONS, 403, "preflight of another origin", &[("origin", "https://evil.example")]),
    ]
}

fn message_rows() -> Vec<Row> {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}1{}}}"#,
        r#"{"a":"#.repeat(130),
        "}".repeat(130)
    );
    vec![
        row(400, "an empty body", &[], ""),
        row(400, "half an object", &[], r#"{"jsonrpc":"2.0","id":1,"#),
        row(400, "two messages one after the other", &[], format!("{}{}", ping(), ping())),
        row(400, "a byte order mark", &[], format!("\u{feff}{}", ping())),
        row(400, "nested too deep", &[], deep),
        Row {
            body: b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}".to_vec(),
            ..row(400, "no UTF-8", &[], "")
        },
        row(400, "half a surrogate pair", &[], r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#),
        row(400, "a number beyond all", &[], r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#),
        row(400, "two methods", &[], r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#),
        row(
            400,
            "two values of one name, inside",
            &[],
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":1,"b":1}}}"#,
        ),
        row(400, "an empty batch", &[], "[]"),
        row(400, "a batch of one", &[], json!([ping()])),
        row(400, "a batch of two calls", &[], json!([legacy("tools/call", &read()), legacy("tools/call", &read())])),
        row(400, "a batch of nonsense", &[], "[1,null]"),
        row(400, "a string", &[], "\"ping\""),
        row(400, "null", &[], "null"),
        row(400, "no jsonrpc", &[], json!({"id": 1, "method": "ping"})),
        row(400, "jsonrpc 1.0", &[], json!({"jsonrpc": "1.0", "id": 1, "method": "ping"})),
        row(400, "id null", &[], json!({"jsonrpc": "2.0", "id": null, "method": "ping"})),
        row(400, "an id that is a list", &[], json!({"jsonrpc": "2.0", "id": [1], "method": "ping"})),
        row(
            400,
            "an id that would come back changed",
            &[],
            r#"{"jsonrpc":"2.0","id":9007199254740993000,"method":"ping"}"#,
        ),
        row(200, "an id that is a string", &[], json!({"jsonrpc": "2.0", "id": "a\"b", "method": "ping"})),
        row(400, "an id with a fraction", &[], json!({"jsonrpc": "2.0", "id": 0.5, "method": "ping"})),
        row(200, "id 0", &[], json!({"jsonrpc": "2.0", "id": 0, "method": "ping"})),
        row(200, "the empty id", &[], json!({"jsonrpc": "2.0", "id": "", "method": "ping"})),
        row(400, "no method", &[], json!({"jsonrpc": "2.0", "id": 1})),
        row(400, "a method that is a number", &[], json!({"jsonrpc": "2.0", "id": 1, "method": 1})),
        row(400, "a response", &[], json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        row(400, "params that are a list", &[], json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []})),
        row(202, "a notification", &[], json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        row(202, "an unknown notification", &[], json!({"jsonrpc": "2.0", "method": "x/y", "params": {}})),
    ]
}

fn legacy_rows() -> Vec<Row> {
    let at = |version| ("mcp-protocol-version", version);
    vec![
        row(200, "initialize 2024-11-05", &[], legacy("initialize", &json!({"protocolVersion": "2024-11-05"}))),
        row(200, "initialize with the newest", &[], legacy("initialize", &json!({"protocolVersion": "2026-07-28"}))),
        row(200, "initialize with nonsense", &[], legacy("initialize", &json!({"protocolVersion": 1}))),
        row(200, "ping without params", &[at("2025-06-18")], ping()),
        row(400, "an unknown revision", &[at("2099-01-01")], ping()),
        row(400, "two revisions", &[at("2025-06-18"), ("+mcp-protocol-version", "2025-06-18")], ping()),
        row(400, "a notification of an unknown revision", &[at("x")], json!({"jsonrpc": "2.0", "method": "n"})),
        row(200, "an unknown method", &[at("2025-11-25")], legacy("resources/list", &json!({}))),
        row(200, "a method with no name", &[], legacy("", &json!({}))),
        row(200, "tools/list with a cursor", &[], legacy("tools/list", &json!({"cursor": "x"}))),
        row(200, "tools/call", &[at("2025-03-26")], legacy("tools/call", &read())),
        row(200, "tools/call without a name", &[], legacy("tools/call", &json!({}))),
        row(200, "tools/call of an unknown tool", &[], legacy("tools/call", &json!({"name": "rm"}))),
        row(
            200,
            "tools/call with a list of arguments",
            &[],
            legacy("tools/call", &json!({"name": CALL, "arguments": []})),
        ),
        row(200, "tools/call without arguments", &[], legacy("tools/call", &json!({"name": CALL}))),
        row(200, "headers of the other era are ignored", &[("mcp-method", "x"), ("mcp-name", "y")], ping()),
    ]
}

fn modern_rows() -> Vec<Row> {
    let (list, call) = (("mcp-method", "tools/list"), ("mcp-method", "tools/call"));
    let name = ("mcp-name", CALL);
    let encoded = ("mcp-name", "=?base64?ZW52bG9vcF90cmlhbF9hcnRpZmFjdF9yZWFk?=");
    let of = |meta: Value| legacy("tools/list", &json!({"_meta": meta}));
    vec![
        row(200, "server/discover", &[V, ("mcp-method", "server/discover")], modern("server/discover", json!({}))),
        row(200, "tools/call, modern", &[V, call, name], modern("tools/call", read())),
        row(200, "tools/call, name in base64", &[V, call, encoded], modern("tools/call", read())),
        row(400, "a name that is no base64", &[V, call, ("mcp-name", "=?base64?!?=")], modern("tools/call", read())),
        row(400, "no name header", &[V, call], modern("tools/call", read())),
        row(400, "another name", &[V, call, ("mcp-name", "rm")], modern("tools/call", read())),
        row(400, "two names", &[V, call, name, ("+mcp-name", CALL)], modern("tools/call", read())),
        row(400, "no method header", &[V, name], modern("tools/call", read())),
        row(400, "another method", &[V, list, name], modern("tools/call", read())),
        row(400, "a method in other case", &[V, ("mcp-method", "Tools/Call"), name], modern("tools/call", read())),
        row(400, "no version header", &[list], modern("tools/list", json!({}))),
        row(
            400,
            "a header of another revision",
            &[("mcp-protocol-version", "2025-11-25"), list],
            modern("tools/list", json!({})),
        ),
        row(
            400,
            "a revision that is not served",
            &[("mcp-protocol-version", "2099-01-01"), list],
            of(json!({"io.modelcontextprotocol/protocolVersion": "2099-01-01",
                      "io.modelcontextprotocol/clientCapabilities": {}})),
        ),
        row(400, "no _meta", &[V, list], legacy("tools/list", &json!({}))),
        row(400, "no capabilities", &[V, list], of(json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}))),
        row(404, "initialize is of the other era", &[V, ("mcp-method", "initialize")], modern("initialize", json!({}))),
        row(404, "ping is of the other era", &[V, ("mcp-method", "ping")], modern("ping", json!({}))),
        row(
            404,
            "a method that is not served",
            &[V, ("mcp-method", "prompts/list")],
            modern("prompts/list", json!({})),
        ),
        row(
            200,
            "an unknown tool, modern",
            &[V, call, ("mcp-name", "rm")],
            modern("tools/call", json!({"name": "rm"})),
        ),
        row(202, "a notification, modern", &[V, ("mcp-method", "n")], json!({"jsonrpc": "2.0", "method": "n"})),
        row(400, "a notification that says another method", &[V, list], json!({"jsonrpc": "2.0", "method": "n"})),
    ]
}

#[tokio::test]
async fn every_answer_is_as_it_is_kept() {
    let world = World::new(1000, &[("log", b"text")]);
    for (file, rows) in
        [("http", http_rows()), ("messages", message_rows()), ("legacy", legacy_rows()), ("modern", modern_rows())]
    {
        let mut transcript = String::new();
        for row in rows {
            let _ = writeln!(transcript, "# {}", row.title);
            transcript += &answered(&world, &row).await;
        }
        check(&format!("wire/{file}.txt"), &transcript);
    }
}

/// The headers that belong to the contract.
const SHOWN: [&str; 10] = [
    "content-type",
    "allow",
    "www-authenticate",
    "accept-encoding",
    "access-control-allow-origin",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
    "mcp-session-id",
    "cache-control",
];

async fn answered(world: &World, row: &Row) -> String {
    let mut request = Request::builder()
        .method(&row.method)
        .uri("/v1/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", "Bearer reader")
        .header("x-request-id", "r-1")
        .body(Body::from(row.body.clone()))
        .expect("a request");
    for (name, value) in &row.headers {
        let headers = request.headers_mut();
        match (name.strip_prefix('+'), value) {
            (Some(name), value) => drop(headers.append(name, value.parse().expect("a value"))),
            (None, &"") => drop(headers.remove(*name)),
            (None, value) => drop(headers.insert(*name, value.parse().expect("a value"))),
        }
    }
    let (status, headers, answer) = world.send(request).await;
    assert_eq!(status, row.status, "{}: {answer}", row.title);
    assert_eq!(
        (&headers["x-request-id"], &headers["vary"]),
        (&"r-1".parse().expect("v"), &"Origin".parse().expect("v"))
    );
    let mut shown = format!("{}\n", status.as_u16());
    for name in SHOWN {
        for value in headers.get_all(name) {
            let _ = writeln!(shown, "{name}: {}", value.to_str().expect("text"));
        }
    }
    let answer = if answer.is_null() { String::new() } else { format!("{answer}\n") };
    shown + &answer.replace(env!("CARGO_PKG_VERSION"), "VERSION") + "\n"
}

#[tokio::test]
async fn what_clients_learn_at_first() {
    let world = World::new(1000, &[]);
    for (file, headers, body) in [
        ("initialize", vec![], legacy("initialize", &json!({"protocolVersion": "2025-11-25"}))),
        ("discover", vec![V, ("mcp-method", "server/discover")], modern("server/discover", json!({}))),
        ("tools_list_legacy", vec![], legacy("tools/list", &json!({}))),
        ("tools_list_modern", vec![V, ("mcp-method", "tools/list")], modern("tools/list", json!({}))),
    ] {
        let mut request = super::world::post(super::world::LISTER).body(body.to_string().into()).expect("a request");
        request.headers_mut().extend(
            headers.iter().map(|(name, value)| {
                (name.parse::<http::HeaderName>().expect("a name"), value.parse().expect("a value"))
            }),
        );
        let (_, _, answer) = world.send(request).await;
        check(&format!("{file}.json"), &format!("{answer:#}\n").replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }
}
