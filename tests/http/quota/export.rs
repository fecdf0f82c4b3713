//! A whole day as one stream.

use artifactd::ledger::{Allowance, Rules};
use serde_json::{Value, json};

use super::super::service::{Options, Service};
use super::{FILES, allowed, read, with_entries};

#[tokio::test]
async fn a_whole_day_streams_as_csv_and_as_ndjson() {
    let rules = Rules { max_entries: 320, ..Rules::default() };
    let service = with_entries(Options { rules, daily: Allowance::Bytes(1_000_000), ..Options::default() }).await;
    for _ in 0..350 {
        read(&service, "t1", "a.txt").await;
    }
    service.settled().await;
    let today = service.json("/v1/quota").await["day"].as_str().expect("a day").to_owned();
    let page = service.json("/v1/quota/audit?limit=100").await;

    let answer = service.export("application/x-ndjson", "").await;
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    assert_eq!(answer.headers()["vary"], "accept");
    let name = format!("attachment; filename=\"audit-demo-{today}.ndjson\"");
    assert_eq!(answer.headers()["content-disposition"], name.as_str());
    let text = answer.text().await.expect("whole");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // Rolled-up entries are among them, and all of it is what the totals say.
    assert_eq!(lines.len(), 321);
    assert_eq!(json!(lines[..100]), page["items"]);
    let sum = |name: &str| lines.iter().map(|line| line[name].as_i64().expect("a number")).sum::<i64>();
    assert_eq!(json!({"count": sum("count"), "charged_bytes": sum("charged_bytes")}), page["totals"]);
    assert_eq!(page["totals"]["count"], 353);
    let groups = service.json("/v1/quota/audit?group_by=channel").await;
    assert_eq!(groups["totals"], page["totals"]);

    let answer = service.export("text/csv", "?trial_id=t1&outcome=completed").await;
    assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    let name = format!("attachment; filename=\"audit-demo-{today}.csv\"");
    assert_eq!(answer.headers()["content-disposition"], name.as_str());
    let text = answer.text().await.expect("whole");
    let rows: Vec<_> = text.split_terminator("\r\n").collect();
    assert!(rows[0].starts_with("at,id,outcome,key_id,"), "{}", rows[0]);
    assert_eq!(rows.len(), 1 + lines.iter().filter(|line| line["trial_id"] == "t1").count());
    let evil = rows.iter().find(|row| row.contains("cmd|")).expect("listed");
    assert!(evil.contains(",\"'=cmd|' /C calc'!A0\","), "{evil}");

    let none = service.export("text/csv", "?day=2020-01-01").await.text().await.expect("whole");
    assert_eq!(none.lines().count(), 1, "a head and no rows: {none}");
    for query in ["?limit=5", "?group_by=key"] {
        assert_eq!(service.export("text/csv", query).await.status(), 400, "{query}");
    }
}

#[tokio::test]
async fn an_export_that_fails_midway_has_no_clean_end() {
    const LINES: u32 = 20_000;
    let service = Service::with(FILES, allowed(1_000_000)).await;
    let today = service.json("/v1/quota").await["day"].as_str().expect("a day").to_owned();
    let file = service.scratch.path().join("ledger.db");
    // More than the buffers on the way hold, with names of 1000 bytes.
    let books = rusqlite::Connection::open(&file).expect("the books");
    let lines = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
         INSERT INTO line (project, day, sequence, at, id, key_id, channel, trial, artifact, request_id, size, charged, outcome, count)
         SELECT 'demo', ?1, i, 1, i, 'k', 'http', 't1', hex(zeroblob(500)), 'r', 1, 1, 'completed', 1 FROM n";
    books.execute(lines, rusqlite::params![today, LINES]).expect("lines");
    let account = "INSERT INTO account (project, day, used, reserved, open, refused, lines, counted) VALUES ('demo', ?1, ?2, 0, 0, 0, ?2, ?2)";
    books.execute(account, rusqlite::params![today, LINES]).expect("an account");
    assert_eq!(service.settled().await, u64::from(LINES));
    let whole = service.export("application/x-ndjson", "").await.text().await.expect("whole").len();

    let mut answer = service.export("application/x-ndjson", "").await;
    let mut got = answer.chunk().await.expect("a first part").expect("not the end").len();
    // The ledger's file goes away under it: pages that were not fetched yet fail.
    std::fs::rename(&file, file.with_extension("away")).expect("moved");
    let end = loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => got += chunk.len(),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    assert!(end.is_err() && got < whole, "{got} of {whole} bytes, {end:?}");
}
