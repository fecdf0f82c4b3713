//! The boolean entropy encoder of RFC 6386, section 7.3: for tests only.

use super::tables::UPDATE;

/// Writes booleans the way a partition holds them.
pub(in crate::artifact::image::webp) struct BoolWriter {
    bytes: Vec<u8>,
    /// Lower end of the interval, with 24 bits behind the point that a byte is taken from.
    low: u64,
    range: u64,
    /// Bits shifted out of the interval since the last byte.
    pending: u32,
}

impl Default for BoolWriter {
    fn default() -> Self {
        Self { bytes: Vec::new(), low: 0, range: 255, pending: 0 }
    }
}

impl BoolWriter {
    pub(in crate::artifact::image::webp) fn write(&mut self, bit: bool, prob: u8) {
        let split = 1 + (((self.range - 1) * u64::from(prob)) >> 8);
        if bit {
            self.low += split;
            self.range -= split;
        } else {
            self.range = split;
        }
        while self.range < 128 {
            self.range <<= 1;
            self.low <<= 1;
            self.pending += 1;
            if self.pending == 8 {
                self.pending = 0;
                self.take();
            }
        }
    }

    /// Moves the finished byte out, carrying into those before it.
    fn take(&mut self) {
        let top = self.low >> 8;
        if top > 255 {
            for byte in self.bytes.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
        self.bytes.push(top.to_le_bytes()[0]);
        self.low &= 255;
    }

    pub(in crate::artifact::image::webp) fn number(&mut self, value: u32, bits: u32) {
        for bit in (0..bits).rev() {
            self.write(value >> bit & 1 == 1, 128);
        }
    }

    /// The partition, with enough bits that a decoder need not look behind its end.
    pub(in crate::artifact::image::webp) fn finish(mut self) -> Vec<u8> {
        for _ in 0..16 {
            self.write(false, 128);
        }
        self.bytes
    }
}

/// Writes that no probability of a token is replaced.
pub(in crate::artifact::image::webp) fn header_without_updates(bools: &mut BoolWriter) {
    for prob in UPDATE.as_flattened().as_flattened().as_flattened() {
        bools.write(false, *prob);
    }
}

/// Writes that a block ends, or goes on, with `prob` everywhere.
pub(in crate::artifact::image::webp) fn header_with_ends(bools: &mut BoolWriter, prob: u8) {
    for probs in UPDATE.as_flattened().as_flattened() {
        for (node, update) in probs.iter().enumerate() {
            bools.write(node == 0, *update);
            if node == 0 {
                bools.number(prob.into(), 8);
            }
        }
    }
}
