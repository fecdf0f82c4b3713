//! The W3C trace context (<https://www.w3.org/TR/trace-context/>): which trace a request belongs to.

use std::fmt;

use http::HeaderMap;
use rand::RngExt as _;

use super::request::Notes;

/// The header that carries it, both ways.
pub const TRACEPARENT: &str = "traceparent";

/// A place in a trace: of the span that a request is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, not 0.
    pub trace_id: u128,
    /// The span of the request, not 0.
    pub span_id: u64,
    /// The caller's span, if it sent one.
    pub parent: Option<u64>,
    /// Whether spans are recorded.
    pub sampled: bool,
}

impl TraceContext {
    /// Goes on with the caller's trace, or begins one that is recorded with a chance of
    /// `sample_percent` in 100.
    #[must_use]
    pub fn of(headers: &HeaderMap, sample_percent: u64) -> Self {
        let mut lines = headers.get_all(TRACEPARENT).iter();
        let (first, second) = (lines.next(), lines.next());
        // One that was sent twice says nothing.
        let sent = first.filter(|_| second.is_none()).and_then(|value| parse(value.to_str().ok()?));
        let mut random = rand::rng();
        let span_id = random.random_range(1..=u64::MAX);
        match sent {
            Some((trace_id, parent, sampled)) => Self { trace_id, span_id, parent: Some(parent), sampled },
            None => {
                let sampled = random.random_range(0..100) < sample_percent;
                Self { trace_id: random.random_range(1..=u128::MAX), span_id, parent: None, sampled }
            }
        }
    }
}

/// The header's value for whoever is called on behalf of the request.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

/// Tells whoever is called on behalf of the present request which trace that belongs to.
pub fn pass_on(headers: &mut HeaderMap) {
    if let Some(value) = present().and_then(|trace| trace.to_string().parse().ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

/// The place of the present request, if it has one.
#[must_use]
pub fn present() -> Option<TraceContext> {
    Notes::current().and_then(|notes| notes.trace)
}

/// Trace, parent and whether it is sampled (section 3.2 of the recommendation). A later version may
/// go on behind what is known of it; version `ff` is invalid, and so are ids of nothing but zeros.
fn parse(text: &str) -> Option<(u128, u64, bool)> {
    let hex = |digits: &str| digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let part = |from: usize, to: usize| text.get(from..to).filter(|digits| hex(digits));
    let dash = |at: usize| text.as_bytes().get(at) == Some(&b'-');
    let version = u8::from_str_radix(part(0, 2)?, 16).ok()?;
    let ends = match version {
        0 => text.len() == 55,
        0xff => false,
        _ => text.len() == 55 || dash(55),
    };
    if !ends || !dash(2) || !dash(35) || !dash(52) {
        return None;
    }
    let trace_id = u128::from_str_radix(part(3, 35)?, 16).ok().filter(|id| *id != 0)?;
    let parent = u64::from_str_radix(part(36, 52)?, 16).ok().filter(|id| *id != 0)?;
    let flags = u8::from_str_radix(part(53, 55)?, 16).ok()?;
    Some((trace_id, parent, flags & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_sent_is_gone_on_with() {
        for (text, sampled) in [
            (SENT.to_owned(), Some(true)),
            (SENT.replace("-01", "-00"), Some(false)),
            (SENT.replace("-01", "-03"), Some(true)),
            (format!("cc{}-more", &SENT[2..]), Some(true)),
            (format!("{SENT}-more"), None),
            (format!("ff{}", &SENT[2..]), None),
            (SENT.to_uppercase(), None),
            (SENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)), None),
            (SENT.replace("b7ad6b7169203331", &"0".repeat(16)), None),
            (SENT[..54].to_owned(), None),
            (SENT.replacen('-', "_", 1), None),
            (String::new(), None),
            ("00-é".to_owned(), None),
        ] {
            assert_eq!(parse(&text).map(|(_, _, sampled)| sampled), sampled, "{text}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, SENT.parse().expect("a value"));
        let context = TraceContext::of(&headers, 0);
        assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((context.parent, context.sampled), (Some(0xb7ad_6b71_6920_3331), true));
        assert_eq!(parse(&context.to_string()), Some((context.trace_id, context.span_id, true)));
        headers.append(TRACEPARENT, SENT.parse().expect("a value"));
        assert_eq!(TraceContext::of(&headers, 100).parent, None, "sent twice");
    }

    #[test]
    fn a_new_trace_is_sampled_as_it_is_set() {
        assert!(TraceContext::of(&HeaderMap::new(), 100).sampled);
        assert!(!TraceContext::of(&HeaderMap::new(), 0).sampled);
    }
}
