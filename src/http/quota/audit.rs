//! The entries of a day: by pages, added up by groups, or all of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue, VARY};
use serde::Deserialize;
use serde_json::json;

use super::answers::{AuditGroups, AuditPage};
use super::day_of;
use super::export::{self, Format};
use crate::access::{Principal, QuotaReader};
use crate::artifact::TrialId;
use crate::cursor;
use crate::error::{Error, Kind, Result};
use crate::http::Front;
use crate::http::extract::{Params, limit_of};
use crate::http::openapi::{Operation, Routes, parameters};
use crate::http::problem::Problem;
use crate::ledger::book::Totals;
use crate::ledger::{AuditFilter, Channel, Outcome};
use crate::listing::page_limit;
use crate::quota::{GroupBy, Quota};

pub(super) fn routes() -> Routes {
    let day = json!({"day": "2026-11-29", "items": [{
        "at": "2026-11-29T12:00:00Z", "id": "019ad0f2-8c4e-7000-8000-000000000001", "key_id": "read-only",
        "channel": "http", "size_bytes": 1_048_576, "charged_bytes": 1_048_576, "outcome": "completed", "count": 1,
        "trial_id": "plot-training-loss__Qm7RtZ2", "artifact": "verifier/test-stdout.txt",
        "request_id": "019ad0f2-8c4e-7000-8000-000000000002", "link_id": null,
    }], "next_cursor": null, "totals": {"count": 1, "charged_bytes": 1_048_576}});
    let described = Operation::get("/v1/quota/audit", "listAudit", "Quota")
        .says(
            "The entries of a day",
            "By pages, the newest first; added up with `group_by`; or, where `Accept` names one of their types, all \
             of them as a stream. A stream that ends cleanly is whole.",
        )
        .needs(&["quota.read"])
        .takes(parameters::day())
        .takes(parameters::limit())
        .takes(parameters::cursor())
        .takes(parameters::group_by())
        .takes(parameters::audit_trial())
        .takes(parameters::audit_key())
        .takes(parameters::one_of("channel", "Only this way in.", &Channel::ALL.map(Channel::as_str)))
        .takes(parameters::one_of("outcome", "Only reads that ended so.", &Outcome::ALL.map(Outcome::as_str)))
        .answers_either::<AuditPage<'_>, AuditGroups>(200, "A page, or sums with `group_by`.", day)
        .also("application/x-ndjson", "The items of the pages, one a line.")
        .also("text/csv", "Rows for spreadsheets, RFC 4180, with a head.")
        .refuses(&["INVALID_REQUEST", "INVALID_LIMIT", "INVALID_CURSOR", "INVALID_NAME", "QUOTA_UNAVAILABLE"]);
    Routes::new().add(described, audit)
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
        (None, None) => page(&front.quota, &reader, &params).await?,
        (None, Some(format)) => {
            params.without_pages("A stream is")?;
            let pages = front.quota.pages(&reader, day_of(params.day.as_deref())?, params.filter()?).await?;
            export::stream(pages, format, reader.project())
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_name(ACCEPT));
    Ok(response)
}

async fn page(quota: &Quota, reader: &QuotaReader, params: &AuditParams) -> Result<Response> {
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
    let items = page.entries.iter().map(Into::into).collect();
    let totals = Totals { count: page.total_count, charged: page.total_charged };
    Ok(Json(AuditPage { day: page.day, items, next_cursor, totals: totals.into() }).into_response())
}

async fn groups(
    quota: &Quota,
    reader: &QuotaReader,
    params: &AuditParams,
    by: &[GroupBy],
) -> Result<Json<AuditGroups>> {
    params.without_pages("Groups are of")?;
    let groups = quota.groups(reader, day_of(params.day.as_deref())?, params.filter()?, by).await?;
    Ok(Json(AuditGroups::new(groups, by)))
}
