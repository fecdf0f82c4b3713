//! A store and a ledger that fail: no clean end of a wrong file, no byte without its books.

use std::time::Duration;

use artifactd::ledger::Allowance;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::probe::Fault;
use super::service::{Options, Service};

const PATH: &str = "/v1/trials/t1/artifacts/a/content";

async fn service() -> Service {
    Service::start(&[("t1", "a", &[7; 100_000])]).await
}

#[tokio::test]
async fn a_store_that_fails_midway_cuts_the_answer_and_the_charge_is_exact() {
    let service = Service::start(&[("t1", "a", &[7; 8 << 20])]).await;
    service.store.set(Fault::FailAfter(3_000_000));
    let answer = service.get(PATH).await;
    assert_eq!((answer.status().as_u16(), answer.content_length()), (200, Some(8 << 20)));
    assert!(answer.bytes().await.is_err(), "a cut answer has no clean end");
    assert_eq!(service.settled().await, 3_000_000);
    assert_eq!(service.json("/v1/quota/audit").await["items"][0]["outcome"], "failed");
}

#[tokio::test]
async fn a_store_out_of_reach_is_503_and_costs_nothing() {
    let service = service().await;
    service.store.set(Fault::Outage);
    for path in [PATH, "/v1/trials", "/v1/trials/t1/artifacts", "/v1/trials/t1/artifacts/a"] {
        let answer = service.get(path).await;
        assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().expect("value")));
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "STORE_UNAVAILABLE");
    }
    service.store.set(Fault::None);
    assert_eq!(service.get(PATH).await.bytes().await.expect("bytes").len(), 100_000);
    assert_eq!(service.settled().await, 100_000);
}

#[tokio::test]
async fn a_file_that_keeps_changing_is_409_and_costs_nothing() {
    let service = service().await;
    service.store.set(Fault::Changed);
    let answer = service.get(PATH).await;
    assert_eq!(answer.status(), 409);
    assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "ARTIFACT_CHANGED");
    assert_eq!(service.store.opens(), 3, "tried anew twice");
    assert_eq!(service.settled().await, 0);
    let audit = service.json("/v1/quota/audit?outcome=released").await;
    assert_eq!(audit["totals"], json!({"count": 3, "charged_bytes": 0}));
}

/// Nothing was answered yet, so it is judged anew, ranges and conditions with it.
#[tokio::test]
async fn a_file_replaced_between_the_look_and_the_first_byte_is_answered_as_it_then_is() {
    for (new, range, status, part) in [
        (&b"another"[..], None, 200, None),
        (b"another", Some("bytes=2-"), 206, Some("bytes 2-6/7")),
        (b"", Some("bytes=2-"), 416, Some("bytes */0")),
    ] {
        let service = Service::start(&[("t1", "a", b"the first of both versions")]).await;
        service.put_before_open("t1", "a", new.to_vec());
        let mut asked = service.request(Method::GET, PATH, &service.keys.read_only);
        if let Some(range) = range {
            asked = asked.header("range", range);
        }
        let answer = asked.send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{range:?}");
        let headers = answer.headers().clone();
        assert_eq!(headers.get("content-range").map(|value| value.to_str().expect("text")), part);
        let mut charged = 0;
        if status != 416 {
            let body = answer.bytes().await.expect("all of it");
            assert_eq!(body, new[if range.is_some() { 2 } else { 0 }..]);
            assert_eq!(headers["content-length"], body.len().to_string());
            let now = service.request(Method::HEAD, PATH, &service.keys.read_only).send().await.expect("an answer");
            let opaque = |value: &HeaderValue| value.to_str().expect("text").trim_start_matches("W/").to_owned();
            assert_eq!(opaque(&headers["etag"]), opaque(&now.headers()["etag"]));
            charged = body.len() as u64;
        }
        assert_eq!(service.settled().await, charged);
        let audit = service.json("/v1/quota/audit?outcome=released").await;
        assert_eq!(audit["totals"], json!({"count": 1, "charged_bytes": 0}), "the first attempt");
    }
}

#[tokio::test]
async fn a_file_replaced_while_it_streams_is_never_completed() {
    let service = Service::start(&[("t1", "a", &[7; 4 << 20])]).await;
    service.store.set(Fault::StallAfter(100_000));
    let answer = service.get(PATH).await;
    service.put("t1", "a", &[8; 4 << 20]);
    service.store.set(Fault::None);
    assert!(answer.bytes().await.is_err(), "the old length with new bytes is no answer");
    assert!(service.settled().await < 4 << 20);
}

/// The ledger's file made unwritable in the way that works for every user, root included: the
/// process may write no file beyond its present size.
#[tokio::test]
async fn an_unwritable_ledger_is_503_without_a_byte_and_heals_by_itself() {
    // Runs in a process of its own, since the limit holds for all of it.
    #[expect(clippy::disallowed_methods, reason = "it tells the child from the test")]
    let child = std::env::var_os("LEDGER_FULL_CHILD").is_some();
    if !child {
        let child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "faults::an_unwritable_ledger_is_503_without_a_byte_and_heals_by_itself", "--nocapture"])
            .env("LEDGER_FULL_CHILD", "1")
            .output()
            .expect("it runs");
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    let settings = "[limits]\nadmission_seconds = 1\n".to_owned();
    let options = Options { daily: Allowance::Bytes(1 << 40), settings, ..Options::default() };
    let service = Service::with(&[("t1", "a", &[7; 1000])], options).await;
    assert_eq!(service.get(PATH).await.bytes().await.expect("bytes").len(), 1000);
    assert_eq!(service.settled().await, 1000);
    let (opens, bytes) = (service.store.opens(), service.store.bytes());

    let before = limit_file_size(Some(1));
    for _ in 0..2 {
        let answer = service.get(PATH).await;
        assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().expect("value")));
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "QUOTA_UNAVAILABLE");
    }
    let result = service.tool("envloop_trial_artifact_read", json!({"trial_id": "t1", "name": "a"})).await;
    assert!(result["content"][0]["text"].as_str().expect("text").starts_with("QUOTA_UNAVAILABLE"), "{result}");
    assert_eq!((service.store.opens(), service.store.bytes()), (opens, bytes));

    limit_file_size(before);
    let give_up = std::time::Instant::now() + Duration::from_secs(10);
    while service.get(PATH).await.status() != 200 {
        assert!(std::time::Instant::now() < give_up, "it heals without a restart");
    }
    service.settled().await;
}

fn limit_file_size(bytes: Option<u64>) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Fsize);
    // Beyond the limit a write raises SIGXFSZ, which ends a process that does not expect it.
    let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(25));
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: now.maximum }).expect("a soft limit");
    now.current
}
