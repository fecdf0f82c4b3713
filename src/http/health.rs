//! Is the process up, and should it get traffic.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Front;
use super::openapi::{Operation, Routes};
use super::problem::Problem;
use crate::error::{Error, Kind};

pub(super) fn routes() -> Routes {
    let status =
        |status: &str| json!({"type": "object", "required": ["status"], "properties": {"status": {"const": status}}});
    let up = Operation::get("/healthz", "getHealth", "Service")
        .says("Whether the process is up", "")
        .open()
        .answers_plain(200, "It is.", status("ok"), json!({"status": "ok"}));
    let willing = Operation::get("/readyz", "getReadiness", "Service")
        .says(
            "Whether the process should get traffic",
            "Not while it stops; also while ledger or store are out of reach.",
        )
        .open()
        .answers_plain(200, "It should.", status("ready"), json!({"status": "ready"}));
    Routes::new().add(up, alive).add(willing, ready)
}

async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Fails while draining, and for nothing else: a ledger out of reach for a moment must not take
/// every replica out of the load balancer at once.
async fn ready(State(front): State<Arc<Front>>) -> Result<Json<Value>, Problem> {
    if front.draining.is_cancelled() {
        return Err(Error::new(Kind::ShuttingDown, "The service is stopping.").into());
    }
    Ok(Json(json!({"status": "ready"})))
}
