//! A tool that hangs, panics or is called too often: an answer all the same, and nothing held.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use serde_json::json;

use super::world::{READER, World, post, text};
use crate::mcp::calls::Calls;

fn files() -> [(&'static str, &'static [u8]); 1] {
    [("log", b"text")]
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let world = World::new(1000, &[]);
    let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{\"jsonrpc\""))]);
    let request = post(READER).body(Body::from_stream(begun.chain(stream::pending()))).expect("a request");
    let (status, _, answer) = world.send(request).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::REQUEST_TIMEOUT, &json!(408)));

    let broken = stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))]);
    let (status, _, answer) = world.send(post(READER).body(Body::from_stream(broken)).expect("a request")).await;
    assert_eq!((status, &answer["error"]["data"]["code"]), (StatusCode::BAD_REQUEST, &json!("INVALID_REQUEST")));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_and_costs_nothing() {
    let world = World::with_calls(1000, &files(), Calls::new(1, Duration::from_millis(50)));
    world.store.stuck.store(true, Ordering::SeqCst);
    let result = world.read("log", json!({})).await;
    assert_eq!((&result["isError"], text(&result).split(':').next()), (&json!(true), Some("STORE_UNAVAILABLE")));
    assert_eq!((world.settled().await.used, world.settled().await.reserved), (0, 0), "what was reserved is given back");
    world.store.stuck.store(false, Ordering::SeqCst);
    assert_eq!(world.read("log", json!({})).await["isError"], false, "the place is free again");
}

#[tokio::test]
async fn a_tool_that_panics_is_an_internal_error_of_the_protocol() {
    let world = World::new(1000, &files());
    world.store.panics.store(true, Ordering::SeqCst);
    let body = json!({"jsonrpc": "2.0", "id": "p", "method": "tools/call", "params": {
        "name": "envloop_trial_artifact_read", "arguments": {"trial_id": "t", "name": "log"}}});
    let request = post(READER).header("x-request-id", "r-1").body(body.to_string().into()).expect("a request");
    let (status, _, answer) = world.send(request).await;
    assert_eq!(status, StatusCode::OK);
    let said = "The tool failed; report request id r-1 to the operator.";
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "p", "error": {"code": -32603, "message": said}}));
    assert_eq!(world.settled().await.reserved, 0);
    world.store.panics.store(false, Ordering::SeqCst);
    assert_eq!(world.read("log", json!({})).await["isError"], false);
}

#[tokio::test]
async fn one_key_has_so_many_calls_running_and_no_more() {
    let world = World::with_calls(1000, &files(), Calls::new(2, Duration::from_millis(300)));
    world.store.stuck.store(true, Ordering::SeqCst);
    let results = join_all((0..5).map(|_| world.read("log", json!({})))).await;
    let count = |code: &str| results.iter().filter(|result| text(result).starts_with(code)).count();
    assert_eq!((count("STORE_UNAVAILABLE: "), count("TOO_MANY_REQUESTS: This key has 2 calls running")), (2, 3));
    assert!(results.iter().all(|result| result["isError"] == true));
}
