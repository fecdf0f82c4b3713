//! Connections: direct, or by way of a proxy.

use std::error::Error;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rand::seq::SliceRandom as _;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::Service;

/// A connection to a host; boxed since it holds two states of TLS, and changes hands with every request.
pub(super) type Stream = Box<MaybeHttpsStream<Hop>>;

type BoxError = Box<dyn Error + Send + Sync>;
type Boxed<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// A peer that sends nothing is asked after so long whether it is there, and again, three times.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_RETRIES: u32 = 3;
/// A peer that takes nothing is given up after so long.
const UNTAKEN: Duration = Duration::from_secs(30);

/// Which proxy leads to a host: the first that says it does.
#[derive(Debug)]
pub(super) struct Proxies(Vec<Matcher>);

impl Proxies {
    pub(super) const fn new(matchers: Vec<Matcher>) -> Self {
        Self(matchers)
    }

    pub(super) fn of(&self, uri: &Uri) -> Option<Intercept> {
        self.0.iter().find_map(|matcher| matcher.intercept(uri))
    }

    /// Whether it is of a kind that can be spoken with.
    pub(super) fn speaks(proxy: &Intercept) -> bool {
        matches!(proxy.uri().scheme_str(), Some("http" | "https"))
    }
}

/// Connects to the host of a URL, within a time for all of it: names, proxies and TLS.
#[derive(Debug)]
pub(super) struct Connector {
    https: HttpsConnector<Hops>,
    timeout: Option<Duration>,
}

impl Connector {
    pub(super) fn new(
        tls: ClientConfig,
        proxies: Arc<Proxies>,
        timeout: Option<Duration>,
        shuffles: bool,
        user_agent: HeaderValue,
    ) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { shuffles });
        tcp.enforce_http(false);
        tcp.set_connect_timeout(timeout);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE));
        tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
        tcp.set_tcp_user_timeout(Some(UNTAKEN));
        let to_proxy = HttpsConnector::from((tcp.clone(), tls.clone()));
        let mut tls = tls;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { https: HttpsConnector::from((Hops { tcp, to_proxy, proxies, user_agent }, tls)), timeout }
    }

    /// Connects to the host of `to`.
    ///
    /// # Errors
    /// It cannot be reached, is not believed to be it, or not in time.
    pub(super) async fn connect(&self, to: Uri) -> Result<Stream, BoxError> {
        let connecting = self.https.clone().call(to);
        let Some(timeout) = self.timeout else { return connecting.await.map(Box::new) };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
        tokio::time::timeout(timeout, connecting).await.map_err(late)?.map(Box::new)
    }
}

/// Comes as far as TLS with the host, or as its requests.
#[derive(Debug, Clone)]
struct Hops {
    tcp: HttpConnector<Resolver>,
    to_proxy: HttpsConnector<HttpConnector<Resolver>>,
    proxies: Arc<Proxies>,
    user_agent: HeaderValue,
}

impl Hops {
    async fn connect(mut self, to: Uri) -> Result<Hop, BoxError> {
        let Some(proxy) = self.proxies.of(&to) else {
            return Ok(Hop { stream: MaybeHttpsStream::Http(self.tcp.call(to).await?), proxied: false });
        };
        if !Proxies::speaks(&proxy) {
            return Err(format!("the proxy {} is neither of http nor of https", proxy.uri()).into());
        }
        if to.scheme() != Some(&Scheme::HTTPS) {
            return Ok(Hop { stream: self.to_proxy.call(proxy.uri().clone()).await?, proxied: true });
        }
        let headers = HeaderMap::from_iter([(USER_AGENT, self.user_agent)]);
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy).with_headers(headers);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Ok(Hop { stream: tunnel.call(to).await?, proxied: false })
    }
}

impl Service<Uri> for Hops {
    type Response = Hop;
    type Error = BoxError;
    type Future = Boxed<Hop, BoxError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        Box::pin(self.clone().connect(to))
    }
}

/// A stream to the host, or to a proxy that is told with every request where it goes.
#[derive(Debug)]
pub(super) struct Hop {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    proxied: bool,
}

/// Whether requests by it are for a proxy to pass on.
pub(super) fn is_proxied(stream: &Stream) -> bool {
    matches!(&**stream, MaybeHttpsStream::Http(hop) if hop.proxied)
}

impl Connection for Hop {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl Read for Hop {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for Hop {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Asks the system for the addresses of a name.
#[derive(Debug, Clone)]
struct Resolver {
    /// Whether their order is random, which spreads connections over the hosts behind a name.
    shuffles: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Boxed<Self::Response, io::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (addresses, shuffles) = (GaiResolver::new().call(name), self.shuffles);
        Box::pin(async move {
            let mut addresses: Vec<_> = addresses.await?.collect();
            if shuffles {
                addresses.shuffle(&mut rand::rng());
            }
            Ok(addresses.into_iter())
        })
    }
}
