//! A whole trial as one ZIP file.

use std::io::{Cursor, Read as _};

use artifactd::ledger::Allowance;
use reqwest::Method;
use serde_json::{Value, json};

use super::probe::Fault;
use super::service::{Options, Service};

const PATH: &str = "/v1/trials/t1/archive";

/// The names and contents in an archive, checked against its checksums.
fn contents(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let read = |index| {
        let mut file = archive.by_index(index).expect("an entry");
        let mut content = Vec::new();
        file.read_to_end(&mut content).expect("whole");
        (file.name().expect("UTF-8").into_owned(), content)
    };
    (0..bytes_entries(bytes)).map(read).collect()
}

fn bytes_entries(bytes: &[u8]) -> usize {
    zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive").len()
}

#[tokio::test]
async fn every_file_under_its_name_in_one_reservation() {
    let large: Vec<u8> = (0..=250).cycle().take(3 << 20).collect();
    let files: &[(&str, &str, &[u8])] = &[
        ("t1", "100%.txt", b"percent"),
        ("t1", "a+b", b""),
        ("t1", "agent/large.bin", &large),
        ("t1", "agent/log.txt", b"log"),
        ("t1", "caf\u{e9}", b"composed"),
        ("t1", "cafe\u{301}", b"decomposed"),
        ("t1", "z\"'`$(rm) .txt", b"quotes"),
        ("t1", "日本/語.txt", "語".as_bytes()),
        ("t2", "other", b"not in it"),
    ];
    let service = Service::start(files).await;
    let mut want: Vec<_> = files
        .iter()
        .filter(|(trial, ..)| *trial == "t1")
        .map(|(_, name, body)| ((*name).to_owned(), body.to_vec()))
        .collect();
    want.sort();

    let head = service.request(Method::HEAD, PATH, &service.keys.read_only).send().await.expect("an answer");
    assert_eq!(head.status(), 200);
    let length = head.headers()["content-length"].to_str().expect("text").parse::<u64>().expect("a number");
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 0);

    let request = service.request(Method::GET, PATH, &service.keys.read_only).header("range", "bytes=0-9");
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "an archive has no ranges");
    for (name, value) in [
        ("content-type", "application/zip"),
        ("content-disposition", "attachment; filename=\"t1.zip\""),
        ("accept-ranges", "none"),
        ("cache-control", "private, no-cache, no-transform"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(answer.headers()[name], value, "{name}");
        assert_eq!(head.headers()[name], value, "{name} of HEAD");
    }
    assert!(answer.headers().contains_key("ratelimit"));
    assert_eq!(answer.headers()["etag"], head.headers()["etag"]);
    assert_eq!(answer.content_length(), Some(length));
    let bytes = answer.bytes().await.expect("whole");
    assert_eq!(bytes.len() as u64, length);
    assert_eq!(contents(&bytes), want);

    assert_eq!(service.settled().await, length);
    let entry = &service.json("/v1/quota/audit").await["items"][0];
    for (field, want) in [
        ("artifact", json!("*")),
        ("channel", json!("http")),
        ("size_bytes", json!(length)),
        ("charged_bytes", json!(length)),
        ("outcome", json!("completed")),
    ] {
        assert_eq!(entry[field], want, "{field}");
    }

    let answer = service.get(&format!("{PATH}?prefix=agent/")).await;
    assert_eq!(contents(&answer.bytes().await.expect("whole")).len(), 2);
    service.settled().await;
    assert_eq!(service.json("/v1/quota/audit").await["items"][0]["artifact"], "agent/*");
}

#[tokio::test]
async fn its_validator_is_weak_and_changes_with_every_file() {
    let service = Service::start(&[("t1", "a", b"1"), ("t1", "b", b"2"), ("t2", "a", b"1")]).await;
    let ask = async |method: Method, path: &str, fields: &[(&str, &str)]| {
        let request = service.request(method, path, &service.keys.read_only);
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.expect("an answer")
    };
    let tag = async |path: &str| {
        let head = ask(Method::HEAD, path, &[]).await;
        head.headers()["etag"].to_str().expect("text").to_owned()
    };
    let etag = tag(PATH).await;
    assert!(etag.starts_with("W/\"") && etag.ends_with('"'), "{etag}");
    for (fields, status) in [
        (&[("if-none-match", &*etag)][..], 304),
        (&[("if-none-match", &etag[2..])], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", "\"x\"")], 200),
        (&[("if-match", &*etag)], 412),
        (&[("if-match", "*")], 200),
        (&[("range", "bytes=0-9"), ("if-range", &*etag)], 200),
        (&[("if-modified-since", "Sun, 29 Nov 2099 12:00:00 GMT")], 200),
        (&[("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT")], 200),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let is_head = method == Method::HEAD;
            let answer = ask(method, PATH, fields).await;
            assert_eq!(answer.status().as_u16(), status, "{fields:?}");
            if status == 304 {
                assert_eq!(answer.headers()["etag"], *etag, "{fields:?}");
                assert_eq!(answer.headers().contains_key("content-length"), is_head, "{fields:?}");
                assert!(!answer.headers().contains_key("content-type") && !answer.headers().contains_key("ratelimit"));
            }
        }
    }
    service.settled().await;
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 5);

    let part = tag(&format!("{PATH}?prefix=a")).await;
    let mut seen = vec![etag, part, tag("/v1/trials/t2/archive").await];
    for (name, content) in [("b", "3"), ("b", "33"), ("c", ""), ("d", "")] {
        service.put("t1", name, content.as_bytes());
        seen.push(tag(PATH).await);
    }
    assert_eq!(tag(PATH).await, *seen.last().expect("many"), "it stays while nothing changes");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[tokio::test]
async fn what_is_refused() {
    let settings = "[limits]\narchive_entries = 2\n".to_owned();
    let options = Options { settings, daily: Allowance::Bytes(300), ..Options::default() };
    let files: &[(&str, &str, &[u8])] =
        &[("t1", "a/1", b"1"), ("t1", "a/2", b"2"), ("t1", "b", b"3"), ("t2", "big", &[7; 1000])];
    let service = Service::with(files, options).await;
    for (path, status, code) in [
        (PATH, 413, "ARCHIVE_TOO_LARGE"),
        ("/v1/trials/t1/archive?prefix=none", 404, "ARTIFACT_NOT_FOUND"),
        ("/v1/trials/none/archive", 404, "TRIAL_NOT_FOUND"),
        ("/v1/trials/t1/archive?prefix=../", 400, "INVALID_NAME"),
        ("/v1/trials/t2/archive", 429, "DOWNLOAD_QUOTA_EXCEEDED"),
    ] {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.json::<Value>().await.expect("JSON")["code"]),
            (status, &json!(code))
        );
    }
    let viewer = service.request(Method::GET, PATH, &service.keys.viewer).send().await.expect("an answer");
    assert_eq!(viewer.status(), 403);
    let foreign = service.request(Method::GET, PATH, &service.keys.foreign).send().await.expect("an answer");
    assert_eq!(foreign.status(), 404);
    assert_eq!(service.store.opens(), 0);
    let two = service.get("/v1/trials/t1/archive?prefix=a/").await;
    assert_eq!(contents(&two.bytes().await.expect("whole")).len(), 2);
}

#[tokio::test]
async fn a_store_that_fails_midway_cuts_it_and_the_charge_is_what_went_out() {
    let large = vec![7; 2 << 20];
    let service = Service::start(&[("t1", "a", b"first"), ("t1", "b", &large)]).await;
    service.store.set(Fault::FailAfter(1 << 20));
    let answer = service.get(PATH).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err(), "a cut answer has no clean end");
    let charged = service.settled().await;
    assert!((1 << 20..(1 << 20) + 1000).contains(&charged), "{charged}");
    assert_eq!(service.json("/v1/quota/audit").await["items"][0]["outcome"], "failed");
}

#[tokio::test]
async fn a_file_that_changes_after_the_listing_cuts_it() {
    let (first, second) = (vec![7; 2 << 20], vec![8; 2 << 20]);
    let service = Service::start(&[("t1", "a", &first), ("t1", "b", &second)]).await;
    service.store.set(Fault::StallAfter(1000));
    let answer = service.get(PATH).await;
    assert_eq!(answer.status(), 200);
    service.put("t1", "b", &second[1..]);
    service.store.set(Fault::None);
    assert!(answer.bytes().await.is_err(), "a cut answer has no clean end");
    let charged = service.settled().await;
    assert!((2 << 20..(2 << 20) + 1000).contains(&charged), "the first file went out: {charged}");
}

#[tokio::test]
async fn small_files_do_not_wait_for_one_another() {
    let names: Vec<_> = (0..64).map(|n| format!("f{n:02}")).collect();
    let files: Vec<_> = names.iter().map(|name| ("t1", name.as_str(), name.as_bytes())).collect();
    let service = Service::start(&files).await;
    // Nothing is delivered, and yet more than one is asked for; but not all of them.
    service.store.set(Fault::StallAfter(0));
    let (answer, ()) = tokio::join!(async { service.get(PATH).await.bytes().await.expect("whole") }, async {
        let give_up = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        while service.store.opens() < 16 {
            assert!(tokio::time::Instant::now() < give_up, "{} files are read at a time", service.store.opens());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(service.store.opens(), 16, "the read-ahead is bounded");
        service.store.set(Fault::None);
    });
    let contents = contents(&answer);
    assert!(contents.iter().map(|(name, _)| name).eq(&names));
    assert!(contents.iter().all(|(name, content)| name.as_bytes() == content));
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 1);
}
