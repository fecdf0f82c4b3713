//! The tools, in a table. `tools/list` shows all of them in this order, whatever the key may do; a
//! call that it may not make says which capability is missing.
//!
//! Whatever an agent should read, refusals included, is the text of a result: clients show the
//! message of a JSON-RPC error badly or not at all.

mod arguments;
mod artifact_read;
mod artifacts_list;
mod suggest;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use self::arguments::{Arguments, check_known};
use super::content;
use crate::access::{Capability, Principal, Viewer};
use crate::artifact::{ArtifactName, TrialId, text};
use crate::error::{Error, Kind, Result};
use crate::ledger::Refusal;
use crate::links::Links;
use crate::listing::Listing;
use crate::read::Reads;
use crate::request::RequestId;
use crate::telemetry::metrics;
use crate::verdict::Verdicts;

/// The use cases that tools call.
pub(super) struct Services {
    /// What there is.
    pub(super) listing: Arc<Listing>,
    /// Every byte.
    pub(super) reads: Arc<Reads>,
    /// What may be shown as an image.
    pub(super) verdicts: Verdicts,
    /// What download hints begin with, without a slash at its end.
    pub(super) base_url: String,
    /// Makes links to what is not shown.
    pub(super) links: Option<Arc<Links>>,
}

/// Who calls.
pub(super) struct Caller<'a> {
    pub(super) principal: &'a Principal,
    pub(super) request_id: &'a RequestId,
}

/// One tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    /// What a key must be able to do; the handler's proofs enforce it.
    capabilities: &'static [Capability],
    /// JSON Schema 2020-12, of plain types only: clients drop or choke on the rest. Ranges are said
    /// in the descriptions too, since some clients drop `minimum` and `maximum`.
    input: fn() -> Value,
    /// Hints for particular clients.
    meta: fn() -> Option<Value>,
    /// Arguments of a typical call, in JSON: for the description, and to fill what a call lacks.
    example: &'static str,
    /// Arguments of which a call has exactly one, the usual one first.
    exactly_one: &'static [&'static str],
    /// What agents call arguments that have another name here.
    aliases: &'static [(&'static str, &'static str)],
    /// Whether an argument's value obeys the rules that its schema does not say.
    accepts: fn(&str, &Value) -> bool,
    run: for<'a> fn(&'a Services, Caller<'a>, Arguments) -> BoxFuture<'a, Result<Value>>,
}

static TOOLS: [&Tool; 2] = [&artifacts_list::TOOL, &artifact_read::TOOL];

impl Tool {
    /// The tool of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        TOOLS.into_iter().find(|tool| tool.name == name)
    }

    fn describe(&self) -> Value {
        let needs: Vec<&str> = self.capabilities.iter().map(|capability| capability.as_str()).collect();
        let mut described = json!({
            "name": self.name,
            "title": self.title,
            "description": format!(
                "{} Example: {}. Needs a key with {}.", self.description, self.example, needs.join(" and ")
            ),
            "inputSchema": (self.input)(),
            "annotations": {
                "title": self.title,
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        });
        if let Some(meta) = (self.meta)() {
            described["_meta"] = meta;
        }
        described
    }

    /// Runs the tool. Refusals and failures are results too.
    pub(super) async fn call(&self, services: &Services, caller: Caller<'_>, arguments: Map<String, Value>) -> Value {
        let request_id = caller.request_id;
        let input = (self.input)();
        let known = input["properties"].as_object().map_or(Ok(()), |known| check_known(&arguments, known));
        let outcome = match known {
            Ok(()) => (self.run)(services, caller, Arguments::new(arguments.clone())).await,
            Err(error) => Err(error),
        };
        let error = match outcome {
            Ok(result) => return result,
            Err(error) => error,
        };
        if error.kind() == &Kind::InternalError {
            tracing::error!(%request_id, tool = self.name, ?error, "a tool failed");
        } else {
            tracing::debug!(%request_id, tool = self.name, ?error, "a tool refused");
        }
        let wrong_arguments =
            matches!(error.kind(), Kind::InvalidRequest | Kind::InvalidLimit | Kind::InvalidName | Kind::InvalidCursor);
        let instead = wrong_arguments.then(|| suggest::nearest_call(self, &arguments)).flatten();
        match instead {
            Some(call) => content::error(&format!("{}\nNearest valid call: {call}", refusal_text(&error, request_id))),
            None => refusal(&error, request_id),
        }
    }
}

/// The names of all tools.
pub(super) fn names() -> [&'static str; TOOLS.len()] {
    TOOLS.map(|tool| tool.name)
}

/// A result that tells the agent of an error.
pub(super) fn refusal(error: &Error, request_id: &RequestId) -> Value {
    content::error(&refusal_text(error, request_id))
}

/// All tools, described.
pub(super) fn list() -> Value {
    TOOLS.iter().map(|tool| tool.describe()).collect()
}

/// What an agent reads of an error: the code first, then what to do, then what programs may use.
fn refusal_text(error: &Error, request_id: &RequestId) -> String {
    metrics().refused(error.kind().code());
    let more = match error.kind() {
        Kind::DownloadQuotaExceeded(refusal) => format!("\n{}", quota_line(&refusal.reply)),
        Kind::InternalError | Kind::StoreUnavailable | Kind::QuotaUnavailable => format!("\nrequest_id={request_id}"),
        _ => String::new(),
    };
    format!("{}: {}{more}", error.kind().code(), error.message())
}

/// What `error` says, with the nearest names that do exist. `near` says what they are.
fn with_names(error: &Error, near: &str, names: &[String], otherwise: &str) -> Error {
    let offer =
        if names.is_empty() { otherwise.to_owned() } else { format!("{near} {}. {otherwise}", names.join(", ")) };
    Error::new(error.kind().clone(), format!("{} {offer}", error.message()))
}

/// The error of a trial or artifact that is not there, with what may have been meant. A look-up
/// that fails leaves the error as it was: it is the answer all the same.
async fn explained(
    error: Error,
    services: &Services,
    who: &Viewer,
    trial: &TrialId,
    artifact: Option<&ArtifactName>,
) -> Error {
    let quoted = |name: &str| format!("\"{}\"", text::visible(name));
    match (error.kind(), artifact) {
        (Kind::TrialNotFound, _) => match services.listing.trials_near(who, trial).await {
            Ok(ids) => {
                let ids: Vec<_> = ids.iter().map(|id| quoted(id.as_str())).collect();
                let error = Error::new(Kind::TrialNotFound, format!("This project has no trial \"{trial}\"."));
                with_names(&error, "Nearest ids:", &ids, "Check the id with whoever gave it.")
            }
            Err(_) => error,
        },
        (Kind::ArtifactNotFound, Some(name)) => match services.listing.artifacts_near(who, trial, name).await {
            Ok(names) => {
                let names: Vec<_> = names.iter().map(|name| quoted(name.as_str())).collect();
                let message = format!("Trial \"{trial}\" has no artifact {}.", quoted(name.as_str()));
                let error = Error::new(Kind::ArtifactNotFound, message);
                let all = format!("{} lists all.", artifacts_list::TOOL.name);
                with_names(&error, "Nearest names:", &names, &all)
            }
            Err(_) => error,
        },
        _ => error,
    }
}

fn quota_line(refusal: &Refusal) -> String {
    let mut line = format!(
        "reason={} limit_bytes={} used_bytes={} reserved_bytes={} requested_bytes={}",
        refusal.reason.as_str(),
        refusal.limit_bytes,
        refusal.used_bytes,
        refusal.reserved_bytes,
        refusal.requested_bytes,
    );
    if let Some(ms) = refusal.retry_after_ms {
        line += &format!(" retry_after_seconds={}", ms.div_ceil(1000));
    }
    line + &format!(" resets_at={}", refusal.resets_at.timestamp())
}

/// The schema of an object with these properties.
fn schema(properties: Value, required: &[&str]) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{At, LedgerTime, RefusalReason};

    #[test]
    fn the_table_is_what_clients_can_cope_with() {
        let Value::Array(tools) = list() else { panic!("an array") };
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["envloop_trial_artifacts_list", "envloop_trial_artifact_read"]);
        for tool in &tools {
            let name = tool["name"].as_str().expect("a name");
            // Clients put the server's name in front, and model interfaces take 64 characters.
            assert!("mcp__envloop__".len() + name.len() <= 64, "{name}");
            assert!(Tool::named(name).is_some());
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
            assert_eq!(tool["annotations"]["idempotentHint"], true);
            assert_eq!(tool["annotations"]["openWorldHint"], false);
            assert!(tool.get("outputSchema").is_none(), "clients would drop the content");
            let words = tool["description"].as_str().expect("a description").split_whitespace().count();
            assert!(words <= 160, "{name}: every conversation pays for {words} words");
            let schema = &tool["inputSchema"];
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
            for (argument, property) in schema["properties"].as_object().expect("properties") {
                assert!(matches!(property["type"].as_str(), Some("string" | "integer")), "{argument}");
                let described = property["description"].as_str().expect("a description");
                for bound in ["minimum", "maximum"] {
                    if let Some(bound) = property.get(bound) {
                        assert!(described.contains(&bound.to_string()), "{argument} says its range in words");
                    }
                }
                let known = ["type", "description", "minimum", "maximum", "minLength", "maxLength"];
                assert!(property.as_object().expect("an object").keys().all(|key| known.contains(&key.as_str())));
            }
        }
        assert!(Tool::named("envloop_job_list").is_none());
    }

    #[test]
    fn refusals_begin_with_the_code_and_say_when_to_come_back() {
        let id = RequestId::of(&http::HeaderMap::new());
        let refusal = Refusal {
            reason: RefusalReason::Busy,
            limit_bytes: 100,
            used_bytes: 10,
            reserved_bytes: 80,
            requested_bytes: 20,
            resets_at: LedgerTime(1_796_083_200_000),
            retry_after_ms: Some(1_001),
        };
        let error =
            Error::new(Kind::DownloadQuotaExceeded(Box::new(At { now: LedgerTime(0), reply: refusal })), "No room.");
        assert_eq!(
            refusal_text(&error, &id),
            "DOWNLOAD_QUOTA_EXCEEDED: No room.\nreason=busy limit_bytes=100 used_bytes=10 reserved_bytes=80 \
             requested_bytes=20 retry_after_seconds=2 resets_at=2026-12-01T00:00:00Z"
        );
        let internal = refusal_text(&Error::internal("secret cause"), &id);
        assert!(internal.starts_with("INTERNAL_ERROR: ") && internal.ends_with(id.as_str()));
        assert!(!internal.contains("secret"));
    }
}
