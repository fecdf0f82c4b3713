//! Trials, their artifacts, and the bytes of one.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use serde_json::json;

use super::Front;
use super::content::{Ask, Way, serve};
use super::extract::{ArtifactPath, ContentParams, ListParams, Params, TrialPath};
use super::openapi::{Operation, Routes, parameters};
use super::problem::Problem;
use crate::access::Principal;
use crate::listing::{ArtifactItem, ArtifactPage, TrialPage};
use crate::request::RequestId;

const TAG: &str = "Artifacts";
/// The bytes of an artifact.
pub(super) const CONTENT: &str = "/v1/trials/{trial_id}/artifacts/{artifact_id}/content";
/// The first item of a listing, as parameters.
const FIRST_ITEM: [(&str, &str); 2] =
    [("trial_id", "$request.path.trial_id"), ("artifact_id", "$response.body#/items/0/artifact_id")];

pub(super) fn routes() -> Routes {
    let item = json!({
        "artifact_id": "verifier~1test-stdout.txt", "name": "verifier/test-stdout.txt", "size": 1_048_576,
        "media_type": "text/plain; charset=utf-8", "etag": "\"5f2b-1a\"", "modified_at": "2026-11-29T12:00:00Z",
        "upload_state": "uploaded",
    });
    let listed_trials = Operation::get("/v1/trials", "listTrials", TAG)
        .says("The project's trials", "Sorted by bytes.")
        .needs(&["jobs.read"])
        .takes(parameters::limit())
        .takes(parameters::cursor())
        .answers::<TrialPage>(
            200,
            "A page.",
            json!({"items": [{"trial_id": "plot-training-loss__Qm7RtZ2"}], "next_cursor": null}),
        )
        .leads_to("listArtifacts", &[("trial_id", "$response.body#/items/0/trial_id")])
        .leads_to("downloadArchive", &[("trial_id", "$response.body#/items/0/trial_id")])
        .refuses(&["INVALID_LIMIT", "INVALID_CURSOR", "STORE_UNAVAILABLE"]);
    let listed = Operation::get("/v1/trials/{trial_id}/artifacts", "listArtifacts", TAG)
        .says("A trial's artifacts", "Sorted by the name's bytes.")
        .needs(&["jobs.read"])
        .takes(parameters::trial_id())
        .takes(parameters::limit())
        .takes(parameters::cursor())
        .takes(parameters::prefix())
        .answers::<ArtifactPage>(200, "A page.", json!({"items": [item], "next_cursor": null, "omitted": 0}))
        .leads_to("getArtifact", &FIRST_ITEM)
        .leads_to("downloadArtifact", &FIRST_ITEM)
        .leads_to("mintLink", &FIRST_ITEM)
        .refuses(&[
            "INVALID_LIMIT",
            "INVALID_CURSOR",
            "INVALID_NAME",
            "INVALID_REQUEST",
            "TRIAL_NOT_FOUND",
            "STORE_UNAVAILABLE",
        ]);
    let shown = Operation::get("/v1/trials/{trial_id}/artifacts/{artifact_id}", "getArtifact", TAG)
        .says("One artifact as listings show it", "")
        .needs(&["jobs.read"])
        .takes(parameters::trial_id())
        .takes(parameters::artifact_id())
        .answers::<ArtifactItem>(200, "The artifact.", item)
        .refuses(&["INVALID_NAME", "TRIAL_NOT_FOUND", "ARTIFACT_NOT_FOUND", "STORE_UNAVAILABLE"]);
    let downloaded = Operation::get(CONTENT, "downloadArtifact", TAG)
        .says(
            "The bytes of an artifact",
            "Inert in a browser, whatever the run wrote. The whole size is reserved while the answer runs, for each \
         connection of a parallel download again; what went out is charged.",
        )
        .needs(&["jobs.read", "artifacts.download"])
        .takes(parameters::trial_id())
        .takes(parameters::artifact_id());
    Routes::new()
        .add(listed_trials, trials)
        .add(listed, artifacts)
        .add(shown, artifact)
        .add_with_head(of_content(downloaded), content)
}

/// What the bytes of an artifact are asked for with, by whatever way, and what comes of it.
pub(super) fn of_content(operation: Operation) -> Operation {
    let operation = operation.takes(parameters::disposition());
    let operation = parameters::conditions().into_iter().fold(operation, Operation::takes);
    operation
        .bytes(
            200,
            "*/*",
            "All bytes.",
            &[
                "ETag",
                "Last-Modified",
                "Accept-Ranges",
                "Content-Disposition",
                "Cache-Control",
                "RateLimit",
                "RateLimit-Policy",
            ],
        )
        .bytes(
            206,
            "*/*",
            "The bytes of the range.",
            &[
                "ETag",
                "Last-Modified",
                "Accept-Ranges",
                "Content-Disposition",
                "Cache-Control",
                "Content-Range",
                "RateLimit",
                "RateLimit-Policy",
            ],
        )
        .bare(304, "The version that the client has.", &["ETag", "Last-Modified", "Cache-Control"])
        .reads_or_refuses(&["PRECONDITION_FAILED", "RANGE_NOT_SATISFIABLE"])
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
    names: ArtifactPath,
    Params(params): Params<ContentParams>,
    request: Request,
) -> Result<Response, Problem> {
    let (request, _body) = request.into_parts();
    content_of(&front, &who, &request_id, &names, &params, &request).await
}

/// Answers with the content of an artifact, if the key may have it.
pub(super) async fn content_of(
    front: &Front,
    who: &Principal,
    request_id: &RequestId,
    ArtifactPath(trial, name): &ArtifactPath,
    params: &ContentParams,
    request: &Parts,
) -> Result<Response, Problem> {
    let who = who.downloader()?;
    let (method, headers) = (&request.method, &request.headers);
    let ask = Ask { method, headers, disposition: params.disposition()?, request_id };
    Ok(serve(&front.reads, Way::Key(&who, trial, name), ask).await?)
}
