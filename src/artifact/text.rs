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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(encoding: Encoding, file: &[u8], offset: i64, max_bytes: u64, max_units: usize) -> Window {
        let plan = Ask::new(offset, max_bytes).expect("in bounds").plan(encoding, file.len() as u64);
        let fetch = plan.fetch();
        assert!(fetch.end - fetch.start <= max_bytes + 6, "never more than the window and its slack");
        plan.render(
            &file[usize::try_from(fetch.start).expect("small")..usize::try_from(fetch.end).expect("small")],
            max_units,
        )
    }

    #[test]
    fn where_windows_begin_and_end() {
        // a, é (2 bytes), 日 (3), 😀 (4), b: boundaries 0 1 3 6 10 11.
        let file = "aé日😀b".as_bytes();
        for (offset, max_bytes, span, text) in [
            (0, 8192, 0..11, "aé日😀b"),
            (0, 1, 0..1, "a"),
            (0, 2, 0..1, "a"),
            (0, 3, 0..3, "aé"),
            (1, 1, 1..3, "é"),
            (2, 1, 1..3, "é"),
            (4, 4, 3..6, "日"),
            (5, 7, 3..10, "日😀"),
            (6, 1, 6..10, "😀"),
            (9, 1, 6..10, "😀"),
            (10, 1, 10..11, "b"),
            (11, 8192, 11..11, ""),
            (12, 8192, 11..11, ""),
            (i64::MAX, 8192, 11..11, ""),
            (-1, 8192, 10..11, "b"),
            (-2, 8192, 6..11, "😀b"),
            (-11, 1, 0..1, "a"),
            (-12, 8192, 0..11, "aé日😀b"),
            (i64::MIN, 40_960, 0..11, "aé日😀b"),
        ] {
            let got = window(Encoding::Utf8, file, offset, max_bytes, usize::MAX);
            assert_eq!(
                (got.span, got.text.as_str(), got.escaped, got.invalid),
                (span, text, 0, 0),
                "{offset} {max_bytes}"
            );
        }
    }

    #[test]
    fn bounds_of_max_bytes() {
        assert!(Ask::new(0, 0).is_none() && Ask::new(0, 40_961).is_none());
        assert!(Ask::new(0, 1).is_some() && Ask::new(0, 40_960).is_some());
    }

    #[test]
    fn what_a_reader_must_see_is_escaped_and_counted() {
        for (file, text, escaped, invalid) in [
            ("tab\tline\r\n", "tab\tline\r\n", 0, 0),
            ("\0\x1b[31m\x07\x7f", "\\x00\\x1b[31m\\x07\\x7f", 4, 0),
            ("\u{85}", "\\x85", 1, 0),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u{202e}b\\u{2066}c\\u{2069}", 3, 0),
            ("\u{200b}\u{200d}\u{feff}\u{ad}", "\\u{200b}\\u{200d}\\u{feff}\\xad", 4, 0),
            ("\u{e0041}\u{e0100}\u{2028}", "\\u{e0041}\\u{e0100}\\u{2028}", 3, 0),
            ("e\u{301} ☺\u{fe0f} \u{a0}\u{fffd}", "e\u{301} ☺\u{fe0f} \u{a0}\u{fffd}", 0, 0),
        ] {
            let got = window(Encoding::Utf8, file.as_bytes(), 0, 8192, usize::MAX);
            assert_eq!((got.text.as_str(), got.escaped, got.invalid), (text, escaped, invalid), "{file:?}");
        }
        // Unicode 16, DerivedCoreProperties.txt: Default_Ignorable_Code_Point.
        let ignorable: [(u32, u32); 17] = [
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200f),
            (0x202a, 0x202e),
            (0x2060, 0x206f),
            (0x3164, 0x3164),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfff8),
            (0x1bca0, 0x1bca3),
            (0x1d173, 0x1d17a),
            (0xe0000, 0xe0fff),
        ];
        for c in ignorable.into_iter().flat_map(|(first, last)| first..=last).filter_map(char::from_u32) {
            assert_eq!(must_be_escaped(c), !matches!(c, '\u{fe0e}' | '\u{fe0f}'), "{c:?}");
        }
        for (file, text, invalid) in [
            (b"a\xffb".as_slice(), "a\u{fffd}b", 1),
            (b"\xe6\x97", "\u{fffd}\u{fffd}", 2),
            (b"\xe6\x97A", "\u{fffd}\u{fffd}A", 2),
            (b"\xc0\x80", "\u{fffd}\u{fffd}", 2),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}", 3),
            (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}", 4),
        ] {
            let got = window(Encoding::Utf8, file, 0, 8192, usize::MAX);
            assert_eq!((got.text.as_str(), got.escaped, got.invalid), (text, 0, invalid));
        }
    }

    #[test]
    fn json_stays_what_it_is() {
        let value = serde_json::json!({"a\u{202e}\x1b": "\u{200b}\u{e0041}日😀\n\u{7f}"});
        let shown = visible_json(&value.to_string());
        assert_eq!(shown, r#"{"a\u202e\u001b":"\u200b\udb40\udc41日😀\n\u007f"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn utf16_is_shown_as_utf8() {
        let le: Vec<u8> = "a😀日".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = "a😀日".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (encoding, file) in [(Encoding::Utf16Le, &le), (Encoding::Utf16Be, &be)] {
            assert_eq!(window(encoding, file, 0, 8192, usize::MAX).text, "a😀日");
            for offset in 2..=5 {
                assert_eq!(window(encoding, file, offset, 1, usize::MAX).span, 2..6, "{offset}");
            }
            assert_eq!(window(encoding, file, 7, 8192, usize::MAX).span, 6..8);
        }
        let odd = window(Encoding::Utf16Le, b"a\0\x00\xd8b\0x", 0, 8192, usize::MAX);
        assert_eq!((odd.span, odd.text.as_str(), odd.invalid), (0..7, "a\u{fffd}b\u{fffd}", 2));
    }

    #[test]
    fn a_window_ends_before_its_text_grows_too_long() {
        let nul = window(Encoding::Utf8, &[0; 100], 0, 100, 41);
        assert_eq!((nul.span, nul.text.len(), nul.escaped), (0..10, 40, 10));
        let astral = window(Encoding::Utf8, "😀😀😀".as_bytes(), 0, 100, 5);
        assert_eq!(astral.span, 0..8, "clients count UTF-16 code units");
        assert_eq!(window(Encoding::Utf8, b"\0", 0, 100, 0).span, 0..1, "it always gets ahead");
    }

    fn encodings() -> impl Strategy<Value = Encoding> {
        prop_oneof![Just(Encoding::Utf8), Just(Encoding::Utf16Le), Just(Encoding::Utf16Be)]
    }

    /// Bytes with many characters, halves of characters, controls and noise.
    fn files() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            ".{0,4}".prop_map(String::into_bytes),
            "[aé日😀\u{202e}\0\x1b]{1,5}".prop_map(String::into_bytes),
            ".{1,3}".prop_map(|s| s.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            proptest::collection::vec(prop_oneof![0x7f..=0xff_u8, 0xd8..=0xdf_u8], 0..4),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn windows_tile_any_file_from_any_offset(
            file in files(),
            encoding in encodings(),
            offset in -80_i64..80,
            max_bytes in 1_u64..20,
            max_units in 0_usize..30,
        ) {
            let total = file.len() as u64;
            let first = window(encoding, &file, offset, max_bytes, max_units);
            let asked = if offset >= 0 { offset.unsigned_abs().min(total) } else { total.saturating_sub(offset.unsigned_abs()) };
            prop_assert!(first.span.start <= asked && asked - first.span.start <= 3);

            // A boundary is the same boundary from wherever it is looked at.
            let whole = window(encoding, &file, 0, MAX_BYTES, usize::MAX);
            prop_assert_eq!(&whole.span, &(0..total));
            let (mut at, mut text, mut escaped, mut invalid) = (first.span.start, String::new(), 0, 0);
            let before = if at == 0 { Window { span: 0..0, text: String::new(), escaped: 0, invalid: 0 } }
                else { window(encoding, &file, 0, at, usize::MAX) };
            prop_assert_eq!(&before.span, &(0..at));
            while at < total {
                let next = window(encoding, &file, i64::try_from(at).expect("small"), max_bytes, max_units);
                prop_assert_eq!(next.span.start, at, "no gap, no overlap");
                prop_assert!(next.span.end > at, "always ahead");
                prop_assert!(next.span.end - at <= max_bytes.max(4));
                at = next.span.end;
                text += &next.text;
                escaped += next.escaped;
                invalid += next.invalid;
            }
            prop_assert_eq!(before.text + &text, whole.text.clone());
            prop_assert_eq!((before.escaped + escaped, before.invalid + invalid), (whole.escaped, whole.invalid));
            if encoding == Encoding::Utf8 && whole.escaped + whole.invalid == 0 {
                prop_assert_eq!(whole.text.as_bytes(), &file[..], "verbatim");
            }
        }

        #[test]
        fn the_text_keeps_to_its_limit(file in files(), encoding in encodings(), max_units in 16_usize..60) {
            let got = window(encoding, &file, 0, MAX_BYTES, max_units);
            prop_assert!(got.text.encode_utf16().count() <= max_units);
        }
    }
}
