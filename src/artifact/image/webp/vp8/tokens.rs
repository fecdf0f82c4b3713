//! The coefficients of a macroblock: RFC 6386, section 13.

use super::bools::Bools;
use super::tables::TokenProbs;

/// The band of each position in a block (section 13.3); the last stands for the end.
const BANDS: [u8; 16] = [0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7];

/// Probabilities of the extra bits of the categories 3 to 6 (section 13.2).
const CATEGORIES: [&[u8]; 4] = [
    &[173, 148, 140],
    &[176, 155, 140, 135],
    &[180, 157, 141, 134, 130],
    &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
];

/// Types of plane (section 13.3).
const LUMA_WITHOUT_DC: usize = 0;
const Y2: usize = 1;
const CHROMA: usize = 2;
const LUMA: usize = 3;

/// Which blocks at an edge of a macroblock had coefficients: four of luma, two of each chroma, one Y2.
#[derive(Clone, Copy, Default)]
pub(super) struct Edge {
    luma: [bool; 4],
    chroma: [[bool; 2]; 2],
    y2: bool,
}

impl Edge {
    /// What a macroblock without coefficients leaves behind: one without a Y2 block keeps the last
    /// one's flag (section 13.3).
    pub(super) fn clear(&mut self, has_y2: bool) {
        *self = Self { y2: self.y2 && !has_y2, ..Self::default() };
    }
}

/// Passes over the coefficients of a macroblock.
pub(super) fn skip_macroblock(
    bools: &mut Bools<'_>,
    probs: &TokenProbs,
    has_y2: bool,
    above: &mut Edge,
    left: &mut Edge,
) {
    let (plane, first) = if has_y2 {
        let context = usize::from(above.y2) + usize::from(left.y2);
        let some = skip_block(bools, &probs[Y2], context, 0);
        (above.y2, left.y2) = (some, some);
        (LUMA_WITHOUT_DC, 1)
    } else {
        (LUMA, 0)
    };
    for left in &mut left.luma {
        for above in &mut above.luma {
            let context = usize::from(*above) + usize::from(*left);
            *left = skip_block(bools, &probs[plane], context, first);
            *above = *left;
        }
    }
    for (above, left) in above.chroma.iter_mut().zip(&mut left.chroma) {
        for left in left {
            for above in above.iter_mut() {
                let context = usize::from(*above) + usize::from(*left);
                *left = skip_block(bools, &probs[CHROMA], context, 0);
                *above = *left;
            }
        }
    }
}

/// Passes over one block; whether it had any token before its end.
fn skip_block(bools: &mut Bools<'_>, probs: &[[[u8; 11]; 3]; 8], context: usize, first: usize) -> bool {
    // A copy, so that it stays in registers.
    let mut local = *bools;
    let some = skip_tokens(&mut local, probs, context, first);
    *bools = local;
    some
}

/// Passes over the tokens of one block.
#[inline]
fn skip_tokens(bools: &mut Bools<'_>, probs: &[[[u8; 11]; 3]; 8], context: usize, first: usize) -> bool {
    let mut position = first;
    let mut node = &probs[usize::from(BANDS[position & 15])][context];
    // The tree of section 13.2, walked from DCT_EOB; no end of block follows a zero.
    if !bools.read(node[0]) {
        return false;
    }
    loop {
        let mut next = 0;
        if bools.read(node[1]) {
            next = if bools.read(node[2]) {
                skip_large(bools, node);
                2
            } else {
                1
            };
            bools.skip(128);
        }
        position += 1;
        if position == 16 {
            return true;
        }
        node = &probs[usize::from(BANDS[position & 15])][next];
        if next != 0 && !bools.read(node[0]) {
            return true;
        }
    }
}

/// Passes over the rest of a value of 2 or more, without its sign.
#[inline]
fn skip_large(bools: &mut Bools<'_>, node: &[u8; 11]) {
    if !bools.read(node[3]) {
        if bools.read(node[4]) {
            bools.skip(node[5]);
        }
    } else if !bools.read(node[6]) {
        if bools.read(node[7]) {
            bools.skip(165);
            bools.skip(145);
        } else {
            bools.skip(159);
        }
    } else {
        let high = bools.read(node[8]);
        let low = bools.read(node[9 + usize::from(high)]);
        for prob in CATEGORIES[usize::from(high) * 2 + usize::from(low)] {
            bools.skip(*prob);
        }
    }
}
