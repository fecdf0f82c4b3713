//! Is the process up, should it get traffic, and how is it doing.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Uri};
use serde_json::{Value, json};

use super::Front;
use super::problem::Problem;
use crate::error::{Error, Kind};
use crate::telemetry::metrics::{CONTENT_TYPE as EXPOSITION, metrics};

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

/// `/metrics`, beside the API or on a listener of its own.
pub fn metrics_routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/metrics", get(exposition))
}

async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Fails while draining, and for nothing else: a ledger out of reach for a moment must not take
/// every replica out of the load balancer at once. `?verbose` says how the parts are doing.
async fn ready(State(front): State<Arc<Front>>, uri: Uri) -> Result<Json<Value>, Problem> {
    if front.draining.is_cancelled() {
        return Err(Error::new(Kind::ShuttingDown, "The service is stopping.").into());
    }
    let mut answer = json!({"status": "ready"});
    let verbose = |parameter: &str| matches!(parameter, "verbose" | "verbose=" | "verbose=1" | "verbose=true");
    if uri.query().is_some_and(|query| query.split('&').any(verbose)) {
        answer["parts"] = front.health.report();
    }
    Ok(Json(answer))
}

async fn exposition() -> Response {
    let mut response = metrics().exposition().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EXPOSITION));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
