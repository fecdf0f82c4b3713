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
use super::openapi::{Operation, Routes, parameters};
use super::problem::Problem;
use crate::error::{Error, Kind};
use crate::telemetry::metrics::{CONTENT_TYPE as EXPOSITION, Route, metrics};
use crate::telemetry::request::leads_to;

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
        .takes(parameters::verbose())
        .answers_plain(200, "It should.", ready_schema(), json!({"status": "ready"}));
    Routes::new().add(up, alive).add(willing, ready)
}

/// What `/readyz` answers, with the parts if it is asked for them.
fn ready_schema() -> Value {
    let seconds = || json!({"type": ["integer", "null"], "minimum": 0});
    let status = || json!({"enum": ["ok", "failing", "unknown"]});
    let part = |more: Value| {
        let mut properties = json!({
            "status": status(), "answered_seconds_ago": seconds(), "failed_seconds_ago": seconds(),
        });
        for (name, schema) in more.as_object().into_iter().flatten() {
            properties[name] = schema.clone();
        }
        json!({"type": "object", "required": ["status"], "properties": properties})
    };
    let ledger = json!({
        "lost_leases": {"type": "integer"}, "unreserved_entries": {"type": "integer"},
        "lost_data_seconds_ago": seconds(),
    });
    let key_file = json!({
        "type": "object",
        "required": ["status"],
        "properties": {"status": status(), "unusable_for_seconds": seconds()},
    });
    json!({
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"const": "ready"},
            "parts": {
                "type": "object",
                "properties": {"store": part(json!({})), "ledger": part(ledger), "key_file": key_file},
            },
        },
    })
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
    leads_to(Route::of("/metrics"));
    let mut response = metrics().exposition().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EXPOSITION));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
