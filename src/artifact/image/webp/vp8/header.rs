//! The headers of a VP8 key frame: RFC 6386, sections 9 and 19.

use super::bools::Bools;
use super::tables::{DEFAULT, TokenProbs, UPDATE};
use crate::artifact::image::Reason;
use crate::artifact::image::webp::Span;

/// Bytes of the uncompressed part (section 9.1).
pub(super) const BYTES: usize = 10;

/// The uncompressed part of a key frame's header (section 9.1).
pub(super) struct Tag {
    /// Pixels.
    pub(super) width: u32,
    /// Pixels.
    pub(super) height: u32,
    /// Bytes of the first partition.
    pub(super) first_partition: usize,
}

impl Tag {
    pub(super) fn read(frame: Span<'_>) -> Result<Self, Reason> {
        let Some([a, b, c, start @ .., w0, w1, h0, h1]) = frame.bytes.first_chunk::<BYTES>() else {
            return Err(Reason::truncated(frame.end()));
        };
        let at = frame.at;
        if a & 1 != 0 {
            return Err(Reason::corrupt("VP8 frame that is no key frame", at));
        }
        if a >> 1 & 7 > 3 {
            return Err(Reason::corrupt("unknown version of VP8", at));
        }
        if a >> 4 & 1 == 0 {
            return Err(Reason::corrupt("VP8 frame that is not to be shown", at));
        }
        if *start != [0x9d, 0x01, 0x2a] {
            return Err(Reason::corrupt("no VP8 start code", at + 3));
        }
        // The upper two bits are a hint for scaling, which no decoder of still images follows.
        let side = |low, high: u8| u32::from(u16::from_le_bytes([low, high & 0x3f]));
        Ok(Self {
            width: side(*w0, *w1),
            height: side(*h0, *h1),
            first_partition: (usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16) >> 5,
        })
    }
}

/// What the header in the first partition says about reading macroblocks (section 19.2).
pub(super) struct Frame {
    /// Probabilities of the segment tree, if every macroblock names its segment.
    pub(super) segments: Option<[u8; 3]>,
    /// Probability that a macroblock has coefficients, if those without say so.
    pub(super) skip: Option<u8>,
    /// Number of partitions of coefficients: 1, 2, 4 or 8.
    pub(super) partitions: usize,
    pub(super) probs: Box<TokenProbs>,
}

impl Frame {
    /// Reads the header in the first partition, which begins at `at`.
    pub(super) fn read(bools: &mut Bools<'_>, at: usize) -> Result<Self, Reason> {
        // The other colour space is reserved (section 9.2).
        if bools.flag() {
            return Err(Reason::corrupt("VP8 colour space that does not exist", at));
        }
        bools.flag(); // whether values need clamping
        let segments = if bools.flag() { segmentation(bools) } else { None };
        bools.number(1); // filter type
        bools.number(6); // filter level
        bools.number(3); // sharpness
        // Adjustments of the loop filter (section 9.6).
        if bools.flag() && bools.flag() {
            (0..8).for_each(|_| bools.skip_optional(6));
        }
        let partitions = 1 << bools.number(2);
        // Quantizers (section 9.6).
        bools.number(7);
        (0..5).for_each(|_| bools.skip_optional(4));
        bools.flag(); // whether later frames inherit the probabilities: there are none
        let mut probs = Box::new(DEFAULT);
        for (prob, update) in probs
            .as_flattened_mut()
            .as_flattened_mut()
            .as_flattened_mut()
            .iter_mut()
            .zip(UPDATE.as_flattened().as_flattened().as_flattened())
        {
            if bools.read(*update) {
                *prob = bools.number(8);
            }
        }
        let skip = if bools.flag() { Some(bools.number(8)) } else { None };
        Ok(Self { segments, skip, partitions, probs })
    }
}

/// Reads update_segmentation (section 9.3): the tree's probabilities if there is a map.
fn segmentation(bools: &mut Bools<'_>) -> Option<[u8; 3]> {
    let map = bools.flag();
    if bools.flag() {
        bools.flag(); // absolute values or differences
        (0..4).for_each(|_| bools.skip_optional(7));
        (0..4).for_each(|_| bools.skip_optional(6));
    }
    map.then(|| [(); 3].map(|()| if bools.flag() { bools.number(8) } else { 255 }))
}
