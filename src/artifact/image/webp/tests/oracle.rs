//! A full decode by an independent decoder, for tests and fuzzing.

use std::io::Cursor;

use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, ImageDecoder};

/// Decodes every frame of a sound file of `width` x `height` pixels with `image`; why not, if that fails.
pub(super) fn decode(bytes: &[u8], (width, height): (u32, u32), expected: u32) -> Result<(), String> {
    let plain = plain(bytes);
    let decoder = WebPDecoder::new(Cursor::new(&plain)).map_err(|e| e.to_string())?;
    if decoder.dimensions() != (width, height) {
        return Err(format!("{:?} px", decoder.dimensions()));
    }
    if !decoder.has_animation() {
        let mut pixels = vec![0; usize::try_from(decoder.total_bytes()).map_err(|e| e.to_string())?];
        return decoder.read_image(&mut pixels).map_err(|e| e.to_string());
    }
    let mut frames = 0;
    for frame in decoder.into_frames() {
        frame.map_err(|e| format!("frame {frames}: {e}"))?;
        frames += 1;
    }
    if frames == expected { Ok(()) } else { Err(format!("{frames} frames")) }
}

/// The file without what `image` stumbles over though the format allows it: chunks other than those
/// of pictures, metadata flags without their chunks, an alpha flag without an `ALPH` chunk, an `ANIM`
/// chunk that is longer than it must be or comes twice, bytes after the RIFF form.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let size = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut out = bytes[..12].to_vec();
    let (mut at, end, mut alpha) = (12, 8 + size(4), false);
    while at < end {
        let next = at + 8 + size(at + 4).next_multiple_of(2);
        match &bytes[at..at + 4] {
            b"ANIM" if out.windows(4).any(|name| name == b"ANIM") => {}
            b"ANIM" => {
                out.extend(b"ANIM\x06\0\0\0");
                out.extend(&bytes[at + 8..at + 14]);
            }
            name @ (b"VP8X" | b"VP8 " | b"VP8L" | b"ALPH" | b"ANMF") => {
                alpha |= matches!(name, b"ALPH" | b"VP8L" | b"ANMF");
                out.extend(&bytes[at..next]);
            }
            _ => {}
        }
        at = next;
    }
    if &out[12..16] == b"VP8X" {
        out[20] &= if alpha { 0x12 } else { 0x02 };
    }
    let form = u32::try_from(out.len() - 8).expect("a small file").to_le_bytes();
    out[4..8].copy_from_slice(&form);
    out
}
