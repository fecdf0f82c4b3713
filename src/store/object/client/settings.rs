//! What `object_store`'s client options say.

use std::error::Error;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use jiff::SignedDuration;
use object_store::{ClientConfigKey as Key, ClientOptions};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::connect::Proxies;
use super::tls::{self, Trust};

/// What the service calls itself unless told otherwise.
const USER_AGENT: &str = concat!("artifactd/", env!("CARGO_PKG_VERSION"));

/// The options, read.
pub(super) struct Settings {
    pub(super) tls: ClientConfig,
    pub(super) proxies: Proxies,
    pub(super) user_agent: HeaderValue,
    pub(super) allow_http: bool,
    /// Whether the addresses of a name are tried in random order.
    pub(super) shuffles: bool,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) read_timeout: Option<Duration>,
    pub(super) pool_idle_timeout: Option<Duration>,
    pub(super) pool_max_idle: Option<usize>,
}

impl Settings {
    /// Reads `options`, as `object_store` writes them: those that are not set have its defaults.
    ///
    /// # Errors
    /// An option cannot be read, or is not honoured.
    pub(super) fn read(options: &ClientOptions) -> object_store::Result<Self> {
        refuse_unknown(options)?;
        let proxies = proxies(options)?;
        let mut authorities = Vec::new();
        // One for the proxy is one for all, as long as there is a proxy.
        if let (Some(pem), Some(_)) = (text(options, Key::ProxyCaCertificate), text(options, Key::ProxyUrl)) {
            authorities = CertificateDer::pem_slice_iter(pem.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(|error| refused(Key::ProxyCaCertificate, error))?;
            if authorities.is_empty() {
                return Err(refused(Key::ProxyCaCertificate, "it holds no certificate in PEM"));
            }
        }
        let trust = if flag(options, Key::AllowInvalidCertificates)? {
            Trust::Anyone
        } else if flag(options, Key::NoSystemCertificates)? {
            Trust::Only(authorities)
        } else {
            Trust::SystemAnd(authorities)
        };
        let user_agent = match text(options, Key::UserAgent) {
            Some(name) => {
                name.parse().map_err(|error: http::header::InvalidHeaderValue| refused(Key::UserAgent, error))?
            }
            None => HeaderValue::from_static(USER_AGENT),
        };
        let pool_max_idle = match text(options, Key::PoolMaxIdlePerHost) {
            Some(most) => {
                Some(most.parse().map_err(|error: std::num::ParseIntError| refused(Key::PoolMaxIdlePerHost, error))?)
            }
            None => None,
        };
        Ok(Self {
            tls: tls::config(trust).map_err(generic)?,
            proxies,
            user_agent,
            allow_http: flag(options, Key::AllowHttp)?,
            shuffles: flag(options, Key::RandomizeAddresses)?,
            connect_timeout: duration(options, Key::ConnectTimeout)?,
            read_timeout: duration(options, Key::ReadTimeout)?,
            pool_idle_timeout: duration(options, Key::PoolIdleTimeout)?,
            pool_max_idle,
        })
    }
}

/// What would be ignored is refused.
fn refuse_unknown(options: &ClientOptions) -> object_store::Result<()> {
    const HTTP_2: &str = "HTTP/2 is not spoken with stores";
    for key in [Key::Http2Only, Key::Http2KeepAliveWhileIdle] {
        if flag(options, key)? {
            return Err(refused(key, HTTP_2));
        }
    }
    if !flag(options, Key::Http1Only)? {
        return Err(refused(Key::Http1Only, HTTP_2));
    }
    for key in [Key::Http2KeepAliveInterval, Key::Http2KeepAliveTimeout, Key::Http2MaxFrameSize] {
        if text(options, key).is_some() {
            return Err(refused(key, HTTP_2));
        }
    }
    if text(options, Key::Timeout).is_some() {
        return Err(refused(Key::Timeout, "the time that a whole body takes is not bounded"));
    }
    if options.get_default_headers().is_some() || options.dns_resolver().is_some() {
        return Err(generic("neither headers of its own nor another resolver can be given"));
    }
    Ok(())
}

/// The proxy that is named, then those of the environment.
fn proxies(options: &ClientOptions) -> object_store::Result<Proxies> {
    let mut matchers = Vec::new();
    if let Some(url) = text(options, Key::ProxyUrl) {
        let anywhere = Uri::from_static("http://store.invalid/");
        let known = Matcher::builder().all(url.as_str()).build().intercept(&anywhere);
        if !known.is_some_and(|proxy| Proxies::speaks(&proxy)) {
            return Err(refused(Key::ProxyUrl, "it is not http://host:port or https://host:port"));
        }
        let excludes = text(options, Key::ProxyExcludes).unwrap_or_default();
        matchers.push(Matcher::builder().all(url).no(excludes).build());
    }
    matchers.push(Matcher::from_env());
    Ok(Proxies::new(matchers))
}

fn text(options: &ClientOptions, key: Key) -> Option<String> {
    options.get_config_value(&key)
}

/// In the words that `object_store` reads.
fn flag(options: &ClientOptions, key: Key) -> object_store::Result<bool> {
    match text(options, key).unwrap_or_default().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" | "y" => Ok(true),
        "" | "0" | "false" | "off" | "no" | "n" => Ok(false),
        other => Err(refused(key, format!("{other:?} is neither true nor false"))),
    }
}

/// Such as `3s` or `33ms 333us`.
fn duration(options: &ClientOptions, key: Key) -> object_store::Result<Option<Duration>> {
    let Some(text) = text(options, key) else { return Ok(None) };
    let duration: SignedDuration = text.parse().map_err(|error: jiff::Error| refused(key, error))?;
    duration.try_into().map(Some).map_err(|error: jiff::Error| refused(key, error))
}

fn refused(key: Key, why: impl Into<Box<dyn Error + Send + Sync>>) -> object_store::Error {
    generic(format!("{}: {}", key.as_ref(), why.into()))
}

fn generic(why: impl Into<Box<dyn Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP client", source: why.into() }
}
