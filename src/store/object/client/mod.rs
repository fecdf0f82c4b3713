//! The HTTP client below `object_store`.
//!
//! Its own client reads ahead as much as a fast reader is worth, up to 400 KB, for every reader. Here a
//! number of answers at a time are read that way, and all others through small buffers: so a thousand
//! clients that do not keep up hold little.
//!
//! It speaks HTTP/1.1 and follows no redirects: a request is signed for the host that it names. What a
//! user sets for `object_store`'s client is honoured, or refused by name when the store is set up.

mod body;
mod connect;
mod failure;
mod settings;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::{ACCEPT, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody};
use tokio::sync::Semaphore;

use self::body::Body;
use self::connect::{Connector, Proxies};
use self::settings::Settings;

/// How many answers at a time are read through large buffers. Each holds up to three of them for a client
/// that stopped reading.
const ROOMS: usize = 64;
/// The largest buffer of such a connection; it grows to it while answers fill it.
const LARGE: usize = 256 << 10;
/// The buffer of all other connections, and so the longest head of an answer.
const SMALL: usize = 16 << 10;

type Pool = legacy::Client<Connector, HttpRequestBody>;

/// Sends requests over pooled connections.
#[derive(Debug)]
pub(super) struct Client {
    roomy: Pool,
    narrow: Pool,
    rooms: Arc<Semaphore>,
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
        let connector = Connector::new(
            settings.tls,
            Arc::clone(&proxies),
            settings.connect_timeout,
            settings.shuffles,
            settings.user_agent.clone(),
        );
        let mut pool = legacy::Client::builder(TokioExecutor::new());
        pool.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        if settings.pool_idle_timeout.is_some() {
            pool.pool_idle_timeout(settings.pool_idle_timeout);
        }
        if let Some(most) = settings.pool_max_idle {
            pool.pool_max_idle_per_host(most);
        }
        Ok(Self {
            roomy: pool.clone().http1_max_buf_size(LARGE).build(connector.clone()),
            narrow: pool.http1_read_buf_exact_size(SMALL).build(connector),
            rooms: Arc::new(Semaphore::new(ROOMS)),
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
    pub(super) async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let plain = request.uri().scheme() == Some(&Scheme::HTTP);
        if plain && !self.allow_http {
            return Err(HttpError::new(HttpErrorKind::Unknown, failure::Failure::PlainHttp));
        }
        let proxy = if plain { self.proxies.of(request.uri()) } else { None };
        let headers = request.headers_mut();
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(USER_AGENT).or_insert_with(|| self.user_agent.clone());
        // A tunnel is asked for by a request of its own, which has it there.
        if let Some(credentials) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        let room = Arc::clone(&self.rooms).try_acquire_owned().ok();
        let answer = if room.is_some() { &self.roomy } else { &self.narrow }.request(request);
        let answer = match self.patience {
            Some(patience) => tokio::time::timeout(patience, answer)
                .await
                .map_err(|_| HttpError::new(HttpErrorKind::Timeout, failure::Failure::Silence))?,
            None => answer.await,
        };
        let answer = answer.map_err(failure::of)?;
        Ok(answer.map(|incoming| HttpResponseBody::new(Body::new(incoming, self.patience, room))))
    }
}

#[cfg(test)]
mod tests;
