//! `envloop_trial_artifacts_list`: what files a trial left.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::{Caller, Services, Tool, schema};
use crate::access::Capability;
use crate::error::{Error, Kind, Result};
use crate::listing::ListQuery;
use crate::mcp::content;

pub(super) static TOOL: Tool = Tool {
    name: "envloop_trial_artifacts_list",
    title: "List the artifacts of a trial",
    description: "Lists the files (logs, results, screenshots, ...) that an evaluation trial left, sorted by name, page \
                  by page. Each item has name, artifact_id, size in bytes, media_type (by the name only) and \
                  modified_at. If next_cursor is not null, call again with it as cursor for the next page. Listing \
                  reads no file and costs no download allowance. Read a file with envloop_trial_artifact_read.",
    capabilities: &[Capability::JobsRead],
    input,
    meta: || None,
    run: |services, caller, arguments| Box::pin(run(services, caller, arguments)),
};

fn input() -> Value {
    schema(
        json!({
            "trial_id": {
                "type": "string",
                "description": "The trial, for example fix-login__aB3xY9z.",
                "minLength": 1,
                "maxLength": 128,
            },
            "prefix": {
                "type": "string",
                "description": "Only names that begin with this text, for example agent/ or verifier/test.",
                "maxLength": 1024,
            },
            "limit": {
                "type": "integer",
                "description": "Items a page, 1 to 100. Default 25.",
                "minimum": 1,
                "maximum": 100,
            },
            "cursor": {
                "type": "string",
                "description": "next_cursor of the page before, unchanged, with the same trial_id and prefix.",
            },
        }),
        &["trial_id"],
    )
}

async fn run(services: &Services, caller: Caller<'_>, mut arguments: Arguments) -> Result<Value> {
    let trial = arguments.trial()?;
    let limit = arguments.whole("limit", 1..=100, Kind::InvalidLimit)?;
    let query = ListQuery {
        limit: limit.map(i64::unsigned_abs),
        cursor: arguments.text("cursor")?,
        prefix: arguments.text("prefix")?,
    };
    arguments.finish("trial_id, prefix, limit and cursor")?;
    let page = services.listing.artifacts(&caller.principal.viewer()?, &trial, &query).await?;
    let page = serde_json::to_value(page).map_err(Error::internal)?;
    // Clients give a model either the text or the structure: both say everything.
    let mut result = content::result(vec![content::text_block(&page.to_string())]);
    result["structuredContent"] = page;
    Ok(result)
}
