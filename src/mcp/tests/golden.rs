//! Answers that are kept as files below `tests/golden`, so that a change shows in review.
//!
//! `UPDATE_GOLDEN=1 cargo test --lib mcp` writes them anew.

use std::path::Path;

use serde_json::Value;

/// Compares `got` with the file of this name.
#[allow(clippy::disallowed_methods, reason = "a switch of these tests, no setting of the service")]
pub(super) fn check(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, got).expect("writable");
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(got == want, "{name} is not as kept (UPDATE_GOLDEN=1 keeps the new one); it is now\n{got}");
}

/// The text, with TIME and SECONDS in place of times of day and of how long it is until then, for nobody
/// knows when the tests run.
pub(super) fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.trim_end_matches(')').parse::<jiff::Timestamp>().is_ok();
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive([' ', '\n', '=']) {
        let bare = word.trim_end_matches([' ', '\n', '=']);
        if shown.ends_with("retry_after_seconds=") {
            shown += &word.replace(bare, "SECONDS");
        } else if is_time(bare) {
            shown += &word.replace(bare.trim_end_matches(')'), "TIME");
        } else {
            shown += word;
        }
    }
    shown
}

/// A tool's result as a reader sees it: a line for each block's type, then what it holds.
pub(super) fn shown(result: &Value) -> String {
    let mut shown = format!("isError: {}\n", result["isError"]);
    for block in result["content"].as_array().expect("blocks") {
        match block["type"].as_str() {
            Some("text") => shown += &format!("--- text\n{}\n", without_nonce(block["text"].as_str().expect("text"))),
            Some("image") => {
                let data = block["data"].as_str().expect("data");
                shown += &format!("--- image {}\n{data}\n", block["mimeType"].as_str().expect("a type"));
            }
            other => panic!("a block of type {other:?}"),
        }
    }
    if let Some(structure) = result.get("structuredContent") {
        shown += &format!("--- structure\n{structure:#}\n");
    }
    shown
}

/// The text, with NONCE in place of what is new in every answer.
fn without_nonce(text: &str) -> String {
    match text.split_once("<<<content ").and_then(|(_, rest)| rest.split_once(">>>")) {
        Some((nonce, _)) if nonce.len() == 32 => text.replace(nonce, "NONCE"),
        _ => text.to_owned(),
    }
}
