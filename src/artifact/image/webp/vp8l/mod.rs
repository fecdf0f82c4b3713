//! Lossless images: WebP lossless bitstream specification. Every symbol is read; no pixel is kept,
//! but for the small image that says which codes the others are read with.

mod bits;
mod codes;
mod groups;
mod pixels;

use bits::Bits;
use codes::{Lengths, Tables};
use groups::Group;
use pixels::{Reader, Tiles, group_number};

use super::effort::Effort;
use super::{Size, Span};
use crate::artifact::image::Reason;

/// Bytes of the header (section 3).
const HEADER: usize = 5;

/// Nearby pixels, as steps to the left and up, that short distance codes stand for (section 5.2.2).
#[rustfmt::skip]
const NEAR: [(i8, u8); 120] = [
    (0, 1), (1, 0), (1, 1), (-1, 1), (0, 2), (2, 0), (1, 2), (-1, 2), (2, 1), (-2, 1), (2, 2), (-2, 2),
    (0, 3), (3, 0), (1, 3), (-1, 3), (3, 1), (-3, 1), (2, 3), (-2, 3), (3, 2), (-3, 2), (0, 4), (4, 0),
    (1, 4), (-1, 4), (4, 1), (-4, 1), (3, 3), (-3, 3), (2, 4), (-2, 4), (4, 2), (-4, 2), (0, 5), (3, 4),
    (-3, 4), (4, 3), (-4, 3), (5, 0), (1, 5), (-1, 5), (5, 1), (-5, 1), (2, 5), (-2, 5), (5, 2), (-5, 2),
    (4, 4), (-4, 4), (3, 5), (-3, 5), (5, 3), (-5, 3), (0, 6), (6, 0), (1, 6), (-1, 6), (6, 1), (-6, 1),
    (2, 6), (-2, 6), (6, 2), (-6, 2), (4, 5), (-4, 5), (5, 4), (-5, 4), (3, 6), (-3, 6), (6, 3), (-6, 3),
    (0, 7), (7, 0), (1, 7), (-1, 7), (5, 5), (-5, 5), (7, 1), (-7, 1), (4, 6), (-4, 6), (6, 4), (-6, 4),
    (2, 7), (-2, 7), (7, 2), (-7, 2), (3, 7), (-3, 7), (7, 3), (-7, 3), (5, 6), (-5, 6), (6, 5), (-6, 5),
    (8, 0), (4, 7), (-4, 7), (7, 4), (-7, 4), (8, 1), (8, 2), (6, 6), (-6, 6), (8, 3), (5, 7), (-5, 7),
    (7, 5), (-7, 5), (8, 4), (6, 7), (-6, 7), (7, 6), (-7, 6), (8, 5), (7, 7), (-7, 7), (8, 6), (8, 7),
];

/// The size that the header names.
pub(super) fn size(chunk: Span<'_>) -> Result<Size, Reason> {
    let Some([signature, a, b, c, d]) = chunk.bytes.first_chunk::<HEADER>() else {
        return Err(Reason::truncated(chunk.end()));
    };
    if *signature != 0x2f {
        return Err(Reason::corrupt("no VP8L signature", chunk.at));
    }
    let fields = u32::from_le_bytes([*a, *b, *c, *d]);
    if fields >> 29 != 0 {
        return Err(Reason::corrupt("unknown version of VP8L", chunk.at + 4));
    }
    Ok(Size { width: 1 + (fields & 0x3fff), height: 1 + (fields >> 14 & 0x3fff) })
}

/// Walks through a whole image with its header.
pub(super) fn check(chunk: Span<'_>, effort: &mut Effort) -> Result<(), Reason> {
    let size = size(chunk)?;
    check_stream(chunk.from(HEADER), size, effort)
}

/// Walks through an image without a header: transforms, codes, pixels (section 7.3).
pub(super) fn check_stream(stream: Span<'_>, size: Size, effort: &mut Effort) -> Result<(), Reason> {
    let mut bits = Bits::new(stream);
    // What goes wrong with bits from behind the end goes wrong because of the end.
    skip_stream(&mut bits, size, effort).map_err(|why| bits.check().err().unwrap_or(why))
}

fn skip_stream(bits: &mut Bits<'_>, size: Size, effort: &mut Effort) -> Result<(), Reason> {
    let width = skip_transforms(bits, size, effort)?;
    let size = Size { width, ..size };
    let cache = cache_bits(bits)?;
    let mut tables = Tables::default();
    let mut lengths = Lengths::default();
    if !bits.flag() {
        let group = Group::read(bits, cache, width, &mut lengths, &mut tables, effort)?;
        return Reader { size, tables: &tables, groups: &[group], tiles: None }.skip(bits, effort);
    }
    // Meta prefix codes (section 6.2.2): an image whose pixels name the group of a tile.
    let tile_bits = 2 + bits.read(3);
    let map = read_image(bits, tiled(size, tile_bits), effort)?;
    let count = 1 + map.iter().map(|pixel| group_number(*pixel)).max().unwrap_or(0);
    let mut used = vec![false; count];
    map.iter().for_each(|pixel| used[group_number(*pixel)] = true);
    let mut groups = Vec::with_capacity(count);
    for used in used {
        groups.push(if used {
            Group::read(bits, cache, width, &mut lengths, &mut tables, effort)?
        } else {
            Group::skip(bits, cache, &mut lengths, effort)?;
            Group::default()
        });
    }
    let tiles = Tiles { groups: map, bits: tile_bits };
    Reader { size, tables: &tables, groups: &groups, tiles: Some(&tiles) }.skip(bits, effort)
}

/// Reads past the transforms (section 4); the width of the image that is left.
fn skip_transforms(bits: &mut Bits<'_>, size: Size, effort: &mut Effort) -> Result<u32, Reason> {
    let mut seen = [false; 4];
    let mut width = size.width;
    while bits.flag() {
        let kind = bits.read(2) as usize;
        if std::mem::replace(&mut seen[kind], true) {
            return Err(Reason::corrupt("a VP8L transform twice", bits.position()));
        }
        match kind {
            // Predictor and colour: an image with a pixel for every tile.
            0 | 1 => {
                let tile_bits = 2 + bits.read(3);
                skip_image(bits, tiled(Size { width, ..size }, tile_bits), effort)?;
            }
            2 => {} // green subtracted: no data
            // Colours indexed: their table, and up to eight pixels in one.
            _ => {
                let colours = 1 + bits.read(8);
                skip_image(bits, Size { width: colours, height: 1 }, effort)?;
                let packed = match colours {
                    ..=2 => 8,
                    3..=4 => 4,
                    5..=16 => 2,
                    _ => 1,
                };
                width = width.div_ceil(packed);
            }
        }
        bits.check()?;
    }
    Ok(width)
}

/// The size of an image with a pixel for every tile.
const fn tiled(size: Size, bits: u32) -> Size {
    Size { width: size.width.div_ceil(1 << bits), height: size.height.div_ceil(1 << bits) }
}

/// Passes over an image that has but one group of codes.
fn skip_image(bits: &mut Bits<'_>, size: Size, effort: &mut Effort) -> Result<(), Reason> {
    let cache = cache_bits(bits)?;
    let mut tables = Tables::default();
    let group = Group::read(bits, cache, size.width, &mut Lengths::default(), &mut tables, effort)?;
    Reader { size, tables: &tables, groups: &[group], tiles: None }.skip(bits, effort)
}

/// Reads an image that has but one group of codes.
fn read_image(bits: &mut Bits<'_>, size: Size, effort: &mut Effort) -> Result<Vec<u32>, Reason> {
    let cache = cache_bits(bits)?;
    let mut tables = Tables::default();
    let group = Group::read(bits, cache, size.width, &mut Lengths::default(), &mut tables, effort)?;
    pixels::read(bits, size, &tables, &group, cache, effort)
}

/// Logarithm of the colour cache's size (section 5.2.3); 0 if there is none.
fn cache_bits(bits: &mut Bits<'_>) -> Result<u32, Reason> {
    if !bits.flag() {
        return Ok(0);
    }
    match bits.read(4) {
        cache @ 1..=11 => Ok(cache),
        _ => Err(Reason::corrupt("VP8L colour cache of no legal size", bits.position())),
    }
}

/// Reads the extra bits of a length or distance (section 5.2.2, LZ77 prefix coding).
#[inline]
fn prefixed(bits: &mut Bits<'_>, symbol: u32) -> u32 {
    if symbol < 4 {
        return symbol + 1;
    }
    let extra = (symbol - 2) >> 1;
    ((2 + (symbol & 1)) << extra) + bits.take(extra) + 1
}

/// The distance in pixels that a distance code stands for (section 5.2.2).
#[inline]
fn distance(code: u32, width: u32) -> u32 {
    match NEAR.get((code as usize).wrapping_sub(1)) {
        None => code - 120,
        Some((left, up)) => (u32::from(*up) * width).saturating_add_signed(i32::from(*left)).max(1),
    }
}
