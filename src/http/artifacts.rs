//! Trials, their artifacts, and the bytes of one.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use super::Front;
use super::body::StreamBody;
use super::conditional::{Verdict, judge};
use super::extract::{ArtifactPath, Params, TrialPath};
use super::headers::{self, Disposition};
use super::problem::Problem;
use super::ratelimit;
use crate::access::Principal;
use crate::artifact::ArtifactName;
use crate::error::{Error, Kind, Result};
use crate::ledger::Channel;
use crate::listing::{ArtifactItem, ArtifactPage, ListQuery, TrialPage};
use crate::read::CHANGED_RETRIES;
use crate::request::RequestId;
use crate::store::Stat;

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new()
        .route("/v1/trials", get(trials))
        .route("/v1/trials/{trial_id}/artifacts", get(artifacts))
        .route("/v1/trials/{trial_id}/artifacts/{artifact_id}", get(artifact))
        .route("/v1/trials/{trial_id}/artifacts/{artifact_id}/content", get(content))
}

/// The parameters of a listing, as text: what is wrong with them is said by the listing.
#[derive(Deserialize)]
struct ListParams {
    limit: Option<String>,
    cursor: Option<String>,
    prefix: Option<String>,
}

impl ListParams {
    fn into_query(self) -> ListQuery {
        // What is no number is out of bounds.
        let limit = self.limit.map(|limit| limit.parse().unwrap_or(0));
        ListQuery { limit, cursor: self.cursor, prefix: self.prefix }
    }
}

async fn trials(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<ListParams>,
) -> Result<Json<TrialPage>, Problem> {
    Ok(Json(front.listing.trials(&who.viewer()?, &params.into_query()).await?))
}

async fn artifacts(
    State(front): State<Arc<Front>>,
    who: Principal,
    TrialPath(trial): TrialPath,
    Params(params): Params<ListParams>,
) -> Result<Json<ArtifactPage>, Problem> {
    Ok(Json(front.listing.artifacts(&who.viewer()?, &trial, &params.into_query()).await?))
}

async fn artifact(
    State(front): State<Arc<Front>>,
    who: Principal,
    ArtifactPath(trial, name): ArtifactPath,
) -> Result<Json<ArtifactItem>, Problem> {
    Ok(Json(front.listing.artifact(&who.viewer()?, &trial, &name).await?))
}

#[derive(Deserialize)]
struct ContentParams {
    disposition: Option<String>,
}

impl ContentParams {
    fn disposition(&self) -> Result<Disposition> {
        match self.disposition.as_deref() {
            None | Some("attachment") => Ok(Disposition::Attachment),
            Some("inline") => Ok(Disposition::Inline),
            Some(_) => Err(Error::new(Kind::InvalidRequest, "disposition is attachment or inline.")),
        }
    }
}

/// GET and HEAD. Conditionals and ranges are judged against a fresh stat, before anything is
/// reserved; if the file changes between the stat and the first byte, all of it is judged anew.
async fn content(
    State(front): State<Arc<Front>>,
    who: Principal,
    request_id: RequestId,
    ArtifactPath(trial, name): ArtifactPath,
    Params(params): Params<ContentParams>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let who = who.downloader()?;
    let disposition = params.disposition()?;
    let mut attempt = 0;
    loop {
        let found = front.reads.find(who.viewer(), &trial, &name).await?;
        let stat = found.stat();
        let range = match judge(&method, &headers, stat) {
            Verdict::NotModified => return Ok((StatusCode::NOT_MODIFIED, headers::of_version(stat)).into_response()),
            Verdict::PreconditionFailed => {
                return Err(
                    Error::new(Kind::PreconditionFailed, "The artifact is another version than asked for.").into()
                );
            }
            Verdict::Unsatisfiable => {
                let detail = format!("The artifact has {} bytes; the range selects none of them.", stat.size);
                return Err(Error::new(Kind::RangeNotSatisfiable(stat.size), detail).into());
            }
            Verdict::Whole => None,
            Verdict::Part(range) => Some(range),
        };
        let (status, mut content_headers) = head_of(&name, stat, disposition, range.as_ref());
        if method == Method::HEAD {
            return Ok((status, content_headers, Body::empty()).into_response());
        }
        let size = stat.size;
        let read = front.reads.reserve(&who, &found, Channel::Http, request_id.as_str()).await?;
        let standing = read.standing();
        match read.stream(range.unwrap_or(0..size)).await {
            Ok(stream) => {
                ratelimit::of_admission(&mut content_headers, standing);
                return Ok((status, content_headers, Body::new(StreamBody(stream))).into_response());
            }
            Err(error) if *error.kind() == Kind::ArtifactChanged && attempt < CHANGED_RETRIES => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn head_of(
    name: &ArtifactName,
    stat: &Stat,
    disposition: Disposition,
    range: Option<&std::ops::Range<u64>>,
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
