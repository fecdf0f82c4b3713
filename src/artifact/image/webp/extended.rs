//! The extended file format: a canvas, and a picture or frames on it (WebP container specification,
//! "Extended file format" and "Animation").

use super::chunks::{Chunk, Chunks};
use super::effort::Effort;
use super::frame::Picture;
use super::{Size, Span};
use crate::artifact::image::budget::Budget;
use crate::artifact::image::{Reason, Sound, check_sides};

/// Bit of the animation flag.
const ANIMATED: u8 = 0x02;
/// Bits that the format reserves; decoders refuse a file that sets them.
const RESERVED: u8 = 0xc1;

/// Walks through the file behind a `VP8X` chunk.
pub(super) fn check(header: &Chunk<'_>, rest: &mut Chunks<'_>) -> Result<Sound, Reason> {
    let [flags, _, _, _, sides @ ..] = header.payload.bytes else {
        return Err(Reason::truncated(header.payload.end()));
    };
    let &[w0, w1, w2, h0, h1, h2] = sides else {
        return Err(header.refuse("wrong length of"));
    };
    if flags & RESERVED != 0 {
        return Err(header.refuse("reserved bit set in"));
    }
    let canvas = Size { width: 1 + number(w0, w1, w2), height: 1 + number(h0, h1, h2) };
    check_sides(canvas.width, canvas.height, header.payload.at + 4)?;
    let frames = if flags & ANIMATED == 0 { still(rest, canvas) } else { animation(rest, canvas) }?;
    Ok(super::sound(canvas, frames))
}

/// One picture that fills the canvas.
fn still(rest: &mut Chunks<'_>, canvas: Size) -> Result<u32, Reason> {
    let mut found = false;
    let end = rest.end();
    while let Some(chunk) = rest.next()? {
        match &chunk.name {
            name if Picture::begins(*name) => {
                if std::mem::replace(&mut found, true) {
                    return Err(chunk.refuse("a second image in"));
                }
                let picture = Picture::take(chunk, rest)?;
                if picture.size != canvas {
                    return Err(Reason::corrupt("image of another size than its canvas", picture.at()));
                }
                picture.check(&mut Effort::default())?;
            }
            b"VP8X" | b"ANIM" | b"ANMF" => return Err(chunk.refuse("out of place:")),
            _ => {}
        }
    }
    if found { Ok(1) } else { Err(Reason::truncated(end)) }
}

/// Frames on the canvas, after an `ANIM` chunk.
fn animation(rest: &mut Chunks<'_>, canvas: Size) -> Result<u32, Reason> {
    let mut begun = false;
    let mut budget = Budget::default();
    let mut effort = Effort::default();
    let end = rest.end();
    while let Some(chunk) = rest.next()? {
        match &chunk.name {
            // Background colour and number of loops: nothing that can be wrong.
            b"ANIM" if chunk.payload.bytes.len() < 6 => return Err(Reason::truncated(chunk.payload.end())),
            b"ANIM" => begun = true,
            b"ANMF" if begun => frame(&chunk, canvas, &mut budget, &mut effort)?,
            b"VP8X" | b"ANMF" | b"ALPH" | b"VP8 " | b"VP8L" => return Err(chunk.refuse("out of place:")),
            _ => {}
        }
    }
    match budget.frames() {
        0 => Err(Reason::truncated(end)),
        frames => Ok(frames),
    }
}

/// One frame: where it lies, then a picture of that size.
fn frame(chunk: &Chunk<'_>, canvas: Size, budget: &mut Budget, effort: &mut Effort) -> Result<(), Reason> {
    let Some([x0, x1, x2, y0, y1, y2, w0, w1, w2, h0, h1, h2, ..]) = chunk.payload.bytes.first_chunk::<16>() else {
        return Err(Reason::truncated(chunk.payload.end()));
    };
    let (left, top) = (2 * number(*x0, *x1, *x2), 2 * number(*y0, *y1, *y2));
    let size = Size { width: 1 + number(*w0, *w1, *w2), height: 1 + number(*h0, *h1, *h2) };
    // Sums of two numbers of 25 bits at most.
    if left + size.width > canvas.width || top + size.height > canvas.height {
        return Err(chunk.refuse("frame outside the canvas:"));
    }
    budget.spend(size.width, size.height, canvas.pixels())?;
    let inner: Span<'_> = chunk.payload.from(16);
    let mut rest = Chunks::new(inner);
    let picture = match rest.next()? {
        Some(first) if Picture::begins(first.name) => Picture::take(first, &mut rest)?,
        Some(other) => return Err(other.refuse("frame without an image:")),
        None => return Err(Reason::truncated(inner.end())),
    };
    if picture.size != size {
        return Err(Reason::corrupt("image of another size than its frame", picture.at()));
    }
    picture.check(effort)?;
    while let Some(chunk) = rest.next()? {
        if Picture::begins(chunk.name) || matches!(&chunk.name, b"VP8X" | b"ANIM" | b"ANMF") {
            return Err(chunk.refuse("out of place:"));
        }
    }
    Ok(())
}

/// A number of three bytes, the lowest first.
fn number(low: u8, middle: u8, high: u8) -> u32 {
    u32::from_le_bytes([low, middle, high, 0])
}
