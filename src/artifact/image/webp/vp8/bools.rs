//! The boolean entropy decoder of RFC 6386, section 7.

use crate::artifact::image::Reason;
use crate::artifact::image::webp::Span;

/// Reads booleans out of one partition.
///
/// The decoder looks at eight bits at a time. A read that needs bits behind the partition's end goes
/// on with zeros, as section 7.3 allows an implementation to do, but is remembered: such a partition
/// is too short for what it must say, and strict decoders refuse it.
#[derive(Clone, Copy)]
pub(super) struct Bools<'a> {
    rest: &'a [u8],
    /// The bits ahead, from the highest down.
    window: u64,
    /// How many of them are loaded.
    loaded: u32,
    /// 128 to 255 between reads.
    range: u32,
    overrun: bool,
}

impl<'a> Bools<'a> {
    /// Begins a partition. An empty one is too short even if nothing is read from it: section 7.3 loads
    /// the first bits at once. None begins with a byte of 255: the number that a partition spells is
    /// below the range, 255 at first, and decoders differ on what comes out if it is not.
    pub(super) fn new(partition: Span<'a>) -> Result<Self, Reason> {
        if partition.bytes.first() == Some(&255) {
            return Err(Reason::corrupt("impossible first byte of a VP8 partition", partition.at));
        }
        Ok(Self { rest: partition.bytes, window: 0, loaded: 0, range: 255, overrun: partition.bytes.is_empty() })
    }

    /// Whether the partition was too short for what has been read.
    pub(super) const fn overrun(&self) -> bool {
        self.overrun
    }

    /// Fills the window up to at least 48 bits.
    #[inline]
    fn load(&mut self) {
        if let Some(head) = self.rest.first_chunk::<8>() {
            // Six bytes: up to seven bits are loaded already.
            self.window |= (u64::from_be_bytes(*head) >> 16 << 16) >> self.loaded;
            self.loaded += 48;
            self.rest = &self.rest[6..];
        } else {
            *self = self.with_tail();
        }
    }

    /// With the last bytes loaded, then zeros. By value, so that readers stay in registers.
    #[cold]
    #[inline(never)]
    const fn with_tail(mut self) -> Self {
        while self.loaded <= 48
            && let Some((byte, tail)) = self.rest.split_first()
        {
            self.window |= (*byte as u64) << (56 - self.loaded);
            self.loaded += 8;
            self.rest = tail;
        }
        if self.loaded < 8 {
            self.overrun = true;
            self.loaded += 48;
        }
        self
    }

    /// Reads a boolean that is false with a probability of `prob` in 256 (section 7.3).
    #[inline]
    pub(super) fn read(&mut self, prob: u8) -> bool {
        if self.loaded < 8 {
            self.load();
        }
        let split = self.split(prob);
        let edge = u64::from(split) << 56;
        let bit = self.window >= edge;
        if bit {
            self.window -= edge;
            self.range -= split;
        } else {
            self.range = split;
        }
        self.normalise();
        bit
    }

    /// Where the range divides: 1 + (((range - 1) * prob) >> 8), in fewer steps.
    #[inline]
    fn split(&self, prob: u8) -> u32 {
        (self.range * u32::from(prob) + (256 - u32::from(prob))) >> 8
    }

    /// Doubles the range until it is 128 or more again.
    #[inline]
    const fn normalise(&mut self) {
        // 24 to 31 zeros: the difference to 24.
        let shift = self.range.leading_zeros() ^ 24;
        self.range <<= shift;
        self.window <<= shift;
        self.loaded -= shift;
    }

    /// Passes over a boolean that nothing depends on, and that no processor can foresee.
    #[inline]
    pub(super) fn skip(&mut self, prob: u8) {
        if self.loaded < 8 {
            self.load();
        }
        let split = self.split(prob);
        let edge = u64::from(split) << 56;
        // All ones if the boolean is true.
        let mask = u64::from(self.window < edge).wrapping_sub(1);
        self.window -= edge & mask;
        #[expect(clippy::cast_possible_truncation, reason = "all ones, or none")]
        let mask = mask as u32;
        self.range = split ^ ((split ^ (self.range - split)) & mask);
        self.normalise();
    }

    /// Reads a flag: a boolean as likely true as false.
    #[inline]
    pub(super) fn flag(&mut self) -> bool {
        self.read(128)
    }

    /// Reads an unsigned number of `bits` bits, at most 8, the highest first (section 8).
    pub(super) fn number(&mut self, bits: u32) -> u8 {
        (0..bits).fold(0, |n, _| n << 1 | u8::from(self.flag()))
    }

    /// Passes over an optional signed number: a flag, then `bits` bits and a sign (section 9.6).
    pub(super) fn skip_optional(&mut self, bits: u32) {
        if self.flag() {
            self.number(bits);
            self.flag();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bools, Span};

    fn bools(bytes: &[u8]) -> Bools<'_> {
        Bools::new(Span { bytes, at: 0 }).expect("a possible partition")
    }

    #[test]
    fn no_partition_begins_with_255() {
        for first in 0..=255 {
            let bytes = [first, 255];
            let begun = Bools::new(Span { bytes: &bytes, at: 40 });
            assert_eq!(begun.is_ok(), first != 255);
        }
    }

    #[test]
    fn a_partition_is_too_short_once_eight_bits_ahead_are_not_there() {
        // At 128 of 256 each read takes one bit of two equal halves; zeros stay in the lower.
        for bytes in 1..20 {
            let partition = vec![0; bytes];
            let mut bools = bools(&partition);
            let mut reads = 0;
            while !bools.overrun() {
                assert!(!bools.flag());
                reads += 1;
            }
            // The first of them finds a range of 255 and halves it to 128: no bit.
            assert_eq!(reads, 8 * bytes - 8 + 3, "{bytes} bytes");
        }
    }

    #[test]
    fn numbers_come_back_as_written() {
        let mut writer = super::super::writer::BoolWriter::default();
        let probs = [1, 17, 128, 200, 255];
        let bits: Vec<bool> = (0..4000_u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 28 < 5).collect();
        for (bit, prob) in bits.iter().zip(probs.iter().cycle()) {
            writer.write(*bit, *prob);
        }
        let partition = writer.finish();
        let mut bools = bools(&partition);
        for (bit, prob) in bits.iter().zip(probs.iter().cycle()) {
            assert_eq!(bools.read(*prob), *bit);
        }
        assert!(!bools.overrun());
    }
}
