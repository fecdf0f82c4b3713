//! The account and its audit.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Front;
use super::extract::{Params, limit_of};
use super::problem::Problem;
use crate::access::Principal;
use crate::artifact::TrialId;
use crate::cursor;
use crate::error::{Error, Kind, Result};
use crate::ledger::{Allowance, AuditFilter, Channel, Day, Entry, Outcome, Subject};
use crate::listing::page_limit;

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new()
        .route("/v1/quota", get(usage))
        .route("/v1/quota/audit", get(audit))
        .route("/v1/quota/audit/verify", get(verify))
}

/// An allowance as settings and answers write it: a number of bytes, or `"unlimited"`.
pub(super) fn daily_bytes(allowance: Allowance) -> Value {
    allowance.bytes().map_or_else(|| json!("unlimited"), |bytes| json!(bytes))
}

async fn usage(State(front): State<Arc<Front>>, who: Principal) -> Result<Json<Value>, Problem> {
    let usage = front.quota.usage(&who).await?.reply;
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
    })))
}

#[derive(Deserialize)]
struct AuditParams {
    day: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
    trial_id: Option<String>,
    key_id: Option<String>,
    channel: Option<String>,
    outcome: Option<String>,
}

impl AuditParams {
    fn filter(&self) -> Result<AuditFilter> {
        let known = |what: &str, names: String| Error::new(Kind::InvalidRequest, format!("{what} is one of: {names}."));
        let channel = self.channel.as_deref().map(|name| {
            let names = || Channel::ALL.map(Channel::as_str).join(", ");
            Channel::ALL.into_iter().find(|c| c.as_str() == name).ok_or_else(|| known("channel", names()))
        });
        let outcome = self.outcome.as_deref().map(|name| {
            let names = || Outcome::ALL.map(Outcome::as_str).join(", ");
            Outcome::ALL.into_iter().find(|o| o.as_str() == name).ok_or_else(|| known("outcome", names()))
        });
        let trial = self
            .trial_id
            .as_deref()
            .map(|id| TrialId::parse(id).map_err(|error| Error::new(Kind::InvalidName, format!("{error}."))));
        Ok(AuditFilter {
            trial: trial.transpose()?,
            key_id: self.key_id.clone(),
            channel: channel.transpose()?,
            outcome: outcome.transpose()?,
        })
    }
}

fn day(text: Option<&str>) -> Result<Option<Day>> {
    text.map(|text| {
        Day::parse(text).ok_or_else(|| Error::new(Kind::InvalidRequest, "day is a date such as 2026-11-29."))
    })
    .transpose()
}

async fn audit(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<AuditParams>,
) -> Result<Json<Value>, Problem> {
    let reader = who.quota_reader()?;
    let (filter, limit) = (params.filter()?, page_limit(params.limit.as_deref().map(limit_of))?);
    let listing = format!("audit {} {filter:?}", reader.project().id);
    let mut asked = day(params.day.as_deref())?;
    let mut from = None;
    if let Some(cursor) = &params.cursor {
        // The cursor pins the day, so that pages of "today" go on past midnight.
        let position = cursor::read(&listing, cursor)?;
        let (pinned, sequence) = position.split_once(' ').unwrap_or_default();
        let pinned = day(Some(pinned))?;
        if asked.is_some() && asked != pinned {
            return Err(Error::new(Kind::InvalidCursor, "cursor belongs to the listing of another day.").into());
        }
        (asked, from) = (pinned, sequence.parse().ok());
    }
    let page = front.quota.audit(&reader, asked, &filter, from, limit).await?;
    let next_cursor = page.next.map(|next| cursor::write(&listing, &format!("{} {next}", page.day)));
    Ok(Json(json!({
        "day": page.day,
        "items": page.entries.iter().map(entry).collect::<Vec<_>>(),
        "next_cursor": next_cursor,
        "totals": {"count": page.total_count, "charged_bytes": page.total_charged},
    })))
}

fn entry(entry: &Entry) -> Value {
    let mut line = json!({
        "at": entry.at.timestamp(),
        "id": entry.id,
        "key_id": entry.key_id(),
        "channel": entry.channel(),
        "size_bytes": entry.size,
        "charged_bytes": entry.charged,
        "outcome": entry.outcome,
        "count": entry.count,
    });
    match &entry.subject {
        Subject::Read(context) => {
            line["trial_id"] = json!(context.trial);
            line["artifact"] = json!(context.artifact);
            line["request_id"] = json!(context.request_id);
            line["link_id"] = json!(context.link_id);
        }
        Subject::RolledUp { .. } => {}
        Subject::Adjustment { reason, .. } => line["reason"] = json!(reason),
    }
    line
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
    let sums = front.quota.verify(&who.quota_reader()?, day(params.day.as_deref())?).await?;
    Ok(Json(json!({
        "entries": sums.entries,
        "charged_bytes": sums.charged,
        "used_bytes": sums.used,
        "reserved_bytes": sums.reserved,
        "leases": sums.leases,
        "balanced": sums.balanced(),
    })))
}
