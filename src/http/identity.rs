//! Who the key is, what bounds it has, and the questions that clients ask of a whole platform.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Front;
use super::extract::PathOf;
use super::problem::Problem;
use super::quota::daily_bytes;
use crate::access::{KeyKind, Me, Principal};
use crate::error::{Error, Kind};

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new()
        .route("/v1/me", get(me))
        .route("/v1/job", get(jobs))
        .route("/v1/workspaces/{workspace_id}/projects/{project_id}/limits", get(limits))
}

async fn me(who: Principal) -> Json<Me> {
    Json(Me::from(&who))
}

/// This service knows no jobs; clients ask to see whether the key may.
async fn jobs(who: Principal) -> Result<Json<Value>, Problem> {
    who.viewer()?;
    Ok(Json(json!({"items": [], "next_cursor": null})))
}

async fn limits(
    State(front): State<Arc<Front>>,
    who: Principal,
    PathOf((workspace, project)): PathOf<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let own = who.project()?;
    // An operator names a project; in which workspace it is, only the platform knows.
    let at_home = own.workspace.as_str() == workspace || who.kind == KeyKind::Operator;
    if !at_home || own.id.as_str() != project {
        return Err(Error::new(Kind::ProjectAccessDenied, "This key speaks for another project than the path.").into());
    }
    let usage = front.quota.usage(&who).await?.reply;
    Ok(Json(json!({
        "workspace_id": workspace,
        "project_id": project,
        "limits": {
            "downloads": {
                "daily_bytes": daily_bytes(usage.allowance),
                "used_bytes": usage.used,
                "reserved_bytes": usage.reserved,
                "remaining_bytes": usage.remaining(),
                "resets_at": usage.resets_at.timestamp(),
            },
        },
    })))
}
