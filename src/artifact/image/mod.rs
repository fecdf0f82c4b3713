//! The verdict on an image: may these bytes be shown to an agent as they are?
//!
//! A model's interface refuses a broken image, and the whole conversation with it. So nothing may
//! pass that does not decode whole. Each format's module walks the file to its logical end and
//! decodes the entropy layer into nothing: memory for a few rows or bitmaps, never for the picture,
//! and time bounded by budgets that are counted as it goes. What follows the logical end is no
//! matter: every decoder stops there.

mod budget;
mod gif;
mod jpeg;
mod png;
mod reason;
mod webp;

use std::io::Cursor;

use super::media::ImageFormat;

pub use budget::{MAX_FRAMES, MAX_PIXELS};
pub use reason::Reason;

/// The largest file that is shown as an image, in bytes (4 MiB as base64; interfaces take 5).
pub const MAX_BYTES: u64 = 3 * 1024 * 1024;
/// The longest side of an image, in pixels.
pub const MAX_SIDE: u32 = 8000;

/// A sound image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sound {
    /// The media type, from the bytes.
    pub media_type: &'static str,
    /// Pixels of the canvas.
    pub width: u32,
    /// Pixels of the canvas.
    pub height: u32,
    /// Frames; 1 unless animated.
    pub frames: u32,
}

/// Judges a whole file. Takes up to half a second of one core: not for an async thread.
///
/// # Errors
/// The [`Reason`] not to show it.
pub fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Reason::TooLarge { bytes: bytes.len() as u64 });
    }
    let format =
        ImageFormat::of(bytes).ok_or(Reason::Unsupported { what: "a file that does not begin like an image" })?;
    let sound = match format {
        ImageFormat::Png => png::verdict(bytes),
        ImageFormat::Jpeg => jpeg::verdict(bytes),
        ImageFormat::Gif => gif::verdict(bytes),
        ImageFormat::Webp => webp::verdict(bytes),
    }?;
    match second_reading(format, bytes) {
        Some(sides) if sides != (sound.width, sound.height) => {
            Err(Reason::corrupt("two readings of the header that disagree", 0))
        }
        _ => Ok(sound),
    }
}

/// The dimensions that the header shows to an independent reader, if it can read it: it stumbles
/// over some sound ones, such as a JPEG with a stray restart marker between its segments.
fn second_reading(format: ImageFormat, bytes: &[u8]) -> Option<(u32, u32)> {
    let format = match format {
        ImageFormat::Png => image::ImageFormat::Png,
        ImageFormat::Jpeg => image::ImageFormat::Jpeg,
        ImageFormat::Gif => image::ImageFormat::Gif,
        ImageFormat::Webp => image::ImageFormat::WebP,
    };
    image::ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().ok()
}

/// Refuses a side of no or too many pixels; `at` is where the sides are written.
fn check_sides(width: u32, height: u32, at: usize) -> Result<(), Reason> {
    match (width, height) {
        (0, _) | (_, 0) => Err(Reason::corrupt("no pixels", at)),
        (1..=MAX_SIDE, 1..=MAX_SIDE) => Ok(()),
        _ => Err(Reason::TooManyPixels { width, height }),
    }
}
