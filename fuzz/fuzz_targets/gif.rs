//! No bytes make the verdict panic, and what it calls sound decodes to the last frame.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use artifactd::artifact::image::{Sound, verdict};

/// Pixels of all frames beyond which decoding the rest is too slow for a fuzzer.
const MAX_PIXELS: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(sound) = verdict(bytes) {
        decode(bytes, sound);
    }
});

/// Decodes each frame, one layer below `image`: that refuses a file without a colour table and
/// extensions it does not know, and loses the last pixels of an interlaced frame that has more data
/// than it needs.
fn decode(bytes: &[u8], sound: Sound) {
    let mut bytes = bytes.to_vec();
    if bytes[10] & 0x80 == 0 {
        bytes[10] = 0x80;
        bytes.splice(13..13, [0; 6]);
    }
    let mut options = gif::DecodeOptions::new();
    options.allow_unknown_blocks(true);
    options.skip_frame_decoding(true);
    let mut pixels = gif::streaming_decoder::FrameDecoder::new(options.clone());
    let mut decoder = options.read_info(Cursor::new(bytes)).expect("a header");
    let mut budget = MAX_PIXELS;
    for n in 0..sound.frames {
        let frame = decoder.read_next_frame().expect("a frame");
        let mut frame = frame.unwrap_or_else(|| panic!("frame {n} of {}", sound.frames)).clone();
        frame.interlaced = false;
        budget = budget.saturating_sub(u64::from(frame.width) * u64::from(frame.height));
        if budget == 0 {
            return;
        }
        pixels.decode_lzw_encoded_frame(&mut frame).expect("pixels that decode");
    }
}
