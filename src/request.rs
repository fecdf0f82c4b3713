//! What every front reads from a request's head: its id and its credentials.

pub mod forwarded;
pub mod number;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use uuid::Uuid;

use crate::access::Credentials;

/// The header that carries a request's id, both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that names the workspace.
pub const WORKSPACE_ID: HeaderName = HeaderName::from_static("x-workspace-id");
/// The header that names the project.
pub const PROJECT_ID: HeaderName = HeaderName::from_static("x-project-id");

/// Names one request in answers, logs and the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The caller's id if it is 1 to 128 of `A-Z a-z 0-9 . _ -` and looks like no key, else a new
    /// UUIDv7: ids are logged, and shown to others.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let sane = |id: &&str| {
            (1..=128).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        };
        let sane = |id: &&str| sane(id) && !looks_like_a_key(id);
        match headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(sane) {
            Some(id) => Self(id.into()),
            None => Self((&*Uuid::now_v7().hyphenated().encode_lower(&mut Uuid::encode_buffer())).into()),
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text may be a secret that was put into the wrong header: one of our keys, also without
/// its prefix or in capitals, a JSON web token, or some provider's key.
fn looks_like_a_key(text: &str) -> bool {
    // As many as a UUID or a trace id has.
    const MOST_HEX_DIGITS: usize = 32;
    let lower = text.to_ascii_lowercase();
    let hex = lower.split(|c: char| !c.is_ascii_hexdigit()).map(str::len).max().unwrap_or(0);
    let of_others = ["sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "akia", "eyj"];
    hex > MOST_HEX_DIGITS || lower.contains("epk_") || of_others.iter().any(|prefix| lower.starts_with(prefix))
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads `Authorization: Bearer`, `X-Workspace-ID` and `X-Project-ID`.
///
/// A field that is sent more than once is its values joined by commas (RFC 9110 §5.2), which no key
/// and no id is: a proxy that looks at another line than this service must not let anyone in.
#[must_use]
pub fn credentials(headers: &HeaderMap) -> Credentials {
    let key = field(headers, &AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
    });
    let id = |name| field(headers, name).map(|value| value.trim().to_owned());
    Credentials { key, workspace: id(&WORKSPACE_ID), project: id(&PROJECT_ID) }
}

/// The value of a field.
fn field<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    // A request has few: looking at each is sooner done than looking one up.
    let mut lines = headers.iter().filter(|(its, _)| *its == name).map(|(_, line)| {
        let line = line.as_bytes();
        str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
    });
    let first = lines.next()?;
    Some(lines.fold(first, |joined, line| joined + "," + line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().expect("value"))).collect()
    }

    #[test]
    fn a_sane_request_id_is_kept() {
        assert_eq!(RequestId::of(&headers(&[(REQUEST_ID, "a.b_c-1")])).as_str(), "a.b_c-1");
        for bad in ["", "a b", "é", "a\"b", &"x".repeat(129)] {
            assert_ne!(RequestId::of(&headers(&[(REQUEST_ID, bad)])).as_str(), bad);
        }
        assert_eq!(RequestId::of(&HeaderMap::new()).as_str().len(), 36);
    }

    #[test]
    fn an_id_that_may_be_a_key_is_replaced() {
        let hex = "0123456789abcdef".repeat(4);
        for key in [
            format!("epk_{hex}"),
            format!("EPK_{hex}"),
            hex.clone(),
            hex.to_uppercase(),
            format!("request-epk_{}", &hex[..8]),
            hex[..40].to_owned(),
            "sk-proj-1234".to_owned(),
            "eyJhbGciOiJIUzI1NiJ9.e30.c2ln".to_owned(),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
        ] {
            assert_ne!(RequestId::of(&headers(&[(REQUEST_ID, &key)])).as_str(), key);
        }
        for id in [hex[..32].to_owned(), Uuid::now_v7().to_string(), "task-skewed.epk1".to_owned()] {
            assert_eq!(RequestId::of(&headers(&[(REQUEST_ID, &id)])).as_str(), id);
        }
    }

    #[test]
    fn a_field_sent_twice_names_nothing() {
        let twice = |name: HeaderName, value: &str| {
            let mut headers = headers(&[(name.clone(), value)]);
            headers.append(name, value.parse().expect("value"));
            credentials(&headers)
        };
        assert_eq!(twice(AUTHORIZATION, "Bearer k").key.as_deref(), Some("k,Bearer k"));
        assert_eq!(twice(WORKSPACE_ID, "w").workspace.as_deref(), Some("w,w"));
        assert_eq!(twice(PROJECT_ID, "p").project.as_deref(), Some("p,p"));
    }

    #[test]
    fn the_bearer_scheme_is_read_in_any_case() {
        for (value, key) in [
            ("Bearer k", Some("k")),
            ("bearer  k ", Some("k")),
            ("BEARER k", Some("k")),
            ("Basic k", None),
            ("k", None),
            ("Bearer", None),
        ] {
            assert_eq!(credentials(&headers(&[(AUTHORIZATION, value)])).key.as_deref(), key, "{value}");
        }
    }
}
