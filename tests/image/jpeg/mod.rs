//! The verdict on JPEG files.

pub mod build;
pub mod cost;
mod damage;
mod oracle;
mod progressive;
mod regressions;
mod rules;

use artifactd::artifact::image::{Reason, Sound, verdict};

/// The verdict on a file that must be sound, after checking that other decoders decode it.
fn sound(name: &str, bytes: &[u8]) -> Sound {
    let sound = verdict(bytes).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    decodes(name, bytes, sound);
    sound
}

/// Asserts that independent decoders decode the whole of a sound file.
fn decodes(name: &str, bytes: &[u8], sound: Sound) {
    assert_eq!((sound.media_type, sound.frames), ("image/jpeg", 1), "{name}");
    if let Err(error) = oracle::decodes(bytes, sound) {
        panic!("{name}: {error}: {}", bytes.escape_ascii());
    }
}

/// The reason why a file is refused, which must name a place inside it if it names one.
fn refused(name: &str, bytes: &[u8]) -> Reason {
    let reason = verdict(bytes).expect_err(name);
    if let Reason::Truncated { at } | Reason::Corrupt { at, .. } = reason {
        assert!(at <= bytes.len() as u64, "{name}: {reason}");
    }
    reason
}
