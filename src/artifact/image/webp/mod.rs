//! WebP: the container, and what is in it (WebP container specification; RFC 9649).

mod alpha;
mod chunks;
mod effort;
mod extended;
mod frame;
mod span;
#[cfg(test)]
mod tests;
mod vp8;
mod vp8l;

use chunks::Chunks;
use effort::Effort;
use frame::Picture;
use span::{Size, Span};

use super::{Reason, Sound, check_sides};

/// Bytes of the file's header: `RIFF`, a size, `WEBP`.
const HEADER: usize = 12;

/// The verdict on a WebP file. What follows the RIFF form is not looked at.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let Some([b'R', b'I', b'F', b'F', size @ .., b'W', b'E', b'B', b'P']) = bytes.first_chunk::<HEADER>() else {
        return Err(Reason::corrupt("no WebP header", 0));
    };
    let file = Span { bytes, at: 0 };
    // The size counts from the form's name on.
    let size = u32::from_le_bytes(*size) as usize;
    let form = size.checked_add(8).and_then(|end| file.upto(end)).ok_or(Reason::truncated(bytes.len()))?;
    let mut chunks = Chunks::new(form.from(HEADER));
    let Some(first) = chunks.next()? else {
        return Err(Reason::truncated(form.end()));
    };
    match &first.name {
        b"VP8X" => extended::check(&first, &mut chunks),
        b"VP8 " | b"VP8L" => {
            let picture = Picture::take(first, &mut chunks)?;
            let Size { width, height } = picture.size;
            check_sides(width, height, first.payload.at)?;
            picture.check(&mut Effort::default())?;
            // Nothing after a simple image counts, but it must be whole, and no other image.
            while let Some(chunk) = chunks.next()? {
                if Picture::begins(chunk.name) || matches!(&chunk.name, b"VP8X" | b"ANMF") {
                    return Err(chunk.refuse("out of place:"));
                }
            }
            Ok(sound(picture.size, 1))
        }
        _ => Err(first.refuse("no image first but")),
    }
}

fn sound(size: Size, frames: u32) -> Sound {
    Sound { media_type: "image/webp", width: size.width, height: size.height, frames }
}
