//! Bits of a lossless stream, the lowest of each byte first (WebP lossless, section 2).

use crate::artifact::image::Reason;
use crate::artifact::image::webp::Span;

/// Reads bits. Behind the end come zeros; who reads asks [`Bits::check`] now and then.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Offset of the bytes in the file.
    at: usize,
    /// The next byte to load; it runs on behind the end.
    next: usize,
    /// The bits ahead, from the lowest up.
    window: u64,
    /// How many of them are loaded.
    loaded: u32,
}

impl<'a> Bits<'a> {
    /// Bits that [`Bits::fill`] provides.
    pub(super) const FILL: u32 = 56;

    pub(super) const fn new(span: Span<'a>) -> Self {
        Self { bytes: span.bytes, at: span.at, next: 0, window: 0, loaded: 0 }
    }

    /// Loads at least [`Bits::FILL`] bits.
    #[inline]
    pub(super) fn fill(&mut self) {
        if let Some(chunk) = self.bytes.get(self.next..).and_then(<[u8]>::first_chunk::<8>) {
            self.window |= u64::from_le_bytes(*chunk) << self.loaded;
            let bytes = (63 - self.loaded) >> 3;
            self.next += bytes as usize;
            self.loaded += 8 * bytes;
        } else {
            self.fill_tail();
        }
    }

    /// The last bytes, then zeros.
    #[cold]
    fn fill_tail(&mut self) {
        while self.loaded < Self::FILL {
            let byte = self.bytes.get(self.next).copied().unwrap_or(0);
            self.window |= u64::from(byte) << self.loaded;
            self.loaded += 8;
            self.next += 1;
        }
    }

    /// The next 32 bits, unread.
    #[inline]
    pub(super) const fn peek(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let low = self.window as u32;
        low
    }

    /// Passes over loaded bits.
    #[inline]
    pub(super) fn drop(&mut self, bits: u32) {
        self.window >>= bits;
        self.loaded -= bits;
    }

    /// Takes up to 32 loaded bits.
    #[inline]
    pub(super) fn take(&mut self, bits: u32) -> u32 {
        let low = self.window & ((1 << bits) - 1);
        self.drop(bits);
        #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are left")]
        let low = low as u32;
        low
    }

    /// Reads up to 32 bits.
    pub(super) fn read(&mut self, bits: u32) -> u32 {
        if self.loaded < bits {
            self.fill();
        }
        self.take(bits)
    }

    /// Reads one bit.
    pub(super) fn flag(&mut self) -> bool {
        self.read(1) == 1
    }

    /// Whether `bits` are loaded.
    #[inline]
    pub(super) const fn has(&self, bits: u32) -> bool {
        self.loaded >= bits
    }

    /// Offset in the file of the byte that holds the next bit.
    pub(super) fn position(&self) -> usize {
        self.at + (self.next - (self.loaded / 8) as usize).min(self.bytes.len())
    }

    /// Refuses a stream that ended before what has been read of it.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Reason> {
        if 8 * self.next - self.loaded as usize > 8 * self.bytes.len() {
            return Err(Reason::truncated(self.at + self.bytes.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Bits, Span};

    #[test]
    fn the_last_bit_may_be_read_and_no_more() {
        for len in 0..20 {
            let bytes: Vec<u8> = (0..len).map(|i| 0x5a_u8.rotate_left(i)).collect();
            for first in 0..8 {
                let mut bits = Bits::new(Span { bytes: &bytes, at: 100 });
                let mut read = 0;
                while bits.check().is_ok() {
                    let n = if read == 0 && len > 0 { first } else { 1 };
                    let got = bits.read(n);
                    for i in 0..n {
                        let bit = read + i;
                        let want = bytes.get(bit as usize / 8).map_or(0, |b| u32::from(b >> (bit % 8) & 1));
                        assert_eq!(got >> i & 1, want);
                    }
                    read += n.max(u32::from(read == 0 && n == 0));
                    if read == 1 && first == 0 && len > 0 {
                        read = 0;
                        bits.read(1);
                        read += 1;
                    }
                }
                assert_eq!(read, 8 * len + 1);
                assert_eq!(bits.position(), 100 + bytes.len());
            }
        }
    }
}
