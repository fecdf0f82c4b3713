//! Who the key is, what bounds it has, and the questions that clients ask of a whole platform.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::Front;
use super::extract::PathOf;
use super::openapi::{Operation, Routes, parameters};
use super::problem::Problem;
use super::quota::Balance;
use crate::access::{KeyKind, Me, Principal};
use crate::error::{Error, Kind};

const TAG: &str = "Service";

pub(super) fn routes() -> Routes {
    let own = Operation::get("/v1/me", "getMe", TAG).says("Who the key is, and what it may do", "").answers::<Me>(
        200,
        "The key.",
        json!({
            "auth_method": "api_key",
            "workspace": {"workspace_id": "default", "name": "default"},
            "project": {"project_id": "demo", "workspace_id": "default", "name": "demo"},
            "key_id": "read-only",
            "kind": "project",
            "capabilities": ["datasets.read", "jobs.read", "artifacts.download", "quota.read"],
        }),
    );
    let none = Operation::get("/v1/job", "listJobs", TAG)
        .says("Jobs", "This service knows none; clients of the platform ask to see whether the key may.")
        .needs(&["jobs.read"])
        .answers::<Jobs>(200, "No jobs.", json!({"items": [], "next_cursor": null}));
    let bounds = Operation::get("/v1/workspaces/{workspace_id}/projects/{project_id}/limits", "getLimits", TAG)
        .says("What bounds a project", "Any key of the project may ask.")
        .takes(parameters::workspace_id())
        .takes(parameters::project_id())
        .answers::<ProjectLimits>(
            200,
            "The limits.",
            json!({"workspace_id": "default", "project_id": "demo", "limits": {"downloads": {
                "daily_bytes": 53_687_091_200_u64, "used_bytes": 1_048_576, "reserved_bytes": 0,
                "remaining_bytes": 53_686_042_624_u64, "resets_at": "2026-11-30T00:00:00Z",
            }}}),
        )
        .refuses(&["PROJECT_REQUIRED", "INVALID_NAME", "QUOTA_UNAVAILABLE"]);
    Routes::new().add(own, me).add(none, jobs).add(bounds, limits)
}

/// A page of jobs, of which there are none.
#[derive(Serialize, JsonSchema)]
struct Jobs {
    items: [(); 0],
    next_cursor: (),
}

/// What bounds a project.
#[derive(Serialize, JsonSchema)]
struct ProjectLimits {
    workspace_id: String,
    project_id: String,
    limits: LimitsByKind,
}

/// The bounds by what they are of.
#[derive(Serialize, JsonSchema)]
struct LimitsByKind {
    downloads: Balance,
}

async fn me(who: Principal) -> Json<Me> {
    Json(Me::from(&who))
}

/// This service knows no jobs; clients ask to see whether the key may.
async fn jobs(who: Principal) -> Result<Json<Jobs>, Problem> {
    who.viewer()?;
    Ok(Json(Jobs { items: [], next_cursor: () }))
}

async fn limits(
    State(front): State<Arc<Front>>,
    who: Principal,
    PathOf((workspace, project)): PathOf<(String, String)>,
) -> Result<Json<ProjectLimits>, Problem> {
    let own = who.project()?;
    // An operator names a project; in which workspace it is, only the platform knows.
    let at_home = own.workspace.as_str() == workspace || who.kind == KeyKind::Operator;
    if !at_home || own.id.as_str() != project {
        return Err(Error::new(Kind::ProjectAccessDenied, "This key speaks for another project than the path.").into());
    }
    let usage = front.quota.usage(&who).await?.reply;
    let limits = LimitsByKind { downloads: Balance::of(&usage) };
    Ok(Json(ProjectLimits { workspace_id: workspace, project_id: project, limits }))
}
