//! GET and HEAD of the bytes of one artifact, whoever asks for them by whatever way.

use std::ops::Range;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::body::StreamBody;
use super::conditional::{Verdict, judge};
use super::headers::{self, Disposition};
use super::ratelimit;
use crate::access::Downloader;
use crate::artifact::{ArtifactName, TrialId};
use crate::catalog::Found;
use crate::error::{Error, Kind, Result};
use crate::ledger::Channel;
use crate::links::{Followed, stale};
use crate::read::{CHANGED_RETRIES, MeteredRead, Reads};
use crate::request::RequestId;
use crate::store::Stat;

/// The way in, which also says what may be read.
pub(super) enum Way<'a> {
    /// A key and a path.
    Key(&'a Downloader, &'a TrialId, &'a ArtifactName),
    /// A signed link.
    Link(&'a Followed),
}

impl Way<'_> {
    const fn who(&self) -> &Downloader {
        match self {
            Self::Key(who, ..) => who,
            Self::Link(followed) => followed.who(),
        }
    }

    const fn name(&self) -> &ArtifactName {
        match self {
            Self::Key(_, _, name) => name,
            Self::Link(followed) => followed.name(),
        }
    }

    async fn find(&self, reads: &Reads) -> Result<Found> {
        match self {
            Self::Key(who, trial, name) => reads.find(who.viewer(), trial, name).await,
            Self::Link(followed) => {
                let found = reads.find(followed.who().viewer(), followed.trial(), followed.name()).await;
                let found = found.map_err(|error| match error.kind() {
                    Kind::TrialNotFound | Kind::ArtifactNotFound => stale(),
                    _ => error,
                })?;
                followed.require_version(&found.stat().etag)?;
                Ok(found)
            }
        }
    }

    async fn reserve(&self, reads: &Reads, found: Found, id: &RequestId) -> Result<MeteredRead> {
        match self {
            Self::Key(who, ..) => reads.reserve(who, found, Channel::Http, id.as_str()).await,
            Self::Link(followed) => reads.reserve_by_link(self.who(), found, followed.link(), id.as_str()).await,
        }
    }
}

/// What is asked of the artifact.
pub(super) struct Ask<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) disposition: Disposition,
    pub(super) request_id: &'a RequestId,
}

/// Answers. Conditionals and ranges are judged against a fresh stat, before anything is reserved; if
/// the file changes between the stat and the first byte, all of it is judged anew.
pub(super) async fn serve(reads: &Reads, way: Way<'_>, ask: Ask<'_>) -> Result<Response> {
    let mut attempt = 0;
    loop {
        let found = way.find(reads).await?;
        let stat = found.stat();
        let range = match judge(ask.method, ask.headers, stat) {
            Verdict::NotModified => return Ok(not_modified(ask.method, stat)),
            Verdict::PreconditionFailed => {
                return Err(Error::new(Kind::PreconditionFailed, "The artifact is another version than asked for."));
            }
            Verdict::Unsatisfiable => {
                let detail = format!("The artifact has {} bytes; the range selects none of them.", stat.size);
                return Err(Error::new(Kind::RangeNotSatisfiable(stat.size), detail));
            }
            Verdict::Whole => None,
            Verdict::Part(range) => Some(range),
        };
        let (status, mut content_headers) = head_of(way.name(), stat, ask.disposition, range.as_ref());
        if *ask.method == Method::HEAD {
            return Ok(answer(status, content_headers, Body::empty()));
        }
        let size = stat.size;
        let read = way.reserve(reads, found, ask.request_id).await?;
        let standing = read.standing();
        match read.stream(range.unwrap_or(0..size)).await {
            Ok(stream) => {
                ratelimit::of_admission(&mut content_headers, standing, reads.warn_at());
                return Ok(answer(status, content_headers, Body::new(StreamBody(stream))));
            }
            Err(error) if *error.kind() == Kind::ArtifactChanged && attempt < CHANGED_RETRIES => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// RFC 9110 §8.6: a length here is that of the content which a 200 would have. HEAD says it, since
/// the HTTP library would say 0 for it.
fn not_modified(method: &Method, stat: &Stat) -> Response {
    let mut headers = headers::of_version(stat);
    if *method == Method::HEAD {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(stat.size));
    }
    answer(StatusCode::NOT_MODIFIED, headers, Body::empty())
}

/// These headers and no others, without copying them one by one.
fn answer(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn head_of(
    name: &ArtifactName,
    stat: &Stat,
    disposition: Disposition,
    range: Option<&Range<u64>>,
) -> (StatusCode, HeaderMap) {
    let mut headers = headers::of_content(name, stat, disposition);
    let Some(range) = range else {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(stat.size));
        return (StatusCode::OK, headers);
    };
    headers.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, stat.size);
    headers.insert(CONTENT_RANGE, HeaderValue::from_str(&content_range).expect("digits and punctuation"));
    (StatusCode::PARTIAL_CONTENT, headers)
}
