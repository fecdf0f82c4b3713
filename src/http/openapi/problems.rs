//! Every problem: when it comes, and what it looks like.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::access::Capability;
use crate::error::{Error, Kind};
use crate::http::problem;
use crate::ledger::{At, LedgerTime, Refusal, RefusalReason};

/// When a problem comes, in the words of its reader. Exhaustive, so that no code goes undescribed.
const fn meaning(kind: &Kind) -> &'static str {
    match kind {
        Kind::Unauthenticated => "No key, or one that is not known, disabled or expired.",
        Kind::AccessDenied(_) => "The key lacks a capability, which `missing_capability` names.",
        Kind::ProjectAccessDenied => "The key does not speak for that project.",
        Kind::HostDenied => "The Host header names a host that is not served here.",
        Kind::OriginDenied => "A browser calls from an origin that is not let in.",
        Kind::ProjectRequired => "The key speaks for no project by itself, and the headers name none.",
        Kind::TrialNotFound => "The project has no such trial.",
        Kind::ArtifactNotFound => "The trial has no such artifact.",
        Kind::LinkNotFound => "The project has no such link.",
        Kind::NotFound => "The API has no such path.",
        Kind::InvalidRequest => "A parameter, a header or the body breaks the rule that `detail` names.",
        Kind::InvalidCursor => "The cursor is of another listing, or was changed.",
        Kind::InvalidLimit => "The limit is out of its bounds.",
        Kind::InvalidName => "An id or a name breaks the rule that `detail` names.",
        Kind::MethodNotAllowed => "The path does not have the method; Allow lists those it has.",
        Kind::RequestTooLarge => "The body is too large.",
        Kind::ArchiveTooLarge => "The trial has more files than one archive may hold; narrow it by `prefix`.",
        Kind::UnsupportedMediaType => "The body is of another type than JSON, or encoded.",
        Kind::HeadersTooLarge => "The head of the request is too large.",
        Kind::ArtifactChanged => "The file changed while it was read; ask again.",
        Kind::ArtifactNotReady => "The store keeps the file in an archive; it has to be restored first.",
        Kind::ArtifactEncoded => "The file is stored with a Content-Encoding that cannot be served.",
        Kind::LinkInvalid => "The link was cut or changed, or its signing key was withdrawn.",
        Kind::LinkExpired => "The link has expired.",
        Kind::LinkRevoked => "The link was revoked, or its maker may no longer download.",
        Kind::LinkStale => "The file that the link was made for was replaced or removed.",
        Kind::LinksDisabled => "This service makes no links.",
        Kind::AdjustmentConflict => "The adjustment's id was used for another day, amount or reason.",
        Kind::PreconditionFailed => "The artifact is another version than asked for.",
        Kind::RangeNotSatisfiable(_) => "The range selects no byte of the artifact.",
        Kind::DownloadQuotaExceeded(_) => {
            "The day's allowance has no room for the whole file: `spent` (wait for the reset), `busy` (open downloads \
             hold the room; wait as long as Retry-After says) or `too_large` (waiting does not help)."
        }
        Kind::TooManyRequests => "Too much at once; wait as long as Retry-After says.",
        Kind::Overloaded => "The replica carries as much as it can; another may not.",
        Kind::QuotaUnavailable => "The ledger does not answer, and nothing is served that is not metered.",
        Kind::StoreUnavailable => "The object store does not answer.",
        Kind::AccessUnavailable => "The platform that knows the keys does not answer.",
        Kind::ShuttingDown => "The replica is stopping; try another.",
        Kind::InternalError => "A fault of the service: report the request id.",
    }
}

/// One of each kind.
fn kinds() -> Vec<Kind> {
    let refusal = Refusal {
        reason: RefusalReason::Busy,
        limit_bytes: 53_687_091_200,
        used_bytes: 53_600_000_000,
        reserved_bytes: 80_000_000,
        requested_bytes: 10_000_000,
        resets_at: LedgerTime(1_796_083_200_000),
        retry_after_ms: Some(20_000),
    };
    vec![
        Kind::Unauthenticated,
        Kind::AccessDenied(Capability::ArtifactsDownload),
        Kind::ProjectAccessDenied,
        Kind::HostDenied,
        Kind::OriginDenied,
        Kind::ProjectRequired,
        Kind::TrialNotFound,
        Kind::ArtifactNotFound,
        Kind::LinkNotFound,
        Kind::NotFound,
        Kind::InvalidRequest,
        Kind::InvalidCursor,
        Kind::InvalidLimit,
        Kind::InvalidName,
        Kind::MethodNotAllowed,
        Kind::RequestTooLarge,
        Kind::ArchiveTooLarge,
        Kind::UnsupportedMediaType,
        Kind::HeadersTooLarge,
        Kind::ArtifactChanged,
        Kind::ArtifactNotReady,
        Kind::ArtifactEncoded,
        Kind::LinkInvalid,
        Kind::LinkExpired,
        Kind::LinkRevoked,
        Kind::LinkStale,
        Kind::LinksDisabled,
        Kind::AdjustmentConflict,
        Kind::PreconditionFailed,
        Kind::RangeNotSatisfiable(1_048_576),
        Kind::DownloadQuotaExceeded(Box::new(At { now: LedgerTime(1_796_040_000_000), reply: refusal })),
        Kind::TooManyRequests,
        Kind::Overloaded,
        Kind::QuotaUnavailable,
        Kind::StoreUnavailable,
        Kind::AccessUnavailable,
        Kind::ShuttingDown,
        Kind::InternalError,
    ]
}

/// Whether the problem comes of asking for bytes, which HEAD does not.
pub(super) fn of_bytes(code: &str) -> bool {
    matches!(
        code,
        "RANGE_NOT_SATISFIABLE"
            | "DOWNLOAD_QUOTA_EXCEEDED"
            | "QUOTA_UNAVAILABLE"
            | "ARTIFACT_CHANGED"
            | "ARTIFACT_NOT_READY"
    )
}

/// The Response Objects of these codes, by status; for HEAD without content.
pub(super) fn responses(codes: &[&'static str], bodiless: bool) -> BTreeMap<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    let mut known = kinds();
    for code in codes {
        let at = known.iter().position(|kind| kind.code() == *code).unwrap_or_else(|| panic!("no problem is {code}"));
        let kind = known.swap_remove(at);
        by_status.entry(kind.status()).or_default().push(kind);
    }
    by_status.into_iter().map(|(status, kinds)| (status.to_string(), response(status, &kinds, bodiless))).collect()
}

fn response(status: u16, kinds: &[Kind], bodiless: bool) -> Value {
    let lines: Vec<_> = kinds.iter().map(|kind| format!("- `{}`: {}", kind.code(), meaning(kind))).collect();
    let mut response = json!({"description": lines.join("\n")});
    let names: &[&str] = match status {
        401 => &["WWW-Authenticate"],
        416 => &["Content-Range"],
        429 => &["Retry-After", "RateLimit", "RateLimit-Policy"],
        503 => &["Retry-After"],
        _ => &[],
    };
    let header = |name: &&str| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
    response["headers"] = Value::Object(names.iter().chain(&["X-Request-Id"]).map(header).collect());
    if bodiless {
        return response;
    }
    let codes: Vec<_> = kinds.iter().map(Kind::code).collect();
    let shared = |kind: &Kind| json!({"$ref": format!("#/components/examples/{}", kind.code())});
    let examples: Map<_, _> = kinds.iter().map(|kind| (kind.code().to_owned(), shared(kind))).collect();
    response["content"] = json!({"application/problem+json": {
        "schema": {
            "allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"properties": {"status": {"const": status}, "code": {"enum": codes}}},
            ],
        },
        "examples": examples,
    }});
    response
}

/// An example of each, by code, made by what makes the real ones.
pub(super) fn examples() -> Value {
    let example = |kind: Kind| {
        let (code, meaning) = (kind.code(), meaning(&kind));
        let value = problem::body(&Error::new(kind, meaning), "019ad0f2-8c4e-7000-8000-000000000002");
        (code.to_owned(), json!({"value": value}))
    };
    Value::Object(kinds().into_iter().map(example).collect())
}

/// The schema of every problem (RFC 9457, with this API's members).
pub(super) fn schema() -> Value {
    let known = kinds();
    let codes: Vec<_> = known.iter().map(Kind::code).collect();
    let bytes = |what: &str| json!({"type": "integer", "minimum": 0, "description": what});
    json!({
        "type": "object",
        "description": "RFC 9457. `code` is the contract; `detail` says what to do next.",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": {"const": "about:blank"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"type": "string", "enum": codes},
            "request_id": {"type": "string"},
            "missing_capability": {"type": "string", "enum": Capability::ALL},
            "reason": {"type": "string", "enum": [RefusalReason::Spent, RefusalReason::Busy, RefusalReason::TooLarge]},
            "limit_bytes": bytes("The allowance of the day."),
            "used_bytes": bytes("Charged to the day so far."),
            "reserved_bytes": bytes("Held by open reservations."),
            "requested_bytes": bytes("Asked for."),
            "resets_at": {"type": "string", "format": "date-time"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Kind::code` has an arm for each kind; this list is held against it by name.
    #[test]
    fn no_kind_is_left_out() {
        let source = include_str!("../../error.rs");
        let codes = source.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
        let listed: Vec<_> = kinds().iter().map(Kind::code).collect();
        let missing: Vec<_> = codes.filter(|code| !listed.contains(code)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
