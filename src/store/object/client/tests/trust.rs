//! Who is believed to be the store.

use object_store::client::HttpErrorKind;
use object_store::{ClientConfigKey as Key, ClientOptions};

use super::super::Client;
use super::peers::{Identity, Peer, Then, answer};
use super::{client, get, text};

/// Nothing listens there, and nothing need: all hosts are excluded from it.
const NO_PROXY: [(Key, &str); 2] = [(Key::ProxyUrl, "http://127.0.0.1:1"), (Key::ProxyExcludes, "*,127.0.0.1")];

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_unless_any_will_do() {
    let identity = Identity::new();
    let peer = Peer::tls(&identity, |_| (answer("safe").into(), Then::Listens)).await;
    let url = |host: &str| format!("https://{host}:{}/", peer.address.port());
    let vouched = [NO_PROXY.as_slice(), &[(Key::ProxyCaCertificate, identity.certificate.as_str())]].concat();
    let only_vouched = [vouched.as_slice(), &[(Key::NoSystemCertificates, "true")]].concat();
    for (options, host, trusted) in [
        (&[][..], "localhost", false),
        (&[(Key::NoSystemCertificates, "true")], "localhost", false),
        (&[(Key::AllowInvalidCertificates, "false")], "localhost", false),
        (&[(Key::AllowInvalidCertificates, "true")], "localhost", true),
        (&[(Key::AllowInvalidCertificates, "true")], "127.0.0.1", true),
        (&vouched, "localhost", true),
        (&only_vouched, "localhost", true),
        // It is one for another name.
        (&vouched, "127.0.0.1", false),
        // Without a proxy its authority counts for nothing.
        (&vouched[2..], "localhost", false),
    ] {
        let answer = client(options).send(get(&url(host))).await;
        if trusted {
            assert_eq!(text(answer).await.as_deref(), Ok("safe"), "{options:?}");
        } else {
            let error = answer.expect_err("not trusted");
            assert_eq!(error.kind(), HttpErrorKind::Connect, "{options:?}");
            let said = format!("{error:?}").to_lowercase();
            assert!(said.contains("certificate"), "{said}");
        }
    }
    for seen in peer.seen() {
        // An address is no name to ask for.
        assert_eq!(seen.server_name.is_some(), seen.head.contains("localhost"), "{seen:?}");
    }
}

#[tokio::test]
async fn plain_http_is_refused_unless_it_is_allowed() {
    let peer = Peer::plain(|_| (answer("open").into(), Then::Listens)).await;
    let url = format!("http://{}/", peer.address);
    let strict = Client::new(&ClientOptions::new().with_timeout_disabled()).expect("a client");
    let error = strict.send(get(&url)).await.expect_err("refused");
    assert!(error.kind() == HttpErrorKind::Unknown && error.to_string().contains("allow_http"), "{error}");
    assert!(peer.seen().is_empty());
    assert_eq!(text(client(&[]).send(get(&url)).await).await.as_deref(), Ok("open"));
}

/// What cannot be honoured is told when the store is set up, with its name.
#[test]
fn options_that_cannot_be_had_are_refused_by_name() {
    for (key, value) in [
        (Key::Http2Only, "true"),
        (Key::Http1Only, "false"),
        (Key::Http2KeepAliveInterval, "1s"),
        (Key::Http2KeepAliveTimeout, "1s"),
        (Key::Http2MaxFrameSize, "16384"),
        (Key::Http2KeepAliveWhileIdle, "true"),
        (Key::Timeout, "1s"),
        (Key::ProxyUrl, "socks5://127.0.0.1:1080"),
        (Key::ProxyUrl, "not a url"),
        (Key::AllowHttp, "perhaps"),
        (Key::AllowInvalidCertificates, "2"),
        (Key::RandomizeAddresses, "perhaps"),
        (Key::PoolMaxIdlePerHost, "-1"),
        (Key::PoolIdleTimeout, "soon"),
        (Key::ConnectTimeout, "-1s"),
        (Key::ReadTimeout, "1"),
    ] {
        let options = ClientOptions::new().with_timeout_disabled().with_config(key, value);
        let error = Client::new(&options).expect_err(value).to_string();
        assert!(error.contains(key.as_ref()), "{key:?}: {error}");
    }
    let pem = [NO_PROXY[0], (Key::ProxyCaCertificate, "no certificate")];
    let options = pem.iter().fold(ClientOptions::new().with_timeout_disabled(), |all, (k, v)| all.with_config(*k, *v));
    assert!(Client::new(&options).expect_err("refused").to_string().contains("proxy_ca_certificate"));
}

#[tokio::test]
async fn the_others_are_taken() {
    let peer = Peer::plain(|_| (answer("taken").into(), Then::Listens)).await;
    let client = client(&[
        (Key::UserAgent, "someone/1"),
        (Key::RandomizeAddresses, "off"),
        (Key::Http1Only, "yes"),
        (Key::Http2Only, "0"),
        (Key::PoolMaxIdlePerHost, "3"),
        (Key::PoolIdleTimeout, "1m 30s"),
        (Key::ConnectTimeout, "33ms 333us 333ns"),
        (Key::ReadTimeout, "2 seconds"),
    ]);
    assert_eq!(client.patience, Some(std::time::Duration::from_secs(2)));
    let url = format!("http://localhost:{}/", peer.address.port());
    assert_eq!(text(client.send(get(&url)).await).await.as_deref(), Ok("taken"));
    assert!(peer.seen()[0].head.contains("user-agent: someone/1\r\n"), "{:?}", peer.seen());
}
