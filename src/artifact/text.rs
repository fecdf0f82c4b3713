//! Windows: a span of a text file, on character boundaries, as a reader can safely see it.
//!
//! Any bytes divide into characters in exactly one way, whatever the place one starts to look at:
//! valid UTF-8 sequences cannot overlap, and every byte outside of them is a character of its own,
//! shown as U+FFFD (in UTF-16: surrogate pairs, and every lone surrogate or odd last byte). So a
//! boundary can be found by looking at three bytes around a place, windows tile the file, and
//! reading one costs what the window costs.
//!
//! ```text
//! Ask ──plan(encoding, total)──► Plan ──fetch()──► the bytes to get ──render(bytes)──► Window
//! ```

use std::ops::Range;

/// `max_bytes` of an [`Ask`] that says nothing.
pub const DEFAULT_BYTES: u64 = 8192;
/// The largest `max_bytes`.
pub const MAX_BYTES: u64 = 40_960;

/// No character is longer than this many bytes; a window looks one byte less beyond either edge.
const LONGEST: u64 = 4;

/// How bytes make characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8; also what is almost UTF-8 or ASCII.
    Utf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
}

impl Encoding {
    /// The name in answers (WHATWG Encoding Standard).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16Le => "utf-16le",
            Self::Utf16Be => "utf-16be",
        }
    }
}

/// What a reader asks for: where, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    offset: i64,
    max_bytes: u64,
}

impl Ask {
    /// A window from `offset` bytes after the start, or, if negative, before the end, of at most
    /// `max_bytes` of the file. `None` unless `max_bytes` is 1 to [`MAX_BYTES`].
    #[must_use]
    pub fn new(offset: i64, max_bytes: u64) -> Option<Self> {
        (1..=MAX_BYTES).contains(&max_bytes).then_some(Self { offset, max_bytes })
    }

    /// The bytes asked for, at most.
    #[must_use]
    pub const fn max_bytes(self) -> u64 {
        self.max_bytes
    }

    /// Applies the ask to a file of `total` bytes.
    #[must_use]
    pub fn plan(self, encoding: Encoding, total: u64) -> Plan {
        let start = match u64::try_from(self.offset) {
            Ok(offset) => offset.min(total),
            Err(_) => total.saturating_sub(self.offset.unsigned_abs()),
        };
        Plan { encoding, total, start, max_bytes: self.max_bytes }
    }
}

/// An [`Ask`] for a file of known length and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    encoding: Encoding,
    total: u64,
    start: u64,
    max_bytes: u64,
}

/// A rendered span of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The bytes of the file that the text shows; the next window begins at its end. Empty only at
    /// the end of the file.
    pub span: Range<u64>,
    /// The span as text: verbatim, but for what is counted below.
    pub text: String,
    /// Characters shown as visible escapes: controls, and marks that hide or reorder text.
    pub escaped: u64,
    /// Bytes (in UTF-16, code units) that are no characters, shown as U+FFFD.
    pub invalid: u64,
}

impl Plan {
    /// The bytes of the file that [`render`](Self::render) needs: the window and up to three bytes
    /// on either side. Empty if the window lies at the end.
    #[must_use]
    pub fn fetch(&self) -> Range<u64> {
        if self.start == self.total {
            return self.total..self.total;
        }
        let slack = LONGEST - 1;
        self.start.saturating_sub(slack)..self.start.saturating_add(self.max_bytes + slack).min(self.total)
    }

    /// Renders the window from the `bytes` of [`fetch`](Self::fetch).
    ///
    /// The span is at most `max_bytes` long and its text at most `max_units` UTF-16 code units,
    /// whichever ends it first, but always holds at least one character if there is one: a reader
    /// that goes on at the end of the span gets ahead.
    ///
    /// # Panics
    /// If `bytes` is not exactly as long as the range.
    #[must_use]
    pub fn render(&self, bytes: &[u8], max_units: usize) -> Window {
        let fetched = self.fetch();
        assert_eq!(
            Some(bytes.len()),
            usize::try_from(fetched.end - fetched.start).ok(),
            "the bytes that were asked for"
        );
        let cut = Cut { encoding: self.encoding, bytes, base: fetched.start };
        let start = cut.first_byte_of_character(self.start);
        let end = start.saturating_add(self.max_bytes).min(self.total);
        let mut window = Window { span: start..start, text: String::new(), escaped: 0, invalid: 0 };
        let mut units = 0;
        while window.span.end < end {
            let (length, character) = cut.character(window.span.end);
            let escape = character.filter(|c| must_be_escaped(*c)).map(escape);
            let shown = match &escape {
                Some(escape) => escape.len(),
                None => character.map_or(1, char::len_utf16),
            };
            let first = window.span.is_empty();
            if !first && (window.span.end + length > end || units + shown > max_units) {
                break;
            }
            units += shown;
            window.span.end += length;
            match (escape, character) {
                (Some(escape), _) => {
                    window.escaped += 1;
                    window.text.push_str(&escape);
                }
                (None, Some(character)) => window.text.push(character),
                (None, None) => {
                    window.invalid += 1;
                    window.text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        window
    }
}

/// A piece of a file, by the file's offsets.
struct Cut<'a> {
    encoding: Encoding,
    bytes: &'a [u8],
    base: u64,
}

impl Cut<'_> {
    fn rest(&self, at: u64) -> &[u8] {
        let index = usize::try_from(at - self.base).unwrap_or(usize::MAX);
        self.bytes.get(index..).unwrap_or_default()
    }

    /// Where the character begins that the byte at `at` is part of.
    fn first_byte_of_character(&self, at: u64) -> u64 {
        (at.saturating_sub(LONGEST - 1).max(self.base)..at)
            .filter(|before| self.encoding == Encoding::Utf8 || before.is_multiple_of(2))
            .find(|before| before + self.character(*before).0 > at)
            .unwrap_or(at)
    }

    /// Length in bytes of the character at `at`, and the character, unless it is invalid.
    fn character(&self, at: u64) -> (u64, Option<char>) {
        let rest = self.rest(at);
        match self.encoding {
            Encoding::Utf8 => utf8(rest),
            Encoding::Utf16Le => utf16(rest, u16::from_le_bytes),
            Encoding::Utf16Be => utf16(rest, u16::from_be_bytes),
        }
    }
}

fn utf8(bytes: &[u8]) -> (u64, Option<char>) {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    let valid = bytes.get(..length).and_then(|sequence| std::str::from_utf8(sequence).ok());
    match valid.and_then(|text| text.chars().next()) {
        Some(character) => (length as u64, Some(character)),
        None => (1, None),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> (u64, Option<char>) {
    let Some((&first, rest)) = bytes.split_first_chunk() else {
        return (1, None);
    };
    let pair = [unit(first), rest.first_chunk().map_or(0, |second| unit(*second))];
    match char::decode_utf16(pair).next() {
        Some(Ok(character)) => (2 * character.len_utf16() as u64, Some(character)),
        _ => (2, None),
    }
}

/// Whether a reader must see that the character is there: control characters but tab, line feed and
/// carriage return, and characters that have no width, or change the order of others (all that
/// Unicode calls `Default_Ignorable_Code_Point`, but for the two selectors that emoji have).
fn must_be_escaped(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        c if c.is_control() => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{3164}'
        | '\u{ffa0}' => true,
        // Zero width, marks of direction, line and paragraph separators, embeddings, isolates.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Tags and the variation selectors beyond those of emoji can smuggle whole hidden texts.
        '\u{fe00}'..='\u{fe0d}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// A short text with every character that a reader must see shown as an escape: for names.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || must_be_escaped(c) { shown.push_str(&escape(c)) } else { shown.push(c) }
    }
    shown
}

/// JSON with every character that a reader must see written as JSON's own escape (RFC 8259 §7): the
/// value is the same.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if must_be_escaped(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown += &format!("\\u{unit:04x}"));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// `\x1b`, `\u{202e}`.
fn escape(c: char) -> String {
    match u32::from(c) {
        byte @ 0..=0xff => format!("\\x{byte:02x}"),
        code => format!("\\u{{{code:x}}}"),
    }
}

#[cfg(test)]
mod tests;
