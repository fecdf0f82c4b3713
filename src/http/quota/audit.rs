//! The entries of a day: by pages, added up by groups, or all of them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue, VARY};
use serde::Deserialize;
use serde_json::{Value, json};

use super::day_of;
use super::export::{self, Format};
use crate::access::{Principal, QuotaReader};
use crate::artifact::TrialId;
use crate::cursor;
use crate::error::{Error, Kind, Result};
use crate::http::Front;
use crate::http::extract::{Params, limit_of};
use crate::http::problem::Problem;
use crate::ledger::book::Totals;
use crate::ledger::{AuditFilter, Channel, Entry, Outcome, Subject};
use crate::listing::page_limit;
use crate::quota::{GroupBy, Quota};

pub(super) fn routes() -> Router<Arc<Front>> {
    Router::new().route("/v1/quota/audit", get(audit))
}

#[derive(Deserialize)]
struct AuditParams {
    day: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
    group_by: Option<String>,
    trial_id: Option<String>,
    key_id: Option<String>,
    channel: Option<String>,
    outcome: Option<String>,
}

/// Finds `name` in a closed list, or says what there is.
fn named<T: Copy>(what: &str, name: &str, all: &[T], as_str: impl Fn(T) -> &'static str) -> Result<T> {
    all.iter().copied().find(|one| as_str(*one) == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| as_str(*one)).collect();
        Error::new(Kind::InvalidRequest, format!("{what} is one of: {}.", names.join(", ")))
    })
}

impl AuditParams {
    fn filter(&self) -> Result<AuditFilter> {
        let channel = self.channel.as_deref().map(|name| named("channel", name, &Channel::ALL, Channel::as_str));
        let outcome = self.outcome.as_deref().map(|name| named("outcome", name, &Outcome::ALL, Outcome::as_str));
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

    fn group_by(&self) -> Result<Option<Vec<GroupBy>>> {
        let Some(names) = &self.group_by else { return Ok(None) };
        let by = |name| named("each of group_by, by commas,", name, &GroupBy::ALL, GroupBy::as_str);
        names.split(',').map(by).collect::<Result<_>>().map(Some)
    }

    /// Refuses what has a meaning for pages alone.
    fn without_pages(&self, what: &str) -> Result<()> {
        if self.limit.is_none() && self.cursor.is_none() {
            return Ok(());
        }
        Err(Error::new(Kind::InvalidRequest, format!("{what} the whole day: leave limit and cursor out.")))
    }
}

async fn audit(
    State(front): State<Arc<Front>>,
    who: Principal,
    Params(params): Params<AuditParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let reader = who.quota_reader()?;
    let mut response = match (params.group_by()?, Format::of(&headers)) {
        (Some(_), Some(_)) => {
            let rule = "Sums come as JSON: leave group_by out, or ask for application/json.";
            return Err(Error::new(Kind::InvalidRequest, rule).into());
        }
        (Some(by), None) => groups(&front.quota, &reader, &params, &by).await?.into_response(),
        (None, None) => page(&front.quota, &reader, &params).await?.into_response(),
        (None, Some(format)) => {
            params.without_pages("A stream is")?;
            let pages = front.quota.pages(&reader, day_of(params.day.as_deref())?, params.filter()?).await?;
            export::stream(pages, format, reader.project())
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_name(ACCEPT));
    Ok(response)
}

async fn page(quota: &Quota, reader: &QuotaReader, params: &AuditParams) -> Result<Json<Value>> {
    let (filter, limit) = (params.filter()?, page_limit(params.limit.as_deref().map(limit_of))?);
    let listing = format!("audit {} {filter:?}", reader.project());
    let mut asked = day_of(params.day.as_deref())?;
    let mut from = None;
    if let Some(cursor) = &params.cursor {
        // The cursor pins the day, so that pages of "today" go on past midnight.
        let position = cursor::read(&listing, cursor)?;
        let (pinned, sequence) = position.split_once(' ').unwrap_or_default();
        let pinned = super::day(pinned)?;
        if asked.is_some_and(|asked| asked != pinned) {
            return Err(Error::new(Kind::InvalidCursor, "cursor belongs to the listing of another day."));
        }
        (asked, from) = (Some(pinned), sequence.parse().ok());
    }
    let page = quota.audit(reader, asked, &filter, from, limit).await?;
    let next_cursor = page.next.map(|next| cursor::write(&listing, &format!("{} {next}", page.day)));
    Ok(Json(json!({
        "day": page.day,
        "items": page.entries.iter().map(entry).collect::<Vec<_>>(),
        "next_cursor": next_cursor,
        "totals": {"count": page.total_count, "charged_bytes": page.total_charged},
    })))
}

async fn groups(quota: &Quota, reader: &QuotaReader, params: &AuditParams, by: &[GroupBy]) -> Result<Json<Value>> {
    params.without_pages("Groups are of")?;
    let groups = quota.groups(reader, day_of(params.day.as_deref())?, params.filter()?, by).await?;
    let sums = |Totals { count, charged }: Totals| json!({"count": count, "charged_bytes": charged});
    let rows = groups.groups.into_iter().map(|(group, of_group)| {
        let mut row = sums(of_group);
        for what in by {
            match what {
                GroupBy::Key => row["key_id"] = json!(group.key_id),
                GroupBy::Channel => row["channel"] = json!(group.channel),
                GroupBy::Trial => row["trial_id"] = json!(group.trial),
            }
        }
        row
    });
    let mut others = sums(groups.others.1);
    others["groups"] = json!(groups.others.0);
    Ok(Json(json!({
        "day": groups.day,
        "group_by": by.iter().map(|by| by.as_str()).collect::<Vec<_>>(),
        "groups": rows.collect::<Vec<_>>(),
        "others": others,
        "totals": sums(groups.totals),
    })))
}

/// An entry as pages and NDJSON have it.
pub(super) fn entry(entry: &Entry) -> Value {
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
