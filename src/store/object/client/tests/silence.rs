//! How long is waited, and for what.

use std::time::Duration;

use http_body_util::BodyExt as _;
use object_store::ClientConfigKey as Key;
use object_store::client::HttpErrorKind;
use tokio::time::Instant;

use super::peers::{Peer, Then, answer};
use super::{client, get, text};

#[tokio::test]
async fn a_connection_must_stand_in_time_with_all_that_belongs_to_it() {
    // It takes connections, and says nothing of TLS.
    let silent = Peer::plain(|_| (Vec::new(), Then::Stalls)).await;
    let client = client(&[(Key::ConnectTimeout, "100ms")]);
    let begun = Instant::now();
    let error = client.send(get(&format!("https://{}/", silent.address))).await.expect_err("too late");
    assert_eq!(error.kind(), HttpErrorKind::Timeout);
    assert!(begun.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn a_head_must_come_in_time() {
    let silent = Peer::plain(|_| (Vec::new(), Then::Stalls)).await;
    let client = client(&[(Key::ReadTimeout, "100ms")]);
    let error = client.send(get(&format!("http://{}/", silent.address))).await.expect_err("too late");
    assert_eq!(error.kind(), HttpErrorKind::Timeout);
}

#[tokio::test]
async fn a_body_must_go_on_in_time_while_it_is_waited_for() {
    let stalling = Peer::plain(|_| (answer("half of it").trim_end_matches(" of it").into(), Then::Stalls)).await;
    let client = client(&[(Key::ReadTimeout, "200ms")]);
    let answer = client.send(get(&format!("http://{}/", stalling.address))).await.expect("a head");
    // Whoever takes his time with what has come is not held to be waiting.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut body = answer.into_body();
    let begun = Instant::now();
    let frame = body.frame().await.expect("a part").expect("sound");
    assert!(!frame.into_data().expect("data").is_empty());
    let error = body.frame().await.expect("an end").expect_err("too late");
    assert_eq!(error.kind(), HttpErrorKind::Timeout);
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn without_a_limit_nothing_is_too_late() {
    let peer = Peer::plain(|_| (answer("whole").into(), Then::Listens)).await;
    let client = client(&[]);
    assert_eq!(client.patience, None);
    assert_eq!(text(client.send(get(&format!("http://{}/", peer.address))).await).await.as_deref(), Ok("whole"));
}
