//! The pixels of an entropy-coded image (WebP lossless, sections 5 and 6.2.3).

use super::bits::Bits;
use super::codes::Tables;
use super::groups::{CACHED, COLOURS, Group};
use super::{distance, prefixed};
use crate::artifact::image::Reason;
use crate::artifact::image::webp::Size;
use crate::artifact::image::webp::effort::Effort;

/// Pixels between two looks at the end of the stream.
const STRETCH: usize = 1 << 16;

/// Which group the pixels of a tile are read with.
pub(super) struct Tiles {
    /// Groups of the tiles, row by row, each in bits 8 to 23.
    pub(super) groups: Vec<u32>,
    /// Logarithm of a tile's side.
    pub(super) bits: u32,
}

/// The number of the group in a pixel of the entropy image.
pub(super) const fn group_number(pixel: u32) -> usize {
    (pixel >> 8 & 0xffff) as usize
}

/// What the pixels of an image are read with, but not kept.
pub(super) struct Reader<'a> {
    pub(super) size: Size,
    pub(super) tables: &'a Tables,
    pub(super) groups: &'a [Group],
    /// Without tiles, all pixels are read with the first group.
    pub(super) tiles: Option<&'a Tiles>,
}

impl Reader<'_> {
    /// Passes over all pixels.
    pub(super) fn skip(&self, bits: &mut Bits<'_>, effort: &mut Effort) -> Result<(), Reason> {
        match self.tiles {
            Some(tiles) => self.skip_tiled(bits, tiles, effort)?,
            None => {
                let mut at = 0;
                while at < self.total() {
                    at = self.skip_run(bits, &self.groups[0], at, (at + STRETCH).min(self.total()))?;
                    bits.check()?;
                }
            }
        }
        bits.check()
    }

    fn total(&self) -> usize {
        self.size.width as usize * self.size.height as usize
    }

    fn skip_tiled(&self, bits: &mut Bits<'_>, tiles: &Tiles, effort: &mut Effort) -> Result<(), Reason> {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let across = width.div_ceil(1 << tiles.bits);
        // A copy may end in the middle of a later row.
        let (mut x, mut y) = (0, 0);
        while y < height {
            let start = y * width;
            let row = &tiles.groups[(y >> tiles.bits) * across..][..across];
            let mut free = x == 0;
            let mut runs = 0;
            while x < width {
                let tile = x >> tiles.bits;
                let group = &self.groups[group_number(row[tile])];
                let end = ((tile + 1) << tiles.bits).min(width);
                runs += 1;
                if group.stride == 1 && group.back as usize <= start + x {
                    x = end;
                } else {
                    let next = self.skip_run(bits, group, start + x, start + end)? - start;
                    bits.check()?;
                    free &= group.stride != 0 && next == end;
                    x = next;
                }
            }
            effort.spend(runs)?;
            if free && y.trailing_zeros() >= tiles.bits {
                // The rows below are in the same tiles, and take no bits either.
                y += 1 << tiles.bits;
                x = 0;
            } else {
                y += x / width;
                x %= width;
            }
        }
        Ok(())
    }

    /// Passes over the pixels from `at` to `end`, and those of the last copy; where that is.
    #[inline]
    fn skip_run(&self, bits: &mut Bits<'_>, group: &Group, mut at: usize, end: usize) -> Result<usize, Reason> {
        let (tables, total) = (self.tables, self.total());
        if group.stride != 0 {
            // Every symbol is the same and takes no bits: as many as begin in the run.
            let stride = group.stride as usize;
            let next = at + (end - at).div_ceil(stride) * stride;
            return if group.back as usize > at || next > total { Err(outside(bits)) } else { Ok(next) };
        }
        while at < end {
            bits.fill();
            let symbol = tables.symbol(group.green, bits);
            if symbol < COLOURS {
                if !group.green_only {
                    tables.symbol(group.red, bits);
                    tables.symbol(group.blue, bits);
                    if !bits.has(15) {
                        bits.fill();
                    }
                    tables.symbol(group.alpha, bits);
                }
                at += 1;
            } else if symbol < CACHED {
                let (length, back) = copy(bits, tables, group, symbol, self.size.width);
                if back > at || length > total - at {
                    return Err(outside(bits));
                }
                at += length;
            } else {
                at += 1;
            }
        }
        Ok(at)
    }
}

/// Reads the rest of a copy: its length, and how far back it begins.
#[inline]
fn copy(bits: &mut Bits<'_>, tables: &Tables, group: &Group, symbol: u32, width: u32) -> (usize, usize) {
    let length = prefixed(bits, symbol - COLOURS);
    bits.fill();
    let symbol = tables.symbol(group.distance, bits);
    let back = distance(prefixed(bits, symbol), width);
    (length as usize, back as usize)
}

/// Reads the pixels of an image that is read with one group.
pub(super) fn read(
    bits: &mut Bits<'_>,
    size: Size,
    tables: &Tables,
    group: &Group,
    cache: u32,
    effort: &mut Effort,
) -> Result<Vec<u32>, Reason> {
    let total = size.width as usize * size.height as usize;
    effort.spend(total as u64)?;
    let mut pixels: Vec<u32> = Vec::with_capacity(total);
    let mut colours = vec![0; if cache == 0 { 0 } else { 1 << cache }];
    let slot = |pixel: u32| (pixel.wrapping_mul(0x1e35_a7bd) >> (32 - cache)) as usize;
    while pixels.len() < total {
        bits.fill();
        let symbol = tables.symbol(group.green, bits);
        let first = pixels.len();
        if symbol < COLOURS {
            let red = tables.symbol(group.red, bits);
            let blue = tables.symbol(group.blue, bits);
            bits.fill();
            let alpha = tables.symbol(group.alpha, bits);
            pixels.push(alpha << 24 | red << 16 | symbol << 8 | blue);
            if group.stride == 1 {
                // Nothing is read for any of them.
                pixels.resize(total, pixels[first]);
            }
        } else if symbol < CACHED {
            let (length, back) = copy(bits, tables, group, symbol, size.width);
            if back > first || length > total - first {
                return Err(outside(bits));
            }
            if back >= length {
                pixels.extend_from_within(first - back..first - back + length);
            } else {
                (0..length).for_each(|_| pixels.push(pixels[pixels.len() - back]));
            }
        } else {
            pixels.push(colours[(symbol - CACHED) as usize]);
        }
        if cache != 0 {
            pixels[first..].iter().for_each(|pixel| colours[slot(*pixel)] = *pixel);
        }
        if first / STRETCH != pixels.len() / STRETCH {
            bits.check()?;
        }
    }
    bits.check()?;
    Ok(pixels)
}

/// A copy from before the first pixel, or past the last.
fn outside(bits: &Bits<'_>) -> Reason {
    Reason::corrupt("VP8L copy outside the image", bits.position())
}
