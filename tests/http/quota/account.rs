//! What each endpoint answers, and that a dry run is one.

use serde_json::{Value, json};

use super::super::probe::Fault;
use super::{allowed, read, with_entries, without_times};

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
        assert_eq!(
            (&check["admitted"], &check["reason"], seconds.is_some()),
            (&json!(admitted), &reason, waits),
            "{check}"
        );
        assert_eq!(
            (&check["used_bytes"], &check["reserved_bytes"], &check["remaining_bytes"]),
            (&json!(1180), &json!(100), &json!(220))
        );
    }
    assert_eq!((service.json("/v1/quota").await, service.json("/v1/quota/audit").await), before);
    // The reads themselves are told the same.
    for (trial, artifact, bytes) in [("t2", "large", 1000), ("t3", "huge", 2000)] {
        let check = service.json(&format!("/v1/quota/check?bytes={bytes}")).await;
        let refused = service.get(&format!("/v1/trials/{trial}/artifacts/{artifact}/content")).await;
        assert_eq!(refused.status(), 429);
        let waits = refused
            .headers()
            .get("retry-after")
            .map(|text| text.to_str().expect("text").parse::<u64>().expect("a number"));
        let problem: Value = refused.json().await.expect("JSON");
        assert_eq!(problem["reason"], check["reason"]);
        assert_eq!(check["retry_after_seconds"].as_u64().is_some(), waits.is_some());
        let apart = check["retry_after_seconds"].as_u64().unwrap_or(0).abs_diff(waits.unwrap_or(0));
        assert!(apart <= 2, "{check} {waits:?}");
    }
    service.store.set(Fault::None);
}
