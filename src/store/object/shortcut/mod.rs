//! The short way to the bytes of an object in S3.
//!
//! `object_store` makes a request of many small pieces, and derives anew the key that signs it: for a small file
//! that costs more than all else. So one read by `object_store` is the pattern ([`Way`]) for those after
//! it: the same request is written in one go, and goes by a connection that waits for one. Only the answer
//! that was hoped for is taken: the same version, the same range, nothing to see to. Another is handed to
//! `object_store` as the one to its own first request ([`Answered`]), and where there is none, it asks as though
//! nothing had been before. So it alone knows of refusals, of times to try again, of proxies and of where credentials
//! come from.

mod rest;
mod signature;

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::UNIX_EPOCH;

use http::header::LAST_MODIFIED;
use http::{HeaderMap, Method};
use jiff::Timestamp;
use object_store::aws::AwsCredentialProvider;
use object_store::client::{HttpRequest, HttpResponse};
use object_store::path::Path;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use tokio::time::Instant;

use self::signature::{Signer, Wanted};
use super::super::Stat;
use super::client::{Asked, Client, Head, Host};
use super::{refusal, wire};
use crate::encoding::SEGMENT;
use crate::telemetry::trace;

pub(super) use self::rest::Rest;

/// How `object_store` writes a key in a URL.
const KEY: &AsciiSet = &SEGMENT.remove(b'/');

/// The headers of a request that is nothing but a signed read. One that has others is not imitated.
const KNOWN: [&str; 6] =
    ["authorization", "if-match", "range", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"];

/// The short way, once it is known.
pub(super) struct Shortcut {
    credentials: AwsCredentialProvider,
    /// Nothing if requests are not so plain that they could be imitated.
    way: OnceLock<Option<Way>>,
}

/// What the requests for all objects have in common.
struct Way {
    client: Arc<Client>,
    host: Host,
    host_header: String,
    /// What stands before a key in a URL.
    base: String,
    /// Whether and how requests are signed.
    signer: Option<Signer>,
    /// The end of a head.
    end: String,
}

/// A request that the short way is learnt from, in its extensions.
#[derive(Clone)]
pub(super) struct Lesson {
    shortcut: Arc<Shortcut>,
    key: Arc<str>,
}

/// An answer that is there before the request, in whose extensions it is.
#[derive(Clone)]
pub(super) struct Answered(Arc<Mutex<Option<HttpResponse>>>);

impl Answered {
    pub(super) fn new(answer: HttpResponse) -> Self {
        Self(Arc::new(Mutex::new(Some(answer))))
    }

    /// Once.
    pub(super) fn take(&self) -> Option<HttpResponse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Shortcut {
    /// For a store whose requests are signed with `credentials`, if they are.
    pub(super) fn new(credentials: AwsCredentialProvider) -> Arc<Self> {
        Arc::new(Self { credentials, way: OnceLock::new() })
    }

    /// A lesson about reads, from one of `key`, while one is needed.
    pub(super) fn lesson(self: &Arc<Self>, key: &Path) -> Option<Lesson> {
        let shortcut = self.way.get().is_none().then(|| Arc::clone(self))?;
        Some(Lesson { shortcut, key: key.as_ref().into() })
    }

    /// The answer to a request for the bytes `range` of the version `of`, with the stat that came with them;
    /// nothing if there is none this way before `deadline`.
    pub(super) async fn open(
        &self,
        key: &Path,
        of: &Stat,
        range: &Range<u64>,
        deadline: Instant,
    ) -> Option<Asked<Stat>> {
        let way = self.way.get()?.as_ref().filter(|_| !of.etag.is_weak())?;
        let deadline = way.client.patience().map_or(deadline, |patience| deadline.min(Instant::now() + patience));
        let whole = *range == (0..of.size);
        let asked = async {
            let path = format!("{}{}", way.base, utf8_percent_encode(key.as_ref(), KEY));
            let etag = of.etag.to_string();
            let part = (!whole).then(|| format!("bytes={}-{}", range.start, range.end - 1));
            let wanted = Wanted { path: &path, host: &way.host_header, etag: &etag, range: part.as_deref() };
            let mut request = match &way.signer {
                Some(signer) => {
                    signer.signed(&wanted, &self.credentials.get_credential().await.ok()?, Timestamp::now())?
                }
                None => wanted.unsigned()?,
            };
            if let Some(trace) = trace::present() {
                request += &format!("{}: {trace}\r\n", trace::TRACEPARENT);
            }
            request += &way.end;
            let judge = |head: &Head<'_>| judge(head, of, range, whole);
            way.client.ask(&way.host, request.as_bytes(), range.end - range.start, judge).await
        };
        tokio::time::timeout_at(deadline, asked).await.ok()?
    }
}

impl Lesson {
    /// What `request`, sent by `client`, teaches once there is a good answer with such headers.
    pub(super) fn of(&self, client: &Arc<Client>, request: &HttpRequest) -> impl FnOnce(&HeaderMap) + Send + 'static {
        let (shortcut, way) = (Arc::clone(&self.shortcut), Way::of(client, request, &self.key));
        move |headers| {
            let is_read =
                modified(headers.get(LAST_MODIFIED).map(|value| value.to_str().unwrap_or_default())).is_some();
            // Another may have taught it meanwhile.
            drop(shortcut.way.set(way.filter(|_| is_read)));
        }
    }
}

impl Way {
    /// The way that a request for `key` goes. Nothing if there is anything unusual to it.
    fn of(client: &Arc<Client>, request: &HttpRequest, key: &str) -> Option<Self> {
        let (uri, headers) = (request.uri(), request.headers());
        let is_plain = request.method() == Method::GET && uri.query().is_none() && client.leads_straight_to(uri);
        if !is_plain || !headers.keys().all(|name| KNOWN.contains(&name.as_str())) {
            return None;
        }
        let base = uri.path().strip_suffix(&utf8_percent_encode(key, KEY).to_string())?;
        let text = |name: &str| wire::text_of(headers, name);
        let signer = match text("authorization") {
            Some(authorization) => {
                let scope = authorization.strip_prefix("AWS4-HMAC-SHA256 Credential=")?.split(", ").next()?;
                let mut scope = scope.strip_suffix("/s3/aws4_request")?.rsplit('/');
                Some(Signer::new(scope.next()?.to_owned(), text("x-amz-content-sha256")?.to_owned()))
            }
            None => None,
        };
        let host = Host::of(uri)?;
        let host_header = host.header().to_str().ok()?.to_owned();
        let end = format!("accept: */*\r\nuser-agent: {}\r\n\r\n", client.user_agent().to_str().ok()?);
        let base = base.strip_suffix('/').map(|_| base.to_owned())?;
        Some(Self { client: Arc::clone(client), host, host_header, base, signer, end })
    }
}

/// The stat of an answer that is exactly the one that was hoped for.
fn judge(head: &Head<'_>, of: &Stat, range: &Range<u64>, whole: bool) -> Option<Stat> {
    let fits = if whole {
        head.status() == 200
    } else {
        head.status() == 206 && head.get("content-range").and_then(part) == Some((range.start, range.end - 1, of.size))
    };
    let notes = wire::notes_of(|name| head.get(name));
    if !fits || refusal::of_headers(head.get("content-encoding"), &notes).is_some() {
        return None;
    }
    let stat = super::stat_from(of.size, modified(head.get("last-modified"))?, head.get("etag"));
    stat.etag.strong_eq(&of.etag).then_some(stat)
}

/// First and last byte of a `Content-Range`, and the size of the whole.
fn part(value: &str) -> Option<(u64, u64, u64)> {
    let (range, size) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, size.parse().ok()?))
}

/// Unix time of `Last-Modified`, s; 0 without one. Nothing if it cannot be read.
fn modified(date: Option<&str>) -> Option<i64> {
    let Some(date) = date else { return Some(0) };
    let since = httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}
