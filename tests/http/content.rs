//! The bytes of one artifact: whole, in part, or not at all.

use reqwest::Method;
use serde_json::Value;

use super::service::Service;

const PATH: &str = "/v1/trials/t1/artifacts/log.txt/content";
const BODY: &[u8] = b"0123456789";

async fn service() -> Service {
    Service::start(&[("t1", "log.txt", BODY), ("t1", "empty", b""), ("t1", "page.html", b"<script>")]).await
}

#[tokio::test]
async fn one_range_in_every_form() {
    let service = service().await;
    let mut charged = 0;
    for (range, status, body, content_range) in [
        ("", 200, BODY, None),
        ("bytes=0-3", 206, &BODY[..4], Some("bytes 0-3/10")),
        ("bytes=4-", 206, &BODY[4..], Some("bytes 4-9/10")),
        ("bytes=-2", 206, &BODY[8..], Some("bytes 8-9/10")),
        ("bytes=-99", 206, BODY, Some("bytes 0-9/10")),
        ("bytes=9-99", 206, &BODY[9..], Some("bytes 9-9/10")),
        ("bytes=10-", 416, b"", Some("bytes */10")),
        ("bytes=99999999999999999999-", 416, b"", Some("bytes */10")),
        ("bytes=0-1,4-5", 200, BODY, None),
        ("bytes=abc", 200, BODY, None),
    ] {
        let mut request = service.request(Method::GET, PATH, &service.keys.read_only);
        if !range.is_empty() {
            request = request.header("range", range);
        }
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{range}");
        assert_eq!(answer.headers().get("content-range").map(|v| v.to_str().expect("text")), content_range, "{range}");
        if status == 416 {
            assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "RANGE_NOT_SATISFIABLE");
            continue;
        }
        assert_eq!(answer.headers()["content-length"], body.len().to_string().as_str());
        assert_eq!(answer.headers()["accept-ranges"], "bytes");
        assert_eq!(answer.bytes().await.expect("bytes"), body, "{range}");
        charged += body.len() as u64;
    }
    assert_eq!(service.settled().await, charged);
}

#[tokio::test]
async fn answers_made_of_metadata_touch_no_ledger() {
    let service = service().await;
    let etag =
        service.get("/v1/trials/t1/artifacts/log.txt").await.json::<Value>().await.expect("JSON")["etag"].clone();
    let etag = etag.as_str().expect("etag");
    let before = service.store.opens();
    for (method, header, value, status) in [
        (Method::HEAD, "range", "bytes=0-3", 200),
        (Method::GET, "if-none-match", etag, 304),
        (Method::GET, "if-match", "\"other\"", 412),
        (Method::HEAD, "if-none-match", "*", 304),
        (Method::GET, "range", "bytes=10-", 416),
    ] {
        let request = service.request(method, PATH, &service.keys.read_only).header(header, value);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{header}: {value}");
        if status == 304 || status == 200 {
            assert_eq!(answer.headers()["etag"], etag);
            assert_eq!(answer.headers()["cache-control"], "private, no-cache, no-transform");
        }
        if status == 200 {
            assert_eq!(answer.headers()["content-length"], "10");
        }
    }
    assert_eq!(service.store.opens(), before);
    let quota = service.json("/v1/quota").await;
    assert_eq!((quota["used_bytes"].as_u64(), quota["reserved_bytes"].as_u64()), (Some(0), Some(0)));
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 0);
}

#[tokio::test]
async fn an_empty_file_is_a_whole_answer() {
    let service = service().await;
    let answer = service.get("/v1/trials/t1/artifacts/empty/content").await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["content-length"]), (200, &"0".parse().expect("value")));
    assert!(answer.bytes().await.expect("bytes").is_empty());
    for range in ["bytes=0-", "bytes=-5"] {
        let request = service.request(Method::GET, "/v1/trials/t1/artifacts/empty/content", &service.keys.read_only);
        let answer = request.header("range", range).send().await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-range"]),
            (416, &"bytes */0".parse().expect("value"))
        );
    }
    assert_eq!(service.settled().await, 0);
    let audit = service.json("/v1/quota/audit").await;
    assert_eq!((&audit["items"][0]["outcome"], audit["totals"]["count"].as_u64()), (&"completed".into(), Some(1)));
}

#[tokio::test]
async fn a_hostile_page_is_inert() {
    let service = service().await;
    for disposition in ["", "?disposition=inline"] {
        let answer = service.get(&format!("/v1/trials/t1/artifacts/page.html/content{disposition}")).await;
        let headers = answer.headers();
        assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["content-security-policy"], "default-src 'none'; sandbox");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        let kind = if disposition.is_empty() { "attachment" } else { "inline" };
        assert_eq!(headers["content-disposition"], format!("{kind}; filename=\"page.html\"").as_str());
    }
    assert_eq!(service.get(&format!("{PATH}?disposition=run")).await.status(), 400);
}

#[tokio::test]
async fn every_read_has_its_entry() {
    let service = service().await;
    let request = service.request(Method::GET, PATH, &service.keys.automation).header("range", "bytes=2-4");
    let answer = request.header("x-request-id", "req-7").send().await.expect("an answer");
    answer.bytes().await.expect("bytes");
    service.settled().await;
    let audit = service.json("/v1/quota/audit").await;
    let entry = &audit["items"][0];
    for (field, want) in [
        ("key_id", Value::from("automation")),
        ("channel", "http".into()),
        ("trial_id", "t1".into()),
        ("artifact", "log.txt".into()),
        ("size_bytes", 10.into()),
        ("charged_bytes", 3.into()),
        ("outcome", "completed".into()),
        ("request_id", "req-7".into()),
        ("count", 1.into()),
    ] {
        assert_eq!(entry[field], want, "{field}");
    }
    assert_eq!(audit["totals"]["charged_bytes"], 3);
    for (query, count) in [
        ("key_id=automation&channel=http&outcome=completed&trial_id=t1", 1),
        ("key_id=other", 0),
        ("channel=mcp", 0),
        ("outcome=failed", 0),
        ("trial_id=t2", 0),
        ("day=2020-01-01", 0),
    ] {
        let audit = service.json(&format!("/v1/quota/audit?{query}")).await;
        assert_eq!(audit["items"].as_array().expect("items").len(), count, "{query}");
        assert_eq!(audit["totals"]["count"], count, "{query}");
    }
    for query in ["channel=fax", "outcome=lost", "day=today", "limit=0", "cursor=x", "trial_id=.."] {
        assert_eq!(service.get(&format!("/v1/quota/audit?{query}")).await.status(), 400, "{query}");
    }
}

#[tokio::test]
async fn the_audit_is_paged_newest_first() {
    let service = service().await;
    for n in 0..5 {
        let request =
            service.request(Method::GET, PATH, &service.keys.read_only).header("range", format!("bytes=0-{n}"));
        request.send().await.expect("an answer").bytes().await.expect("bytes");
        service.settled().await;
    }
    let (mut charges, mut query) = (Vec::new(), "limit=2".to_owned());
    loop {
        let page = service.json(&format!("/v1/quota/audit?{query}")).await;
        charges.extend(page["items"].as_array().expect("items").iter().map(|entry| entry["charged_bytes"].as_u64()));
        assert_eq!(page["totals"]["charged_bytes"], 15);
        let Some(next) = page["next_cursor"].as_str() else { break };
        query = format!("limit=2&cursor={next}");
    }
    assert_eq!(charges, [5, 4, 3, 2, 1].map(Some));
}

/// A query that means nothing leads through the router, which the plain path of a download passes by.
#[tokio::test]
async fn the_way_past_the_router_leads_to_the_same() {
    let service = service().await;
    let keys = &service.keys;
    let etag = service.get(PATH).await.headers()["etag"].to_str().expect("text").to_owned();
    let of = |trial: &str, id: &str| format!("/v1/trials/{trial}/artifacts/{id}/content");
    for (path, key, field, status) in [
        (PATH.to_owned(), &keys.read_only, None, 200),
        (PATH.to_owned(), &keys.read_only, Some(("range", "bytes=2-3")), 206),
        (PATH.to_owned(), &keys.read_only, Some(("range", "bytes=10-")), 416),
        (PATH.to_owned(), &keys.read_only, Some(("if-none-match", &*etag)), 304),
        (PATH.to_owned(), &keys.read_only, Some(("if-match", "\"other\"")), 412),
        (PATH.to_owned(), &keys.read_only, Some(("x-project-id", "another")), 403),
        (PATH.to_owned(), &keys.read_only, Some(("x-project-id", "no id")), 400),
        (PATH.to_owned(), &keys.personal, None, 400),
        (PATH.to_owned(), &keys.viewer, None, 403),
        (PATH.to_owned(), &keys.operator, Some(("x-project-id", "demo")), 403),
        (PATH.to_owned(), &keys.foreign, None, 404),
        (PATH.to_owned(), &"epk_wrong".to_owned(), None, 401),
        (of("t1", "empty"), &keys.read_only, None, 200),
        (of("t1", "page.html"), &keys.read_only, None, 200),
        (of("t1", "none"), &keys.read_only, None, 404),
        (of("t2", "log.txt"), &keys.read_only, None, 404),
        (of("t1", "a~2"), &keys.read_only, None, 400),
        (of("t1", "a~1..~1b"), &keys.read_only, None, 400),
        (of("~", "log.txt"), &keys.read_only, None, 400),
    ] {
        let mut answers = Vec::new();
        for path in [path.clone(), format!("{path}?nothing")] {
            let request = service.request(Method::GET, &path, key).header("x-request-id", "same");
            let answer = field.into_iter().fold(request, |request, (name, value)| request.header(name, value)).send();
            let answer = answer.await.expect("an answer");
            let mut headers: Vec<_> =
                answer.headers().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            headers.retain(|(name, _)| name != "date" && name != "ratelimit");
            headers.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
            answers.push((answer.status().as_u16(), headers, answer.bytes().await.expect("a body")));
        }
        assert_eq!(answers[0].0, status, "{path} {field:?}: {answers:?}");
        assert_eq!(answers[0], answers[1], "{path} {field:?}");
    }
}
