//! Animation: `acTL`, `fcTL` and the numbering of the frames' chunks (PNG 3rd ed., section 11.3.6).

use super::chunk::Chunk;
use super::header::Header;
use crate::artifact::image::Reason;

/// The most frames that `acTL` may declare (section 4.6: four-byte unsigned integers are below 2^31).
const MAX_DECLARED: u32 = (1 << 31) - 1;

/// The sides of a frame, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Pixels; at least 1.
    pub width: u32,
    /// Pixels; at least 1.
    pub height: u32,
    /// Whether it covers the canvas.
    pub is_full: bool,
}

/// The number that the next `fcTL` or `fdAT` must carry.
///
/// It is checked in a file that is not animated too, because readers do.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    next: u32,
}

impl Sequence {
    /// Takes the number that `chunk` starts with.
    fn take<'a>(&mut self, chunk: &Chunk<'a>) -> Result<&'a [u8], Reason> {
        let Some((number, rest)) = chunk.data.split_first_chunk::<4>() else {
            return Err(chunk.corrupt("no sequence number"));
        };
        if u32::from_be_bytes(*number) != self.next {
            return Err(chunk.corrupt("wrong sequence number"));
        }
        // A file of 3 MiB has fewer than 2^18 chunks.
        self.next += 1;
        Ok(rest)
    }

    /// Takes an `fcTL` (section 11.3.6.2): the frame lies in the canvas, its operations exist.
    pub(super) fn frame(&mut self, chunk: &Chunk<'_>, header: &Header) -> Result<Frame, Reason> {
        chunk.exactly::<26>()?;
        let rest = self.take(chunk)?;
        let word = |at: usize| rest.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes);
        let (width, height, x, y) = (word(0), word(4), word(8), word(12));
        let inside =
            |side: u32, from: u32, canvas: u32| side > 0 && from.checked_add(side).is_some_and(|end| end <= canvas);
        if !inside(width, x, header.width) || !inside(height, y, header.height) {
            return Err(chunk.corrupt("a frame that is empty or outside the canvas"));
        }
        if let [.., dispose, blend] = *rest
            && (dispose > 2 || blend > 1)
        {
            return Err(chunk.corrupt("unknown dispose or blend operation"));
        }
        Ok(Frame { width, height, is_full: (width, height) == (header.width, header.height) })
    }

    /// Takes an `fdAT` (section 11.3.6.3) and gives the piece of the frame's stream in it.
    pub(super) fn data<'a>(&mut self, chunk: &Chunk<'a>) -> Result<&'a [u8], Reason> {
        // The first number is an fcTL's.
        if self.next == 0 {
            return Err(chunk.corrupt("frame data without a frame"));
        }
        self.take(chunk)
    }
}

/// The frames that an `acTL` declares (section 11.3.6.1); none if readers take the file for a still
/// image because the number is impossible.
pub(super) fn declared(chunk: &Chunk<'_>) -> Result<Option<u32>, Reason> {
    let [f0, f1, f2, f3, ..] = *chunk.exactly::<8>()?;
    let frames = u32::from_be_bytes([f0, f1, f2, f3]);
    Ok((1..=MAX_DECLARED).contains(&frames).then_some(frames))
}
