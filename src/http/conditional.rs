//! Conditional requests: what a GET or HEAD answers, given the validators of what is there.
//!
//! RFC 9110 §13.2.2 fixes the order: If-Match, If-Unmodified-Since, If-None-Match,
//! If-Modified-Since, then If-Range and Range. All of it is judged before anything is reserved.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE};
use http::{HeaderMap, Method};

use crate::artifact::range::{Selection, select};
use crate::error::{Error, Kind};
use crate::store::{ETag, Stat};

/// What to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The bytes of the range: all of them, as 200.
    Whole,
    /// A part of them, as 206.
    Part(Range<u64>),
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
    /// 416.
    Unsatisfiable,
}

impl Verdict {
    /// Whether a GET is answered with bytes of the artifact.
    pub(super) const fn opens(&self) -> bool {
        matches!(self, Self::Whole | Self::Part(_))
    }

    /// The range, if it is one.
    pub(super) fn part(self) -> Option<Range<u64>> {
        if let Self::Part(range) = self { Some(range) } else { None }
    }
}

/// The answer to [`Verdict::PreconditionFailed`].
pub(super) fn precondition_failed() -> Error {
    Error::new(Kind::PreconditionFailed, "This is another version than asked for.")
}

/// The fields that are judged.
const FIELDS: [HeaderName; 6] = [IF_MATCH, IF_UNMODIFIED_SINCE, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE, RANGE];

/// Judges the head of a GET or HEAD request against a version.
pub(super) fn judge(method: &Method, headers: &HeaderMap, stat: &Stat) -> Verdict {
    // Most requests have none of them, and few others.
    if !headers.keys().any(|name| FIELDS.contains(name)) {
        return Verdict::Whole;
    }
    if let Some(tags) = list(headers, &IF_MATCH) {
        if !tags.matches(|tag| tag.strong_eq(&stat.etag)) {
            return Verdict::PreconditionFailed;
        }
    } else if let Some(date) = date(headers, &IF_UNMODIFIED_SINCE)
        && seconds(stat.modified) > seconds(date)
    {
        return Verdict::PreconditionFailed;
    }
    if let Some(tags) = list(headers, &IF_NONE_MATCH) {
        if tags.matches(|tag| tag.weak_eq(&stat.etag)) {
            return Verdict::NotModified;
        }
    } else if let Some(date) = date(headers, &IF_MODIFIED_SINCE)
        && seconds(stat.modified) <= seconds(date)
    {
        return Verdict::NotModified;
    }
    // §14.2: Range is defined for GET alone.
    if *method != Method::GET || !if_range(headers, stat) {
        return Verdict::Whole;
    }
    match select(only(headers, &RANGE), stat.size) {
        Selection::Whole => Verdict::Whole,
        Selection::Part(range) => Verdict::Part(range),
        Selection::Unsatisfiable => Verdict::Unsatisfiable,
    }
}

/// §13.1.5: true if absent; an entity tag by the strong comparison; a date only if it is exactly the
/// Last-Modified, and the version is settled enough to have a strong validator.
fn if_range(headers: &HeaderMap, stat: &Stat) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    let Some(value) = only(headers, &IF_RANGE) else { return false };
    if value.starts_with('"') || value.starts_with("W/") {
        return ETag::parse(value).is_some_and(|tag| tag.strong_eq(&stat.etag));
    }
    !stat.etag.is_weak() && httpdate::parse_http_date(value).is_ok_and(|date| seconds(date) == seconds(stat.modified))
}

enum Tags {
    Any,
    These(Vec<ETag>),
}

impl Tags {
    fn matches(&self, same: impl Fn(&ETag) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(same),
        }
    }
}

/// The entity tags of a field. A malformed one matches nothing.
fn list(headers: &HeaderMap, name: &HeaderName) -> Option<Tags> {
    let mut tags = Vec::new();
    let mut present = false;
    for value in headers.get_all(name) {
        present = true;
        let mut rest = value.to_str().unwrap_or_default().trim();
        if rest == "*" {
            return Some(Tags::Any);
        }
        // A comma may stand inside the quotes, so tags are taken off one by one.
        while let Some(open) = rest.find('"') {
            let weak = rest[..open].ends_with("W/");
            let Some(length) = rest[open + 1..].find('"') else { break };
            let opaque = &rest[open + 1..open + 1 + length];
            tags.push(if weak { ETag::weak(opaque) } else { ETag::strong(opaque) });
            rest = &rest[open + length + 2..];
        }
    }
    present.then_some(Tags::These(tags))
}

/// A field that must occur once to mean anything.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(only(headers, name)?).ok()
}

/// HTTP dates have whole seconds; a file's time is cut down to them before they are compared.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Verdict::{NotModified, Part, PreconditionFailed, Unsatisfiable, Whole};
    use super::*;
    use crate::store::Kept;

    const AT: &str = "Sun, 29 Nov 2026 12:00:00 GMT";
    const BEFORE: &str = "Sun, 29 Nov 2026 11:59:59 GMT";
    const AFTER: &str = "Sun, 29 Nov 2026 12:00:01 GMT";

    fn verdict(method: &Method, pairs: &[(&str, &str)], etag: ETag) -> Verdict {
        let modified = httpdate::parse_http_date(AT).expect("date") + Duration::from_millis(900);
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().expect("name"), value.parse().expect("value"));
        }
        judge(method, &headers, &Stat { size: 10, etag, modified, kept: Kept::default() })
    }

    #[test]
    fn conditionals_in_the_order_of_rfc_9110_13_2_2() {
        for (pairs, want) in [
            (&[][..], Whole),
            (&[("if-match", "\"v\"")], Whole),
            (&[("if-match", "*")], Whole),
            (&[("if-match", "\"x\", \"v\"")], Whole),
            (&[("if-match", "\"x,\\\", \"v\"")], Whole),
            (&[("if-match", "\"x\"")], PreconditionFailed),
            (&[("if-match", "W/\"v\"")], PreconditionFailed),
            (&[("if-match", "nonsense")], PreconditionFailed),
            (&[("if-match", "\"v\""), ("if-unmodified-since", BEFORE)], Whole),
            (&[("if-unmodified-since", BEFORE)], PreconditionFailed),
            (&[("if-unmodified-since", AT)], Whole),
            (&[("if-unmodified-since", "nonsense")], Whole),
            (&[("if-none-match", "\"v\"")], NotModified),
            (&[("if-none-match", "W/\"v\"")], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "\"x\"")], Whole),
            (&[("if-none-match", "\"x\""), ("if-none-match", "\"v\"")], NotModified),
            (&[("if-none-match", "\"x\""), ("if-modified-since", AFTER)], Whole),
            (&[("if-modified-since", AT)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", BEFORE)], Whole),
            (&[("if-match", "\"x\""), ("if-none-match", "\"v\"")], PreconditionFailed),
            (&[("range", "bytes=1-2")], Part(1..3)),
            (&[("range", "bytes=1-2"), ("range", "bytes=1-2")], Whole),
            (&[("range", "bytes=10-")], Unsatisfiable),
            (&[("range", "bytes=10-"), ("if-none-match", "\"v\"")], NotModified),
            (&[("range", "bytes=1-2"), ("if-range", "\"v\"")], Part(1..3)),
            (&[("range", "bytes=1-2"), ("if-range", "\"x\"")], Whole),
            (&[("range", "bytes=1-2"), ("if-range", "W/\"v\"")], Whole),
            (&[("range", "bytes=1-2"), ("if-range", AT)], Part(1..3)),
            (&[("range", "bytes=1-2"), ("if-range", BEFORE)], Whole),
            (&[("range", "bytes=1-2"), ("if-range", AFTER)], Whole),
            (&[("range", "bytes=99-"), ("if-range", "\"x\"")], Whole),
        ] {
            assert_eq!(verdict(&Method::GET, pairs, ETag::strong("v")), want, "{pairs:?}");
        }
    }

    #[test]
    fn a_weak_validator_serves_no_strong_comparison() {
        for (pairs, want) in [
            (&[("if-match", "W/\"v\"")][..], PreconditionFailed),
            (&[("if-match", "*")], Whole),
            (&[("if-none-match", "W/\"v\"")], NotModified),
            (&[("range", "bytes=1-2"), ("if-range", "W/\"v\"")], Whole),
            (&[("range", "bytes=1-2"), ("if-range", AT)], Whole),
            (&[("range", "bytes=1-2")], Part(1..3)),
        ] {
            assert_eq!(verdict(&Method::GET, pairs, ETag::weak("v")), want, "{pairs:?}");
        }
    }

    #[test]
    fn head_ignores_ranges() {
        for range in ["bytes=1-2", "bytes=99-"] {
            assert_eq!(verdict(&Method::HEAD, &[("range", range)], ETag::strong("v")), Whole);
        }
    }
}
