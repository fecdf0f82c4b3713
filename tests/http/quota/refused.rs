//! Each endpoint × capability × what is malformed.

use reqwest::Method;
use serde_json::Value;

use super::{allowed, with_entries};

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
        (
            operator,
            &get,
            "/v1/workspaces/w/projects/demo/limits",
            Some("other"),
            None,
            403,
            "PROJECT_ACCESS_DENIED",
            "",
        ),
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
        (
            operator,
            &put,
            allowance,
            None,
            Some(r#"{"daily_bytes":9007199254740992,"reason":"r"}"#),
            400,
            "INVALID_REQUEST",
            "2^53",
        ),
        (
            operator,
            &put,
            allowance,
            None,
            Some(r#"{"daily_bytes":5,"reason":"r","until":"soon"}"#),
            400,
            "INVALID_REQUEST",
            "",
        ),
        (
            operator,
            &put,
            allowance,
            None,
            Some(r#"{"daily_bytes":5,"reason":"r","until":"2020-01-01T00:00:00Z"}"#),
            400,
            "INVALID_REQUEST",
            "future",
        ),
        (
            operator,
            &put,
            allowance,
            None,
            Some(r#"{"daily_bytes":5,"reason":"r","until":"1960-01-01T00:00:00Z"}"#),
            400,
            "INVALID_REQUEST",
            "future",
        ),
        (
            operator,
            &put,
            allowance,
            None,
            Some(r#"{"daily_bytes":5,"reason":"r","untill":null}"#),
            400,
            "INVALID_REQUEST",
            "untill",
        ),
        (operator, &post, allowance, None, Some(set), 405, "METHOD_NOT_ALLOWED", "Allow"),
        (operator, &get, adjustments, None, None, 405, "METHOD_NOT_ALLOWED", "Allow"),
    ];
    let said = [
        "adjustment_id",
        "adjustment_id",
        "adjustment_id",
        "bytes",
        "bytes",
        "bytes",
        "floating point",
        "reason",
        "reason",
        "reason",
        "day",
        "35 days",
        "35 days",
    ];
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
