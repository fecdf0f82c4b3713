//! GET and HEAD of the bytes of one artifact, whoever asks for them by whatever way.

use std::ops::Range;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::body::StreamBody;
use super::conditional::{Verdict, judge, precondition_failed};
use super::headers::{self, Disposition, answer};
use super::ratelimit;
use crate::access::Downloader;
use crate::artifact::{ArtifactName, TrialId};
use crate::catalog::{Found, Recalled, Seen};
use crate::error::{Error, Kind, Result};
use crate::ledger::{At, Channel, Standing};
use crate::links::{Followed, stale};
use crate::read::{Attempts, ByteStream, Reads};
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

    /// What it was a moment ago, if it may be that which the way leads to.
    fn recall(&self, reads: &Reads) -> Option<Recalled> {
        match self {
            Self::Key(who, trial, name) => reads.recall(who.viewer(), trial, name),
            Self::Link(followed) => reads
                .recall(followed.who().viewer(), followed.trial(), followed.name())
                .filter(|recalled| followed.require_version(recalled.etag()).is_ok()),
        }
    }

    async fn open(
        &self,
        reads: &Reads,
        seen: Seen,
        range: Range<u64>,
        id: &RequestId,
    ) -> Result<(At<Standing>, Found, ByteStream)> {
        let read = match self {
            Self::Key(who, ..) => reads.reserve(who, seen, Channel::Http, id.as_str()).await?,
            Self::Link(followed) => reads.reserve_by_link(followed.who(), seen, followed.link(), id.as_str()).await?,
        };
        let standing = read.standing();
        let (found, stream) = read.stream(range).await?;
        Ok((standing, found, stream))
    }
}

/// What is asked of the artifact.
pub(super) struct Ask<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) disposition: Disposition,
    pub(super) request_id: &'a RequestId,
}

/// Answers. Conditionals and ranges are judged before anything is reserved: against what was seen a moment
/// ago, if they say that it is to be opened, which shows whether it is still so; else against a fresh stat.
/// If the file changed before the first byte, all of it is judged anew.
pub(super) async fn serve(reads: &Reads, way: Way<'_>, ask: Ask<'_>) -> Result<Response> {
    let judged = |stat: &Stat| judge(ask.method, ask.headers, stat);
    let is_get = *ask.method == Method::GET;
    let mut recalled = if is_get { way.recall(reads) } else { None };
    let mut attempts = Attempts::default();
    loop {
        let opening = recalled.take().and_then(|it| it.opening(|stat| Some(judged(stat)).filter(Verdict::opens)));
        let (seen, verdict) = match opening {
            Some(opening) => opening,
            None => {
                let found = way.find(reads).await?;
                let verdict = judged(found.stat());
                if !is_get || !verdict.opens() {
                    return unopened(&found, &ask, &verdict);
                }
                (Seen::Found(found), verdict)
            }
        };
        let (whole, range) = (0..seen.size(), verdict.part());
        let remembered = matches!(seen, Seen::Recalled(_));
        match way.open(reads, seen, range.clone().unwrap_or(whole), ask.request_id).await {
            Ok((standing, found, stream)) => {
                let (status, mut headers) = head_of(&found, ask.disposition, range.as_ref());
                ratelimit::of_admission(&mut headers, standing, reads.warn_at());
                return Ok(answer(status, headers, Body::new(StreamBody::new(stream))));
            }
            Err(error) => attempts.anew(error, remembered)?,
        }
    }
}

/// The answer that has no bytes of the artifact.
fn unopened(found: &Found, ask: &Ask<'_>, verdict: &Verdict) -> Result<Response> {
    match verdict {
        Verdict::NotModified => Ok(not_modified(ask.method, found)),
        Verdict::PreconditionFailed => Err(precondition_failed()),
        Verdict::Unsatisfiable => {
            let size = found.stat().size;
            let detail = format!("The artifact has {size} bytes; the range selects none of them.");
            Err(Error::new(Kind::RangeNotSatisfiable(size), detail))
        }
        Verdict::Whole | Verdict::Part(_) => {
            let (status, headers) = head_of(found, ask.disposition, None);
            Ok(answer(status, headers, Body::empty()))
        }
    }
}

/// RFC 9110 §8.6: a length here is that of the content which a 200 would have. HEAD says it, since
/// the HTTP library would say 0 for it.
fn not_modified(method: &Method, found: &Found) -> Response {
    let stat = found.stat();
    let mut headers = headers::of_version(stat);
    if *method == Method::HEAD {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(stat.size));
    }
    answer(StatusCode::NOT_MODIFIED, headers, Body::empty())
}

fn head_of(found: &Found, disposition: Disposition, range: Option<&Range<u64>>) -> (StatusCode, HeaderMap) {
    let stat = found.stat();
    let length = range.map_or(stat.size, |range| range.end - range.start);
    let mut headers = headers::of_content(found.name(), stat, disposition, length);
    let Some(range) = range else { return (StatusCode::OK, headers) };
    let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, stat.size);
    headers.insert(CONTENT_RANGE, HeaderValue::from_str(&content_range).expect("digits and punctuation"));
    (StatusCode::PARTIAL_CONTENT, headers)
}
