use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().expect("value"));
    }
    headers
}

fn parse(pairs: &[(&'static str, &str)], body: &Value) -> Result<Message, Fault> {
    read(&headers(pairs), body.to_string().as_bytes())
}

fn fault(pairs: &[(&'static str, &str)], body: &Value) -> (u16, i64) {
    let fault = parse(pairs, body).expect_err(&body.to_string());
    (fault.status.as_u16(), fault.code)
}

fn method(pairs: &[(&'static str, &str)], body: &Value) -> (Era, Method) {
    match parse(pairs, body).unwrap_or_else(|fault| panic!("{body}: {fault:?}")) {
        Message::Request(request) => (request.era, request.method),
        Message::Notification => panic!("a request"),
    }
}

fn legacy(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({META_VERSION: MODERN_REVISION, META_CAPABILITIES: {}});
    legacy(method, &params)
}

const MODERN: (&str, &str) = (VERSION_HEADER, MODERN_REVISION);

#[test]
fn what_is_no_message_is_refused() {
    for (body, code) in [
        ("", PARSE_ERROR),
        ("{", PARSE_ERROR),
        ("{\"jsonrpc\": \"2.0\"} x", PARSE_ERROR),
        ("\u{0}", PARSE_ERROR),
        ("[]", INVALID_REQUEST),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
        ("null", INVALID_REQUEST),
        ("\"ping\"", INVALID_REQUEST),
        ("{}", INVALID_REQUEST),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, INVALID_PARAMS),
    ] {
        let fault = read(&HeaderMap::new(), body.as_bytes()).expect_err(body);
        assert_eq!((fault.status, fault.code), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    let deep = "[".repeat(10_000);
    assert_eq!(read(&HeaderMap::new(), deep.as_bytes()).expect_err("deep").code, PARSE_ERROR);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}}"#, "{\"a\":".repeat(10_000));
    assert_eq!(read(&HeaderMap::new(), deep.as_bytes()).expect_err("deep").code, PARSE_ERROR);
}

#[test]
fn an_id_comes_back_as_it_was_sent() {
    let exact = 9_007_199_254_740_992_i64;
    for id in [
        json!(0),
        json!(-1),
        json!(100.0),
        json!(exact),
        json!(-exact),
        json!(""),
        json!("1"),
        json!("\u{0}\u{e9}\u{1f600}\"\\"),
        json!("x".repeat(MAX_ID_BYTES)),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let Ok(Message::Request(request)) = parse(&[], &body) else { panic!("{id} is legal") };
        let answer = Reply::once(Map::new()).into_json(&request, &json!({}));
        assert_eq!(answer.to_string(), json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
    }
    for id in [
        json!(null),
        json!(true),
        json!([1]),
        json!({}),
        json!(1.5),
        json!(exact + 2),
        json!("x".repeat(MAX_ID_BYTES + 1)),
    ] {
        assert_eq!(fault(&[], &json!({"jsonrpc": "2.0", "id": id, "method": "ping"})), (400, INVALID_REQUEST), "{id}");
    }
    for (id, code) in [("12345678901234567890123", INVALID_REQUEST), ("1e999", PARSE_ERROR), ("01", PARSE_ERROR)] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(read(&HeaderMap::new(), body.as_bytes()).expect_err(id).code, code, "{id}");
    }
}

#[test]
fn notifications_want_no_answer() {
    for method in ["notifications/initialized", "notifications/cancelled", "what/ever"] {
        let body = json!({"jsonrpc": "2.0", "method": method});
        assert_eq!(parse(&[], &body), Ok(Message::Notification));
        assert_eq!(parse(&[MODERN, ("mcp-method", method)], &body), Ok(Message::Notification));
        assert_eq!(fault(&[MODERN], &body), (400, HEADER_MISMATCH));
        assert_eq!(fault(&[MODERN, ("mcp-method", "ping")], &body), (400, HEADER_MISMATCH));
        assert_eq!(fault(&[(VERSION_HEADER, "1999-01-01")], &body), (400, UNSUPPORTED_VERSION));
    }
}

#[test]
fn initialize_answers_a_legacy_revision() {
    for (asked, answered) in [
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("1999-01-01"), "2025-11-25"),
        (json!(5), "2025-11-25"),
        (json!(null), "2025-11-25"),
    ] {
        let body = legacy("initialize", &json!({"protocolVersion": asked}));
        for headers in [&[][..], &[MODERN], &[(VERSION_HEADER, "2025-06-18")]] {
            assert_eq!(method(headers, &body), (Era::Legacy, Method::Initialize(answered)));
        }
    }
}

#[test]
fn the_legacy_era() {
    let call = json!({"name": "t", "arguments": {"a": 1}});
    let called = |arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        (Era::Legacy, Method::CallTool { name: "t".into(), arguments })
    };
    for version in [None, Some("2024-11-05"), Some("2025-03-26"), Some("2025-06-18"), Some("2025-11-25")] {
        let headers: Vec<_> = version.iter().map(|version| (VERSION_HEADER, *version)).collect();
        assert_eq!(method(&headers, &legacy("ping", &json!({}))), (Era::Legacy, Method::Ping));
        assert_eq!(method(&headers, &legacy("tools/list", &json!({}))), (Era::Legacy, Method::ListTools));
        assert_eq!(method(&headers, &legacy("tools/call", &call)), called(json!({"a": 1})));
    }
    assert_eq!(method(&[], &legacy("tools/call", &json!({"name": "t"}))), called(json!({})));
    assert_eq!(method(&[], &legacy("tools/call", &json!({"name": "t", "arguments": null}))), called(json!({})));
    assert_eq!(method(&[], &legacy("tools/list", &json!({"_meta": {"progressToken": 0}}))).1, Method::ListTools);
    assert_eq!(method(&[("mcp-method", "other")], &legacy("ping", &json!({}))).1, Method::Ping);
    for (name, params, want) in [
        ("tools/call", json!({}), (200, INVALID_PARAMS)),
        ("tools/call", json!({"name": 5}), (200, INVALID_PARAMS)),
        ("tools/call", json!({"name": "t", "arguments": []}), (200, INVALID_PARAMS)),
        ("tools/list", json!({"cursor": "x"}), (200, INVALID_PARAMS)),
        ("resources/list", json!({}), (200, METHOD_NOT_FOUND)),
        ("", json!({}), (200, METHOD_NOT_FOUND)),
    ] {
        assert_eq!(fault(&[], &legacy(name, &params)), want, "{name} {params}");
    }
    for headers in [
        &[(VERSION_HEADER, "2099-01-01")][..],
        &[(VERSION_HEADER, "")],
        &[(VERSION_HEADER, "2025-06-18"), (VERSION_HEADER, "2025-06-18")],
    ] {
        assert_eq!(fault(headers, &legacy("ping", &json!({}))).0, 400, "{headers:?}");
    }
}

#[test]
fn the_modern_era() {
    let list = [MODERN, ("mcp-method", "tools/list")];
    assert_eq!(method(&list, &modern("tools/list", json!({}))), (Era::Modern, Method::ListTools));
    let discover = [MODERN, ("mcp-method", "server/discover")];
    assert_eq!(method(&discover, &modern("server/discover", json!({}))), (Era::Modern, Method::Discover));
    let body = modern("tools/call", json!({"name": "t\u{e9}"}));
    for name in ["=?base64?dMOp?=", "  =?base64?dMOp?=  "] {
        let headers = [MODERN, ("mcp-method", "tools/call"), ("mcp-name", name)];
        assert!(matches!(method(&headers, &body).1, Method::CallTool { .. }), "{name}");
    }
}

#[test]
fn modern_headers_say_what_the_body_says() {
    let body = modern("tools/call", json!({"name": "t"}));
    let (call, name) = (("mcp-method", "tools/call"), ("mcp-name", "t"));
    assert!(parse(&[MODERN, call, name], &body).is_ok());
    for headers in [
        &[call, name][..],
        &[MODERN, name],
        &[MODERN, call],
        &[(VERSION_HEADER, "2025-11-25"), call, name],
        &[MODERN, ("mcp-method", "tools/list"), name],
        &[MODERN, ("mcp-method", "Tools/Call"), name],
        &[MODERN, call, ("mcp-name", "T")],
        &[MODERN, call, ("mcp-name", "")],
        &[MODERN, call, ("mcp-name", "=?base64?dA=?=")],
        &[MODERN, call, ("mcp-name", "=?base64?!?=")],
        &[MODERN, MODERN, call, name],
        &[MODERN, call, call, name],
        &[MODERN, call, name, name],
    ] {
        assert_eq!(fault(headers, &body), (400, HEADER_MISMATCH), "{headers:?}");
    }
}

#[test]
fn modern_requests_say_what_they_speak() {
    let list = [MODERN, ("mcp-method", "tools/list")];
    for meta in [
        json!({}),
        json!({META_CAPABILITIES: {}}),
        json!({META_VERSION: MODERN_REVISION}),
        json!({META_VERSION: MODERN_REVISION, META_CAPABILITIES: []}),
        json!({META_VERSION: 5, META_CAPABILITIES: {}}),
    ] {
        assert_eq!(fault(&list, &legacy("tools/list", &json!({"_meta": meta}))), (400, INVALID_PARAMS), "{meta}");
    }
    assert_eq!(fault(&list, &legacy("tools/list", &json!({}))), (400, INVALID_PARAMS));
    assert_eq!(fault(&[], &legacy("server/discover", &json!({}))), (400, INVALID_PARAMS));

    let meta = json!({META_VERSION: "2099-01-01", META_CAPABILITIES: {}});
    let body = legacy("tools/list", &json!({"_meta": meta}));
    let unknown = parse(&[(VERSION_HEADER, "2099-01-01"), ("mcp-method", "tools/list")], &body).expect_err("unknown");
    let said = json!({"jsonrpc": "2.0", "id": 1, "error": {
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": {
            "supported": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
            "requested": "2099-01-01",
        },
    }});
    assert_eq!((unknown.status, unknown.to_json()), (StatusCode::BAD_REQUEST, said));
}

#[test]
fn what_the_modern_era_does_not_have_is_not_found() {
    for name in ["initialize", "ping", "logging/setLevel", "resources/list", "x"] {
        let headers = [MODERN, ("mcp-method", name)];
        assert_eq!(fault(&headers, &modern(name, json!({}))), (404, METHOD_NOT_FOUND), "{name}");
    }
}

#[test]
fn answers_have_what_their_era_wants() {
    let server = json!({"name": "s", "version": "1"});
    let request = |era| Request { id: json!("a"), era, method: Method::ListTools };
    let result = || Map::from_iter([("x".to_owned(), json!(1))]);
    assert_eq!(
        Reply::cacheable(result()).into_json(&request(Era::Legacy), &server),
        json!({"jsonrpc": "2.0", "id": "a", "result": {"x": 1}})
    );
    let meta = json!({"io.modelcontextprotocol/serverInfo": server});
    assert_eq!(
        Reply::once(result()).into_json(&request(Era::Modern), &server),
        json!({"jsonrpc": "2.0", "id": "a", "result": {"x": 1, "resultType": "complete", "_meta": meta}})
    );
    let cached = Reply::cacheable(result()).into_json(&request(Era::Modern), &server);
    assert_eq!((&cached["result"]["ttlMs"], &cached["result"]["cacheScope"]), (&json!(300_000), &json!("private")));
}
