//! Trials, their artifacts, and the bytes of one.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, Method};

use super::Front;
use super::content::{Ask, Way, serve};
use super::extract::{ArtifactPath, ContentParams, ListParams, Params, TrialPath};
use super::problem::Problem;
use crate::access::Principal;
use crate::error::Result;
use crate::listing::{ArtifactItem, ArtifactPage, TrialPage};
use crate::request::RequestId;

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new()
        .route("/v1/trials", get(trials))
        .route("/v1/trials/{trial_id}/artifacts", get(artifacts))
        .route("/v1/trials/{trial_id}/artifacts/{artifact_id}", get(artifact))
        .route("/v1/trials/{trial_id}/artifacts/{artifact_id}/content", get(content))
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

/// GET and HEAD.
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
    let ask = Ask { method: &method, headers: &headers, disposition: params.disposition()?, request_id: &request_id };
    Ok(serve(&front.reads, Way::Key(&who, &trial, &name), ask).await?)
}
