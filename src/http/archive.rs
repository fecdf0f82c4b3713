//! GET and HEAD of a whole trial as one ZIP file. Its validator is weak and it has no ranges: its
//! checksums are known only when everything was read.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use super::Front;
use super::body::StreamBody;
use super::conditional::{Verdict, judge, precondition_failed};
use super::extract::{Params, TrialPath};
use super::headers::{self, answer};
use super::openapi::{Operation, Routes, parameters};
use super::problem::Problem;
use super::ratelimit;
use crate::access::Principal;
use crate::archive::Plan;
use crate::request::RequestId;
use crate::store::{ETag, Kept, Stat};

pub(super) fn routes() -> Routes {
    let described = Operation::get("/v1/trials/{trial_id}/archive", "downloadArchive", "Artifacts")
        .says(
            "A trial's artifacts as one ZIP file",
            "Stored, not packed: its length is known in advance, reserved whole and charged as it goes out. No ranges; \
             of conditions, those on its weak `ETag`.",
        )
        .needs(&["jobs.read", "artifacts.download"])
        .takes(parameters::trial_id())
        .takes(parameters::prefix());
    let [_, _, if_match, if_none_match, ..] = parameters::conditions();
    let described = described
        .takes(if_match)
        .takes(if_none_match)
        .bytes(
            200,
            "application/zip",
            "The archive.",
            &["ETag", "Accept-Ranges", "Content-Disposition", "Cache-Control", "RateLimit", "RateLimit-Policy"],
        )
        .bare(304, "The archive that the client has.", &["ETag", "Cache-Control"])
        .reads_or_refuses(&["ARCHIVE_TOO_LARGE", "PRECONDITION_FAILED"]);
    Routes::new().add_with_head(described, archive)
}

#[derive(Deserialize)]
struct ArchiveParams {
    prefix: Option<String>,
}

async fn archive(
    State(front): State<Arc<Front>>,
    who: Principal,
    request_id: RequestId,
    TrialPath(trial): TrialPath,
    Params(params): Params<ArchiveParams>,
    method: Method,
    asked: HeaderMap,
) -> Result<Response, Problem> {
    let who = who.downloader()?;
    let plan = front.archives.plan(who.viewer(), &trial, params.prefix.as_deref().unwrap_or_default()).await?;
    let etag = plan.etag();
    let mut headers = head_of(&plan, &etag);
    match judged(&method, &asked, plan.length(), etag) {
        Verdict::NotModified => return Ok(not_modified(&method, headers)),
        Verdict::PreconditionFailed => return Err(precondition_failed().into()),
        Verdict::Whole | Verdict::Part(_) | Verdict::Unsatisfiable => {}
    }
    if method == Method::HEAD {
        return Ok(answer(StatusCode::OK, headers, Body::empty()));
    }
    let (stream, standing) = front.reads.archive(&who, plan, request_id.as_str()).await?;
    ratelimit::of_admission(&mut headers, standing, front.reads.warn_at());
    Ok(answer(StatusCode::OK, headers, Body::new(StreamBody::new(stream))))
}

/// Conditions on the validator. Those on a date and ranges are passed over: it has neither.
fn judged(method: &Method, asked: &HeaderMap, size: u64, etag: ETag) -> Verdict {
    let mut conditions = HeaderMap::new();
    for name in [IF_MATCH, IF_NONE_MATCH] {
        for value in asked.get_all(&name) {
            conditions.append(name.clone(), value.clone());
        }
    }
    judge(method, &conditions, &Stat { size, etag, modified: SystemTime::UNIX_EPOCH, kept: Kept::default() })
}

/// As for an artifact, HEAD says the length that a 200 would have.
fn not_modified(method: &Method, mut headers: HeaderMap) -> Response {
    let kept: &[_] =
        if *method == Method::HEAD { &[ETAG, CACHE_CONTROL, CONTENT_LENGTH] } else { &[ETAG, CACHE_CONTROL] };
    let fields = kept.iter().filter_map(|name| Some((name.clone(), headers.remove(name)?)));
    answer(StatusCode::NOT_MODIFIED, fields.collect(), Body::empty())
}

fn head_of(plan: &Plan, etag: &ETag) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(ETAG, headers::etag(etag));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(plan.length()));
    fields.insert(CONTENT_DISPOSITION, headers::attachment(&format!("{}.zip", plan.trial())));
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache, no-transform"));
    headers::add_policies(&mut fields);
    fields
}
