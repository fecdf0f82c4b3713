//! Signed links: made and revoked with a key, followed by whoever has one.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use serde::Deserialize;

use super::Front;
use super::body;
use super::content::{Ask, Way, serve};
use super::extract::{ArtifactPath, ContentParams, ListParams, Params, PathOf};
use super::problem::Problem;
use crate::access::Principal;
use crate::error::{Error, Kind, Result};
use crate::links::{LinkPage, Minted};
use crate::request::RequestId;

/// Where links lead.
const DOWNLOAD: &str = "/v1/download/";
/// A link is a secret of its receiver.
const NO_STORE: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new()
        .route("/v1/trials/{trial_id}/artifacts/{artifact_id}/links", post(mint))
        .route("/v1/links", get(list))
        .route("/v1/links/{link_id}", delete(revoke))
}

/// The routes that need no key.
pub(super) fn public_routes() -> Router<Arc<Front>> {
    Router::new().route("/v1/download/{token}/{filename}", get(download))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    expires_in_seconds: Option<u64>,
}

impl Wish {
    /// Reads the body. None at all is a wish for the default.
    async fn read(body: Body) -> Result<Self> {
        let bytes = body::read(body).await?;
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(Kind::InvalidRequest, "The body is JSON such as {\"expires_in_seconds\": 900}.")
                .with_source(error)
        })
    }
}

async fn mint(
    State(front): State<Arc<Front>>,
    who: Principal,
    ArtifactPath(trial, name): ArtifactPath,
    body: Body,
) -> Result<(StatusCode, [(HeaderName, &'static str); 1], Json<Minted>), Problem> {
    let who = who.downloader()?;
    let wish = Wish::read(body).await?;
    let minted = front.links.mint(&who, &trial, &name, wish.expires_in_seconds).await?;
    Ok((StatusCode::CREATED, NO_STORE, Json(minted)))
}

async fn list(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<ListParams>,
) -> Result<Json<LinkPage>, Problem> {
    Ok(Json(front.links.list(&who.downloader()?, &params.into_query()).await?))
}

async fn revoke(
    State(front): State<Arc<Front>>,
    who: Principal,
    PathOf(id): PathOf<String>,
) -> Result<StatusCode, Problem> {
    front.links.revoke(&who.downloader()?, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// GET and HEAD. The file's name in the path is for people and for clients that name what they save
/// by it; it is not looked at.
async fn download(
    State(front): State<Arc<Front>>,
    uri: Uri,
    request_id: RequestId,
    Params(params): Params<ContentParams>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // As it stands in the URL: what was signed is not decoded first.
    let token = uri.path().strip_prefix(DOWNLOAD).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let disposition = params.disposition()?;
    let followed = front.links.follow(token).await?;
    let ask = Ask { method: &method, headers: &headers, disposition, request_id: &request_id };
    Ok(serve(&front.reads, Way::Link(&followed), ask).await?)
}
