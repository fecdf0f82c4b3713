//! Whole numbers as JSON writes them: `900` and `900.0` are the same number, and JSON Schema calls both
//! an integer.

use serde::de::Unexpected;
use serde::{Deserialize, Deserializer, de};
use serde_json::Number;

/// The largest float that is surely the whole number it looks like.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// The number, also where a client writes it with a fraction of zero.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "whole, and far within its bounds")]
pub fn integer(number: &Number) -> Option<i64> {
    let exact = |float: f64| (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64);
    number.as_i64().or_else(|| number.as_f64().filter(|_| number.is_f64()).and_then(exact))
}

/// For `#[serde(deserialize_with)]` on an [`i64`].
///
/// # Errors
/// What is no whole number.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<i64, D::Error> {
    let number = Number::deserialize(d)?;
    integer(&number).ok_or_else(|| fault(&number, "a whole number"))
}

/// For `#[serde(default, deserialize_with)]` on an optional count.
///
/// # Errors
/// What is no whole number, or below 0.
pub fn deserialize_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    let count = |number: &Number| integer(number).and_then(|number| u64::try_from(number).ok());
    let number = Option::<Number>::deserialize(d)?;
    number.map(|number| count(&number).ok_or_else(|| fault(&number, "a whole number from 0"))).transpose()
}

fn fault<E: de::Error>(number: &Number, expected: &str) -> E {
    E::invalid_type(Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)), &expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_in_every_spelling() {
        for (text, want) in [
            ("900", Some(900)),
            ("900.0", Some(900)),
            ("9e2", Some(900)),
            ("-1.0", Some(-1)),
            ("0.5", None),
            ("1e300", None),
            ("9007199254740993.0", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
        ] {
            let number: Number = serde_json::from_str(text).expect("a number");
            assert_eq!(integer(&number), want, "{text}");
        }
    }

    #[test]
    fn counts() {
        let of = |text: &str| deserialize_count(&mut serde_json::Deserializer::from_str(text)).ok();
        assert_eq!(of("900.0"), Some(Some(900)));
        assert_eq!(of("null"), Some(None));
        for text in ["-1", "0.5", "\"9\"", "true", "[9]"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
