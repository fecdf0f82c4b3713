//! The allowance: nothing is read that is not reserved, and every byte is charged once.

use artifactd::ledger::{Allowance, Rules};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::probe::Fault;
use super::raw;
use super::service::{Options, Service};

const MIB: usize = 1 << 20;

fn allowed(bytes: u64) -> Options {
    Options { daily: Allowance::Bytes(bytes), ..Options::default() }
}

#[tokio::test]
async fn a_file_larger_than_what_is_left_is_refused_and_not_one_byte_is_read() {
    let service = Service::with(&[("t1", "a", &[7; 600]), ("t1", "big", &[7; 2000])], allowed(1000)).await;
    let answer = service.get("/v1/trials/t1/artifacts/a/content").await;
    assert_eq!(answer.headers()["ratelimit-policy"], "\"daily\";q=1000;w=86400;qu=\"content-bytes\"");
    assert!(answer.headers()["ratelimit"].to_str().expect("text").starts_with("\"daily\";r=400;t="));
    assert_eq!(answer.bytes().await.expect("bytes").len(), 600);
    assert_eq!(service.settled().await, 600);
    let (opens, bytes) = (service.store.opens(), service.store.bytes());

    for (name, reason, retries) in [("a", "spent", true), ("big", "too_large", false)] {
        let answer = service.get(&format!("/v1/trials/t1/artifacts/{name}/content")).await;
        assert_eq!(answer.status(), 429);
        let retry_after = answer.headers().get("retry-after").map(|v| v.to_str().expect("text").parse::<u64>());
        assert_eq!(retry_after.is_some(), retries, "{name}");
        let limit = answer.headers()["ratelimit"].to_str().expect("text");
        assert!(limit.starts_with("\"daily\";r=400;t="), "{limit}");
        assert!(retry_after.is_none_or(|s| (1..=86_400).contains(&s.expect("delta seconds"))));
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!((&problem["code"], &problem["reason"]), (&json!("DOWNLOAD_QUOTA_EXCEEDED"), &json!(reason)));
        assert_eq!((&problem["limit_bytes"], &problem["used_bytes"]), (&json!(1000), &json!(600)));
        assert!(problem["resets_at"].as_str().expect("time").ends_with("T00:00:00Z"));

        let result = service.tool("envloop_trial_artifact_read", json!({"trial_id": "t1", "name": name})).await;
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.starts_with("DOWNLOAD_QUOTA_EXCEEDED"), "{text}");
    }
    assert_eq!((service.store.opens(), service.store.bytes()), (opens, bytes));
    assert_eq!(service.settled().await, 600);
    assert_eq!(service.json("/v1/quota").await["refused"], 4);
}

#[tokio::test]
async fn parallel_reads_that_exceed_the_allowance_together() {
    const EACH: u64 = 1000;
    const FILE: &[u8] = &[7; 1000];
    let service = Service::with(&[("t1", "a", FILE)], allowed(10 * EACH)).await;
    // Held open, so that no room is given back while the others ask.
    service.store.set(Fault::StallAfter(0));
    let asking = (0..64).map(|_| async {
        let answer = service.get("/v1/trials/t1/artifacts/a/content").await;
        (answer.status().as_u16(), answer)
    });
    let answers = join_all(asking).await;
    let (admitted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(status, _)| *status == 200);
    assert_eq!((admitted.len(), refused.len()), (10, 54));
    assert!(refused.iter().all(|(status, _)| *status == 429));
    let quota = service.json("/v1/quota").await;
    assert_eq!((&quota["reserved_bytes"], &quota["open_reservations"]), (&json!(10 * EACH), &json!(10)));
    assert_eq!(quota["remaining_bytes"], 0);
    service.store.set(Fault::None);
    for (_, answer) in admitted {
        assert_eq!(answer.bytes().await.expect("bytes").len() as u64, EACH);
    }
    assert_eq!(service.settled().await, 10 * EACH);
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 10);
}

#[tokio::test]
async fn a_window_reserves_the_whole_file_and_charges_head_and_window() {
    let line = b"2026-11-29T12:00:00Z step: compiled another unit of the project without warnings\n";
    let log = line.repeat(50_000_000 / line.len() + 1);
    let size = log.len() as u64;
    let service = Service::start(&[("t1", "agent/run.log", &log)]).await;
    service.store.set(Fault::StallAfter(0));
    let arguments = json!({"trial_id": "t1", "name": "agent/run.log", "offset": size / 2, "max_bytes": 4096});
    let (result, ()) = tokio::join!(service.tool("envloop_trial_artifact_read", arguments), async {
        let quota = service.quota_until(|quota| quota["open_reservations"] == 1).await;
        assert_eq!(quota["reserved_bytes"].as_u64(), Some(size));
        assert_eq!(quota["used_bytes"], 0);
        service.store.set(Fault::None);
    });
    assert_ne!(result["isError"], true, "{result}");
    let charged = service.settled().await;
    let audit = service.json("/v1/quota/audit").await;
    assert_eq!(audit["totals"], json!({"count": 1, "charged_bytes": charged}));
    assert_eq!((&audit["items"][0]["channel"], &audit["items"][0]["outcome"]), (&json!("mcp"), &json!("completed")));
    assert_eq!(audit["items"][0]["size_bytes"].as_u64(), Some(size));
    // A head of 4 KiB, and a window with the few bytes around it that its character edges need.
    assert!((8192..8192 + 16).contains(&charged), "{charged}");
    assert_eq!(service.store.bytes(), charged);
}

#[tokio::test]
async fn a_client_that_leaves_is_charged_what_went_out() {
    let body = vec![7; 64 * MIB];
    let service = Service::start(&[("t1", "a", &body)]).await;
    service.store.set(Fault::StallAfter(3 * MIB as u64));
    let request = raw::request("GET", "/v1/trials/t1/artifacts/a/content", &service.keys.read_only, "");
    let mut client = TcpStream::connect(service.address).await.expect("it listens");
    client.write_all(&request).await.expect("sent");
    service.quota_until(|quota| quota["open_reservations"] == 1).await;
    while service.store.bytes() < 3 * MIB as u64 {
        let mut some = [0; 64 << 10];
        tokio::io::AsyncReadExt::read(&mut client, &mut some).await.expect("bytes");
    }
    drop(client);
    let charged = service.settled().await;
    assert!((1..=3 * MIB as u64).contains(&charged), "{charged}");
    let entry = &service.json("/v1/quota/audit").await["items"][0];
    assert_eq!((&entry["outcome"], entry["charged_bytes"].as_u64()), (&json!("aborted"), Some(charged)));
}

/// Also when it is so small that nothing else would have been done for its reservation.
#[tokio::test]
async fn a_client_that_leaves_before_the_first_byte_is_charged_nothing() {
    let service = Service::start(&[("t1", "a", &[7; 1000])]).await;
    service.store.set(Fault::StallAfter(0));
    let request = raw::request("GET", "/v1/trials/t1/artifacts/a/content", &service.keys.read_only, "");
    let mut client = TcpStream::connect(service.address).await.expect("it listens");
    client.write_all(&request).await.expect("sent");
    service.quota_until(|quota| quota["open_reservations"] == 1).await;
    drop(client);
    assert_eq!(service.settled().await, 0);
    let audit = service.json("/v1/quota/audit").await;
    assert_eq!(audit["totals"], json!({"count": 1, "charged_bytes": 0}));
    assert_eq!(audit["items"][0]["outcome"], "released");
}

#[tokio::test]
async fn a_long_stream_is_granted_in_steps_and_charged_to_the_byte() {
    let body: Vec<u8> = (0..=250).cycle().take(40 * MIB).collect();
    let rules = Rules { credit_bytes: MIB as u64, ..Rules::default() };
    let service = Service::with(&[("t1", "a", &body)], Options { rules, ..Options::default() }).await;
    let answer = service.get("/v1/trials/t1/artifacts/a/content").await;
    assert_eq!(answer.bytes().await.expect("bytes"), body);
    assert_eq!(service.settled().await, body.len() as u64);
}

#[tokio::test]
async fn a_slow_read_keeps_its_lease_and_one_without_progress_is_cut() {
    let rules = Rules { lease_ms: 600, unreserved_ms: 2_000, tombstone_ms: 20_000, ..Rules::default() };
    let settings = "[limits]\nstall_seconds = 2\n".to_owned();
    let options = Options { rules, settings, ..Options::default() };
    let service = Service::with(&[("t1", "a", &[7; 1000])], options).await;
    service.store.set(Fault::StallAfter(400));
    let answer = service.get("/v1/trials/t1/artifacts/a/content").await;
    // Longer than a lease: it was renewed.
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    let quota = service.json("/v1/quota").await;
    assert_eq!((&quota["reserved_bytes"], &quota["used_bytes"]), (&json!(1000), &json!(0)));
    // Longer than the stall limit: it is cut, and settled to what went out.
    assert_eq!(service.settled().await, 400);
    service.store.set(Fault::None);
    assert!(answer.bytes().await.is_err(), "a cut answer has no clean end");
    let entry = &service.json("/v1/quota/audit").await["items"][0];
    assert_eq!((&entry["outcome"], &entry["charged_bytes"]), (&json!("aborted"), &json!(400)));
}

#[tokio::test]
async fn stopping_lets_answers_finish_and_settles_them() {
    let mut service = Service::start(&[("t1", "a", &[7; 1000])]).await;
    service.store.set(Fault::StallAfter(400));
    let answer = service.get("/v1/trials/t1/artifacts/a/content").await;
    let (body, ()) = tokio::join!(answer.bytes(), async {
        let store = service.store.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            store.set(Fault::None);
        });
        service.stop().await;
    });
    assert_eq!(body.expect("it finishes").len(), 1000);
}

#[tokio::test]
async fn a_head_request_is_free_and_a_missing_file_too() {
    let service = Service::with(&[("t1", "a", &[7; 1000])], allowed(10)).await;
    let head = service.request(Method::HEAD, "/v1/trials/t1/artifacts/a/content", &service.keys.read_only);
    assert_eq!(head.send().await.expect("an answer").headers()["content-length"], "1000");
    assert_eq!(service.get("/v1/trials/t1/artifacts/b/content").await.status(), 404);
    assert_eq!(service.json("/v1/quota").await["refused"], 0);
}
