//! What operators change: the allowance of a project, and what was charged to a day.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::daily_bytes;
use crate::access::Principal;
use crate::artifact::ProjectId;
use crate::bytesize::deserialize_allowance;
use crate::http::Front;
use crate::http::body::read_json;
use crate::http::extract::ProjectPath;
use crate::http::problem::Problem;
use crate::ledger::{Allowance, LedgerTime, Override};
use crate::quota::{Correction, Exception};

const ALLOWANCE: &str =
    r#"{"daily_bytes": 107374182400, "until": "2026-12-01T00:00:00Z", "reason": "a larger evaluation"}"#;
const ADJUSTMENT: &str =
    r#"{"adjustment_id": "crash-1", "day": "2026-11-29", "bytes": -1048576, "reason": "charged by a crash"}"#;

pub(super) fn routes() -> Router<Arc<Front>> {
    let allowance = get(show).put(set).delete(clear);
    Router::new()
        .route("/v1/projects/{project_id}/allowance", allowance)
        .route("/v1/projects/{project_id}/adjustments", post(adjust))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowanceBody {
    #[serde(deserialize_with = "deserialize_allowance")]
    daily_bytes: Allowance,
    until: Option<Timestamp>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdjustmentBody {
    adjustment_id: String,
    day: String,
    bytes: i64,
    reason: String,
}

fn shown(project: &ProjectId, exception: Option<&Override>) -> Json<Value> {
    let exception = exception.map(|Override { allowance, until, by, reason }| {
        json!({
            "daily_bytes": daily_bytes(*allowance),
            "until": until.map(LedgerTime::timestamp),
            "by": by,
            "reason": reason,
        })
    });
    Json(json!({"project_id": project, "override": exception}))
}

async fn show(
    State(front): State<Arc<Front>>,
    who: Principal,
    ProjectPath(project): ProjectPath,
) -> Result<Json<Value>, Problem> {
    let exception = front.quota.exception(&who.quota_reader_of(&project)?).await?;
    Ok(shown(&project, exception.as_ref()))
}

async fn set(
    State(front): State<Arc<Front>>,
    who: Principal,
    ProjectPath(project): ProjectPath,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let manager = who.quota_manager_of(&project)?;
    let AllowanceBody { daily_bytes, until, reason } = read_json(body, ALLOWANCE).await?;
    // What lies before the epoch is past, as 0 is.
    let until = until.map(|until| LedgerTime(u64::try_from(until.as_millisecond()).unwrap_or(0)));
    let set = front.quota.set_exception(&manager, Exception { allowance: daily_bytes, until, reason }).await?;
    Ok(shown(&project, Some(&set)))
}

async fn clear(
    State(front): State<Arc<Front>>,
    who: Principal,
    ProjectPath(project): ProjectPath,
) -> Result<StatusCode, Problem> {
    front.quota.clear_exception(&who.quota_manager_of(&project)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn adjust(
    State(front): State<Arc<Front>>,
    who: Principal,
    ProjectPath(project): ProjectPath,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let manager = who.quota_manager_of(&project)?;
    let AdjustmentBody { adjustment_id, day, bytes, reason } = read_json(body, ADJUSTMENT).await?;
    let day = super::day(&day)?;
    let correction = Correction { id: adjustment_id.clone(), day, bytes, reason: reason.clone() };
    let applied = front.quota.adjust(&manager, correction).await?;
    Ok(Json(json!({
        "project_id": project,
        "adjustment_id": adjustment_id,
        "day": day,
        "bytes": bytes,
        "applied_bytes": applied,
        "reason": reason,
    })))
}
