//! What operators change.

use reqwest::Method;
use serde_json::{Value, json};

use super::{allowed, with_entries, without_times};

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
    // The longest reason: characters are counted, not bytes.
    let why = "é".repeat(500);
    let unlimited = json!({"daily_bytes": "unlimited", "reason": why});
    let (_, set) = service.operate(Method::PUT, path, Some(unlimited)).await;
    let want = json!({"daily_bytes": "unlimited", "until": null, "by": "operator", "reason": why});
    assert_eq!(set["override"], want);
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
