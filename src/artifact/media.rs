//! What kind of file it is: by its leading bytes for reading, by its name for headers and listings.
//!
//! Reading never trusts a name: the bytes were written by the evaluated run. Listings and HTTP
//! headers cannot afford a read, so they go by the name, and only ever say a type that a browser
//! will not run.

use super::text::Encoding;

/// How many leading bytes [`sniff`] wants to see.
pub const HEAD_BYTES: usize = 4096;

/// What cannot be told apart from any other bytes.
pub const UNKNOWN: &str = "application/octet-stream";

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// The image formats that agents can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// PNG, also animated.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF, also animated.
    Gif,
    /// WebP, also animated.
    Webp,
}

impl ImageFormat {
    /// The format whose whole signature stands at the very beginning of `head`.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if head.starts_with(&[0xff, 0xd8, 0xff]) {
            Some(Self::Jpeg)
        } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else {
            None
        }
    }

    /// The media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// What the leading bytes say a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Begins like an image; whether it is a sound one is for [`image::verdict`](super::image::verdict).
    Image(ImageFormat),
    /// Text, in this encoding. Bytes that are invalid in it may occur.
    Text(Encoding),
    /// Anything else, with the media type it looks like ([`UNKNOWN`] if like nothing known).
    Other(&'static str),
}

/// Says what a file is from its first [`HEAD_BYTES`], or from all of it if it is shorter (`whole`).
///
/// Images by their full signature; then text, before any other signature, because many of those are
/// plain words (`BM`, `ID3`, `MZ`); then the rest. An empty file is text.
#[must_use]
pub fn sniff(head: &[u8], whole: bool) -> Content {
    if let Some(format) = ImageFormat::of(head) {
        return Content::Image(format);
    }
    let program = [b"%PDF".as_slice(), b"%!PS", b"{\\rtf"].iter().any(|magic| head.starts_with(magic));
    if !program && let Some(encoding) = text_encoding(head, whole) {
        return Content::Text(encoding);
    }
    Content::Other(label(head))
}

/// The encoding, if the bytes are text.
fn text_encoding(head: &[u8], whole: bool) -> Option<Encoding> {
    match head {
        [0xff, 0xfe, rest @ ..] => is_utf16(rest, u16::from_le_bytes).then_some(Encoding::Utf16Le),
        [0xfe, 0xff, rest @ ..] => is_utf16(rest, u16::from_be_bytes).then_some(Encoding::Utf16Be),
        _ => (is_utf8(head, whole) || is_plainly_text(head)).then_some(Encoding::Utf8),
    }
}

/// Valid UTF-8 without NUL. The last character may be incomplete if more of the file follows.
fn is_utf8(head: &[u8], whole: bool) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && !whole,
    };
    valid && !head.contains(&0)
}

/// UTF-16 code units behind a byte order mark: no NUL, and every surrogate has its partner, but for
/// one that the end of the head cut off.
fn is_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> bool {
    let mut units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).peekable();
    while let Some(this) = units.next() {
        match this {
            0 | 0xdc00..=0xdfff => return false,
            0xd800..=0xdbff if units.next().is_some_and(|low| !(0xdc00..=0xdfff).contains(&low)) => return false,
            _ => {}
        }
    }
    true
}

/// Text in some one-byte encoding, or UTF-8 with a stray byte in it: mostly printable ASCII, and no
/// control character that text does not have. An encoding with fewer ASCII characters would only
/// show as replacement characters, so it is no text to a reader either.
fn is_plainly_text(head: &[u8]) -> bool {
    let control = |b: u8| matches!(b, 0..=7 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    let high = head.iter().filter(|b| !b.is_ascii()).count();
    !head.iter().any(|b| control(*b)) && high * 4 <= head.len() && infer::get(head).is_none()
}

/// The media type of what is neither an image to show nor text.
fn label(head: &[u8]) -> &'static str {
    match infer::get(head).map(|kind| kind.mime_type()) {
        // Half a signature makes no image, and bytes that failed the test for text are none.
        None | Some("image/png" | "image/jpeg" | "image/gif" | "image/webp") => UNKNOWN,
        Some(text) if text.starts_with("text/") => UNKNOWN,
        Some(label) => label,
    }
}

/// The media type that a name promises, for listings and HTTP. Inert: what a browser could run
/// (HTML, SVG, XML, scripts, style sheets) is plain text.
#[must_use]
pub fn media_type_by_name(name: &str) -> &'static str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let Some((_, extension)) = file.rsplit_once('.') else {
        return if is_text_name(file) { PLAIN_TEXT } else { UNKNOWN };
    };
    match extension.to_ascii_lowercase().as_str() {
        "png" | "apng" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "ico" => "image/vnd.microsoft.icon",
        "avif" => "image/avif",
        "heic" => "image/heic",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "zip" | "whl" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "bz2" => "application/x-bzip2",
        "xz" => "application/x-xz",
        "tar" => "application/x-tar",
        "7z" => "application/x-7z-compressed",
        "sqlite" | "sqlite3" => "application/vnd.sqlite3",
        "parquet" => "application/vnd.apache.parquet",
        "wasm" => "application/wasm",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        // Prose, logs and tables.
        "txt" | "text" | "log" | "out" | "err" | "md" | "markdown" | "rst" | "tex" | "csv" | "tsv" | "diff"
        | "patch" | "jsonl" | "ndjson" | "cast" | "srt" | "vtt" => PLAIN_TEXT,
        // Settings.
        "toml" | "yaml" | "yml" | "ini" | "cfg" | "conf" | "env" | "lock" | "properties" | "gitignore" => PLAIN_TEXT,
        // Sources.
        "rs" | "py" | "pyi" | "c" | "h" | "cc" | "cpp" | "hpp" | "cs" | "go" | "java" | "kt" | "scala" | "swift"
        | "rb" | "pl" | "php" | "lua" | "r" | "jl" | "hs" | "ml" | "ex" | "exs" | "erl" | "clj" | "el" | "lisp"
        | "sh" | "bash" | "zsh" | "fish" | "ps1" | "bat" | "sql" | "proto" | "graphql" | "cmake" | "mk" | "ipynb" => {
            PLAIN_TEXT
        }
        // What a browser could run.
        "html" | "htm" | "xhtml" | "xht" | "shtml" | "mhtml" | "mht" | "svg" | "xml" | "xsl" | "xslt" | "xsd"
        | "rss" | "atom" | "js" | "mjs" | "cjs" | "jsx" | "ts" | "tsx" | "css" | "scss" | "vue" | "svelte" => {
            PLAIN_TEXT
        }
        _ => UNKNOWN,
    }
}

/// Whether a file without an extension is text by custom.
fn is_text_name(file: &str) -> bool {
    matches!(file, "README" | "LICENSE" | "NOTICE" | "CHANGELOG" | "Makefile" | "Dockerfile" | "stdout" | "stderr")
}

/// Whether a media type from [`media_type_by_name`] may be displayed by a browser in place of being
/// saved: PNG, JPEG, GIF, WebP and plain text.
#[must_use]
pub fn may_be_inline(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp") || media_type == PLAIN_TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: Content = Content::Text(Encoding::Utf8);

    #[test]
    fn images_are_known_by_their_whole_signature_at_the_beginning() {
        for (head, want) in [
            (b"\x89PNG\r\n\x1a\n....".as_slice(), Content::Image(ImageFormat::Png)),
            (b"\xff\xd8\xff\xe0", Content::Image(ImageFormat::Jpeg)),
            (b"GIF89a\x01\0\x01\0", Content::Image(ImageFormat::Gif)),
            (b"GIF87a\x01\0\x01\0", Content::Image(ImageFormat::Gif)),
            (b"RIFF\x04\0\0\0WEBP", Content::Image(ImageFormat::Webp)),
            (b"\x89PNG\n\x1a\n\0", Content::Other(UNKNOWN)),
            (b"\x89PNG", Content::Other(UNKNOWN)),
            (b"\xff\xd8", Content::Other(UNKNOWN)),
            (b"GIF88a\x01\0\x01\0", Content::Other(UNKNOWN)),
            (b"RIFX\x04\0\0\0WEBP", Content::Other(UNKNOWN)),
            (b"RIFF\x04\0\0\0WAVE", Content::Other("audio/x-wav")),
        ] {
            assert_eq!(sniff(head, false), want, "{:?}", head.escape_ascii().to_string());
        }
        assert_eq!(sniff(b"\n\x89PNG\r\n\x1a\n\0", true), Content::Other(UNKNOWN));
        assert_eq!(sniff(b"<html><img src='x.png'>", true), UTF8);
    }

    #[test]
    fn words_that_look_like_signatures_are_text() {
        for text in [
            "",
            "BM25 scores of the run",
            "GIF files are old",
            "12345678WEBP",
            "MZ is a signature",
            "ID3 tags",
            "8BPS",
            "OggS",
            "SQLite format 3",
            "P6 header",
            "-----BEGIN CERTIFICATE-----",
            "<svg xmlns='http://www.w3.org/2000/svg'/>",
            "\x1b[31mred\x1b[0m",
            "日本語のログ",
        ] {
            assert_eq!(sniff(text.as_bytes(), true), UTF8, "{text:?}");
        }
    }

    #[test]
    fn text_that_is_a_program_for_a_viewer_is_no_text() {
        assert_eq!(sniff(b"%PDF-1.7\nabc", true), Content::Other("application/pdf"));
        assert_eq!(sniff(b"%!PS-Adobe-3.0", true), Content::Other("application/postscript"));
        assert_eq!(sniff(b"{\\rtf1\\ansi hello}", true), Content::Other("application/rtf"));
    }

    #[test]
    fn a_character_cut_at_the_end_of_the_head_does_not_make_text_binary() {
        let text = "日".repeat(1400);
        for cut in [4094, 4095, 4096] {
            assert_eq!(sniff(&text.as_bytes()[..cut], false), UTF8, "{cut}");
        }
        assert_eq!(sniff(&text.as_bytes()[..4094], true), Content::Other(UNKNOWN), "it is not cut, it is broken");
    }

    #[test]
    fn legacy_encodings_are_text_only_if_plainly_so() {
        assert_eq!(sniff(b"caf\xe9 au lait\r\n", true), UTF8);
        assert_eq!(sniff(b"log line\xff and more\n", true), UTF8);
        assert_eq!(sniff(b"caf\xe9\0", true), Content::Other(UNKNOWN));
        assert_eq!(sniff(b"caf\xe9\x01 and more text", true), Content::Other(UNKNOWN));
        assert_eq!(sniff(b"\x93\xfa\x96\x7b\x8c\xea ja", true), Content::Other(UNKNOWN), "Shift_JIS");
        assert_eq!(sniff(b"text with a NUL\0", true), Content::Other(UNKNOWN));
    }

    #[test]
    fn utf16_needs_its_mark() {
        assert_eq!(sniff(b"\xff\xfeh\0i\0", true), Content::Text(Encoding::Utf16Le));
        assert_eq!(sniff(b"\xfe\xff\0h\0i", true), Content::Text(Encoding::Utf16Be));
        assert_eq!(sniff(b"\xff\xfe\x3d\xd8", false), Content::Text(Encoding::Utf16Le), "a pair cut in two");
        assert_eq!(sniff(b"\xff\xfe\x3d\xd8\x61\0", true), Content::Other(UNKNOWN), "half a pair");
        assert_eq!(sniff(b"\xff\xfe\0\0a\0\0\0", true), Content::Other(UNKNOWN), "UTF-32");
        assert_eq!(sniff(b"h\0i\0", true), Content::Other(UNKNOWN));
    }

    #[test]
    fn the_rest_has_a_label() {
        assert_eq!(sniff(b"PK\x03\x04\x14\0\0\0", false), Content::Other("application/zip"));
        assert_eq!(
            sniff(&[b"\x7fELF\x02\x01\x01".as_slice(), &[0; 64]].concat(), false),
            Content::Other("application/x-executable")
        );
        assert_eq!(sniff(&[0; 64], false), Content::Other(UNKNOWN));
    }

    #[test]
    fn names_promise_only_inert_types() {
        for (name, want, inline) in [
            ("verifier/test-stdout.txt", PLAIN_TEXT, true),
            ("trial.log", PLAIN_TEXT, true),
            ("a/result.json", "application/json", false),
            ("shot.PNG", "image/png", true),
            ("shot.jpeg", "image/jpeg", true),
            ("x.gif", "image/gif", true),
            ("x.webp", "image/webp", true),
            ("page.html", PLAIN_TEXT, true),
            ("page.XHTML", PLAIN_TEXT, true),
            ("logo.svg", PLAIN_TEXT, true),
            ("feed.xml", PLAIN_TEXT, true),
            ("app.js", PLAIN_TEXT, true),
            ("report.pdf", "application/pdf", false),
            ("all.zip", "application/zip", false),
            ("model.bin", UNKNOWN, false),
            ("core#1", UNKNOWN, false),
            ("noext", UNKNOWN, false),
            ("dir.html/noext", UNKNOWN, false),
            ("README", PLAIN_TEXT, true),
            (".gitignore", PLAIN_TEXT, true),
            ("x.", UNKNOWN, false),
        ] {
            assert_eq!(media_type_by_name(name), want, "{name}");
            assert_eq!(may_be_inline(want), inline, "{name}");
        }
    }
}
