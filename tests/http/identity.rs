//! Who asks, and what each is refused.

use reqwest::Method;
use serde_json::{Value, json};

use super::raw;
use super::service::Service;

const TRIAL: &[(&str, &str, &[u8])] = &[("t1", "a.txt", b"hello")];

#[tokio::test]
async fn a_key_learns_what_it_is() {
    let service = Service::start(TRIAL).await;
    let me = service.json("/v1/me").await;
    assert_eq!(me["auth_method"], "api_key");
    assert_eq!(me["workspace"], json!({"workspace_id": "default", "name": "default"}));
    assert_eq!(me["project"], json!({"project_id": "demo", "workspace_id": "default", "name": "demo"}));
    assert_eq!(me["key_id"], "read-only");
    assert_eq!(me["kind"], "project");
    assert_eq!(me["capabilities"], json!(["datasets.read", "jobs.read", "artifacts.download", "quota.read"]));
}

#[tokio::test]
async fn every_refusal_names_what_is_missing() {
    let service = Service::start(TRIAL).await;
    let keys = &service.keys;
    let content = "/v1/trials/t1/artifacts/a.txt/content";
    let named: &[(&str, &str)] = &[("x-workspace-id", "default"), ("x-project-id", "demo")];
    for (key, path, headers, status, code, words) in [
        ("epk_none", "/v1/trials", &[][..], 401, "UNAUTHENTICATED", "key"),
        (keys.viewer.as_str(), content, &[], 403, "ACCESS_DENIED", "artifacts.download"),
        (&keys.viewer, "/v1/quota/audit", &[], 403, "ACCESS_DENIED", "quota.read"),
        (&keys.operator, "/v1/trials", named, 403, "ACCESS_DENIED", "jobs.read"),
        (&keys.operator, "/v1/quota", &[], 400, "PROJECT_REQUIRED", "X-Project-ID"),
        (&keys.personal, "/v1/trials", &[], 400, "PROJECT_REQUIRED", "X-Workspace-ID and X-Project-ID"),
        (&keys.personal, "/v1/trials", &named[..1], 400, "PROJECT_REQUIRED", "X-Project-ID"),
        (
            &keys.personal,
            "/v1/trials",
            &[("x-workspace-id", "default"), ("x-project-id", "other")],
            403,
            "PROJECT_ACCESS_DENIED",
            "",
        ),
        (&keys.read_only, "/v1/trials", &[("x-project-id", "other")], 403, "PROJECT_ACCESS_DENIED", ""),
        (&keys.read_only, "/v1/trials", &[("x-workspace-id", "w")], 403, "PROJECT_ACCESS_DENIED", ""),
        (&keys.read_only, "/v1/workspaces/default/projects/other/limits", &[], 403, "PROJECT_ACCESS_DENIED", ""),
        (&keys.read_only, "/v1/trials/t2/artifacts", &[], 404, "TRIAL_NOT_FOUND", "/v1/trials"),
        (&keys.read_only, "/v1/trials/t1/artifacts/b.txt/content", &[], 404, "ARTIFACT_NOT_FOUND", ""),
    ] {
        let mut request = service.request(Method::GET, path, key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert_eq!(answer.headers().contains_key("www-authenticate"), status == 401, "{path}");
        let id = answer.headers()["x-request-id"].to_str().expect("text").to_owned();
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{problem}");
        assert!(problem["detail"].as_str().expect("detail").contains(words), "{problem}");
        assert_eq!(problem["request_id"], id);
        assert_eq!(problem.get("missing_capability").is_some(), code == "ACCESS_DENIED", "{problem}");
    }
    assert_eq!(service.store.opens(), 0);
}

/// RFC 6750 §3.1: no error code for a request that brought no key.
#[tokio::test]
async fn a_challenge_says_whether_a_key_was_seen() {
    let service = Service::start(TRIAL).await;
    for (sent, challenge) in [
        ("", "Bearer realm=\"artifactd\""),
        ("Authorization: Basic abc\r\n", "Bearer realm=\"artifactd\""),
        ("Authorization: Bearer epk_none\r\n", "Bearer realm=\"artifactd\", error=\"invalid_token\""),
    ] {
        let request = format!("GET /v1/trials HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{sent}\r\n");
        let answer = raw::send(service.address, request.as_bytes()).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(challenge)), "{sent}");
    }
}

#[tokio::test]
async fn a_foreign_trial_is_the_same_404_as_a_missing_one() {
    let service = Service::start(TRIAL).await;
    for path in ["/v1/trials/t1/artifacts", "/v1/trials/t1/artifacts/a.txt", "/v1/trials/t1/artifacts/a.txt/content"] {
        let mut seen = Vec::new();
        for path in [path.to_owned(), path.replace("t1", "nope")] {
            let answer = service.request(Method::GET, &path, &service.keys.foreign).send().await.expect("an answer");
            assert_eq!(answer.status(), 404);
            let mut problem: Value = answer.json().await.expect("JSON");
            problem["request_id"] = json!("");
            seen.push(problem);
        }
        assert_eq!(seen[0], seen[1]);
    }
}

#[tokio::test]
async fn a_personal_key_names_its_project_and_an_operator_any() {
    let service = Service::start(TRIAL).await;
    let ask = |path: &'static str, key: &str, project: &'static str| {
        let request = service.request(Method::GET, path, key);
        request.header("x-workspace-id", "default").header("x-project-id", project).send()
    };
    let trials = ask("/v1/trials", &service.keys.personal, "demo").await.expect("an answer");
    assert_eq!(trials.json::<Value>().await.expect("JSON")["items"], json!([{"trial_id": "t1"}]));
    for project in ["demo", "any-other"] {
        let quota = ask("/v1/quota", &service.keys.operator, project).await.expect("an answer");
        assert_eq!(quota.json::<Value>().await.expect("JSON")["project_id"], project);
    }
    let me: Value = service
        .request(Method::GET, "/v1/me", &service.keys.personal)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!((&me["project"], &me["kind"]), (&Value::Null, &json!("personal")));
}

#[tokio::test]
async fn what_lies_outside_authentication_is_a_plain_404() {
    let service = Service::start(TRIAL).await;
    for path in ["/", "/.well-known/oauth-protected-resource", "/register", "/authorize", "/token", "/v1", "/v1/nope"] {
        let answer = service.request(Method::GET, path, "none").send().await.expect("an answer");
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "NOT_FOUND");
    }
    let health = service.get("/healthz").await;
    assert_eq!((health.status().as_u16(), health.json::<Value>().await.expect("JSON")), (200, json!({"status": "ok"})));
}

#[tokio::test]
async fn request_ids_are_taken_or_made() {
    let service = Service::start(TRIAL).await;
    for (sent, kept) in [("my-id.1", true), ("bad id", false)] {
        let answer = service
            .request(Method::GET, "/v1/me", &service.keys.read_only)
            .header("x-request-id", sent)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.headers()["x-request-id"] == sent, kept);
    }
}
