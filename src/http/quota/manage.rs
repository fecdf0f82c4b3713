//! What operators change: the allowance of a project, and what was charged to a day.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::answers::{Adjusted, ProjectAllowance};
use crate::access::Principal;
use crate::artifact::ProjectId;
use crate::bytesize::deserialize_allowance;
use crate::http::Front;
use crate::http::body::read_json;
use crate::http::extract::ProjectPath;
use crate::http::openapi::{Operation, Routes, parameters};
use crate::http::problem::Problem;
use crate::ledger::{Allowance, Day, LedgerTime, MAX_AMOUNT, Override};
use crate::quota::{Correction, Exception};
use crate::request::{RequestId, number};

const ALLOWANCE: &str =
    r#"{"daily_bytes": 107374182400, "until": "2026-12-01T00:00:00Z", "reason": "a larger evaluation"}"#;
const ADJUSTMENT: &str =
    r#"{"adjustment_id": "crash-1", "day": "2026-11-29", "bytes": -1048576, "reason": "charged by a crash"}"#;

const TAG: &str = "Operators";

pub(super) fn routes() -> Routes {
    const ALLOWANCE_PATH: &str = "/v1/projects/{project_id}/allowance";
    let own = json!({"project_id": "demo", "override": {
        "daily_bytes": 107_374_182_400_u64, "until": "2026-12-01T00:00:00Z", "by": "operator",
        "reason": "a larger evaluation",
    }});
    let shown = Operation::get(ALLOWANCE_PATH, "getAllowance", TAG)
        .says("What a project is allowed beside the default", "")
        .needs(&["quota.read"])
        .takes(parameters::project_id())
        .answers::<ProjectAllowance<'_>>(200, "The override, if there is one.", own.clone())
        .refuses(&["INVALID_NAME", "QUOTA_UNAVAILABLE"]);
    let put = Operation::put(ALLOWANCE_PATH, "setAllowance", TAG)
        .says("Give a project another allowance than the default", "In force at once, for the day that runs, too.")
        .needs(&["quota.manage"])
        .takes(parameters::project_id())
        .reads::<AllowanceBody>(true, ALLOWANCE)
        .answers::<ProjectAllowance<'_>>(200, "The override.", own)
        .refuses(&["INVALID_NAME", "INVALID_REQUEST", "REQUEST_TOO_LARGE", "QUOTA_UNAVAILABLE"]);
    let deleted = Operation::delete(ALLOWANCE_PATH, "clearAllowance", TAG)
        .says("Give a project the default again", "")
        .needs(&["quota.manage"])
        .takes(parameters::project_id())
        .done("The default is in force.")
        .refuses(&["INVALID_NAME", "QUOTA_UNAVAILABLE"]);
    let posted = Operation::post("/v1/projects/{project_id}/adjustments", "adjust", TAG)
        .says(
            "Correct what was charged to a day",
            "Done once for each `adjustment_id`; a repeat answers the same. The account never falls below 0, and \
             the audit has an entry of it.",
        )
        .needs(&["quota.manage"])
        .takes(parameters::project_id())
        .reads::<AdjustmentBody>(true, ADJUSTMENT)
        .answers::<Adjusted<'_>>(
            200,
            "What was applied.",
            json!({
                "project_id": "demo", "adjustment_id": "crash-1", "day": "2026-11-29", "bytes": -1_048_576,
                "applied_bytes": -1_048_576, "reason": "charged by a crash",
            }),
        )
        .refuses(&["INVALID_NAME", "INVALID_REQUEST", "REQUEST_TOO_LARGE", "ADJUSTMENT_CONFLICT", "QUOTA_UNAVAILABLE"]);
    Routes::new().add(shown, show).add(put, set).add(deleted, clear).add(posted, adjust)
}

/// One line with something in it.
const REASON: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";

/// Another allowance than the default.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AllowanceBody {
    /// A number of bytes, a text such as "50 GiB", or "unlimited".
    #[serde(deserialize_with = "deserialize_allowance")]
    #[schemars(schema_with = "allowance_schema")]
    daily_bytes: Allowance,
    /// When the default is in force again, in the future; null or left out: not until it is cleared.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    until: Option<Timestamp>,
    /// Why: 1 to 500 characters, none of them a control character.
    #[schemars(length(min = 1, max = 500), regex(pattern = REASON))]
    reason: String,
}

fn allowance_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT},
            {"const": "unlimited"},
            {"type": "string", "pattern": "^[0-9]{1,3} (KiB|MiB|GiB)$"},
        ],
    })
}

/// A correction of what was charged to a day.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AdjustmentBody {
    /// Names the correction, the same in every retry.
    #[schemars(regex(pattern = r"^[A-Za-z0-9._:-]{1,128}$"))]
    adjustment_id: String,
    /// A day that is kept, or tomorrow.
    #[schemars(with = "Day")]
    day: String,
    /// Bytes to charge; negative to take off, and not 0.
    #[schemars(range(min = -9_007_199_254_740_991_i64, max = 9_007_199_254_740_991_i64), extend("not" = {"const": 0}))]
    #[serde(deserialize_with = "number::deserialize")]
    bytes: i64,
    /// Why: 1 to 500 characters, none of them a control character.
    #[schemars(length(min = 1, max = 500), regex(pattern = REASON))]
    reason: String,
}

fn shown(project: &ProjectId, exception: Option<&Override>) -> Response {
    Json(ProjectAllowance { project_id: project, exception: exception.map(Into::into) }).into_response()
}

async fn show(
    State(front): State<Arc<Front>>,
    who: Principal,
    ProjectPath(project): ProjectPath,
) -> Result<Response, Problem> {
    let exception = front.quota.exception(&who.quota_reader_of(&project)?).await?;
    Ok(shown(&project, exception.as_ref()))
}

async fn set(
    State(front): State<Arc<Front>>,
    who: Principal,
    request: RequestId,
    ProjectPath(project): ProjectPath,
    body: Body,
) -> Result<Response, Problem> {
    let manager = who.quota_manager_of(&project)?;
    let AllowanceBody { daily_bytes, until, reason } = read_json(body, ALLOWANCE).await?;
    // What lies before the epoch is past, as 0 is.
    let until = until.map(|until| LedgerTime(u64::try_from(until.as_millisecond()).unwrap_or(0)));
    let set =
        front.quota.set_exception(&manager, &request, Exception { allowance: daily_bytes, until, reason }).await?;
    Ok(shown(&project, Some(&set)))
}

async fn clear(
    State(front): State<Arc<Front>>,
    who: Principal,
    request: RequestId,
    ProjectPath(project): ProjectPath,
) -> Result<StatusCode, Problem> {
    front.quota.clear_exception(&who.quota_manager_of(&project)?, &request).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn adjust(
    State(front): State<Arc<Front>>,
    who: Principal,
    request: RequestId,
    ProjectPath(project): ProjectPath,
    body: Body,
) -> Result<Response, Problem> {
    let manager = who.quota_manager_of(&project)?;
    let AdjustmentBody { adjustment_id, day, bytes, reason } = read_json(body, ADJUSTMENT).await?;
    let day = super::day(&day)?;
    let correction = Correction { id: adjustment_id.clone(), day, bytes, reason: reason.clone() };
    let applied = front.quota.adjust(&manager, &request, correction).await?;
    let adjusted = Adjusted {
        project_id: &project,
        adjustment_id: &adjustment_id,
        day,
        bytes,
        applied_bytes: applied,
        reason: &reason,
    };
    Ok(Json(adjusted).into_response())
}
