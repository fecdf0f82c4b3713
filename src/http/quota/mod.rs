//! The account and its audit.
//!
//! [`mod@self`] says how an account stands, [`audit`] lists its entries, [`export`] streams a whole
//! day of them, [`manage`] is for operators.

mod audit;
mod csv;
mod export;
mod manage;

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Front;
use super::extract::Params;
use super::problem::Problem;
use crate::access::Principal;
use crate::error::{Error, Kind, Result};
use crate::ledger::{Allowance, Day, MAX_AMOUNT};

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new()
        .route("/v1/quota", get(usage))
        .route("/v1/quota/check", get(check))
        .route("/v1/quota/history", get(history))
        .route("/v1/quota/audit/verify", get(verify))
        .merge(audit::routes())
        .merge(manage::routes())
}

/// An allowance as settings and answers write it: a number of bytes, or `"unlimited"`.
pub(super) fn daily_bytes(allowance: Allowance) -> Value {
    allowance.bytes().map_or_else(|| json!("unlimited"), |bytes| json!(bytes))
}

fn day(text: &str) -> Result<Day> {
    Day::parse(text).ok_or_else(|| Error::new(Kind::InvalidRequest, "day is a date such as 2026-11-29."))
}

/// A `day` parameter; `None`: today.
fn day_of(text: Option<&str>) -> Result<Option<Day>> {
    text.map(day).transpose()
}

async fn usage(State(front): State<Arc<Front>>, who: Principal) -> Result<Json<Value>, Problem> {
    let usage = front.quota.usage(&who).await?.reply;
    let warn_at = front.quota.warnings().at();
    Ok(Json(json!({
        "project_id": who.project()?.id,
        "day": usage.day,
        "zone": front.quota.zone(),
        "resets_at": usage.resets_at.timestamp(),
        "daily_bytes": daily_bytes(usage.allowance),
        "used_bytes": usage.used,
        "reserved_bytes": usage.reserved,
        "remaining_bytes": usage.remaining(),
        "open_reservations": usage.open,
        "refused": usage.refused,
        "warn_percent": warn_at.percent(),
        "warning": warn_at.reached(usage.allowance, usage.used),
    })))
}

#[derive(Deserialize)]
struct CheckParams {
    bytes: Option<String>,
}

async fn check(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<CheckParams>,
) -> Result<Json<Value>, Problem> {
    let bytes = params.bytes.and_then(|bytes| bytes.parse().ok()).ok_or_else(|| {
        let rule = format!("bytes is a whole number, 0 to {MAX_AMOUNT}: what a read would reserve, the whole file.");
        Error::new(Kind::InvalidRequest, rule)
    })?;
    let (usage, refusal) = front.quota.check(&who, bytes).await?;
    let usage = usage.reply;
    Ok(Json(json!({
        "admitted": refusal.is_none(),
        "reason": refusal.as_ref().map(|refusal| refusal.reason),
        "retry_after_seconds": refusal.as_ref().and_then(|refusal| refusal.retry_after_seconds()),
        "requested_bytes": bytes,
        "daily_bytes": daily_bytes(usage.allowance),
        "used_bytes": usage.used,
        "reserved_bytes": usage.reserved,
        "remaining_bytes": usage.remaining(),
        "resets_at": usage.resets_at.timestamp(),
    })))
}

#[derive(Deserialize)]
struct HistoryParams {
    days: Option<String>,
}

async fn history(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<HistoryParams>,
) -> Result<Json<Value>, Problem> {
    // What is no number is out of bounds.
    let days = params.days.map(|days| days.parse().unwrap_or(0));
    let rows = front.quota.history(&who.quota_reader()?, days).await?;
    let rows = rows.iter().map(|row| {
        json!({
            "day": row.day,
            "daily_bytes": row.allowance.map(daily_bytes),
            "used_bytes": row.used,
            "reserved_bytes": row.reserved,
            "refused": row.refused,
            "entries": row.entries,
            "count": row.count,
        })
    });
    Ok(Json(json!({"zone": front.quota.zone(), "items": rows.collect::<Vec<_>>()})))
}

#[derive(Deserialize)]
struct VerifyParams {
    day: Option<String>,
}

async fn verify(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<VerifyParams>,
) -> Result<Json<Value>, Problem> {
    let sums = front.quota.verify(&who.quota_reader()?, day_of(params.day.as_deref())?).await?;
    Ok(Json(json!({
        "entries": sums.entries,
        "charged_bytes": sums.charged,
        "used_bytes": sums.used,
        "reserved_bytes": sums.reserved,
        "leases": sums.leases,
        "balanced": sums.balanced(),
    })))
}
