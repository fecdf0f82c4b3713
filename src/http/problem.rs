//! [`Error`] → response: the one place that knows what an error's body says (RFC 9457).

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use super::ratelimit;
use crate::error::{Error, Kind};
use crate::ledger::{Refusal, WarnAt};
use crate::request::RequestId;
use crate::telemetry::metrics;

/// What to tell a client that found the service without its store or ledger, s.
const RETRY_SECONDS: u64 = 1;

/// An error on its way to the client. It becomes a body where the request's id is known: see
/// [`render`].
#[derive(Clone)]
pub struct Problem(Arc<Error>);

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self(Arc::new(error))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = status(self.0.kind()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

fn status(kind: &Kind) -> StatusCode {
    StatusCode::from_u16(kind.status()).expect("a status of three digits")
}

/// Gives a response that carries a [`Problem`] its body and headers, and logs what the body hides. Who is
/// refused is warned from `warn_at` on, as who is admitted.
pub(super) fn render(response: Response, request_id: &RequestId, warn_at: WarnAt) -> Response {
    let Some(Problem(error)) = response.extensions().get::<Problem>().cloned() else { return response };
    metrics().refused(error.kind().code());
    // A process that is full, or stops, says so once, and not with every request.
    let expected = matches!(error.kind(), Kind::Overloaded | Kind::ShuttingDown);
    if status(error.kind()).is_server_error() && !expected {
        tracing::error!(%request_id, ?error, "the request failed");
    } else {
        tracing::debug!(%request_id, ?error, "the request was refused");
    }
    let mut given = response.into_parts().0.headers;
    let mut rendered = (status(error.kind()), body(&error, request_id.as_str()).to_string()).into_response();
    let headers = rendered.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(allow) = given.remove(ALLOW) {
        headers.insert(ALLOW, allow);
    }
    match error.kind() {
        Kind::Unauthenticated => {
            let plain = HeaderValue::from_static("Bearer realm=\"artifactd\"");
            headers.insert(WWW_AUTHENTICATE, given.remove(WWW_AUTHENTICATE).unwrap_or(plain));
        }
        Kind::RangeNotSatisfiable(length) => {
            if let Ok(value) = HeaderValue::from_str(&format!("bytes */{length}")) {
                headers.insert(CONTENT_RANGE, value);
            }
        }
        _ => {}
    }
    if let Kind::DownloadQuotaExceeded(refusal) = error.kind() {
        ratelimit::of_refusal(headers, refusal, warn_at);
    }
    if let Some(seconds) = retry_after(error.kind()) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    rendered
}

/// Delta seconds (RFC 9110 §10.2.3), rounded up, for answers that waiting changes.
fn retry_after(kind: &Kind) -> Option<u64> {
    match kind {
        Kind::DownloadQuotaExceeded(refusal) => refusal.reply.retry_after_seconds(),
        Kind::TooManyRequests
        | Kind::Overloaded
        | Kind::QuotaUnavailable
        | Kind::StoreUnavailable
        | Kind::AccessUnavailable
        | Kind::ShuttingDown => Some(RETRY_SECONDS),
        _ => None,
    }
}

pub(super) fn body(error: &Error, request_id: &str) -> Value {
    let status = status(error.kind());
    let mut body = Map::new();
    body.insert("type".into(), json!("about:blank"));
    body.insert("title".into(), json!(status.canonical_reason()));
    body.insert("status".into(), json!(status.as_u16()));
    body.insert("detail".into(), json!(error.message()));
    body.insert("code".into(), json!(error.kind().code()));
    body.insert("request_id".into(), json!(request_id));
    match error.kind() {
        Kind::AccessDenied(missing) => {
            body.insert("missing_capability".into(), json!(missing));
        }
        Kind::DownloadQuotaExceeded(refusal) => {
            let Refusal { reason, limit_bytes, used_bytes, reserved_bytes, requested_bytes, resets_at, .. } =
                &refusal.reply;
            body.insert("reason".into(), json!(reason));
            body.insert("limit_bytes".into(), json!(limit_bytes));
            body.insert("used_bytes".into(), json!(used_bytes));
            body.insert("reserved_bytes".into(), json!(reserved_bytes));
            body.insert("requested_bytes".into(), json!(requested_bytes));
            body.insert("resets_at".into(), json!(resets_at.timestamp()));
        }
        _ => {}
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{At, LedgerTime, RefusalReason};

    fn refusal(reason: RefusalReason, retry_after_ms: Option<u64>) -> Kind {
        let reply = Refusal {
            reason,
            limit_bytes: 10,
            used_bytes: 4,
            reserved_bytes: 5,
            requested_bytes: 6,
            resets_at: LedgerTime(1_764_460_800_000),
            retry_after_ms,
        };
        Kind::DownloadQuotaExceeded(Box::new(At { now: LedgerTime(1_764_460_799_000), reply }))
    }

    #[test]
    fn a_refusal_says_how_much_and_when() {
        let id = RequestId::of(&http::HeaderMap::new());
        let kind = refusal(RefusalReason::Busy, Some(1_001));
        assert_eq!(retry_after(&kind), Some(2));
        let body = body(&Error::new(kind, "d"), id.as_str());
        assert_eq!(body["reason"], "busy");
        assert_eq!(body["limit_bytes"], 10);
        assert_eq!(body["requested_bytes"], 6);
        assert_eq!(body["resets_at"], "2025-11-30T00:00:00Z");
        assert_eq!(body["request_id"], id.as_str());
        assert_eq!(retry_after(&refusal(RefusalReason::TooLarge, None)), None);
    }

    #[test]
    fn causes_stay_out_of_the_body() {
        let error = Error::internal("secret detail");
        let body = body(&error, "r").to_string();
        assert!(!body.contains("secret"), "{body}");
        assert!(body.contains("INTERNAL_ERROR"));
    }
}
