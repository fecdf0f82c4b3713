//! How bytes and names are written where only some characters may stand.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What is percent-encoded in a path segment (RFC 3986 §3.3): all but `unreserved` (§2.3).
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
