//! `IHDR` and what follows from it: how many bytes each row has (PNG 3rd ed., sections 7.2, 8 and 11.2.1).

use super::chunk::Chunk;
use crate::artifact::image::{Reason, check_sides};

/// Colour type 3: pixels are indices of the palette.
const INDEXED: u8 = 3;

/// The image header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    colour: u8,
    bits_per_pixel: u32,
    interlaced: bool,
}

impl Header {
    /// Reads the first chunk, which must be `IHDR`.
    pub(super) fn read(chunk: &Chunk<'_>) -> Result<Self, Reason> {
        if &chunk.kind != b"IHDR" {
            return Err(Reason::corrupt("the first chunk is not IHDR", chunk.at));
        }
        let [w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, compression, filter, interlace] = *chunk.exactly::<13>()?;
        let (width, height) = (u32::from_be_bytes([w0, w1, w2, w3]), u32::from_be_bytes([h0, h1, h2, h3]));
        // Section 11.2.1, table 11.1: samples per pixel and the depths allowed to each colour type.
        let samples = match (colour, depth) {
            (0, 1 | 2 | 4 | 8 | 16) | (INDEXED, 1 | 2 | 4 | 8) => 1,
            (4, 8 | 16) => 2,
            (2, 8 | 16) => 3,
            (6, 8 | 16) => 4,
            _ => return Err(chunk.corrupt("impossible colour type or depth")),
        };
        if (compression, filter) != (0, 0) {
            return Err(chunk.corrupt("unknown compression or filter method"));
        }
        let interlaced = match interlace {
            0 => false,
            1 => true,
            _ => return Err(chunk.corrupt("unknown interlace method")),
        };
        check_sides(width, height, chunk.data_at())?;
        Ok(Self { width, height, colour, bits_per_pixel: samples * u32::from(depth), interlaced })
    }

    /// Whether pixels are indices of a palette.
    pub(super) const fn is_indexed(&self) -> bool {
        self.colour == INDEXED
    }

    /// The fewest and the most bytes of `tRNS` (section 11.3.1.1): one grey sample, one colour, or an
    /// alpha for each of up to 256 entries. Colour types with alpha must not have it; readers skip it.
    pub(super) const fn transparency_lengths(&self) -> (usize, usize) {
        match self.colour {
            0 => (2, 2),
            2 => (6, 6),
            INDEXED => (1, 256),
            _ => (0, usize::MAX),
        }
    }

    /// Pixels of the canvas.
    pub(super) fn canvas(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The passes that a frame of these sides is stored in; without interlace there is one.
    pub(super) fn passes(&self, width: u32, height: u32) -> Vec<Pass> {
        // Section 8.2, Adam7: each pass takes every dx-th pixel from x0 of every dy-th row from y0.
        const ADAM7: [(u32, u32, u32, u32); 7] =
            [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)];
        let grid: &[(u32, u32, u32, u32)] = if self.interlaced { &ADAM7 } else { &[(0, 0, 1, 1)] };
        let passes = grid
            .iter()
            .map(|&(x0, y0, dx, dy)| (width.saturating_sub(x0).div_ceil(dx), height.saturating_sub(y0).div_ceil(dy)));
        // Section 7.2 and 9.1: rows are padded to whole bytes and led by their filter's number; a pass
        // without pixels has no rows, not even the filters' bytes.
        passes
            .filter(|&(columns, rows)| columns > 0 && rows > 0)
            .map(|(columns, rows)| Pass { row: (columns * self.bits_per_pixel).div_ceil(8), rows })
            .collect()
    }
}

/// Rows of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    /// Bytes of a row, without its filter byte; at least 1.
    pub row: u32,
    /// How many; at least 1.
    pub rows: u32,
}
