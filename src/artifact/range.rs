//! A `Range` header and a length → the bytes to send (RFC 9110 §14).

use std::ops::Range;

/// What a request selects of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of it, as status 200.
    Whole,
    /// A part that is not empty, as status 206.
    Part(Range<u64>),
    /// Nothing that exists: status 416.
    Unsatisfiable,
}

/// Judges the value of a `Range` header against a representation of `length` bytes.
///
/// One range of bytes is honoured: from–to, from (open), or the last n (suffix), clamped to the
/// length. Several ranges, other units and malformed values select the whole, as §14.2 allows. On
/// an empty representation every well-formed range is unsatisfiable.
#[must_use]
pub fn select(header: Option<&str>, length: u64) -> Selection {
    header.and_then(one_range).map_or(Selection::Whole, |spec| {
        let range = match spec {
            Spec::From(first, last) => first..last.saturating_add(1).min(length),
            Spec::Last(n) => length.saturating_sub(n)..length,
        };
        if range.is_empty() { Selection::Unsatisfiable } else { Selection::Part(range) }
    })
}

enum Spec {
    From(u64, u64),
    Last(u64),
}

fn one_range(header: &str) -> Option<Spec> {
    let (unit, set) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = set.split(',').map(|spec| spec.trim_matches([' ', '\t'])).filter(|spec| !spec.is_empty());
    let spec = specs.next()?;
    if specs.next().is_some() {
        return None;
    }
    match spec.split_once('-')? {
        ("", last) => Some(Spec::Last(number(last)?)),
        (first, "") => Some(Spec::From(number(first)?, u64::MAX)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, last))
        }
    }
}

/// Digits of any count: a number too large for 64 bits lies past every file.
fn number(digits: &str) -> Option<u64> {
    let legal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    legal.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Selection::{Part, Unsatisfiable, Whole};

    #[test]
    fn one_range_in_every_form() {
        const ABSURD: &str = "99999999999999999999999999";
        for (header, length, want) in [
            ("bytes=0-0", 10, Part(0..1)),
            ("bytes=2-5", 10, Part(2..6)),
            ("bytes=2-", 10, Part(2..10)),
            ("bytes=-3", 10, Part(7..10)),
            ("bytes=-30", 10, Part(0..10)),
            ("bytes=9-99", 10, Part(9..10)),
            ("bytes=10-", 10, Unsatisfiable),
            ("bytes=10-12", 10, Unsatisfiable),
            ("bytes=-0", 10, Unsatisfiable),
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=-5", 0, Unsatisfiable),
            ("BYTES=1-2", 10, Part(1..3)),
            ("bytes= 1-2 ,", 10, Part(1..3)),
            (&format!("bytes=0-{ABSURD}"), 10, Part(0..10)),
            (&format!("bytes=-{ABSURD}"), 10, Part(0..10)),
            (&format!("bytes={ABSURD}-"), 10, Unsatisfiable),
            (&format!("bytes={}-", u64::MAX), u64::MAX, Unsatisfiable),
        ] {
            assert_eq!(select(Some(header), length), want, "{header} of {length}");
        }
    }

    #[test]
    fn what_is_no_range_selects_the_whole() {
        assert_eq!(select(None, 10), Whole);
        for header in [
            "bytes=abc",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=1-2,4-5",
            "bytes=1 -2",
            "bytes=+1-2",
            "items=0-1",
            "bytes 0-1",
            "",
            "bytes=0-1-2",
            "bytes=0x1-2",
        ] {
            assert_eq!(select(Some(header), 10), Whole, "{header}");
        }
    }
}
