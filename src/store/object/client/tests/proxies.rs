//! Ways by a proxy, and past it.

use object_store::ClientConfigKey as Key;
use object_store::client::HttpErrorKind;

use super::peers::{Identity, Peer, Then, answer};
use super::{client, get, text};

/// `user:pass word` as a header has it.
const CREDENTIALS: &str = "roxy-authorization: Basic dXNlcjpwYXNzIHdvcmQ=\r\n";

async fn proxy() -> Peer {
    Peer::plain(|seen| {
        let tunnel = seen.head.starts_with("CONNECT ");
        (if tunnel { "HTTP/1.1 200 OK\r\n\r\n".to_owned() } else { answer("by proxy") }.into(), Then::Listens)
    })
    .await
}

fn url_of(proxy: &Peer) -> String {
    format!("http://user:pass%20word@{}", proxy.address)
}

#[tokio::test]
async fn requests_for_plain_http_go_to_the_proxy_but_for_excluded_hosts() {
    let (proxy, store) = (proxy().await, Peer::plain(|_| (answer("direct").into(), Then::Listens)).await);
    let proxy_url = url_of(&proxy);
    let options = [(Key::ProxyUrl, proxy_url.as_str()), (Key::ProxyExcludes, "10.0.0.0/8,127.0.0.1")];
    let client = client(&options);

    let answer = client.send(get("http://store.invalid:7/a%20b?x=1")).await;
    assert_eq!(text(answer).await.as_deref(), Ok("by proxy"));
    let head = proxy.seen()[0].head.clone();
    assert!(head.starts_with("GET http://store.invalid:7/a%20b?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(CREDENTIALS) && head.contains("host: store.invalid:7\r\n"), "{head}");

    let answer = client.send(get(&format!("http://{}/a", store.address))).await;
    assert_eq!(text(answer).await.as_deref(), Ok("direct"));
    let head = store.seen()[0].head.clone();
    assert!(head.starts_with("GET /a HTTP/1.1\r\n") && !head.contains("roxy"), "{head}");
    assert_eq!(proxy.seen().len(), 1);
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let identity = Identity::new();
    let (proxy, store) = (proxy().await, Peer::tls(&identity, |_| (answer("safe").into(), Then::Listens)).await);
    let proxy_url = url_of(&proxy);
    let client = client(&[(Key::ProxyUrl, proxy_url.as_str()), (Key::ProxyCaCertificate, &identity.certificate)]);
    for _ in 0..2 {
        let answer = client.send(get(&format!("https://localhost:{}/a", store.address.port()))).await;
        assert_eq!(text(answer).await.as_deref(), Ok("safe"));
    }
    let (tunnels, requests) = (proxy.seen(), store.seen());
    assert_eq!((tunnels.len(), requests.len()), (1, 2), "one tunnel for both");
    assert!(tunnels[0].head.contains(&CREDENTIALS[1..]), "{tunnels:?}");
    assert!(tunnels[0].head.contains("artifactd/"), "{tunnels:?}");
    for request in requests {
        assert!(request.head.starts_with("GET /a HTTP/1.1\r\n") && !request.head.contains("roxy"), "{request:?}");
        assert_eq!(request.server_name.as_deref(), Some("localhost"));
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_a_tunnel_is_no_connection() {
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let proxy = Peer::plain(move |_| (refusal.into(), Then::Closes)).await;
    let client = client(&[(Key::ProxyUrl, &format!("http://{}", proxy.address))]);
    let error = client.send(get("https://store.invalid/")).await.expect_err("refused");
    assert_eq!(error.kind(), HttpErrorKind::Connect);
    assert!(format!("{error:?}").contains("ProxyAuthRequired"), "{error:?}");
}
