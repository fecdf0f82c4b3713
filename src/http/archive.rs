//! GET and HEAD of a whole trial as one ZIP file. It has no validator and no ranges: its checksums
//! are known only when everything was read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use super::Front;
use super::body::StreamBody;
use super::extract::{Params, TrialPath};
use super::headers;
use super::openapi::{Operation, Routes, parameters};
use super::problem::Problem;
use super::ratelimit;
use crate::access::Principal;
use crate::archive::Plan;
use crate::request::RequestId;

pub(super) fn routes() -> Routes {
    let described = Operation::get("/v1/trials/{trial_id}/archive", "downloadArchive", "Artifacts")
        .says(
            "A trial's artifacts as one ZIP file",
            "Stored, not packed: its length is known in advance, reserved whole and charged as it goes out. No ranges.",
        )
        .needs(&["jobs.read", "artifacts.download"])
        .takes(parameters::trial_id())
        .takes(parameters::prefix())
        .bytes(
            200,
            "application/zip",
            "The archive.",
            &["Accept-Ranges", "Content-Disposition", "Cache-Control", "RateLimit", "RateLimit-Policy"],
        )
        .reads_or_refuses(&["ARCHIVE_TOO_LARGE"]);
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
) -> Result<Response, Problem> {
    let who = who.downloader()?;
    let plan = front.archives.plan(who.viewer(), &trial, params.prefix.as_deref().unwrap_or_default()).await?;
    let mut headers = head_of(&plan);
    if method == Method::HEAD {
        return Ok((StatusCode::OK, headers, Body::empty()).into_response());
    }
    let (stream, standing) = front.reads.archive(&who, plan, request_id.as_str()).await?;
    ratelimit::of_admission(&mut headers, standing, front.reads.warn_at());
    Ok((StatusCode::OK, headers, Body::new(StreamBody(stream))).into_response())
}

fn head_of(plan: &Plan) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(plan.length()));
    fields.insert(CONTENT_DISPOSITION, headers::attachment(&format!("{}.zip", plan.trial())));
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache, no-transform"));
    headers::add_policies(&mut fields);
    fields
}
