//! Is the process up, and should it get traffic.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Front;
use super::problem::Problem;
use crate::error::{Error, Kind};

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
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
