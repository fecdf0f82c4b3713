//! Trials and artifacts: what is listed can be read, in the same order on every page.

use reqwest::Method;
use serde_json::{Value, json};

use super::service::Service;

const NAMES: &[&str] = &[
    "100%.txt",
    "a",
    "a+b",
    "a.txt",
    "agent/log.txt",
    "agent.txt",
    "a0",
    "[1]{2}",
    "cafe\u{301}",
    "caf\u{e9}",
    "core#1",
    ".hidden",
    "..x",
    "~tilde/~1",
    "日本/語.txt",
    "with space",
    "x?y=z&w",
    "semi;colon",
    "'quote\"",
];

async fn service() -> Service {
    let files: Vec<_> = NAMES.iter().map(|name| ("t1", *name, name.as_bytes())).collect();
    Service::start(&files).await
}

fn encoded(id: &str) -> String {
    percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[tokio::test]
async fn names_of_every_kind_survive_the_round_trip() {
    let service = service().await;
    let page = service.json("/v1/trials/t1/artifacts?limit=100").await;
    let mut sorted = NAMES.to_vec();
    sorted.sort_unstable();
    let items = page["items"].as_array().expect("items");
    assert_eq!(items.iter().map(|item| item["name"].as_str().expect("name")).collect::<Vec<_>>(), sorted);
    assert_eq!((&page["next_cursor"], &page["omitted"]), (&Value::Null, &json!(0)));
    for item in items {
        let (name, id) = (item["name"].as_str().expect("name"), item["artifact_id"].as_str().expect("id"));
        let path = format!("/v1/trials/t1/artifacts/{}", encoded(id));
        assert_eq!(service.json(&path).await, *item);
        let content = service.get(&format!("{path}/content")).await;
        assert_eq!(content.headers()["etag"].to_str().ok(), item["etag"].as_str());
        assert_eq!(content.bytes().await.expect("bytes"), name.as_bytes());
        assert_eq!((&item["size"], &item["upload_state"]), (&json!(name.len()), &json!("uploaded")));
    }
    assert_eq!(service.settled().await, NAMES.iter().map(|name| name.len() as u64).sum::<u64>());
}

#[tokio::test]
async fn pages_tile_the_listing() {
    let service = service().await;
    for limit in [1, 2, 7, 18, 19, 20] {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = service.json(&format!("/v1/trials/t1/artifacts?limit={limit}{cursor}")).await;
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= limit);
            names.extend(items.iter().map(|item| item["name"].as_str().expect("name").to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
            assert!(names.len() <= NAMES.len());
        }
        let mut sorted = NAMES.to_vec();
        sorted.sort_unstable();
        assert_eq!(names, sorted, "limit {limit}");
    }
}

#[tokio::test]
async fn a_prefix_is_plain_text() {
    let service = service().await;
    for (prefix, want) in [
        ("agent", &["agent.txt", "agent/log.txt"][..]),
        ("agent/", &["agent/log.txt"]),
        ("agent/l", &["agent/log.txt"]),
        ("..", &["..x"]),
        ("日", &["日本/語.txt"]),
        ("zzz", &[]),
    ] {
        let page = service.json(&format!("/v1/trials/t1/artifacts?prefix={}", encoded(prefix))).await;
        let names: Vec<_> = page["items"].as_array().expect("items").iter().map(|item| item["name"].clone()).collect();
        assert_eq!(names, want, "{prefix}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_listing_is_said() {
    let service = service().await;
    let cursor =
        service.json("/v1/trials/t1/artifacts?limit=1").await["next_cursor"].as_str().expect("more").to_owned();
    for (query, code) in [
        ("limit=0".to_owned(), "INVALID_LIMIT"),
        ("limit=101".to_owned(), "INVALID_LIMIT"),
        ("limit=-1".to_owned(), "INVALID_LIMIT"),
        ("limit=ten".to_owned(), "INVALID_LIMIT"),
        ("limit=".to_owned(), "INVALID_LIMIT"),
        ("cursor=nonsense".to_owned(), "INVALID_CURSOR"),
        (format!("prefix=a&cursor={cursor}"), "INVALID_CURSOR"),
        ("prefix=..%2Fother".to_owned(), "INVALID_NAME"),
        ("prefix=a%00".to_owned(), "INVALID_NAME"),
        ("limit=1&limit=2".to_owned(), "INVALID_REQUEST"),
    ] {
        let answer = service.get(&format!("/v1/trials/t1/artifacts?{query}")).await;
        assert_eq!(answer.status(), 400, "{query}");
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], code, "{query}");
    }
}

#[tokio::test]
async fn trials_are_paged_and_jobs_are_none() {
    let service =
        Service::start(&[("t2", "a", b""), ("t1", "a", b""), ("t3/x", "a", b""), ("_not-an-id", "a", b"")]).await;
    let page = service.json("/v1/trials?limit=2").await;
    assert_eq!(page["items"], json!([{"trial_id": "t1"}, {"trial_id": "t2"}]));
    let next = page["next_cursor"].as_str().expect("more");
    let page = service.json(&format!("/v1/trials?limit=2&cursor={next}")).await;
    assert_eq!(page, json!({"items": [{"trial_id": "t3"}], "next_cursor": null}));
    assert_eq!(service.json("/v1/job?limit=1").await, json!({"items": [], "next_cursor": null}));
    assert_eq!(service.request(Method::GET, "/v1/job", "none").send().await.expect("an answer").status(), 401);
}

#[tokio::test]
async fn links_and_special_files_are_neither_listed_nor_read() {
    let service = Service::start(&[("t1", "sound.txt", b"sound"), ("t2", "secret.txt", b"secret")]).await;
    let trial = service.scratch.path().join("store/demo/t1");
    let link =
        |target: &std::path::Path, name: &str| std::os::unix::fs::symlink(target, trial.join(name)).expect("link");
    link("/etc/passwd".as_ref(), "to-file");
    link("/etc".as_ref(), "to-folder");
    link("../t2".as_ref(), "to-trial");
    link(".".as_ref(), "loop");
    link("nowhere".as_ref(), "dangling");
    let fifo = trial.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).expect("fifo");

    let page = service.json("/v1/trials/t1/artifacts").await;
    assert_eq!(page["items"].as_array().expect("items").len(), 1);
    assert_eq!((&page["items"][0]["name"], &page["omitted"]), (&json!("sound.txt"), &json!(6)));
    for id in ["to-file", "to-folder~1passwd", "to-trial~1secret.txt", "loop~1sound.txt", "dangling", "fifo", "loop"] {
        let answer = service.get(&format!("/v1/trials/t1/artifacts/{id}/content")).await;
        assert_eq!(answer.status(), 404, "{id}");
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "ARTIFACT_NOT_FOUND");
    }
    assert_eq!(service.get("/v1/trials/t1/artifacts/sound.txt/content").await.text().await.expect("text"), "sound");
    assert_eq!(service.settled().await, 5);
}
