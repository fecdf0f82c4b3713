//! The account and its audit over HTTP: what each endpoint answers, to whom, and to what not.

use artifactd::ledger::{Allowance, Rules};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::probe::Fault;
use super::service::{Options, Service};

const FILES: &[(&str, &str, &[u8])] = &[
    ("t1", "a.txt", &[b'a'; 100]),
    ("t1", "=cmd|' /C calc'!A0", &[b'b'; 50]),
    ("t2", "日本, \"quoted\".txt", &[b'c'; 30]),
    ("t2", "large", &[b'd'; 1000]),
    ("t3", "huge", &[b'e'; 2000]),
];

fn allowed(daily: u64) -> Options {
    Options { daily: Allowance::Bytes(daily), ..Options::default() }
}

/// Reads the three small files: two by HTTP, one by an agent, and waits until they are settled.
async fn with_entries(options: Options) -> Service {
    let service = Service::with(FILES, options).await;
    read(&service, "t1", "a.txt").await;
    read(&service, "t1", "=cmd%7C'%20~1C%20calc'!A0").await;
    let arguments = json!({"trial_id": "t2", "name": "日本, \"quoted\".txt"});
    service.tool("envloop_trial_artifact_read", arguments).await;
    assert_eq!(service.settled().await, 180);
    service
}

async fn read(service: &Service, trial: &str, artifact: &str) {
    let answer = service.get(&format!("/v1/trials/{trial}/artifacts/{artifact}/content")).await;
    assert_eq!(answer.status(), 200);
    answer.bytes().await.expect("bytes");
}

impl Service {
    async fn ask(&self, method: Method, path: &str, key: &str, project: Option<&str>, body: Option<&str>) -> Response {
        let mut request = self.request(method, path, key);
        if let Some(project) = project {
            request = request.header("x-project-id", project);
        }
        if let Some(body) = body {
            request = request.body(body.to_owned());
        }
        request.send().await.expect("an answer")
    }

    /// Asks as the operator; answers status and body.
    async fn operate(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string());
        let answer = self.ask(method, path, &self.keys.operator, None, body.as_deref()).await;
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&answer.bytes().await.expect("a body")).unwrap_or_default())
    }

    async fn export(&self, media_type: &str, query: &str) -> Response {
        let path = format!("/v1/quota/audit{query}");
        let request = self.request(Method::GET, &path, &self.keys.read_only);
        request.header("accept", media_type).send().await.expect("an answer")
    }
}

/// Takes what differs from run to run out of an answer, after a look at its form.
fn without_times(mut value: Value) -> Value {
    let times = ["day", "resets_at", "at", "id", "request_id", "until"];
    match &mut value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                *field = match field {
                    Value::String(text) if times.contains(&name.as_str()) => {
                        assert!(!text.is_empty());
                        json!("…")
                    }
                    other => without_times(other.take()),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_times(item.take())),
        _ => {}
    }
    value
}

#[tokio::test]
async fn what_each_endpoint_answers() {
    let service = with_entries(allowed(1000)).await;
    let quota = json!({
        "project_id": "demo", "day": "…", "zone": "UTC", "resets_at": "…", "daily_bytes": 1000, "used_bytes": 180,
        "reserved_bytes": 0, "remaining_bytes": 820, "open_reservations": 0, "refused": 0, "warn_percent": 80,
        "warning": false,
    });
    assert_eq!(without_times(service.json("/v1/quota").await), quota);
    assert_eq!(
        without_times(service.json("/v1/quota/history?days=2").await),
        json!({"zone": "UTC", "items": [
            {"day": "…", "daily_bytes": 1000, "used_bytes": 180, "reserved_bytes": 0, "refused": 0, "entries": 3, "count": 3},
            {"day": "…", "daily_bytes": null, "used_bytes": 0, "reserved_bytes": 0, "refused": 0, "entries": 0, "count": 0},
        ]})
    );
    assert_eq!(service.json("/v1/quota/history").await["items"].as_array().map(Vec::len), Some(7));
    let page = service.json("/v1/quota/audit?limit=2").await;
    assert_eq!(
        without_times(page.clone()),
        json!({
            "day": "…", "next_cursor": page["next_cursor"], "totals": {"count": 3, "charged_bytes": 180},
            "items": [
                {"at": "…", "id": "…", "key_id": "read-only", "channel": "mcp", "size_bytes": 30, "charged_bytes": 30,
                 "outcome": "completed", "count": 1, "trial_id": "t2", "artifact": "日本, \"quoted\".txt",
                 "request_id": "…", "link_id": null},
                {"at": "…", "id": "…", "key_id": "read-only", "channel": "http", "size_bytes": 50, "charged_bytes": 50,
                 "outcome": "completed", "count": 1, "trial_id": "t1", "artifact": "=cmd|' /C calc'!A0",
                 "request_id": "…", "link_id": null},
            ],
        })
    );
    let cursor = page["next_cursor"].as_str().expect("more");
    let rest = service.json(&format!("/v1/quota/audit?limit=2&cursor={cursor}")).await;
    assert_eq!((rest["items"][0]["charged_bytes"].clone(), &rest["next_cursor"]), (json!(100), &Value::Null));
    assert_eq!(
        without_times(service.json("/v1/quota/audit?group_by=trial,channel").await),
        json!({
            "day": "…", "group_by": ["trial", "channel"], "others": {"groups": 0, "count": 0, "charged_bytes": 0},
            "totals": {"count": 3, "charged_bytes": 180},
            "groups": [
                {"trial_id": "t1", "channel": "http", "count": 2, "charged_bytes": 150},
                {"trial_id": "t2", "channel": "mcp", "count": 1, "charged_bytes": 30},
            ],
        })
    );
    let of_t2 = service.json("/v1/quota/audit?group_by=key&trial_id=t2").await;
    assert_eq!(of_t2["groups"], json!([{"key_id": "read-only", "count": 1, "charged_bytes": 30}]));
    assert_eq!(
        service.json("/v1/quota/audit/verify").await,
        json!({"entries": 3, "charged_bytes": 180, "used_bytes": 180, "reserved_bytes": 0, "leases": 0, "balanced": true})
    );
    assert_eq!(
        without_times(service.json("/v1/workspaces/default/projects/demo/limits").await),
        json!({"workspace_id": "default", "project_id": "demo", "limits": {"downloads": {
            "daily_bytes": 1000, "used_bytes": 180, "reserved_bytes": 0, "remaining_bytes": 820, "resets_at": "…"}}})
    );
}

#[tokio::test]
async fn who_may_ask_what_and_what_is_refused() {
    let service = with_entries(allowed(1000)).await;
    let keys = &service.keys;
    let (reads, operator) = (&keys.read_only, &keys.operator);
    let (get, put, post) = (Method::GET, Method::PUT, Method::POST);
    let (allowance, adjustments) = ("/v1/projects/demo/allowance", "/v1/projects/demo/adjustments");
    let fix = |id: &str, day: &str, bytes: &str, reason: &str| {
        format!(r#"{{"adjustment_id":"{id}","day":"{day}","bytes":{bytes},"reason":"{reason}"}}"#)
    };
    let today = service.json("/v1/quota").await["day"].as_str().expect("a day").to_owned();
    let set = r#"{"daily_bytes":5,"reason":"r"}"#;
    let long = "x".repeat(501);
    let bodies = [
        fix("a b", &today, "1", "r"),
        fix("", &today, "1", "r"),
        fix(&long[..129], &today, "1", "r"),
        fix("a", &today, "0", "r"),
        fix("a", &today, "9007199254740992", "r"),
        fix("a", &today, "-9007199254740992", "r"),
        fix("a", &today, "1.5", "r"),
        fix("a", &today, "1", ""),
        fix("a", &today, "1", "a\\nb"),
        fix("a", &today, "1", &long),
        fix("a", "tomorrow", "1", "r"),
        fix("a", "2020-01-01", "1", "r"),
        fix("a", "2999-01-01", "1", "r"),
    ];
    let mut table = vec![
        // Endpoint × capability. A viewer has jobs.read alone.
        (&keys.viewer, &get, "/v1/quota", None, None, 200, "", ""),
        (&keys.viewer, &get, "/v1/quota/check?bytes=1", None, None, 200, "", ""),
        (&keys.viewer, &get, "/v1/quota/history", None, None, 403, "ACCESS_DENIED", "quota.read"),
        (&keys.viewer, &get, "/v1/quota/audit", None, None, 403, "ACCESS_DENIED", "quota.read"),
        (&keys.viewer, &get, "/v1/quota/audit?group_by=key", None, None, 403, "ACCESS_DENIED", "quota.read"),
        (&keys.viewer, &get, "/v1/quota/audit/verify", None, None, 403, "ACCESS_DENIED", "quota.read"),
        (&keys.viewer, &get, allowance, None, None, 403, "ACCESS_DENIED", "quota.read"),
        (reads, &put, allowance, None, Some(set), 403, "ACCESS_DENIED", "quota.manage"),
        (reads, &Method::DELETE, allowance, None, None, 403, "ACCESS_DENIED", "quota.manage"),
        (reads, &post, adjustments, None, None, 403, "ACCESS_DENIED", "quota.manage"),
        (&keys.automation, &put, allowance, None, Some(set), 403, "ACCESS_DENIED", "quota.manage"),
        (&keys.automation, &post, adjustments, None, None, 403, "ACCESS_DENIED", "quota.manage"),
        (&keys.foreign, &put, allowance, None, Some(set), 403, "PROJECT_ACCESS_DENIED", ""),
        (&keys.personal, &put, allowance, None, Some(set), 400, "PROJECT_REQUIRED", ""),
        // An operator names any project, in one way or in both the same.
        (operator, &get, "/v1/quota", None, None, 400, "PROJECT_REQUIRED", "X-Project-ID"),
        (operator, &get, "/v1/quota/history", Some("demo"), None, 200, "", ""),
        (operator, &get, "/v1/quota/audit", Some("other"), None, 200, "", ""),
        (operator, &get, allowance, None, None, 200, "", ""),
        (operator, &get, allowance, Some("demo"), None, 200, "", ""),
        (operator, &get, allowance, Some("other"), None, 403, "PROJECT_ACCESS_DENIED", "X-Project-ID"),
        (operator, &put, allowance, Some("other"), Some(set), 403, "PROJECT_ACCESS_DENIED", "X-Project-ID"),
        (operator, &post, adjustments, Some("other"), None, 403, "PROJECT_ACCESS_DENIED", "X-Project-ID"),
        (operator, &get, "/v1/workspaces/w/projects/demo/limits", Some("demo"), None, 200, "", ""),
        (operator, &get, "/v1/workspaces/w/projects/demo/limits", Some("other"), None, 403, "PROJECT_ACCESS_DENIED", ""),
        // What is malformed.
        (reads, &get, "/v1/quota/check", None, None, 400, "INVALID_REQUEST", "bytes"),
        (reads, &get, "/v1/quota/check?bytes=", None, None, 400, "INVALID_REQUEST", "bytes"),
        (reads, &get, "/v1/quota/check?bytes=-1", None, None, 400, "INVALID_REQUEST", "bytes"),
        (reads, &get, "/v1/quota/check?bytes=9007199254740992", None, None, 400, "INVALID_REQUEST", "9007199254740991"),
        (reads, &get, "/v1/quota/check?bytes=9007199254740991", None, None, 200, "", ""),
        (reads, &get, "/v1/quota/history?days=0", None, None, 400, "INVALID_REQUEST", "1 to 36"),
        (reads, &get, "/v1/quota/history?days=36", None, None, 200, "", ""),
        (reads, &get, "/v1/quota/history?days=37", None, None, 400, "INVALID_REQUEST", "1 to 36"),
        (reads, &get, "/v1/quota/history?days=4294967297", None, None, 400, "INVALID_REQUEST", "1 to 36"),
        (reads, &get, "/v1/quota/history?days=x", None, None, 400, "INVALID_REQUEST", "1 to 36"),
        (reads, &get, "/v1/quota/audit?day=yesterday", None, None, 400, "INVALID_REQUEST", "day"),
        (reads, &get, "/v1/quota/audit?limit=0", None, None, 400, "INVALID_LIMIT", ""),
        (reads, &get, "/v1/quota/audit?limit=101", None, None, 400, "INVALID_LIMIT", ""),
        (reads, &get, "/v1/quota/audit?cursor=x", None, None, 400, "INVALID_CURSOR", ""),
        (reads, &get, "/v1/quota/audit?channel=ftp", None, None, 400, "INVALID_REQUEST", "mcp, http, link"),
        (reads, &get, "/v1/quota/audit?outcome=lost", None, None, 400, "INVALID_REQUEST", "completed"),
        (reads, &get, "/v1/quota/audit?trial_id=a%2Fb", None, None, 400, "INVALID_NAME", "trial"),
        (reads, &get, "/v1/quota/audit?group_by=", None, None, 400, "INVALID_REQUEST", "key, channel, trial"),
        (reads, &get, "/v1/quota/audit?group_by=key,size", None, None, 400, "INVALID_REQUEST", "key, channel, trial"),
        (reads, &get, "/v1/quota/audit?group_by=key&limit=5", None, None, 400, "INVALID_REQUEST", "whole day"),
        (reads, &get, "/v1/quota/audit/verify?day=2026-13-01", None, None, 400, "INVALID_REQUEST", "day"),
        (operator, &get, "/v1/projects/a%2Fb/allowance", None, None, 400, "INVALID_NAME", "project"),
        (operator, &get, "/v1/projects/%FF/allowance", None, None, 400, "INVALID_NAME", "UTF-8"),
        (reads, &get, "/v1/workspaces/%FF/projects/demo/limits", None, None, 400, "INVALID_NAME", "UTF-8"),
        (reads, &Method::DELETE, "/v1/links/%FF", None, None, 400, "INVALID_NAME", "UTF-8"),
        (operator, &put, allowance, None, None, 400, "INVALID_REQUEST", "daily_bytes"),
        (operator, &put, allowance, None, Some("{}"), 400, "INVALID_REQUEST", "daily_bytes"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":5}"#), 400, "INVALID_REQUEST", "reason"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":5,"reason":" "}"#), 400, "INVALID_REQUEST", "reason"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":-5,"reason":"r"}"#), 400, "INVALID_REQUEST", "2^53"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":9007199254740992,"reason":"r"}"#), 400, "INVALID_REQUEST", "2^53"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":5,"reason":"r","until":"soon"}"#), 400, "INVALID_REQUEST", ""),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":5,"reason":"r","until":"2020-01-01T00:00:00Z"}"#), 400, "INVALID_REQUEST", "future"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":5,"reason":"r","until":"1960-01-01T00:00:00Z"}"#), 400, "INVALID_REQUEST", "future"),
        (operator, &put, allowance, None, Some(r#"{"daily_bytes":5,"reason":"r","untill":null}"#), 400, "INVALID_REQUEST", "untill"),
        (operator, &post, allowance, None, Some(set), 405, "METHOD_NOT_ALLOWED", "Allow"),
        (operator, &get, adjustments, None, None, 405, "METHOD_NOT_ALLOWED", "Allow"),
    ];
    let said = ["adjustment_id", "adjustment_id", "adjustment_id", "bytes", "bytes", "bytes", "integer", "reason", "reason", "reason", "day", "35 days", "35 days"];
    for (body, said) in bodies.iter().zip(said) {
        table.push((operator, &post, adjustments, None, Some(body.as_str()), 400, "INVALID_REQUEST", said));
    }
    for (key, method, path, project, body, status, code, words) in table {
        let row = format!("{method} {path} {project:?} {body:?}");
        let answer = service.ask(method.clone(), path, key, project, body).await;
        assert_eq!(answer.status(), status, "{row}");
        if code.is_empty() {
            continue;
        }
        assert_eq!(answer.headers()["content-type"], "application/problem+json", "{row}");
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!(problem["code"], code, "{row}: {problem}");
        assert!(problem["detail"].as_str().expect("detail").contains(words), "{row}: {problem}");
        if code == "ACCESS_DENIED" {
            assert_eq!(problem["missing_capability"], words, "{row}");
        }
    }
    let too_much = format!(r#"{{"daily_bytes":5,"reason":"{}"}}"#, "x".repeat(5000));
    let answer = service.ask(put, allowance, operator, None, Some(&too_much)).await;
    assert_eq!(answer.status(), 413);
    // None of it changed anything.
    assert_eq!(service.settled().await, 180);
    assert_eq!(service.operate(Method::GET, allowance, None).await.1["override"], Value::Null);
}

#[tokio::test]
async fn a_check_is_what_a_read_would_be_told_and_touches_nothing() {
    let service = with_entries(allowed(1500)).await;
    read(&service, "t2", "large").await;
    assert_eq!(service.settled().await, 1180);
    service.store.set(Fault::StallAfter(0));
    let _open = service.get("/v1/trials/t1/artifacts/a.txt/content").await;
    let before = (service.json("/v1/quota").await, service.json("/v1/quota/audit").await);
    assert_eq!(before.0["reserved_bytes"], 100);
    for (bytes, admitted, reason, waits) in [
        (0, true, Value::Null, false),
        (220, true, Value::Null, false),
        (221, false, json!("busy"), true),
        (321, false, json!("spent"), true),
        (1501, false, json!("too_large"), false),
    ] {
        let check = service.json(&format!("/v1/quota/check?bytes={bytes}")).await;
        let seconds = check["retry_after_seconds"].as_u64();
        assert_eq!((&check["admitted"], &check["reason"], seconds.is_some()), (&json!(admitted), &reason, waits), "{check}");
        assert_eq!((&check["used_bytes"], &check["reserved_bytes"], &check["remaining_bytes"]), (&json!(1180), &json!(100), &json!(220)));
    }
    assert_eq!((service.json("/v1/quota").await, service.json("/v1/quota/audit").await), before);
    // The reads themselves are told the same.
    for (trial, artifact, bytes) in [("t2", "large", 1000), ("t3", "huge", 2000)] {
        let check = service.json(&format!("/v1/quota/check?bytes={bytes}")).await;
        let refused = service.get(&format!("/v1/trials/{trial}/artifacts/{artifact}/content")).await;
        assert_eq!(refused.status(), 429);
        let waits = refused.headers().get("retry-after").map(|text| text.to_str().expect("text").parse::<u64>().expect("a number"));
        let problem: Value = refused.json().await.expect("JSON");
        assert_eq!(problem["reason"], check["reason"]);
        assert_eq!(check["retry_after_seconds"].as_u64().is_some(), waits.is_some());
        let apart = check["retry_after_seconds"].as_u64().unwrap_or(0).abs_diff(waits.unwrap_or(0));
        assert!(apart <= 2, "{check} {waits:?}");
    }
    service.store.set(Fault::None);
}

#[tokio::test]
async fn an_override_is_set_shown_and_cleared() {
    let service = with_entries(allowed(1000)).await;
    let path = "/v1/projects/demo/allowance";
    let none = json!({"project_id": "demo", "override": null});
    assert_eq!(service.operate(Method::GET, path, None).await, (200, none.clone()));
    let body = json!({"daily_bytes": 150, "until": "2999-01-01T00:00:00Z", "reason": "a smaller one"});
    let set = json!({"project_id": "demo", "override": {
        "daily_bytes": 150, "until": "2999-01-01T00:00:00Z", "by": "operator", "reason": "a smaller one"}});
    assert_eq!(service.operate(Method::PUT, path, Some(body)).await, (200, set.clone()));
    assert_eq!(service.operate(Method::GET, path, None).await, (200, set.clone()));
    assert_eq!(service.json(path).await, set, "the project's own keys see it");
    let refused = service.get("/v1/trials/t1/artifacts/a.txt/content").await;
    assert_eq!(refused.json::<Value>().await.expect("JSON")["limit_bytes"], 150);
    let unlimited = json!({"daily_bytes": "unlimited", "reason": "for the day"});
    let (_, set) = service.operate(Method::PUT, path, Some(unlimited)).await;
    assert_eq!((&set["override"]["daily_bytes"], &set["override"]["until"]), (&json!("unlimited"), &Value::Null));
    let quota = service.json("/v1/quota").await;
    assert_eq!((&quota["daily_bytes"], &quota["remaining_bytes"]), (&json!("unlimited"), &Value::Null));
    for _ in 0..2 {
        assert_eq!(service.operate(Method::DELETE, path, None).await.0, 204);
        assert_eq!(service.operate(Method::GET, path, None).await, (200, none.clone()));
    }
    assert_eq!(service.json("/v1/quota").await["daily_bytes"], 1000);
}

#[tokio::test]
async fn a_correction_is_applied_once_and_stands_in_the_audit() {
    let service = with_entries(allowed(1000)).await;
    let path = "/v1/projects/demo/adjustments";
    let today = service.json("/v1/quota").await["day"].clone();
    let fix = |id: &str, bytes: i64, reason: &str| json!({"adjustment_id": id, "day": today, "bytes": bytes, "reason": reason});
    for (body, applied, used) in [
        (fix("a", -30, "a crash"), -30, 150),
        (fix("a", -30, "a crash"), -30, 150),
        (fix("b", 70, "forgotten"), 70, 220),
        // Never below nothing: what cannot be taken off is not.
        (fix("c", -5000, "all of it"), -220, 0),
        (fix("c", -5000, "all of it"), -220, 0),
    ] {
        let (status, answer) = service.operate(Method::POST, path, Some(body.clone())).await;
        let mut want = body;
        want["project_id"] = json!("demo");
        want["applied_bytes"] = json!(applied);
        assert_eq!((status, answer), (200, want));
        assert_eq!(service.settled().await, used);
    }
    for other in [fix("a", -31, "a crash"), fix("a", -30, "another")] {
        let (status, problem) = service.operate(Method::POST, path, Some(other)).await;
        assert_eq!((status, &problem["code"]), (409, &json!("ADJUSTMENT_CONFLICT")), "{problem}");
    }
    assert_eq!(service.settled().await, 0);
    let audit = service.json("/v1/quota/audit?outcome=adjusted").await;
    assert_eq!(audit["totals"], json!({"count": 3, "charged_bytes": -180}));
    let entry = json!({"at": "…", "id": "…", "key_id": "operator", "channel": null, "size_bytes": 0, "charged_bytes": -30,
        "outcome": "adjusted", "count": 1, "reason": "a crash"});
    assert_eq!(without_times(audit["items"][2].clone()), entry);
    assert_eq!(audit["items"][2]["id"], "a");
}

#[tokio::test]
async fn a_whole_day_streams_as_csv_and_as_ndjson() {
    let rules = Rules { max_entries: 320, ..Rules::default() };
    let service = with_entries(Options { rules, daily: Allowance::Bytes(1_000_000), ..Options::default() }).await;
    for _ in 0..350 {
        read(&service, "t1", "a.txt").await;
    }
    service.settled().await;
    let today = service.json("/v1/quota").await["day"].as_str().expect("a day").to_owned();
    let page = service.json("/v1/quota/audit?limit=100").await;

    let answer = service.export("application/x-ndjson", "").await;
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    assert_eq!(answer.headers()["vary"], "accept");
    let name = format!("attachment; filename=\"audit-demo-{today}.ndjson\"");
    assert_eq!(answer.headers()["content-disposition"], name.as_str());
    let text = answer.text().await.expect("whole");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // Rolled-up entries are among them, and all of it is what the totals say.
    assert_eq!(lines.len(), 321);
    assert_eq!(json!(lines[..100]), page["items"]);
    let sum = |name: &str| lines.iter().map(|line| line[name].as_i64().expect("a number")).sum::<i64>();
    assert_eq!(json!({"count": sum("count"), "charged_bytes": sum("charged_bytes")}), page["totals"]);
    assert_eq!(page["totals"]["count"], 353);
    let groups = service.json("/v1/quota/audit?group_by=channel").await;
    assert_eq!(groups["totals"], page["totals"]);

    let answer = service.export("text/csv", "?trial_id=t1&outcome=completed").await;
    assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    let name = format!("attachment; filename=\"audit-demo-{today}.csv\"");
    assert_eq!(answer.headers()["content-disposition"], name.as_str());
    let text = answer.text().await.expect("whole");
    let rows: Vec<_> = text.split_terminator("\r\n").collect();
    assert!(rows[0].starts_with("at,id,outcome,key_id,"), "{}", rows[0]);
    assert_eq!(rows.len(), 1 + lines.iter().filter(|line| line["trial_id"] == "t1").count());
    let evil = rows.iter().find(|row| row.contains("cmd|")).expect("listed");
    assert!(evil.contains(",\"'=cmd|' /C calc'!A0\","), "{evil}");

    let none = service.export("text/csv", "?day=2020-01-01").await.text().await.expect("whole");
    assert_eq!(none.lines().count(), 1, "a head and no rows: {none}");
    for query in ["?limit=5", "?group_by=key"] {
        assert_eq!(service.export("text/csv", query).await.status(), 400, "{query}");
    }
}

#[tokio::test]
async fn an_export_that_fails_midway_has_no_clean_end() {
    let service = with_entries(allowed(1_000_000)).await;
    for _ in 0..600 {
        read(&service, "t1", "a.txt").await;
    }
    service.settled().await;
    let mut answer = service.export("application/x-ndjson", "").await;
    let mut got = answer.chunk().await.expect("a first part").expect("not the end").len();
    // The ledger's file goes away under it: pages that were not fetched yet fail.
    std::fs::rename(service.scratch.path().join("ledger.db"), service.scratch.path().join("away")).expect("moved");
    let end = loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => got += chunk.len(),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    std::fs::rename(service.scratch.path().join("away"), service.scratch.path().join("ledger.db")).expect("back");
    let whole = service.export("application/x-ndjson", "").await.text().await.expect("whole").len();
    assert!(got < whole, "the whole export came before the fault: {got} of {whole} bytes");
    assert!(end.is_err(), "{got} of {whole} bytes and a clean end");
}

#[tokio::test]
async fn from_the_threshold_on_answers_warn() {
    let settings = "[quota]\nwarn_percent = 50\n".to_owned();
    let service = Service::with(FILES, Options { settings, ..allowed(250) }).await;
    let answer = |path: &'static str| async {
        let answer = service.get(path).await;
        let limit = answer.headers()["ratelimit"].to_str().expect("text").to_owned();
        answer.bytes().await.expect("bytes");
        service.settled().await;
        limit
    };
    let quiet = answer("/v1/trials/t1/artifacts/a.txt/content").await;
    assert!(!quiet.contains("warn"), "{quiet}");
    assert_eq!(service.json("/v1/quota").await["warning"], false);
    answer("/v1/trials/t2/artifacts/日本, \"quoted\".txt/content").await;
    // 130 of 250 bytes are used; the read that is told so does not count yet.
    let quota = service.json("/v1/quota").await;
    assert_eq!((&quota["warn_percent"], &quota["warning"]), (&json!(50), &json!(true)), "{quota}");
    let warned = answer("/v1/trials/t1/artifacts/a.txt/content").await;
    assert!(warned.starts_with("\"daily\";r=20;t=") && warned.ends_with(";artifactd-warn=50"), "{warned}");
}
