//! What an agent reads when nothing is wrong with its call: the allowance, the store, the service.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::golden::{check, shown, without_times};
use super::world::{World, text};
use crate::mcp::calls::Calls;
use crate::store::StoreError;

fn keep(case: &str, result: &Value) {
    check(&format!("refusal/{case}.txt"), &without_times(&shown(result)));
    assert_eq!(result["isError"], true, "{case}");
}

#[tokio::test]
async fn an_allowance_that_is_spent() {
    let world = World::new(150, &[("log", &[b'x'; 100])]);
    assert_eq!(world.read("log", json!({})).await["isError"], false);
    assert_eq!(world.settled().await.used, 100);
    let result = world.read("log", json!({})).await;
    assert!(text(&result).contains("reason=spent"), "{result}");
    keep("quota_spent", &result);
}

#[tokio::test]
async fn an_allowance_that_open_reads_hold() {
    let world = World::with_calls(150, &[("log", &[b'x'; 100])], Calls::new(2, Duration::from_secs(45)));
    world.store.stuck.store(true, Ordering::SeqCst);
    let open = world.read("log", json!({}));
    let next = async {
        while world.reserved().await == 0 {
            tokio::task::yield_now().await;
        }
        world.read("log", json!({})).await
    };
    let result = tokio::select! {
        _ = open => panic!("it never opens"),
        result = next => result,
    };
    assert!(text(&result).contains("reason=busy"), "{result}");
    keep("quota_busy", &result);
}

#[tokio::test]
async fn a_store_that_cannot_give_the_file() {
    type Finds = fn() -> StoreError;
    for (case, finds) in [
        ("not_ready", (|| StoreError::NotReady) as Finds),
        ("encoded", || StoreError::Encoded("gzip".into())),
        ("store_unavailable", || StoreError::unavailable("secret cause")),
    ] {
        let world = World::new(1000, &[("log", b"text")]);
        *world.store.finds.lock().expect("no panic") = Some(finds);
        let mut result = world.read("log", json!({})).await;
        let told = text(&result).to_owned();
        if let Some((before, _)) = told.split_once("request_id=") {
            result["content"][0]["text"] = format!("{before}request_id=ID").into();
        }
        keep(case, &result);
    }
}

#[tokio::test]
async fn a_file_that_keeps_changing() {
    let world = World::new(1000, &[("log", b"text")]);
    world.store.changes.store(u64::MAX, Ordering::SeqCst);
    keep("changed", &world.read("log", json!({})).await);
}

#[tokio::test]
async fn calls_that_are_not_begun_or_not_ended() {
    let world = World::with_calls(1000, &[("log", b"text")], Calls::new(1, Duration::from_secs(1)));
    world.store.stuck.store(true, Ordering::SeqCst);
    let (mut overlong, crowded) = tokio::join!(world.read("log", json!({})), world.read("log", json!({})));
    keep("crowded", &crowded);
    let told = text(&overlong).to_owned();
    let (before, _) = told.split_once("request_id=").expect("an id");
    overlong["content"][0]["text"] = format!("{before}request_id=ID").into();
    keep("overlong", &overlong);
}
