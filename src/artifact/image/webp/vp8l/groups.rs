//! Groups of the five codes that a pixel is read with (WebP lossless, section 6.2.2).

use super::bits::Bits;
use super::codes::{Code, Lengths, Tables};
use super::distance;
use crate::artifact::image::Reason;
use crate::artifact::image::webp::effort::Effort;

/// Symbols of green that are colours.
pub(super) const COLOURS: u32 = 256;
/// Symbols of green that are colours or lengths; references to the colour cache follow.
pub(super) const CACHED: u32 = 256 + 24;

/// A group of codes.
#[derive(Clone, Copy, Default)]
pub(super) struct Group {
    pub(super) green: Code,
    pub(super) red: Code,
    pub(super) blue: Code,
    pub(super) alpha: Code,
    pub(super) distance: Code,
    /// The pixels that each symbol stands for, if every pixel is read from no bits at all; else 0.
    pub(super) stride: u32,
    /// How far back those are copied from; 0 if they are not.
    pub(super) back: u32,
    /// Whether red, blue and alpha take no bits.
    pub(super) green_only: bool,
}

impl Group {
    /// Reads the codes of a group.
    pub(super) fn read(
        bits: &mut Bits<'_>,
        cache: u32,
        width: u32,
        lengths: &mut Lengths,
        tables: &mut Tables,
        effort: &mut Effort,
    ) -> Result<Self, Reason> {
        let mut code = |alphabet| {
            lengths.read(bits, alphabet, effort)?;
            lengths.tabulate(tables)
        };
        let mut group = Self {
            green: code(green_alphabet(cache))?,
            red: code(256)?,
            blue: code(256)?,
            alpha: code(256)?,
            distance: code(40)?,
            ..Self::default()
        };
        group.green_only = [group.red, group.blue, group.alpha].iter().all(|code| tables.only(*code).is_some());
        (group.stride, group.back) = match tables.only(group.green) {
            Some(..COLOURS) if group.green_only => (1, 0),
            Some(CACHED..) => (1, 0),
            // The first four lengths and distances have no extra bits.
            Some(symbol @ COLOURS..260) => match tables.only(group.distance) {
                Some(back @ ..4) => (symbol - COLOURS + 1, distance(back + 1, width)),
                _ => (0, 0),
            },
            _ => (0, 0),
        };
        Ok(group)
    }

    /// Reads the codes of a group that no pixel uses.
    pub(super) fn skip(
        bits: &mut Bits<'_>,
        cache: u32,
        lengths: &mut Lengths,
        effort: &mut Effort,
    ) -> Result<(), Reason> {
        let mut alphabets = [green_alphabet(cache), 256, 256, 256, 40].into_iter();
        alphabets.try_for_each(|alphabet| lengths.read(bits, alphabet, effort))
    }
}

/// The alphabet of green with a colour cache of so many bits; 0 is none.
const fn green_alphabet(cache: u32) -> u16 {
    280 + if cache == 0 { 0 } else { 1 << cache }
}
