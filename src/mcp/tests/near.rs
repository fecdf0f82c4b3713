//! What a wrong name costs and offers in a trial of any size.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::world::{World, text};

#[tokio::test]
async fn a_slip_is_found_in_a_large_trial_with_two_pages_of_listing() {
    let names: Vec<String> = (0..5000).map(|n| format!("agent/episode-{n:04}/response.txt")).collect();
    let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    files.push(("verifier/test-stdout.txt", b"x"));
    let world = World::new(1000, &files);
    let before = world.store.listings.load(Ordering::SeqCst);
    let result = world.read("verifier/test_stdout.txt", json!({})).await;
    assert!(text(&result).contains("Nearest names: \"verifier/test-stdout.txt\", "), "{result}");
    // One of them sees that the trial exists.
    assert_eq!(world.store.listings.load(Ordering::SeqCst) - before, 3);
    assert_eq!(world.settled().await.used, 0, "the ledger is not asked");
    assert_eq!(world.store.handed_out.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn invisible_characters_of_a_name_are_seen() {
    let world = World::new(1000, &[("a\u{202e}b", b"x")]);
    let result = world.read("ab", json!({})).await;
    assert!(text(&result).contains("Nearest names: \"a\\u{202e}b\"."), "{result}");
}
