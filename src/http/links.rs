//! Signed links: made and revoked with a key, followed by whoever has one.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::CACHE_CONTROL;
use http::{HeaderName, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Front;
use super::artifacts::of_content;
use super::body;
use super::content::{Ask, Way, serve};
use super::extract::{ArtifactPath, ContentParams, ListParams, Params, PathOf};
use super::openapi::{Operation, Routes, parameters};
use super::problem::Problem;
use crate::access::Principal;
use crate::error::{Error, Kind, Result};
use crate::link::{MAX_LIFE_SECONDS, MIN_LIFE_SECONDS};
use crate::links::{LinkPage, Minted};
use crate::request::{RequestId, number};

/// Where links lead.
const DOWNLOAD: &str = "/v1/download/";
/// A link is a secret of its receiver.
const NO_STORE: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

const TAG: &str = "Links";
const DOWNLOADS: &[&str] = &["jobs.read", "artifacts.download"];

pub(super) fn routes() -> Routes {
    let minted = Operation::post("/v1/trials/{trial_id}/artifacts/{artifact_id}/links", "mintLink", TAG)
        .says(
            "Make a link to the present version of an artifact",
            "Whoever has it may read the bytes, at the cost of the project, until it expires or is revoked.",
        )
        .needs(DOWNLOADS)
        .takes(parameters::trial_id())
        .takes(parameters::artifact_id())
        .reads::<Wish>(false, r#"{"expires_in_seconds": 900}"#)
        .answers::<Minted>(
            201,
            "The link.",
            json!({
                "url": "https://artifacts.example.com/v1/download/eyJ2IjoxfQ.c2lnbmF0dXJl/test-stdout.txt",
                "expires_at": "2026-11-29T12:15:00Z",
                "link_id": "019ad0f2-8c4e-7000-8000-000000000001",
            }),
        )
        .leads_to("revokeLink", &[("link_id", "$response.body#/link_id")])
        .refuses(&[
            "INVALID_NAME",
            "INVALID_REQUEST",
            "REQUEST_TOO_LARGE",
            "TRIAL_NOT_FOUND",
            "ARTIFACT_NOT_FOUND",
            "LINKS_DISABLED",
            "QUOTA_UNAVAILABLE",
            "STORE_UNAVAILABLE",
        ]);
    let listed = Operation::get("/v1/links", "listLinks", TAG)
        .says("The project's links that live", "The oldest first.")
        .needs(DOWNLOADS)
        .takes(parameters::limit())
        .takes(parameters::cursor())
        .answers::<LinkPage>(
            200,
            "A page.",
            json!({
                "items": [{
                    "link_id": "019ad0f2-8c4e-7000-8000-000000000001",
                    "trial_id": "plot-training-loss__Qm7RtZ2",
                    "name": "verifier/test-stdout.txt",
                    "key_id": "read-only",
                    "expires_at": "2026-11-29T12:15:00Z",
                }],
                "next_cursor": null,
            }),
        )
        .refuses(&["INVALID_LIMIT", "INVALID_CURSOR", "QUOTA_UNAVAILABLE"]);
    let revoked = Operation::delete("/v1/links/{link_id}", "revokeLink", TAG)
        .says("Revoke a link", "No download begins by it any more; one that runs ends. Revoking again changes nothing.")
        .needs(DOWNLOADS)
        .takes(parameters::link_id())
        .done("It is revoked.")
        .refuses(&["INVALID_NAME", "LINK_NOT_FOUND", "QUOTA_UNAVAILABLE"]);
    let followed = Operation::get("/v1/download/{token}/{filename}", "followLink", TAG)
        .says("The bytes that a link leads to", "As `downloadArtifact`; the link is the key.")
        .open()
        .takes(parameters::token())
        .takes(parameters::file_name())
        .refuses(&["LINK_INVALID", "LINK_EXPIRED", "LINK_REVOKED", "LINK_STALE", "ACCESS_UNAVAILABLE"]);
    Routes::new().add(minted, mint).add(listed, list).add(revoked, revoke).add_with_head(of_content(followed), download)
}

/// What is asked of a link.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wish {
    /// How long it lives, s; default 900. Where a platform knows the keys, at most 3600.
    #[schemars(range(min = MIN_LIFE_SECONDS, max = MAX_LIFE_SECONDS))]
    #[serde(default, deserialize_with = "number::deserialize_count")]
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
    request_id: RequestId,
    Params(params): Params<ContentParams>,
    request: Request,
) -> Result<Response, Problem> {
    // As it stands in the URL: what was signed is not decoded first.
    let token = request.uri().path().strip_prefix(DOWNLOAD).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let disposition = params.disposition()?;
    let followed = front.links.follow(token).await?;
    let (method, headers) = (request.method(), request.headers());
    let ask = Ask { method, headers, disposition, request_id: &request_id };
    Ok(serve(&front.reads, Way::Link(&followed), ask).await?)
}
