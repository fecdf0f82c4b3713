//! Windows: their bounds, what they show, and that they tile any file.

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
        assert_eq!((got.span, got.text.as_str(), got.escaped, got.invalid), (span, text, 0, 0), "{offset} {max_bytes}");
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
