//! WebP (RFC 9649): every chunk inside the RIFF container, the frames against the canvas, then every
//! frame decoded.

use std::io::Cursor;

use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, ImageDecoder, ImageError, Limits};

use super::{Budget, MAX_ALLOCATION, MAX_SIDE, Parts, Reason, Sound, check_sides};

/// Pixels of an animation's canvas: its decoder keeps several copies.
const MAX_ANIMATED_CANVAS: u64 = 16 << 20;

/// Judges a file that begins with the signature.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let container = container(bytes)?;
    let outline = outline(&container[12..])?;
    let mut decoder = WebPDecoder::new(Cursor::new(container)).map_err(reason)?;
    let (width, height) = decoder.dimensions();
    check_sides(width, height)?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_ALLOCATION);
    decoder.set_limits(limits).map_err(reason)?;
    let frames = match outline {
        Outline::Still => {
            let size = usize::try_from(decoder.total_bytes()).map_err(|_| Reason::TooCostly)?;
            decoder.read_image(&mut vec![0; size]).map_err(reason)?;
            1
        }
        Outline::Animation { frames, width: w, height: h } => {
            if (w, h) != (width, height) {
                return Err(Reason::Corrupt("two readings of its header disagree"));
            }
            let mut decoded = 0;
            for frame in decoder.into_frames() {
                frame.map_err(reason)?;
                decoded += 1;
            }
            if decoded != frames {
                return Err(Reason::Corrupt("frames are missing"));
            }
            frames
        }
    };
    Ok(Sound { media_type: "image/webp", width, height, frames })
}

/// The RIFF container: what follows it is no part of the image.
fn container(bytes: &[u8]) -> Result<&[u8], Reason> {
    let mut parts = Parts { rest: bytes };
    parts.take(4)?;
    let size = usize::try_from(u32::from_le_bytes(parts.array()?)).map_err(|_| Reason::Truncated)?;
    if size < 12 {
        return Err(Reason::Corrupt("its container is too short"));
    }
    bytes.get(..size.saturating_add(8)).ok_or(Reason::Truncated)
}

enum Outline {
    Still,
    Animation { frames: u32, width: u32, height: u32 },
}

/// Walks the chunks: one picture, or an animation of frames that lie on the canvas.
fn outline(chunks: &[u8]) -> Result<Outline, Reason> {
    let mut parts = Parts { rest: chunks };
    let (first, header) = chunk(&mut parts)?;
    let canvas = match first {
        b"VP8 " => check_key_frame(header).map(|()| None)?,
        b"VP8L" => None,
        b"VP8X" => Some(Canvas::read(header)?),
        _ => return Err(Reason::Corrupt("it begins with a chunk that is no picture")),
    };
    let animated = canvas.as_ref().filter(|canvas| canvas.animated);
    let (mut pictures, mut alphas, mut prepared) = (u32::from(canvas.is_none()), 0, false);
    let mut budget = Budget::default();
    while !parts.rest.is_empty() {
        let (name, content) = chunk(&mut parts)?;
        match (name, animated) {
            (b"VP8X", _) => return Err(Reason::Corrupt("it has two headers")),
            (b"VP8 ", None) => {
                check_key_frame(content)?;
                pictures += 1;
            }
            (b"VP8L", None) => pictures += 1,
            (b"ALPH", None) if alphas == 0 => alphas += 1,
            (b"ANIM", Some(_)) => prepared = true,
            (b"ANMF", Some(canvas)) if prepared => canvas.check_frame(content, &mut budget)?,
            (b"VP8 " | b"VP8L" | b"ALPH" | b"ANMF", _) => {
                return Err(Reason::Corrupt("a picture chunk is out of place"));
            }
            _ => {}
        }
    }
    match animated {
        Some(canvas) if budget.frames > 0 => {
            Ok(Outline::Animation { frames: budget.frames, width: canvas.width, height: canvas.height })
        }
        None if pictures == 1 => Ok(Outline::Still),
        _ => Err(Reason::Corrupt("it has no picture, or more than one")),
    }
}

/// Name and content of a chunk. The byte that pads an odd one may be missing at the very end.
fn chunk<'a>(parts: &mut Parts<'a>) -> Result<(&'a [u8; 4], &'a [u8]), Reason> {
    let cut = |_| Reason::Corrupt("a chunk is longer than its container");
    let (name, rest) = parts.rest.split_first_chunk().ok_or(Reason::Truncated).map_err(cut)?;
    parts.rest = rest;
    let size = u32::from_le_bytes(parts.array().map_err(cut)?);
    let size = usize::try_from(size).map_err(|_| Reason::Truncated)?;
    let content = parts.take(size).map_err(cut)?;
    parts.take((size % 2).min(parts.rest.len()))?;
    Ok((name, content))
}

/// Checks a lossy picture's frame tag (RFC 6386 §9.1): a shown key frame of a known version.
fn check_key_frame(content: &[u8]) -> Result<(), Reason> {
    match content.first() {
        None => Err(Reason::Corrupt("a picture chunk is empty")),
        Some(tag) if tag & 1 == 0 && (tag >> 1) & 7 <= 3 && tag & 0x10 != 0 => Ok(()),
        Some(_) => Err(Reason::Corrupt("its picture is no shown key frame")),
    }
}

struct Canvas {
    animated: bool,
    width: u32,
    height: u32,
}

impl Canvas {
    /// Reads a `VP8X` chunk (RFC 9649 §2.7).
    fn read(content: &[u8]) -> Result<Self, Reason> {
        let &[flags, _, _, _, w1, w2, w3, h1, h2, h3] = content else {
            return Err(Reason::Corrupt("its header has a wrong length"));
        };
        let canvas = Self { animated: flags & 2 != 0, width: size(w1, w2, w3), height: size(h1, h2, h3) };
        check_sides(canvas.width, canvas.height)?;
        if flags & 1 != 0 {
            return Err(Reason::Corrupt("its header has a flag that is not known"));
        }
        if canvas.animated && canvas.pixels() > MAX_ANIMATED_CANVAS {
            return Err(Reason::TooCostly);
        }
        Ok(canvas)
    }

    fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    fn check_frame(&self, content: &[u8], budget: &mut Budget) -> Result<(), Reason> {
        let Some(&[x1, x2, x3, y1, y2, y3, w1, w2, w3, h1, h2, h3, ..]) = content.first_chunk::<16>() else {
            return Err(Reason::Corrupt("a frame's header is too short"));
        };
        let [x, y] = [size(x1, x2, x3) - 1, size(y1, y2, y3) - 1].map(|half| 2 * half);
        if x + size(w1, w2, w3) > self.width || y + size(h1, h2, h3) > self.height {
            return Err(Reason::Corrupt("a frame lies outside of the canvas"));
        }
        budget.spend(self.pixels())
    }
}

/// A 24-bit number of pixels, less one.
fn size(b1: u8, b2: u8, b3: u8) -> u32 {
    u32::from_le_bytes([b1, b2, b3, 0]) + 1
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn reason(error: ImageError) -> Reason {
    match error {
        ImageError::Limits(_) => Reason::TooCostly,
        ImageError::Unsupported(_) => Reason::Unsupported("a variant of WebP that decoders do not share"),
        _ => Reason::Corrupt("a chunk or its compressed data is wrong"),
    }
}
