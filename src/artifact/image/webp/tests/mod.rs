//! What the verdict on WebP files must say, and that another decoder agrees.

mod bombs;
mod damage;
mod findings;
mod fixtures;
mod lossless;
mod lossy;
mod oracle;
mod rules;

use super::verdict;
use crate::artifact::image::{Reason, Sound};

/// Asserts that a file is sound, and that `image` decodes it.
#[track_caller]
fn assert_sound(bytes: &[u8], size: (u32, u32), frames: u32, what: &str) {
    let (width, height) = size;
    assert_eq!(verdict(bytes), Ok(Sound { media_type: "image/webp", width, height, frames }), "{what}");
    oracle::decode(bytes, size, frames).unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// Asserts that a file is refused with a reason that contains `reason`.
#[track_caller]
fn assert_refused(bytes: &[u8], reason: &str, what: &str) -> Reason {
    match verdict(bytes) {
        Ok(sound) => panic!("{what}: {sound:?}"),
        Err(why) => {
            assert!(why.to_string().contains(reason), "{what}: {why}, not {reason}");
            why
        }
    }
}

/// Asserts that, if a file is called sound, `image` decodes it; whether it was.
#[track_caller]
fn assert_agreed(bytes: &[u8], what: &str) -> bool {
    let Ok(sound) = verdict(bytes) else { return false };
    // What is larger would only be slower.
    if sound.width * sound.height <= 1 << 22 {
        oracle::decode(bytes, (sound.width, sound.height), sound.frames)
            .unwrap_or_else(|error| panic!("{what}: {sound:?}, yet {error}"));
    }
    true
}
