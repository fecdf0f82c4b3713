//! `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10): how much of the
//! day's allowance is left, on every metered answer.
//!
//! ```text
//! RateLimit-Policy: "daily";q=53687091200;w=86400;qu="content-bytes"
//! RateLimit: "daily";r=53634662400;t=7200
//! RateLimit: "daily";r=5368709120;t=7200;artifactd-warn=80
//! ```
//!
//! The last is what an answer says from the warning threshold on, in percent of the allowance used.
//! Parameters that the draft does not define are allowed and ignored by who does not know them; the
//! name begins with this service's, as it asks of them. The numbers stay those of the allowance: a
//! second policy that is "exhausted" early would make clients stop.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::ledger::{Allowance, At, Refusal, Standing, WarnAt};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Adds how the account stood when the read was admitted. An unlimited one has no such fields.
pub(super) fn of_admission(headers: &mut HeaderMap, standing: At<Standing>, warn_at: WarnAt) {
    let At { now, reply: Standing { allowance, used, reserved, resets_at, .. } } = standing;
    if let Some(quota) = allowance.bytes() {
        let warning = warn_at.reached(allowance, used).then_some(warn_at);
        let left = quota.saturating_sub(used.saturating_add(reserved));
        add(headers, quota, left, resets_at.since(now), warning);
    }
}

/// Adds how the account stood when the read was refused.
pub(super) fn of_refusal(headers: &mut HeaderMap, refusal: &At<Refusal>, warn_at: WarnAt) {
    let At { now, reply: Refusal { limit_bytes, used_bytes, reserved_bytes, resets_at, .. } } = *refusal;
    let warning = warn_at.reached(Allowance::Bytes(limit_bytes), used_bytes).then_some(warn_at);
    let left = limit_bytes.saturating_sub(used_bytes.saturating_add(reserved_bytes));
    add(headers, limit_bytes, left, resets_at.since(now), warning);
}

/// The window is named as 24 hours; on the two days a year when it is not, `t` is right all the same.
fn add(headers: &mut HeaderMap, quota: u64, remaining: u64, reset_ms: u64, warning: Option<WarnAt>) {
    let policy = format!("\"daily\";q={quota};w=86400;qu=\"content-bytes\"");
    let warning = warning.map(|at| format!(";artifactd-warn={}", at.percent())).unwrap_or_default();
    let limit = format!("\"daily\";r={remaining};t={}{warning}", reset_ms.div_ceil(1000));
    for (name, value) in [(POLICY, policy), (LIMIT, limit)] {
        headers.insert(name, HeaderValue::from_str(&value).expect("digits and punctuation"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Day, LedgerTime, RefusalReason};

    #[test]
    fn what_is_left_and_until_when() {
        let standing = |allowance| At {
            now: LedgerTime(1_000),
            reply: Standing {
                day: Day::parse("2026-11-29").expect("valid"),
                allowance,
                used: 30,
                reserved: 20,
                resets_at: LedgerTime(3_500),
            },
        };
        let mut headers = HeaderMap::new();
        let warn_at = WarnAt::default();
        of_admission(&mut headers, standing(Allowance::Unlimited), warn_at);
        assert!(headers.is_empty());
        of_admission(&mut headers, standing(Allowance::Bytes(100)), warn_at);
        assert_eq!(headers[POLICY], "\"daily\";q=100;w=86400;qu=\"content-bytes\"");
        assert_eq!(headers[LIMIT], "\"daily\";r=50;t=3");
        of_admission(&mut headers, standing(Allowance::Bytes(40)), warn_at);
        assert_eq!(headers[LIMIT], "\"daily\";r=0;t=3");
        of_admission(&mut headers, standing(Allowance::Bytes(37)), warn_at);
        assert_eq!(headers[LIMIT], "\"daily\";r=0;t=3;artifactd-warn=80");
    }

    #[test]
    fn a_refusal_warns_as_an_admission_does() {
        for (limit_bytes, want) in [(37, "\"daily\";r=0;t=3;artifactd-warn=80"), (38, "\"daily\";r=0;t=3")] {
            let reply = Refusal {
                reason: RefusalReason::Busy,
                limit_bytes,
                used_bytes: 30,
                reserved_bytes: 20,
                requested_bytes: 1,
                resets_at: LedgerTime(3_500),
                retry_after_ms: Some(1),
            };
            let mut headers = HeaderMap::new();
            of_refusal(&mut headers, &At { now: LedgerTime(1_000), reply }, WarnAt::default());
            assert_eq!(headers[LIMIT], want);
        }
    }
}
