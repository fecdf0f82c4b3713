//! Connections that are used again, that end, and what each may read ahead.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use object_store::ClientConfigKey as Key;
use object_store::client::{HttpErrorKind, HttpResponseBody};
use tokio::net::TcpListener;

use super::super::super::super::buffers::CHUNK;
use super::super::idle::Host;
use super::peers::{Peer, Then, answer};
use super::{client, get, text};

#[tokio::test]
async fn connections_are_used_again_until_the_server_closes_them() {
    let peer = Peer::plain(|seen| {
        (answer("x").into(), if seen.head.contains("/last ") { Then::Closes } else { Then::Listens })
    })
    .await;
    let client = client(&[]);
    // The server closes without a word after the third, as servers do with idle connections.
    for path in ["a", "b", "last", "c", "d"] {
        let url = format!("http://{}/{path}", peer.address);
        assert_eq!(text(client.send(get(&url)).await).await.as_deref(), Ok("x"));
        if path == "last" {
            let host = Host::of(&url.parse().expect("a URL")).expect("a host");
            let mut patience = 1000;
            while let Some(stream) = client.idle.take(&host) {
                assert!(patience > 0, "its end is seen");
                patience -= 1;
                client.idle.put(host.clone(), stream);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    let connections: Vec<_> = peer.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0, 0, 1, 1]);
}

/// A connection that was used before may be closed while a request is on its way.
#[tokio::test]
async fn what_changes_nothing_is_sent_anew_by_another_connection() {
    let client = client(&[]);
    for (method, sent, anew) in
        [(Method::GET, "", true), (Method::GET, "HTTP/1.1 200 O", true), (Method::PUT, "", false)]
    {
        // The first connection has one answer in it.
        let peer = Peer::plain(move |seen| {
            let sound = seen.head.contains("/first ") || seen.connection > 0;
            if sound { (answer("x").into(), Then::Listens) } else { (sent.into(), Then::Closes) }
        })
        .await;
        let request = |path: &str| {
            let mut request = get(&format!("http://{}/{path}", peer.address));
            request.method_mut().clone_from(&method);
            request
        };
        assert_eq!(text(client.send(request("first")).await).await.as_deref(), Ok("x"));
        let second = client.send(request("second")).await.map_err(|error| error.kind());
        assert_eq!(second.is_ok(), anew, "{method} {sent:?}: {second:?}");
        let connections: Vec<_> = peer.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, if anew { vec![0, 0, 1] } else { vec![0, 0] }, "{method} {sent:?}");
    }
    // Once, and not if the connection was new.
    let peer = Peer::plain(|_| (Vec::new(), Then::Closes)).await;
    let error = client.send(get(&format!("http://{}/", peer.address))).await.expect_err("no answer");
    assert_eq!((error.kind(), peer.seen().len()), (HttpErrorKind::Request, 1));
}

#[tokio::test]
async fn failures_say_whether_to_try_again() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port").local_addr().expect("bound");
    let error = client(&[]).send(get(&format!("http://{closed}/"))).await.expect_err("nobody is there");
    assert_eq!(error.kind(), HttpErrorKind::Connect);
    let error = client(&[]).send(get("http://store.invalid/")).await.expect_err("there is no such name");
    assert_eq!(error.kind(), HttpErrorKind::Connect);
    for (sent, expected) in [
        ("", HttpErrorKind::Request),
        ("HTTP/1.1 200 O", HttpErrorKind::Request),
        ("S3 says no\r\n\r\n", HttpErrorKind::Unknown),
    ] {
        let peer = Peer::plain(move |_| (sent.into(), Then::Closes)).await;
        let error = client(&[]).send(get(&format!("http://{}/", peer.address))).await.expect_err("no answer");
        assert_eq!(error.kind(), expected, "{sent:?}: {error:?}");
    }
    let peer = Peer::plain(|_| (answer("half of it").trim_end_matches(" of it").into(), Then::Closes)).await;
    let cut = client(&[]).send(get(&format!("http://{}/", peer.address))).await;
    assert_eq!(text(cut).await, Err(HttpErrorKind::Interrupted));
}

#[tokio::test]
async fn redirects_are_answers() {
    let moved = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    let peer = Peer::plain(move |_| (moved.into(), Then::Listens)).await;
    let answer = client(&[]).send(get(&format!("http://{}/a", peer.address))).await.expect("an answer");
    assert_eq!((answer.status().as_u16(), peer.seen().len()), (307, 1));
}

#[tokio::test]
async fn bodies_are_whole_however_they_come() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4\r\nmore\r\n0\r\n\r\n";
    let unbounded = "HTTP/1.1 200 OK\r\n\r\nto the end";
    let long = answer(&"x".repeat(3 * CHUNK + 5));
    let peer = Peer::plain(move |seen| match seen.head.split_whitespace().nth(1) {
        Some("/chunked") => (chunked.into(), Then::Listens),
        Some("/unbounded") => (unbounded.into(), Then::Closes),
        Some("/empty") => (answer("").into(), Then::Listens),
        // More than a head may bring with it, and less than it says.
        Some("/over") => ([&answer("x"), "HTTP/1.1 200 OK\r\n"].concat().into(), Then::Listens),
        Some("/close") => (answer("last").replace("Content", "Connection: close\r\nContent").into(), Then::Stalls),
        _ => (long.clone().into(), Then::Listens),
    })
    .await;
    let client = client(&[]);
    let long = "x".repeat(3 * CHUNK + 5);
    for (path, expected, connection) in [
        ("chunked", "onemore", 0),
        ("empty", "", 0),
        ("long", &long, 0),
        ("chunked", "onemore", 0),
        ("over", "x", 0),
        ("long", &long, 1),
        ("close", "last", 1),
        ("unbounded", "to the end", 2),
        ("empty", "", 3),
    ] {
        let body = text(client.send(get(&format!("http://{}/{path}", peer.address))).await).await;
        assert!(body.as_deref() == Ok(expected), "{path}");
        assert_eq!(peer.seen().last().expect("a request").connection, connection, "{path}");
    }
}

/// A connection is not used again while its body is not over, nor after it was left.
#[tokio::test]
async fn a_body_that_is_left_ends_its_connection() {
    let long = answer(&"x".repeat(64 * CHUNK));
    let peer = Peer::plain(move |_| (long.clone().into(), Then::Listens)).await;
    let (client, url) = (client(&[]), format!("http://{}/", peer.address));
    let mut first = client.send(get(&url)).await.expect("an answer").into_body();
    assert!(first.frame().await.expect("a part").is_ok());
    let second = client.send(get(&url)).await.expect("an answer");
    drop((first, second));
    client.send(get(&url)).await.expect("an answer");
    let connections: Vec<_> = peer.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 1, 2]);
}

#[tokio::test]
async fn connections_wait_in_number_and_time() {
    let peer = Peer::plain(|_| (answer("x").into(), Then::Listens)).await;
    let client = client(&[(Key::PoolMaxIdlePerHost, "1"), (Key::PoolIdleTimeout, "50ms")]);
    let url = format!("http://{}/", peer.address);
    let (one, other) = tokio::join!(client.send(get(&url)), client.send(get(&url)));
    assert_eq!((text(one).await.as_deref(), text(other).await.as_deref()), (Ok("x"), Ok("x")));
    assert_eq!(client.idle.waiting(), 1);
    let mut patience = 100;
    while client.idle.waiting() > 0 {
        assert!(patience > 0, "it is closed in time");
        patience -= 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(text(client.send(get(&url)).await).await.as_deref(), Ok("x"));
    assert_eq!(peer.seen().last().expect("a request").connection, 2);
}

/// A client that stops reading holds what it was handed, and no buffer beside.
#[tokio::test]
async fn large_buffers_are_lent_while_there_are_any_and_none_while_nothing_comes() {
    const LONG: usize = 8 * CHUNK;
    let long = answer(&"x".repeat(LONG));
    let half = long.len() - LONG / 2;
    let peer = Peer::plain(move |seen| {
        if seen.head.contains("/half ") {
            (long[..half].into(), Then::Stalls)
        } else {
            (long.clone().into(), Then::Listens)
        }
    })
    .await;
    let client = client(&[(Key::ReadTimeout, "100ms")]);
    let next = async |path: &str| {
        let answer = client.send(get(&format!("http://{}/{path}", peer.address))).await;
        answer.expect("an answer").into_body()
    };
    let held = client.buffers.borrow_all();
    assert!(largest_frame(next("whole").await).await <= 16 << 10, "all large ones are lent");
    drop(held);
    assert!(largest_frame(next("whole").await).await > 16 << 10);
    let mut body = next("half").await;
    while let Some(Ok(_)) = body.frame().await {}
    assert_eq!(client.buffers.idle_and_lent().1, 0);
}

async fn largest_frame(mut body: HttpResponseBody) -> usize {
    let mut most = 0;
    while let Some(frame) = body.frame().await {
        most = most.max(frame.expect("sound").into_data().expect("data").len());
    }
    most
}
