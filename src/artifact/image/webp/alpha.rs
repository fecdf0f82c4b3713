//! The alpha plane of a lossy image (WebP container specification, "Alpha").

use super::chunks::Chunk;
use super::effort::Effort;
use super::{Size, vp8l};
use crate::artifact::image::Reason;

/// Walks through an `ALPH` chunk for an image of `size`.
pub(super) fn check(chunk: &Chunk<'_>, size: Size, effort: &mut Effort) -> Result<(), Reason> {
    let Some(head) = chunk.payload.bytes.first() else {
        return Err(Reason::truncated(chunk.payload.end()));
    };
    // From the top: reserved (to be ignored, says the specification, but decoders refuse it),
    // pre-processing, filter, compression.
    if head >> 6 != 0 {
        return Err(chunk.refuse("reserved bit set in"));
    }
    if head >> 4 & 3 > 1 {
        return Err(chunk.refuse("unknown pre-processing in"));
    }
    let data = chunk.payload.from(1);
    match head & 3 {
        0 if (data.bytes.len() as u64) < size.pixels() => Err(Reason::truncated(data.end())),
        0 => Ok(()),
        1 => vp8l::check_stream(data, size, effort),
        _ => Err(chunk.refuse("unknown compression in")),
    }
}
