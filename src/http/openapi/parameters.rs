//! Parameters and response headers, each described once.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::artifact::{MAX_NAME_BYTES, ProjectId, TrialId, WorkspaceId};
use crate::ledger::{Day, LinkId, MAX_AMOUNT};
use crate::listing::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::quota::GroupBy;

fn schema_of<T: JsonSchema>() -> Value {
    T::json_schema(&mut SchemaGenerator::default()).to_value()
}

fn path(name: &str, description: &str, schema: Value, example: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description, "schema": schema,
        "example": example,
    })
}

fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn header(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "description": description, "schema": schema})
}

pub(in crate::http) fn project_id() -> Value {
    path("project_id", "The project.", schema_of::<ProjectId>(), "demo")
}

pub(in crate::http) fn workspace_id() -> Value {
    path("workspace_id", "The workspace.", schema_of::<WorkspaceId>(), "default")
}

pub(in crate::http) fn trial_id() -> Value {
    path("trial_id", "The trial.", schema_of::<TrialId>(), "plot-training-loss__Qm7RtZ2")
}

pub(in crate::http) fn artifact_id() -> Value {
    let schema = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 2 * MAX_NAME_BYTES,
        "pattern": "^([^~/\\\\\\x00-\\x1f\\x7f-\\x9f]|~[01])+$",
    });
    let rule = "The artifact's name with `~` written `~0` and `/` written `~1` (RFC 6901 §3).";
    path("artifact_id", rule, schema, "verifier~1test-stdout.txt")
}

pub(in crate::http) fn link_id() -> Value {
    path("link_id", "The link.", schema_of::<LinkId>(), "019ad0f2-8c4e-7000-8000-000000000001")
}

pub(in crate::http) fn token() -> Value {
    let schema = json!({"type": "string", "pattern": "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$"});
    path("token", "What the link was signed as; a secret of whoever has it.", schema, "eyJ2IjoxfQ.c2lnbmF0dXJl")
}

pub(in crate::http) fn file_name() -> Value {
    let schema = json!({"type": "string", "minLength": 1, "pattern": "^[^/]+$"});
    path("filename", "Decoration: it is not looked at.", schema, "stdout.txt")
}

pub(in crate::http) fn limit() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT});
    query("limit", "Items of the page, at most.", schema)
}

pub(in crate::http) fn cursor() -> Value {
    query("cursor", "The `next_cursor` of the page before, of the same listing.", json!({"type": "string"}))
}

pub(in crate::http) fn prefix() -> Value {
    query(
        "prefix",
        "Only names that begin with this text.",
        json!({"type": "string", "maxLength": MAX_NAME_BYTES, "pattern": "^[^\\\\\\x00-\\x1f\\x7f-\\x9f]*$"}),
    )
}

pub(in crate::http) fn verbose() -> Value {
    query("verbose", "Also say how store, ledger and keys are doing.", json!({"type": "boolean"}))
}

pub(in crate::http) fn disposition() -> Value {
    let schema = json!({"type": "string", "enum": ["attachment", "inline"], "default": "attachment"});
    query("disposition", "`inline` lets a browser show PNG, JPEG, GIF, WebP and plain text.", schema)
}

pub(in crate::http) fn bytes() -> Value {
    let schema = json!({"type": "integer", "minimum": 0, "maximum": MAX_AMOUNT});
    let mut bytes = query("bytes", "What a read would reserve: the whole file, bytes.", schema);
    bytes["required"] = json!(true);
    bytes["example"] = json!(1_048_576);
    bytes
}

pub(in crate::http) fn days() -> Value {
    // How many are kept is a setting of the ledger.
    query("days", "How many, today included; at most as many as are kept.", json!({"type": "integer", "minimum": 1}))
}

pub(in crate::http) fn day() -> Value {
    query("day", "A day that is kept, in the ledger's zone; default today.", schema_of::<Day>())
}

pub(in crate::http) fn group_by() -> Value {
    let names = GroupBy::ALL.map(GroupBy::as_str);
    let mut group_by = query(
        "group_by",
        "Sums by these, separated by commas, instead of entries; without `limit` and `cursor`.",
        json!({"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1}),
    );
    group_by["style"] = json!("form");
    group_by["explode"] = json!(false);
    group_by
}

pub(in crate::http) fn audit_trial() -> Value {
    query("trial_id", "Only this trial.", schema_of::<TrialId>())
}

pub(in crate::http) fn audit_key() -> Value {
    query("key_id", "Only this key; for adjustments the operator's.", json!({"type": "string"}))
}

pub(in crate::http) fn one_of(name: &str, description: &str, names: &[&str]) -> Value {
    query(name, description, json!({"type": "string", "enum": names}))
}

/// The conditions and the range of a download (RFC 9110 §13, §14).
pub(in crate::http) fn conditions() -> [Value; 6] {
    let text = || json!({"type": "string"});
    [
        header("Range", "One range of bytes; several are answered whole.", json!({"type": "string"})),
        header("If-Range", "The range only of this version, else the whole.", text()),
        header("If-Match", "Only this version, else 412.", text()),
        header("If-None-Match", "Only another version, else 304.", text()),
        header("If-Modified-Since", "Only if modified since, else 304.", text()),
        header("If-Unmodified-Since", "Only if not modified since, else 412.", text()),
    ]
}

pub(super) fn workspace_header() -> Value {
    let rule = "The workspace: a personal key has to name it, another key may.";
    header("X-Workspace-ID", rule, schema_of::<WorkspaceId>())
}

pub(super) fn project_header() -> Value {
    let rule = "The project: personal and operator keys have to name it, a project key may name its own.";
    header("X-Project-ID", rule, schema_of::<ProjectId>())
}

pub(super) fn request_id_header() -> Value {
    let rule = "Names the request in answer, log and audit. What is not of this form is replaced.";
    header("X-Request-Id", rule, json!({"type": "string"}))
}

/// The headers of answers, by name.
pub(super) fn answer_headers() -> Value {
    let text = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    let always =
        |description: &str| json!({"description": description, "required": true, "schema": {"type": "string"}});
    json!({
        "X-Request-Id": always("Names the request: report it to the operator."),
        "ETag": always("The validator of this version, weak where the store or a fresh file knows no better."),
        "Last-Modified": text("When the version was stored."),
        "Accept-Ranges": always("`bytes`, or `none`."),
        "Content-Disposition": always("RFC 6266, with an RFC 8187 `filename*` where the name needs it."),
        "Content-Range": always("RFC 9110 §14.4."),
        "Cache-Control": always("How long the answer may be kept."),
        "RateLimit": text(
            "What is left of the day's allowance in bytes (`r`) and until when, s (`t`); \
             draft-ietf-httpapi-ratelimit-headers-10. Not where there is no bound."
        ),
        "RateLimit-Policy": text("The day's allowance in bytes (`q`), by the same draft."),
        "Retry-After": {
            "description": "When to try again, s (RFC 9110 §10.2.3).",
            "schema": {"type": "integer", "minimum": 1},
        },
        "WWW-Authenticate": always("RFC 6750."),
        "Allow": always("The methods that the path has."),
    })
}
