//! What was seen seconds ago is read without a look, and never answered with: over a store that counts.

use std::time::Duration;

use artifactd::ledger::Allowance;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::s3::{Manner, S3};
use super::service::{Options, PROJECT, Place, Service};

const CONTENT: &str = "/v1/trials/t1/artifacts/a/content";
const DIGITS: &[u8] = b"0123456789";
/// A second of 2026, as objects and as HTTP have it.
const T: u64 = 1_796_000_000;
const TOOL: &str = "envloop_trial_artifact_read";

/// A service over this store that remembers for so many seconds.
async fn service(s3: &S3, seconds: u64, settings: &str, daily: u64) -> Service {
    let store = format!("cache_seconds = {seconds}\n");
    let (settings, daily) = (settings.to_owned(), Allowance::Bytes(daily));
    let place = Place::Given(s3.store());
    Service::with(&[], Options { settings, store, daily, place, ..Options::default() }).await
}

/// One with an artifact of ten digits, long enough to be sure that it is remembered.
async fn remembering() -> (S3, Service) {
    let s3 = S3::start(Manner::Honest).await;
    s3.put("a", DIGITS, "v1", T);
    let service = service(&s3, 300, "", 1 << 30).await;
    (s3, service)
}

async fn ask(service: &Service, method: Method, path: &str, fields: &[(&str, String)]) -> Response {
    let request = service.request(method, path, &service.keys.read_only);
    fields.iter().fold(request, |request, (name, value)| request.header(*name, value)).send().await.expect("an answer")
}

/// All of an answer that tells versions and codes apart.
async fn shown(answer: Response) -> (u16, Vec<Option<String>>, String) {
    let fields = ["etag", "last-modified", "content-length", "content-range", "content-type", "content-disposition"];
    let fields = if answer.status().is_client_error() { &fields[3..5] } else { &fields[..] };
    let fields = fields.iter().map(|name| Some(answer.headers().get(*name)?.to_str().expect("text").to_owned()));
    let (status, fields) = (answer.status().as_u16(), fields.collect());
    let body = answer.text().await.expect("a sound body");
    let problem: Value = serde_json::from_str(&body).unwrap_or_default();
    (status, fields, problem["code"].as_str().map_or(body, str::to_owned))
}

async fn window(service: &Service, name: &str, offset: i64) -> String {
    let result = service.tool(TOOL, json!({"trial_id": "t1", "name": name, "offset": offset, "max_bytes": 100})).await;
    let block = result["content"].as_array().expect("blocks").last().expect("one");
    block["text"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_download_of_what_was_just_seen_is_one_request() {
    for (seen_by, path, method) in [
        ("a look", CONTENT, Method::HEAD),
        ("an item", "/v1/trials/t1/artifacts/a", Method::GET),
        ("a listing", "/v1/trials/t1/artifacts", Method::GET),
        ("a read", CONTENT, Method::GET),
    ] {
        let (s3, service) = remembering().await;
        assert!(ask(&service, method, path, &[]).await.status().is_success(), "{seen_by}");
        s3.asked();
        for (range, bytes, asked) in [
            (None, DIGITS, "GET demo/t1/a ="),
            (Some("bytes=2-4"), &DIGITS[2..5], "GET demo/t1/a bytes=2-4 ="),
            (Some("bytes=-3"), &DIGITS[7..], "GET demo/t1/a bytes=7-9 ="),
        ] {
            let fields: Vec<_> = range.map(|range| ("range", range.to_owned())).into_iter().collect();
            let answer = ask(&service, Method::GET, CONTENT, &fields).await;
            assert_eq!(answer.headers()["etag"], "\"v1\"", "{seen_by}");
            assert_eq!(answer.bytes().await.expect("bytes"), bytes, "{seen_by}");
            assert_eq!(s3.asked(), [asked], "{seen_by}");
        }
    }
}

#[tokio::test]
async fn the_first_download_looks_once() {
    let (s3, service) = remembering().await;
    assert_eq!(ask(&service, Method::GET, CONTENT, &[]).await.bytes().await.expect("bytes"), DIGITS);
    assert_eq!(s3.asked(), ["HEAD demo/t1/a", "GET demo/t1/a ="]);
    assert_eq!(service.settled().await, 10);
}

#[tokio::test]
async fn what_memory_was_good_for_is_counted() {
    let (s3, service) = remembering().await;
    // Other tests of this process count too.
    let counted = async |what: &str| {
        let text = service.get("/metrics").await.text().await.expect("text");
        let series = format!("artifactd_store_recalls_total{{recall=\"{what}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&series)).expect("a series");
        line.parse::<u64>().expect("a number")
    };
    for (what, version) in [("miss", "v1"), ("hit", "v1"), ("stale", "v2")] {
        s3.put("a", DIGITS, version, T);
        let before = counted(what).await;
        assert_eq!(ask(&service, Method::GET, CONTENT, &[]).await.bytes().await.expect("bytes"), DIGITS);
        assert!(counted(what).await > before, "{what}");
    }
}

#[tokio::test]
async fn a_window_of_a_file_whose_kind_is_known_is_one_ranged_request() {
    let (s3, service) = remembering().await;
    s3.put("log", "line\n".repeat(10_000), "v1", T);
    let first = window(&service, "log", 20_000).await;
    assert!(first.contains("offset=20000"), "{first}");
    assert_eq!(
        s3.asked(),
        ["HEAD demo/t1/log", "GET demo/t1/log bytes=0-4095 =", "GET demo/t1/log bytes=19997-20102 ="]
    );
    assert_eq!(service.settled().await, 4096 + 106);
    assert!(window(&service, "log", -100).await.contains("next_offset=50000"));
    assert_eq!(s3.asked(), ["GET demo/t1/log bytes=49897-49999 ="]);
    assert_eq!(service.settled().await, 4096 + 106 + 103);
    let past = window(&service, "log", 50_000).await;
    assert!(past.contains("at or past the end"), "{past}");
    assert_eq!(s3.asked(), ["HEAD demo/t1/log"], "an answer without bytes is of a fresh look");
}

#[tokio::test]
async fn a_kind_outlives_the_life_of_what_is_remembered() {
    let s3 = S3::start(Manner::Honest).await;
    s3.put("log", "line\n".repeat(10_000), "v1", T);
    let service = service(&s3, 1, "", 1 << 30).await;
    window(&service, "log", 20_000).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    s3.asked();
    window(&service, "log", 20_000).await;
    assert_eq!(s3.asked(), ["HEAD demo/t1/log", "GET demo/t1/log bytes=19997-20102 ="]);
}

#[tokio::test]
async fn an_image_is_judged_by_the_bytes_that_are_shown() {
    let (s3, service) = remembering().await;
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(8, 8).write_to(&mut png, image::ImageFormat::Png).expect("a picture");
    let png = png.into_inner();
    let read = async || service.tool(TOOL, json!({"trial_id": "t1", "name": "shot"})).await;
    s3.put("shot", png.clone(), "v1", T);
    assert_eq!(read().await["content"][0]["type"], "image");
    s3.asked();
    assert_eq!(read().await["content"][0]["type"], "image");
    assert_eq!(s3.asked(), [format!("GET {PROJECT}/t1/shot =")]);
    let broken = [&png[..png.len() - 20], &[0; 20]].concat();
    s3.put("shot", broken, "v2", T);
    let shown = read().await;
    assert!(shown["content"][0]["text"].as_str().expect("text").starts_with("Not shown"), "{shown}");
    s3.put("shot", "now a text", "v3", T);
    assert!(window(&service, "shot", 0).await.contains("now a text"));
    s3.put("shot", png, "v4", T);
    assert_eq!(read().await["content"][0]["type"], "image", "what was a text");
}

#[tokio::test]
async fn what_is_answered_without_bytes_is_of_a_fresh_look() {
    let (s3, service) = remembering().await;
    for (method, path, fields, status) in [
        (Method::HEAD, CONTENT, vec![], 200),
        (Method::GET, "/v1/trials/t1/artifacts/a", vec![], 200),
        (Method::GET, CONTENT, vec![("if-none-match", "\"v1\"".to_owned())], 304),
        (Method::GET, CONTENT, vec![("if-modified-since", http_date(T))], 304),
        (Method::GET, CONTENT, vec![("if-match", "\"v0\"".to_owned())], 412),
        (Method::GET, CONTENT, vec![("if-unmodified-since", http_date(T - 1))], 412),
        (Method::GET, CONTENT, vec![("range", "bytes=10-".to_owned())], 416),
    ] {
        assert_eq!(ask(&service, Method::GET, CONTENT, &[]).await.bytes().await.expect("bytes"), DIGITS);
        s3.asked();
        assert_eq!(ask(&service, method, path, &fields).await.status().as_u16(), status, "{fields:?}");
        assert_eq!(s3.asked(), ["HEAD demo/t1/a"], "{fields:?}");
    }
    s3.put("empty", "", "v1", T);
    for _ in 0..2 {
        let empty = CONTENT.replace("/a/", "/empty/");
        assert_eq!(ask(&service, Method::GET, &empty, &[]).await.bytes().await.expect("bytes").len(), 0);
        assert_eq!(s3.asked(), ["HEAD demo/t1/empty"], "of what is empty nothing is opened");
    }
}

fn http_date(seconds: u64) -> String {
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds))
}

type Change = (&'static str, fn(&S3));

/// What may have happened to the ten digits since they were seen.
const CHANGES: &[Change] = &[
    ("nothing", |_| {}),
    ("replaced", |s3| s3.put("a", "abcdefghij", "v2", T + 1)),
    ("replaced within the second", |s3| s3.put("a", "abcdefghij", "v2", T)),
    ("replaced by an older one", |s3| s3.put("a", "abcdefghij", "v2", T - 10)),
    ("grown", |s3| s3.put("a", "0123456789abcdef", "v2", T + 1)),
    ("shrunk", |s3| s3.put("a", "012", "v2", T + 1)),
    ("emptied", |s3| s3.put("a", "", "v2", T + 1)),
    ("written anew", |s3| s3.put("a", DIGITS, "v1", T + 1)),
    ("deleted", |s3| s3.delete("a")),
    ("gone with all its trial", |s3| {
        s3.delete("a");
        s3.delete("other");
    }),
];

/// What a client may ask who has seen the old version, the new one, or none.
fn asks() -> Vec<Vec<(&'static str, String)>> {
    let field = |name, value: &str| vec![(name, value.to_owned())];
    let mut asks = vec![vec![]];
    for etag in ["\"v1\"", "\"v2\"", "W/\"v1\"", "*"] {
        asks.extend(["if-match", "if-none-match"].map(|name| field(name, etag)));
        for range in ["bytes=1-2", "bytes=5-7", "bytes=12-"] {
            asks.push(vec![("range", range.to_owned()), ("if-range", etag.to_owned())]);
            asks.push(vec![("range", range.to_owned()), ("if-match", etag.to_owned())]);
        }
    }
    for date in [T - 1, T, T + 1].map(http_date) {
        asks.extend(["if-modified-since", "if-unmodified-since"].map(|name| field(name, &date)));
        asks.push(vec![("range", "bytes=1-2".to_owned()), ("if-range", date)]);
    }
    asks.extend(["bytes=0-", "bytes=1-2", "bytes=5-7", "bytes=10-", "bytes=-3"].map(|range| field("range", range)));
    asks
}

#[tokio::test]
async fn no_answer_is_older_than_a_look_would_make_it() {
    for manner in [Manner::Honest, Manner::IgnoresIfMatch] {
        let s3 = S3::start(manner).await;
        let remembers = service(&s3, 300, "", 1 << 30).await;
        let looks = service(&s3, 0, "", 1 << 30).await;
        let mut went_out = 0;
        for (what, change) in CHANGES {
            for fields in asks() {
                s3.put("a", DIGITS, "v1", T);
                s3.put("other", DIGITS, "v1", T);
                ask(&remembers, Method::HEAD, CONTENT, &[]).await;
                change(&s3);
                let wanted = shown(ask(&looks, Method::GET, CONTENT, &fields).await).await;
                s3.asked();
                let got = shown(ask(&remembers, Method::GET, CONTENT, &fields).await).await;
                assert_eq!(got, wanted, "{manner:?}, {what}: {fields:?}");
                let asked = s3.asked();
                assert!(asked.len() <= 3, "{manner:?}, {what}: {fields:?}: {asked:?}");
                if matches!(wanted.0, 200 | 206) {
                    went_out += wanted.2.len() as u64;
                }
            }
        }
        assert_eq!((remembers.settled().await, looks.settled().await), (went_out, went_out));
    }
}

#[tokio::test]
async fn an_agent_reads_no_older_version_either() {
    for manner in [Manner::Honest, Manner::IgnoresIfMatch] {
        let s3 = S3::start(manner).await;
        let remembers = service(&s3, 300, "", 1 << 30).await;
        let looks = service(&s3, 0, "", 1 << 30).await;
        for (what, change) in CHANGES {
            for offset in [0, 2, 5, 10, 12, -3] {
                s3.put("a", DIGITS, "v1", T);
                s3.put("other", DIGITS, "v1", T);
                window(&remembers, "a", 0).await;
                change(&s3);
                let (got, wanted) = (window(&remembers, "a", offset).await, window(&looks, "a", offset).await);
                let plain = |text: &str| {
                    let lines = text.lines().filter(|line| !line.starts_with("<<<"));
                    lines.collect::<Vec<_>>().join("\n")
                };
                assert_eq!(plain(&got), plain(&wanted), "{manner:?}, {what}: {offset}");
            }
        }
    }
}

#[tokio::test]
async fn a_file_that_never_rests_is_tried_thrice() {
    let s3 = S3::start(Manner::Restless).await;
    s3.put("a", DIGITS, "v1", T);
    let service = service(&s3, 300, "", 1 << 30).await;
    ask(&service, Method::HEAD, CONTENT, &[]).await;
    s3.asked();
    assert_eq!(shown(ask(&service, Method::GET, CONTENT, &[]).await).await.2, "ARTIFACT_CHANGED");
    let (look, open) = ("HEAD demo/t1/a", "GET demo/t1/a =");
    assert_eq!(s3.asked(), [open, look, open, look, open, look, open], "what was remembered costs no attempt");
    assert_eq!(service.settled().await, 0);
    assert_eq!(service.json("/v1/quota/audit?outcome=released").await["totals"]["count"], 4);
}

#[tokio::test]
async fn a_size_of_the_past_refuses_nobody() {
    let s3 = S3::start(Manner::Honest).await;
    let service = service(&s3, 300, "", 100).await;
    s3.put("a", vec![7; 200], "v1", T);
    ask(&service, Method::HEAD, CONTENT, &[]).await;
    s3.asked();
    assert_eq!(shown(ask(&service, Method::GET, CONTENT, &[]).await).await.2, "DOWNLOAD_QUOTA_EXCEEDED");
    assert_eq!(s3.asked(), ["HEAD demo/t1/a"], "a look says whether it is still so large");
    assert!(window(&service, "a", 0).await.starts_with("DOWNLOAD_QUOTA_EXCEEDED"));
    assert_eq!(service.json("/v1/quota").await["refused"], 2);
    s3.put("a", DIGITS, "v2", T);
    s3.asked();
    assert_eq!(ask(&service, Method::GET, CONTENT, &[]).await.bytes().await.expect("bytes"), DIGITS);
    assert_eq!(service.settled().await, 10);
}

#[tokio::test]
async fn what_was_seen_opens_nothing_to_who_may_not_read_it() {
    let (s3, service) = remembering().await;
    assert_eq!(ask(&service, Method::GET, CONTENT, &[]).await.bytes().await.expect("bytes"), DIGITS);
    s3.asked();
    for (key, status, asked) in [
        (&service.keys.viewer, 403, vec![]),
        (&service.keys.operator, 400, vec![]),
        (&service.keys.foreign, 404, vec!["HEAD other/t1/a", "LIST"]),
        (&"epk_0".to_owned(), 401, vec![]),
    ] {
        let answer = service.request(Method::GET, CONTENT, key).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status, "{}", answer.text().await.expect("a body"));
        assert_eq!(s3.asked(), asked, "{status}");
    }
}

#[tokio::test]
async fn a_link_is_followed_by_one_request_until_its_file_is_another() {
    let s3 = S3::start(Manner::Honest).await;
    s3.put("a", DIGITS, "v1", T);
    let secret = tempfile::NamedTempFile::new().expect("scratch file");
    std::fs::write(secret.path(), [b's'; 32]).expect("written");
    let path = secret.path().display();
    let settings = format!(
        "public_url = \"https://files.example.com\"\n[links]\nkeys = [{{ id = \"k\", secret_file = \"{path}\" }}]"
    );
    let service = service(&s3, 300, &settings, 1 << 30).await;
    let mint = service.request(Method::POST, "/v1/trials/t1/artifacts/a/links", &service.keys.automation);
    let minted: Value = mint.send().await.expect("an answer").json().await.expect("JSON");
    let link = minted["url"].as_str().expect("a URL").replace("https://files.example.com", "");
    s3.asked();
    assert_eq!(ask(&service, Method::GET, &link, &[]).await.bytes().await.expect("bytes"), DIGITS);
    assert_eq!(s3.asked(), ["GET demo/t1/a ="]);
    s3.put("a", "abcdefghij", "v2", T);
    for asked in [vec!["GET demo/t1/a =", "HEAD demo/t1/a"], vec!["HEAD demo/t1/a"]] {
        assert_eq!(shown(ask(&service, Method::GET, &link, &[]).await).await.2, "LINK_STALE");
        assert_eq!(s3.asked(), asked);
    }
    s3.delete("a");
    assert_eq!(shown(ask(&service, Method::GET, &link, &[]).await).await.2, "LINK_STALE");
    assert_eq!(service.settled().await, 10);
}

#[tokio::test]
async fn nothing_is_remembered_where_versions_have_no_name_or_it_is_off() {
    for (manner, seconds) in [(Manner::NoETag, 300), (Manner::Honest, 0)] {
        let s3 = S3::start(manner).await;
        s3.put("a", DIGITS, "v1", T);
        let service = service(&s3, seconds, "", 1 << 30).await;
        for _ in 0..2 {
            assert_eq!(ask(&service, Method::GET, CONTENT, &[]).await.bytes().await.expect("bytes"), DIGITS);
            let asked = s3.asked();
            assert_eq!((asked.len(), &asked[0][..]), (2, "HEAD demo/t1/a"), "{manner:?}: {asked:?}");
        }
    }
}

#[tokio::test]
async fn a_directory_is_looked_at_every_time() {
    let service = Service::start(&[("t1", "a", DIGITS)]).await;
    for looks in 1..4 {
        assert_eq!(service.get(CONTENT).await.bytes().await.expect("bytes"), DIGITS);
        assert_eq!(service.store.looks(), looks);
    }
}
