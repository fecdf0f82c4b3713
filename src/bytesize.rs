//! Amounts of bytes as people write them in settings: `8 MiB`, `50 GiB`, `123`, `unlimited`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use crate::ledger::{Allowance, MAX_AMOUNT};
use crate::request::number::integer;

/// A whole number of bytes, 0 to [`MAX_AMOUNT`].
///
/// Written as digits, then optionally a space and a unit: `B`, `kB`, `MB`, `GB`, `TB`, `PB` (powers
/// of 1000) or `KiB`, `MiB`, `GiB`, `TiB`, `PiB` (powers of 1024). Without a unit: bytes. In TOML it
/// may also be a number. No fractions and no floating point: what is written is what is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// Why a text is not an amount of bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an amount of bytes is a whole number up to 2^53 - 1, such as 123, \"8 MiB\" or \"50 GB\"")]
pub struct InvalidSize;

const UNITS: [(&str, u64); 11] = [
    ("B", 1),
    ("kB", 1000),
    ("MB", 1000_u64.pow(2)),
    ("GB", 1000_u64.pow(3)),
    ("TB", 1000_u64.pow(4)),
    ("PB", 1000_u64.pow(5)),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
];

impl ByteSize {
    /// `bytes` bytes; `None` above [`MAX_AMOUNT`].
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes <= MAX_AMOUNT { Some(Self(bytes)) } else { None }
    }

    /// The amount in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at(digits);
        // parse() would take a sign; it sees digits only.
        let number: u64 = number.parse().map_err(|_| InvalidSize)?;
        let unit = match rest {
            "" => 1,
            rest => {
                let unit = rest.strip_prefix(' ').unwrap_or(rest);
                UNITS.iter().find(|(name, _)| *name == unit).ok_or(InvalidSize)?.1
            }
        };
        number.checked_mul(unit).and_then(Self::new).ok_or(InvalidSize)
    }
}

/// The shortest exact text with a unit of 1024: it reads back as the same amount.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = UNITS.iter().rev().filter(|(name, _)| name.ends_with("iB"));
        match binary.clone().find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// An amount as people read it in a table: `17 B`, `41.9 GiB`; rounded down to a tenth of its unit.
#[must_use]
pub fn rounded(bytes: u64) -> String {
    let binary = UNITS.iter().rev().filter(|(name, _)| name.ends_with("iB"));
    match binary.clone().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

/// Reads an allowance: `unlimited`, or an amount as [`ByteSize`] reads it.
///
/// # Errors
/// [`InvalidSize`].
pub fn parse_allowance(text: &str) -> Result<Allowance, InvalidSize> {
    match text {
        "unlimited" => Ok(Allowance::Unlimited),
        text => text.parse().map(|size: ByteSize| Allowance::Bytes(size.bytes())),
    }
}

/// For `#[serde(deserialize_with)]` on an [`Allowance`]: a string or a number.
///
/// # Errors
/// What [`parse_allowance`] refuses.
pub fn deserialize_allowance<'de, D: Deserializer<'de>>(d: D) -> Result<Allowance, D::Error> {
    d.deserialize_any(Visitor(parse_allowance, |size| Allowance::Bytes(size.bytes())))
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Visitor(str::parse, |size| size))
    }
}

/// Reads a text by the first function, or a number and then the second.
struct Visitor<T>(fn(&str) -> Result<T, InvalidSize>, fn(ByteSize) -> T);

impl<T> de::Visitor<'_> for Visitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{InvalidSize}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.0(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        ByteSize::new(number).map(self.1).ok_or_else(|| E::custom(InvalidSize))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_u64(u64::try_from(number).map_err(|_| E::custom(InvalidSize))?)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        let whole = serde_json::Number::from_f64(number).as_ref().and_then(integer);
        self.visit_i64(whole.ok_or_else(|| E::custom(InvalidSize))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        for (text, bytes, shown) in [
            ("0", 0, "0 B"),
            ("123", 123, "123 B"),
            ("123B", 123, "123 B"),
            ("007 B", 7, "7 B"),
            ("1kB", 1000, "1000 B"),
            ("1 KiB", 1024, "1 KiB"),
            ("1536", 1536, "1536 B"),
            ("8 MiB", 8 << 20, "8 MiB"),
            ("8MiB", 8 << 20, "8 MiB"),
            ("50 GiB", 50 << 30, "50 GiB"),
            ("50 GB", 50_000_000_000, "48828125 KiB"),
            ("1024 GiB", 1 << 40, "1 TiB"),
            ("7 PiB", 7 << 50, "7 PiB"),
            ("9 PB", 9_000_000_000_000_000, "8789062500000 KiB"),
            ("9007199254740991", MAX_AMOUNT, "9007199254740991 B"),
        ] {
            let size: ByteSize = text.parse().expect(text);
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, shown), "{text}");
            assert_eq!(size.to_string().parse(), Ok(size), "{text}");
        }
    }

    #[test]
    fn amounts_for_tables() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1023.9 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (MAX_AMOUNT, "7.9 PiB"),
        ] {
            assert_eq!(rounded(bytes), shown);
        }
    }

    #[test]
    fn what_is_no_amount() {
        for text in [
            "",
            " ",
            "B",
            "-1",
            "+1",
            "1.5 GiB",
            "1  MiB",
            " 1",
            "1 ",
            "1 mib",
            "1 MIB",
            "1 K",
            "1e3",
            "0x10",
            "1_000",
            "9007199254740992",
            "8 PiB",
            "18446744073709551616",
            "18014398509481984 KiB",
            "unlimited",
            "١",
        ] {
            assert_eq!(text.parse::<ByteSize>(), Err(InvalidSize), "{text:?}");
        }
    }

    #[test]
    fn settings_are_strings_or_numbers() {
        #[derive(Deserialize)]
        struct Settings {
            credit: ByteSize,
            #[serde(deserialize_with = "deserialize_allowance")]
            daily: Allowance,
        }
        let read = |text: &str| toml::from_str::<Settings>(text).map(|s| (s.credit.bytes(), s.daily));
        assert_eq!(read("credit='1 KiB'\ndaily='unlimited'"), Ok((1024, Allowance::Unlimited)));
        assert_eq!(read("credit=5\ndaily=0"), Ok((5, Allowance::Bytes(0))));
        assert_eq!(read("credit=5.0\ndaily=1e3"), Ok((5, Allowance::Bytes(1000))));
        assert_eq!(read("credit=5\ndaily='2 MB'"), Ok((5, Allowance::Bytes(2_000_000))));
        for bad in ["credit=-1\ndaily=0", "credit='unlimited'\ndaily=0", "credit=1\ndaily=''", "credit=1.5\ndaily=0"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
