//! The warning that an allowance goes to its end.

use std::time::{Duration, Instant};

use artifactd::access::Preset;
use serde_json::{Value, json};

use super::super::process::Process;
use super::super::service::{Options, PROJECT, Service, make_key};
use super::{FILES, allowed};

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
    // So does the answer to who is refused.
    let refused = service.get("/v1/trials/t2/artifacts/日本, \"quoted\".txt/content").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers()["ratelimit"].to_str().expect("text").ends_with(";artifactd-warn=50"));
    let metrics = service.get("/metrics").await.text().await.expect("text");
    let warned = metrics.lines().find_map(|line| line.strip_prefix("artifactd_quota_warnings_total "));
    assert!(warned.expect("counted").parse::<u64>().expect("a number") > 0, "{metrics}");
}

#[test]
fn the_log_warns_once_a_day_and_project() {
    let scratch = tempfile::TempDir::new().expect("scratch directory");
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir_all(at("store/demo/t1")).expect("folders");
    std::fs::write(at("store/demo/t1/a"), format!("\"{}\"", "x".repeat(38))).expect("a file of 40 bytes, JSON");
    let key = make_key(&at("keys.toml"), "reader", PROJECT, Preset::ReadOnly);
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[store]\nurl = \"file://{0}/store\"\n[ledger]\nurl = \"embedded://{0}/ledger.db\"\n\
         [quota]\ndaily_bytes = 200\nwarn_percent = 30\n[access]\nkeys_file = \"{0}/keys.toml\"\n[log]\nformat = \"json\"\n",
        scratch.path().display()
    );
    std::fs::write(at("config.toml"), config).expect("settings");
    let warned = |log: &str| {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a log line"));
        lines.filter(|line| line["daily_bytes"] == 200).collect::<Vec<_>>()
    };
    let process = Process::start(&at("config.toml"));
    let give_up = Instant::now() + Duration::from_secs(20);
    for used in [40, 80] {
        process.json("/v1/trials/t1/artifacts/a/content", &key);
        while process.json("/v1/quota", &key)["used_bytes"] != used {
            assert!(Instant::now() < give_up, "it is settled");
        }
    }
    let lines = warned(&process.stop());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (&lines[0]["level"], &lines[0]["project"], &lines[0]["percent"]),
        (&json!("WARN"), &json!("demo"), &json!(30))
    );

    // Each replica warns for itself: here the one that comes after a restart, at an admission.
    let process = Process::start(&at("config.toml"));
    process.json("/v1/trials/t1/artifacts/a/content", &key);
    assert_eq!(warned(&process.stop()).len(), 1);
}
