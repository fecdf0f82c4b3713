//! The HTTP client below `object_store`.
//!
//! A body is read from its connection when it is asked for, into buffers of which large ones are lent: so a
//! thousand clients that do not keep up hold little, and one that does is served in large pieces.
//! `object_store`'s own client reads ahead for each as much as the fastest is worth.
//!
//! hyper speaks HTTP/1.1 up to the body, and with all bodies but those of a known length; only a request that
//! is written whole ([`Client::ask`]) does without it. No redirect is
//! followed: a request is signed for the host that it names. What a user sets for `object_store`'s client is
//! honoured, or refused by name when the store is set up.

mod body;
mod connect;
mod exchange;
mod failure;
mod idle;
mod plain;
mod settings;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::{ACCEPT, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::{PathAndQuery, Scheme, Uri};
use object_store::ClientOptions;
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody};

use self::connect::{Connector, Proxies, Stream};
use self::exchange::Home;
use self::failure::Failure;
use self::idle::Idle;
use self::settings::Settings;
use super::super::buffers::Buffers;

pub(super) use self::body::Patient;
pub(super) use self::idle::Host;
pub(super) use self::plain::{Arrived, Asked, Head};

/// How many large buffers are lent (8 MiB in all): one for each of 32 connections that write as fast as they
/// can. To files more are lent, since less is held beside a body.
const LENT: usize = 32;

/// Sends requests over connections that are used again.
#[derive(Debug)]
pub(super) struct Client {
    connector: Connector,
    idle: Arc<Idle>,
    buffers: Arc<Buffers>,
    proxies: Arc<Proxies>,
    user_agent: HeaderValue,
    allow_http: bool,
    /// How long the head of an answer may take, and each further part of it.
    patience: Option<Duration>,
}

impl Client {
    /// A client as `options` say.
    ///
    /// # Errors
    /// One of them cannot be read or is not to be had; the message names it.
    pub(super) fn new(options: &ClientOptions) -> object_store::Result<Self> {
        let settings = Settings::read(options)?;
        let proxies = Arc::new(settings.proxies);
        Ok(Self {
            connector: Connector::new(
                settings.tls,
                Arc::clone(&proxies),
                settings.connect_timeout,
                settings.shuffles,
                settings.user_agent.clone(),
            ),
            idle: Idle::new(settings.pool_idle_timeout, settings.pool_max_idle),
            buffers: Buffers::new(LENT),
            proxies,
            user_agent: settings.user_agent,
            allow_http: settings.allow_http,
            patience: settings.read_timeout,
        })
    }

    /// The answer to a request, whatever its status.
    ///
    /// # Errors
    /// There is none, or no whole head of one in time. The kind of the error says whether it is worth
    /// trying again.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = match self.patience {
            Some(patience) => tokio::time::timeout(patience, self.answer(request))
                .await
                .map_err(|_| HttpError::new(HttpErrorKind::Timeout, Failure::Silence))?,
            None => self.answer(request).await,
        };
        Ok(answer?.map(|body| HttpResponseBody::new(Patient::new(body, self.patience))))
    }

    /// Whether what goes to a URL is for its host to read, and for no proxy.
    pub(super) fn leads_straight_to(&self, uri: &Uri) -> bool {
        uri.scheme() == Some(&Scheme::HTTPS) || self.proxies.of(uri).is_none()
    }

    pub(super) const fn user_agent(&self) -> &HeaderValue {
        &self.user_agent
    }

    /// How long the head of an answer may take.
    pub(super) const fn patience(&self) -> Option<Duration> {
        self.patience
    }

    async fn answer(&self, mut request: HttpRequest) -> Result<http::Response<body::Body>, HttpError> {
        let host = Host::of(request.uri()).ok_or_else(|| HttpError::new(HttpErrorKind::Unknown, Failure::NoHost))?;
        if !host.is_secure() && !self.allow_http {
            return Err(HttpError::new(HttpErrorKind::Unknown, Failure::PlainHttp));
        }
        if let Some(stream) = self.idle.take(&host) {
            // The other side may close it in this moment: what changes nothing is then sent anew (RFC 9110 §9.2.2).
            let again = request.method().is_safe().then(|| request.clone());
            match (self.exchange(stream, request, &host).await, again) {
                (Err(error), Some(again)) if failure::is_lost(&error) => request = again,
                (answer, _) => return answer,
            }
        }
        let stream = self.connector.connect(request.uri().clone()).await.map_err(failure::of_connecting)?;
        self.exchange(stream, request, &host).await
    }

    async fn exchange(
        &self,
        stream: Stream,
        mut request: HttpRequest,
        host: &Host,
    ) -> Result<http::Response<body::Body>, HttpError> {
        self.complete(&mut request, host, &stream);
        let (idle, buffers) = (Arc::clone(&self.idle), Arc::clone(&self.buffers));
        let home = Home { host: host.clone(), idle, buffers, reusable: false };
        exchange::send(stream, request, home).await
    }

    /// Adds what goes without saying to a request that is to go by `stream`.
    fn complete(&self, request: &mut HttpRequest, host: &Host, stream: &Stream) {
        let proxied = connect::is_proxied(stream);
        // A tunnel is asked for by a request of its own, which names the proxy's user there.
        let proxy = if proxied { self.proxies.of(request.uri()) } else { None };
        let headers = request.headers_mut();
        headers.entry(HOST).or_insert_with(|| host.header());
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(USER_AGENT).or_insert_with(|| self.user_agent.clone());
        if let Some(credentials) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        if !proxied {
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        }
    }
}

#[cfg(test)]
mod tests;
