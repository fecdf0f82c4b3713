//! JPEG (ITU-T T.81): the segments up to the real end marker, then every scan decoded strictly.

use zune_core::bytestream::ZCursor;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::{Parts, Reason, Sound, check_sides};

/// Scans of a progressive image; each makes a decoder go through the whole of it.
const MAX_SCANS: usize = 100;

/// Judges a file that begins with the signature.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let outline = outline(bytes)?;
    check_sides(outline.width, outline.height)?;
    let side = super::MAX_SIDE as usize;
    let options = DecoderOptions::new_safe()
        .set_strict_mode(true)
        .set_max_width(side)
        .set_max_height(side)
        .jpeg_set_max_scans(MAX_SCANS);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes[..outline.end]), options);
    decoder.decode().map_err(reason)?;
    let (width, height) = (outline.width, outline.height);
    Ok(Sound { media_type: "image/jpeg", width, height, frames: 1 })
}

struct Outline {
    width: u32,
    height: u32,
    /// Behind the end marker.
    end: usize,
}

/// Walks from segment to segment, over the entropy-coded data, to the end marker.
fn outline(bytes: &[u8]) -> Result<Outline, Reason> {
    let mut parts = Parts { rest: bytes };
    parts.take(2)?;
    let (mut size, mut scans) = (None, 0);
    loop {
        match next_marker(&mut parts)? {
            0xd9 => break,
            0xd8 => return Err(Reason::Corrupt("an image begins inside of the image")),
            // Stand-alone markers.
            0x01 | 0xd0..=0xd7 => {}
            marker => {
                let length = usize::from(u16::from_be_bytes(parts.array()?));
                let content = parts.take(length.checked_sub(2).ok_or(Reason::Corrupt("a segment has no length"))?)?;
                match marker {
                    0xc0..=0xc2 if size.is_some() => return Err(Reason::Corrupt("it has two frame headers")),
                    0xc0..=0xc2 => size = Some(frame_size(content)?),
                    0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                        return Err(Reason::Unsupported("lossless, hierarchical or arithmetic coding"));
                    }
                    0xda => scans += 1,
                    0x02..=0xbf | 0xc8 | 0xf0..=0xfd => return Err(Reason::Corrupt("a marker is not known")),
                    _ => {}
                }
            }
        }
    }
    let (width, height) = size.ok_or(Reason::Corrupt("it has no frame header"))?;
    match scans {
        0 => Err(Reason::Corrupt("it has no scan")),
        1..=MAX_SCANS => Ok(Outline { width, height, end: bytes.len() - parts.rest.len() }),
        _ => Err(Reason::TooCostly),
    }
}

/// The next marker: `FF` and a byte that is neither a stuffed zero nor a fill byte.
fn next_marker(parts: &mut Parts<'_>) -> Result<u8, Reason> {
    loop {
        let at = parts.rest.iter().position(|byte| *byte == 0xff).ok_or(Reason::Truncated)?;
        parts.take(at + 1)?;
        match parts.rest.first() {
            None => return Err(Reason::Truncated),
            Some(0xff) => {}
            Some(&byte) => {
                parts.take(1)?;
                if byte != 0 {
                    return Ok(byte);
                }
            }
        }
    }
}

/// Width and height of a frame header (T.81 §B.2.2).
fn frame_size(content: &[u8]) -> Result<(u32, u32), Reason> {
    let &[precision, h1, h2, w1, w2, ..] = content else {
        return Err(Reason::Corrupt("its frame header is too short"));
    };
    let height = u16::from_be_bytes([h1, h2]);
    if precision != 8 {
        return Err(Reason::Unsupported("more than 8 bits a sample"));
    }
    if height == 0 {
        return Err(Reason::Unsupported("a height given after the first scan"));
    }
    Ok((u16::from_be_bytes([w1, w2]).into(), height.into()))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn reason(error: DecodeErrors) -> Reason {
    match error {
        DecodeErrors::ExhaustedData => Reason::Truncated,
        DecodeErrors::LargeDimensions(_) => Reason::TooManyPixels,
        DecodeErrors::Unsupported(_) => Reason::Unsupported("a variant of JPEG that decoders do not share"),
        _ => Reason::Corrupt("a segment or its compressed data is wrong"),
    }
}
