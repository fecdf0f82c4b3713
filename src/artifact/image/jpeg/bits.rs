//! The bits of entropy-coded data (T.81 F.2.2.5): byte stuffing removed, never past a marker.

/// Reads bits, most significant first, up to the next marker or the end of the file; from there on
/// it hands out zeros and counts them, so that decoders check once per block instead of per bit.
#[derive(Debug)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// The next byte to load.
    pos: usize,
    /// Loaded bits, left-aligned. Below the first `loaded` there may already be bits of the bytes at
    /// `pos`; loading those again changes nothing.
    acc: u64,
    loaded: u32,
    /// How many of the bits ever loaded were not in the data.
    invented: u32,
}

impl<'a> Bits<'a> {
    /// Starts at offset `pos` of `data`.
    pub(super) const fn new(data: &'a [u8], pos: usize) -> Self {
        Self { data, pos, acc: 0, loaded: 0, invented: 0 }
    }

    /// Makes at least 33 bits available to [`peek`](Self::peek) and [`skip`](Self::skip).
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if self.loaded > 32 {
            return;
        }
        if let Some(next) = self.data.get(self.pos..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_be_bytes(*next);
            if !has_ff(word) {
                let bytes = (63 - self.loaded) / 8;
                self.acc |= word >> self.loaded;
                self.loaded += 8 * bytes;
                self.pos += bytes as usize;
                return;
            }
        }
        self.refill_bytewise();
    }

    #[inline(never)]
    fn refill_bytewise(&mut self) {
        while self.loaded <= 56 {
            let byte = match self.data[self.pos..] {
                [0xFF, 0, ..] => {
                    self.pos += 1;
                    0xFF
                }
                [] | [0xFF, ..] => {
                    self.invented = self.invented.saturating_add(64 - self.loaded);
                    self.loaded = 64;
                    return;
                }
                [byte, ..] => byte,
            };
            self.pos += 1;
            self.acc |= u64::from(byte) << (56 - self.loaded);
            self.loaded += 8;
        }
    }

    /// The next `count` bits, 1 to 32, without taking them.
    #[inline(always)]
    pub(super) const fn peek(&self, count: u32) -> u32 {
        (self.acc >> 32) as u32 >> (32 - count)
    }

    /// Takes `count` bits; at most 33 since the last [`refill`](Self::refill).
    #[inline(always)]
    pub(super) const fn skip(&mut self, count: u32) {
        self.acc <<= count;
        self.loaded -= count;
    }

    /// Takes any number of bits, after at most 17 since the last [`refill`](Self::refill).
    #[inline(always)]
    pub(super) fn skip_after_symbol(&mut self, count: u32) {
        if count <= 16 {
            self.skip(count);
        } else {
            self.skip_many(count as usize);
        }
    }

    /// Takes any number of bits; stops early when the data is used up.
    pub(super) fn skip_many(&mut self, mut count: usize) {
        while count > 0 && !self.overdrawn() {
            self.refill();
            let step = u32::try_from(count).map_or(32, |count| count.min(32));
            self.skip(step);
            count -= step as usize;
        }
    }

    /// Whether more bits were taken than there are.
    #[inline(always)]
    pub(super) const fn overdrawn(&self) -> bool {
        self.loaded < self.invented
    }

    /// Whether the next code may lie partly behind the data.
    pub(super) const fn running_out(&self) -> bool {
        self.invented > 0 && self.loaded < self.invented + 16
    }

    /// The offset of the first byte of which no bit was taken, or the end of the data; stuffed zeros
    /// among the loaded bytes are not counted, so it may lie up to 8 bytes late.
    pub(super) const fn position(&self) -> usize {
        self.pos - (self.loaded.saturating_sub(self.invented) / 8) as usize
    }

    /// Ends the interval: the offset of the marker that follows (or the end of the data), and how
    /// many bytes before it were left unread.
    pub(super) fn finish(&self) -> (usize, usize) {
        let loaded = (self.loaded.saturating_sub(self.invented) / 8) as usize;
        let mut at = self.pos;
        loop {
            match self.data[at..] {
                [] | [0xFF] => return (self.data.len(), loaded + at - self.pos),
                [0xFF, 0, ..] => at += 2,
                [0xFF, ..] => return (at, loaded + at - self.pos),
                _ => at += 1,
            }
        }
    }
}

/// Whether a byte of `word` is 0xFF: some byte of the complement is zero.
const fn has_ff(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    (!word).wrapping_sub(ONES) & word & (ONES << 7) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_ff_finds_the_byte_in_every_place() {
        for fill in [0u8, 1, 0x7F, 0x80, 0xFE] {
            let mut bytes = [fill; 8];
            assert!(!has_ff(u64::from_be_bytes(bytes)), "{fill:#x}");
            for place in 0..8 {
                bytes[place] = 0xFF;
                assert!(has_ff(u64::from_be_bytes(bytes)), "{fill:#x} at {place}");
                bytes[place] = fill;
            }
        }
    }

    #[test]
    fn bits_are_those_of_the_bytes_without_stuffing() {
        let mut data: Vec<u8> = (0..=254).chain([0xFF, 0, 0xFF, 0, 7, 0xFF, 0, 9, 9, 9, 9, 9, 9, 9, 9]).collect();
        let plain: Vec<u8> = (0..=254).chain([0xFF, 0xFF, 7, 0xFF, 9, 9, 9, 9, 9, 9, 9, 9]).collect();
        data.extend([0xFF, 0xD9]);
        for step in 1..=32 {
            let mut bits = Bits::new(&data, 0);
            let mut taken = 0;
            while taken + step as usize <= plain.len() * 8 {
                bits.refill();
                let wanted = (0..step as usize).fold(0u64, |word, bit| {
                    let at = taken + bit;
                    word << 1 | u64::from(plain[at / 8] >> (7 - at % 8) & 1)
                });
                assert_eq!(u64::from(bits.peek(step)), wanted, "{step} bits at {taken}");
                bits.skip(step);
                taken += step as usize;
                assert!(!bits.overdrawn());
            }
            let rest = plain.len() * 8 - taken;
            assert_eq!(bits.finish(), (data.len() - 2, rest / 8), "step {step}");
            bits.skip_many(rest + 1);
            assert!(bits.overdrawn());
        }
    }

    #[test]
    fn a_lone_ff_at_the_end_is_no_data() {
        let mut bits = Bits::new(&[1, 0xFF], 0);
        bits.skip_many(8);
        assert!(!bits.overdrawn());
        assert_eq!((bits.position(), bits.finish()), (1, (2, 0)));
        bits.skip_many(1);
        assert!(bits.overdrawn());
    }
}
