//! The verdict on an image: may these bytes be shown to an agent as they are?
//!
//! A model's interface refuses a broken image, and the whole conversation with it. So nothing may
//! pass that does not decode whole: each format's file walks its structure to the real end, then
//! every frame is decoded and thrown away. Budgets are counted from the structure, before anything
//! is decoded.

mod gif;
mod jpeg;
mod png;
mod webp;

use std::fmt;
use std::io::Cursor;

use super::media::ImageFormat;

/// The largest file that is shown as an image, in bytes (4 MiB as base64; interfaces take 5).
pub const MAX_BYTES: u64 = 3 * 1024 * 1024;
/// The longest side of an image, in pixels.
pub const MAX_SIDE: u32 = 8000;
/// Pixels of all frames together; a frame counts as its canvas if that is larger.
pub const MAX_PIXELS: u64 = 256 << 20;
/// Frames of an animation.
pub const MAX_FRAMES: u32 = 10_000;
/// Bytes that a decoder may allocate at once.
const MAX_ALLOCATION: u64 = 512 << 20;

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

/// Why a file is not shown as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Larger than [`MAX_BYTES`].
    TooLarge,
    /// A side is longer than [`MAX_SIDE`].
    TooManyPixels,
    /// The file ends before the image does.
    Truncated,
    /// Something in the file is wrong.
    Corrupt(&'static str),
    /// Sound perhaps, but decoding it takes more than its size excuses.
    TooCostly,
    /// A variant of the format that interfaces do not take.
    Unsupported(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => f.write_str("too_large: images are shown up to 3 MiB"),
            Self::TooManyPixels => f.write_str("too_many_pixels: images are shown up to 8000 pixels a side"),
            Self::Truncated => f.write_str("truncated: the file ends before the image does"),
            Self::Corrupt(what) => write!(f, "corrupt: {what}"),
            Self::TooCostly => f.write_str("too_costly: decoding it takes more time or memory than an image may"),
            Self::Unsupported(what) => write!(f, "unsupported: {what}"),
        }
    }
}

/// Judges a whole file. Takes up to a second or so of one core: not for an async thread.
///
/// # Errors
/// The [`Reason`] not to show it.
pub fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Reason::TooLarge);
    }
    let format = ImageFormat::of(bytes).ok_or(Reason::Unsupported("it does not begin like an image"))?;
    let sound = match format {
        ImageFormat::Png => png::verdict(bytes),
        ImageFormat::Jpeg => jpeg::verdict(bytes),
        ImageFormat::Gif => gif::verdict(bytes),
        ImageFormat::Webp => webp::verdict(bytes),
    }?;
    if second_reading(format, bytes) == Some((sound.width, sound.height)) {
        Ok(sound)
    } else {
        Err(Reason::Corrupt("two readings of its header disagree"))
    }
}

/// The dimensions that the header shows to an independent reader.
fn second_reading(format: ImageFormat, bytes: &[u8]) -> Option<(u32, u32)> {
    let format = match format {
        ImageFormat::Png => image::ImageFormat::Png,
        ImageFormat::Jpeg => image::ImageFormat::Jpeg,
        ImageFormat::Gif => image::ImageFormat::Gif,
        ImageFormat::Webp => image::ImageFormat::WebP,
    };
    image::ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().ok()
}

/// Refuses a side of no or too many pixels.
fn check_sides(width: u32, height: u32) -> Result<(), Reason> {
    match (width, height) {
        (0, _) | (_, 0) => Err(Reason::Corrupt("it has no pixels")),
        (1..=MAX_SIDE, 1..=MAX_SIDE) => Ok(()),
        _ => Err(Reason::TooManyPixels),
    }
}

/// What the frames of one image may cost together.
#[derive(Default)]
struct Budget {
    frames: u32,
    pixels: u64,
}

impl Budget {
    /// Counts a frame that makes a reader touch this many pixels.
    fn spend(&mut self, pixels: u64) -> Result<(), Reason> {
        self.frames += 1;
        self.pixels += pixels;
        if self.frames > MAX_FRAMES || self.pixels > MAX_PIXELS { Err(Reason::TooCostly) } else { Ok(()) }
    }
}

/// Reads the parts of a file one after the other. Past the end, the file is truncated.
struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Reason> {
        let (part, rest) = self.rest.split_at_checked(length).ok_or(Reason::Truncated)?;
        self.rest = rest;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let (part, rest) = self.rest.split_first_chunk().ok_or(Reason::Truncated)?;
        self.rest = rest;
        Ok(*part)
    }
}

#[cfg(test)]
mod tests {
    use image::codecs::gif::GifEncoder;
    use image::{DynamicImage, Frame, ImageFormat as F, RgbImage};
    use proptest::prelude::*;

    use super::*;

    /// A small picture with some detail.
    fn picture(width: u32, height: u32) -> DynamicImage {
        let pixel = |x: u32, y: u32| image::Rgb([x * 7 % 251, y * 11 % 241, x * y % 239].map(|v| v.to_le_bytes()[0]));
        RgbImage::from_fn(width, height, pixel).into()
    }

    fn file(picture: &DynamicImage, format: F) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).expect("encodes");
        bytes.into_inner()
    }

    fn animated_gif(frames: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = GifEncoder::new(&mut bytes);
        encoder.encode_frames(vec![Frame::new(picture(20, 10).to_rgba8()); frames]).expect("encodes");
        drop(encoder);
        bytes
    }

    const FORMATS: [(F, &str); 4] =
        [(F::Png, "image/png"), (F::Jpeg, "image/jpeg"), (F::Gif, "image/gif"), (F::WebP, "image/webp")];

    #[test]
    fn sound_images_pass() {
        for (format, media_type) in FORMATS {
            for (width, height) in [(1, 1), (37, 23), (8000, 1), (1, 8000)] {
                let want = Sound { media_type, width, height, frames: 1 };
                assert_eq!(verdict(&file(&picture(width, height), format)), Ok(want), "{media_type}");
            }
        }
        let want = Sound { media_type: "image/gif", width: 20, height: 10, frames: 3 };
        assert_eq!(verdict(&animated_gif(3)), Ok(want));
    }

    #[test]
    fn what_follows_the_end_is_no_matter() {
        for (format, media_type) in FORMATS {
            for tail in [b"\0\0\0".as_slice(), b"\n", b"<html>", b"PK\x03\x04"] {
                let bytes = [&file(&picture(16, 16), format), tail].concat();
                assert!(verdict(&bytes).is_ok(), "{media_type} {tail:?}");
            }
        }
    }

    #[test]
    fn no_truncated_image_passes() {
        for (format, media_type) in FORMATS {
            let whole = file(&picture(33, 17), format);
            // A GIF that lacks only its trailer, or the end of a comment, shows everywhere.
            let whole_until = if format == F::Gif { whole.len() - 1 } else { whole.len() };
            for length in 0..whole_until {
                assert!(verdict(&whole[..length]).is_err(), "{media_type} cut at {length} of {}", whole.len());
            }
        }
    }

    #[test]
    fn no_damaged_png_passes() {
        let whole = file(&picture(9, 9), F::Png);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            assert!(verdict(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_png_whose_compressed_data_lacks_its_checksum_does_not_pass() {
        // zlib's checksum is the end of the last IDAT; IEND's twelve bytes follow that chunk's CRC.
        let whole = file(&picture(9, 9), F::Png);
        let (before, iend) = whole.split_at(whole.len() - 12);
        let begin = before.windows(4).position(|name| name == b"IDAT").expect("has one") - 4;
        for cut in 1..=4 {
            let data = &before[begin + 8..before.len() - 4 - cut];
            let mut checksum = crc32fast::Hasher::new();
            checksum.update(b"IDAT");
            checksum.update(data);
            let length = u32::try_from(data.len()).expect("small").to_be_bytes();
            let crc = checksum.finalize().to_be_bytes();
            let bytes = [&before[..begin], &length, b"IDAT", data, &crc, iend].concat();
            assert_eq!(verdict(&bytes), Err(Reason::Corrupt("its compressed data does not end")), "{cut}");
        }
    }

    #[test]
    fn limits_are_kept() {
        for (format, media_type) in FORMATS {
            for (width, height) in [(8001, 1), (1, 8001)] {
                let bytes = file(&picture(width, height), format);
                assert_eq!(verdict(&bytes), Err(Reason::TooManyPixels), "{media_type}");
            }
        }
        let mut large = file(&picture(4, 4), F::Png);
        large.resize(3 * 1024 * 1024, 0);
        assert!(verdict(&large).is_ok());
        large.push(0);
        assert_eq!(verdict(&large), Err(Reason::TooLarge));
    }

    #[test]
    fn costs_are_counted_before_they_arise() {
        // A canvas of 64 million pixels, and one-pixel frames that each make a reader touch it.
        let mut bomb = b"GIF89a\x40\x1f\x40\x1f\x80\0\0\0\0\0\xff\xff\xff".to_vec();
        for _ in 0..1000 {
            bomb.extend(b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0");
        }
        bomb.push(b';');
        assert_eq!(verdict(&bomb), Err(Reason::TooCostly));
    }

    #[test]
    fn what_is_no_image_does_not_pass() {
        for bytes in
            [b"".as_slice(), b"<html></html>", b"GIF89a", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP"]
        {
            assert!(verdict(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn reasons_begin_with_their_code() {
        for (reason, code) in [
            (Reason::TooLarge, "too_large"),
            (Reason::TooManyPixels, "too_many_pixels"),
            (Reason::Truncated, "truncated"),
            (Reason::Corrupt("why"), "corrupt: why"),
            (Reason::TooCostly, "too_costly"),
            (Reason::Unsupported("what"), "unsupported: what"),
        ] {
            assert!(reason.to_string().starts_with(code));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever happens to an image, judging it ends in a verdict; and what still passes, an
        /// independent decoder can open.
        #[test]
        fn damage_ends_in_a_verdict(
            format in 0_usize..4,
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            insert in proptest::collection::vec(any::<u8>(), 0..8),
            at in any::<prop::sample::Index>(),
        ) {
            let mut bytes = file(&picture(24, 18), FORMATS[format].0);
            for (at, value) in damage {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let at = at.index(bytes.len());
            bytes.splice(at..at, insert);
            if verdict(&bytes).is_ok() {
                prop_assert!(image::load_from_memory(&bytes).is_ok());
            }
        }
    }
}
