//! The account and its audit.
//!
//! [`mod@self`] says how an account stands, [`audit`] lists its entries, [`export`] streams a whole
//! day of them, [`manage`] is for operators, [`answers`] is what they all answer.

mod answers;
mod audit;
mod csv;
mod export;
mod manage;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;

use super::Front;
use super::extract::Params;
use super::openapi::parameters;
use super::openapi::{Operation, Routes};
use super::problem::Problem;
use crate::access::Principal;
use crate::error::{Error, Kind, Result};
use crate::ledger::{Day, MAX_AMOUNT};

use answers::{Account, Foresight, History, Verified};

pub(super) use answers::Balance;

const TAG: &str = "Quota";

pub(super) fn routes() -> Routes {
    let account = Operation::get("/v1/quota", "getQuota", TAG)
        .says("How the project's account stands today", "Any key of the project may ask.")
        .answers::<Account<'_>>(
            200,
            "The account.",
            json!({
                "project_id": "demo", "day": "2026-11-29", "zone": "UTC", "daily_bytes": 53_687_091_200_u64,
                "used_bytes": 1_048_576, "reserved_bytes": 0, "remaining_bytes": 53_686_042_624_u64,
                "resets_at": "2026-11-30T00:00:00Z", "open_reservations": 0, "refused": 0, "warn_percent": 80,
                "warning": false,
            }),
        )
        .refuses(&["PROJECT_REQUIRED", "QUOTA_UNAVAILABLE"]);
    let foresight = Operation::get("/v1/quota/check", "checkQuota", TAG)
        .says(
            "Whether a reservation of that size would be admitted now",
            "A dry run: nothing is reserved, nothing counted. Any key of the project may ask.",
        )
        .takes(parameters::bytes())
        .answers::<Foresight>(
            200,
            "What would happen.",
            json!({
                "admitted": false, "reason": "too_large", "retry_after_seconds": null,
                "requested_bytes": 107_374_182_400_u64, "daily_bytes": 53_687_091_200_u64, "used_bytes": 1_048_576,
                "reserved_bytes": 0, "remaining_bytes": 53_686_042_624_u64, "resets_at": "2026-11-30T00:00:00Z",
            }),
        )
        .refuses(&["PROJECT_REQUIRED", "INVALID_REQUEST", "QUOTA_UNAVAILABLE"]);
    let days = Operation::get("/v1/quota/history", "getQuotaHistory", TAG)
        .says("The accounts of the last days", "Today's first.")
        .needs(&["quota.read"])
        .takes(parameters::days())
        .answers::<History<'_>>(
            200,
            "A row for each day.",
            json!({"zone": "UTC", "items": [{
                "day": "2026-11-29", "daily_bytes": "unlimited", "used_bytes": 1_048_576, "reserved_bytes": 0,
                "refused": 0, "entries": 3, "count": 3,
            }]}),
        )
        .refuses(&["INVALID_REQUEST", "QUOTA_UNAVAILABLE"]);
    let sums = Operation::get("/v1/quota/audit/verify", "verifyAudit", TAG)
        .says("The books of a day, added up anew", "Whether entries and leases make up what the account says.")
        .needs(&["quota.read"])
        .takes(parameters::day())
        .answers::<Verified>(
            200,
            "The sums.",
            json!({
                "entries": 3, "charged_bytes": 1_048_576, "used_bytes": 1_048_576, "reserved_bytes": 0, "leases": 0,
                "balanced": true,
            }),
        )
        .refuses(&["INVALID_REQUEST", "QUOTA_UNAVAILABLE"]);
    Routes::new()
        .add(account, usage)
        .add(foresight, check)
        .add(days, history)
        .add(sums, verify)
        .merge(audit::routes())
        .merge(manage::routes())
}

fn day(text: &str) -> Result<Day> {
    Day::parse(text).ok_or_else(|| Error::new(Kind::InvalidRequest, "day is a date such as 2026-11-29."))
}

/// A `day` parameter; `None`: today.
fn day_of(text: Option<&str>) -> Result<Option<Day>> {
    text.map(day).transpose()
}

async fn usage(State(front): State<Arc<Front>>, who: Principal) -> Result<Response, Problem> {
    let usage = front.quota.usage(&who).await?.reply;
    let warn_at = front.quota.warnings().at();
    let account = Account {
        project_id: &who.project()?.id,
        day: usage.day,
        zone: front.quota.zone(),
        balance: Balance::of(&usage),
        open_reservations: usage.open,
        refused: usage.refused,
        warn_percent: warn_at.percent(),
        warning: warn_at.reached(usage.allowance, usage.used),
    };
    Ok(Json(account).into_response())
}

#[derive(Deserialize)]
struct CheckParams {
    bytes: Option<String>,
}

async fn check(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<CheckParams>,
) -> Result<Json<Foresight>, Problem> {
    let bytes = params.bytes.and_then(|bytes| bytes.parse().ok()).ok_or_else(|| {
        let rule = format!("bytes is a whole number, 0 to {MAX_AMOUNT}: what a read would reserve, the whole file.");
        Error::new(Kind::InvalidRequest, rule)
    })?;
    let (usage, refusal) = front.quota.check(&who, bytes).await?;
    Ok(Json(Foresight {
        admitted: refusal.is_none(),
        reason: refusal.as_ref().map(|refusal| refusal.reason),
        retry_after_seconds: refusal.as_ref().and_then(|refusal| refusal.retry_after_seconds()),
        requested_bytes: bytes,
        balance: Balance::of(&usage.reply),
    }))
}

#[derive(Deserialize)]
struct HistoryParams {
    days: Option<String>,
}

async fn history(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<HistoryParams>,
) -> Result<Response, Problem> {
    // What is no number is out of bounds.
    let days = params.days.map(|days| days.parse().unwrap_or(0));
    let rows = front.quota.history(&who.quota_reader()?, days).await?;
    Ok(Json(History { zone: front.quota.zone(), items: rows.iter().map(Into::into).collect() }).into_response())
}

#[derive(Deserialize)]
struct VerifyParams {
    day: Option<String>,
}

async fn verify(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<VerifyParams>,
) -> Result<Json<Verified>, Problem> {
    let sums = front.quota.verify(&who.quota_reader()?, day_of(params.day.as_deref())?).await?;
    Ok(Json(sums.into()))
}
