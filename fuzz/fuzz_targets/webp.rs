//! The WebP verdict never panics, and what it calls sound another decoder decodes whole.
#![no_main]

#[path = "../../src/artifact/image/webp/tests/oracle.rs"]
mod oracle;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use artifactd::artifact::image::verdict;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sound) = verdict(bytes) else { return };
    // Larger ones would only be slower.
    if u64::from(sound.width) * u64::from(sound.height) * u64::from(sound.frames) <= 1 << 18
        && let Err(error) = oracle::decode(bytes, (sound.width, sound.height), sound.frames)
    {
        panic!("{sound:?}, yet {error}");
    }
});

// Sizes that fit the mutated file, most of the time: else little gets past them.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut size = fuzzer_mutate(data, size, max_size);
    if seed % 8 != 0 && size > 20 {
        size &= !1;
        data[..4].copy_from_slice(b"RIFF");
        data[8..12].copy_from_slice(b"WEBP");
        let form = u32::try_from(size - 8).unwrap_or(0).to_le_bytes();
        data[4..8].copy_from_slice(&form);
        if data[12..15] == *b"VP8" && data[15] != b'X' {
            let chunk = u32::try_from(size - 20).unwrap_or(0).to_le_bytes();
            data[16..20].copy_from_slice(&chunk);
        }
    }
    size
});
