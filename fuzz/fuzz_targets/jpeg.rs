#![no_main]
//! No bytes make the verdict panic, and what it calls sound other decoders decode whole.

use libfuzzer_sys::fuzz_target;
use artifactd::artifact::image::verdict;

#[path = "../../tests/image/jpeg/oracle.rs"]
mod oracle;

fuzz_target!(|bytes: &[u8]| {
    if !bytes.starts_with(&[0xFF, 0xD8, 0xFF]) {
        return;
    }
    // A picture for the decoders must fit in the time of one run.
    if let Ok(sound) = verdict(bytes)
        && sound.width * sound.height <= 1 << 18
    {
        oracle::decodes(bytes, sound).expect("others decode it");
    }
});
