//! Variable-length-code LZW, decoded to lengths (GIF89a, appendix F).
//!
//! Whether a frame is whole depends on which codes come and how many pixels each stands for, not on
//! the pixels. So the table holds the strings' lengths alone: the cost is that of the compressed
//! bytes, whatever they expand to.

use super::blocks::Blocks;
use crate::artifact::image::Reason;

/// Codes have at most 12 bits.
const MAX_BITS: u32 = 12;
const MAX_CODES: usize = 1 << MAX_BITS;
/// Compressed bytes gathered before they are decoded: sub-blocks are too short to decode one by one.
const GATHER: usize = 16 * 1024;
/// Bytes fetched at once; a code may start in any bit, so this many hold at least four.
const FETCH: usize = 8;

/// Decodes the frames of a file, one after the other.
pub(super) struct Lzw {
    /// How many pixels each code stands for.
    lengths: Box<[u16; MAX_CODES]>,
    gathered: Box<[u8; GATHER]>,
}

/// What a run of codes came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// More codes may follow.
    Open,
    /// The end code.
    End,
    /// A code that stands for nothing yet.
    Invalid,
}

/// One frame's codes so far.
struct Codes {
    clear: usize,
    first_bits: u32,
    bits: u32,
    /// The next free code.
    next: usize,
    /// Pixels of the code before; none after a clear code.
    previous: Option<u16>,
    missing: u64,
}

impl Lzw {
    pub(super) fn new() -> Self {
        Self { lengths: Box::new([1; MAX_CODES]), gathered: Box::new([0; GATHER]) }
    }

    /// Decodes the sub-blocks of a frame up to their terminator; `code_size` is 2 to 8. More pixels
    /// than the frame has and bytes behind the end code are skipped, as by every reader; a missing end
    /// code is not missed.
    pub(super) fn decode(&mut self, code_size: u8, pixels: u64, blocks: &mut Blocks<'_>) -> Result<(), Reason> {
        let mut codes = Codes::new(code_size, pixels);
        self.lengths[..codes.clear].fill(1);
        let mut outcome = Outcome::Open;
        let (mut filled, mut bit) = (0, 0);
        while let Some(block) = blocks.sub_block()? {
            match outcome {
                Outcome::Open => {}
                Outcome::Invalid => break,
                Outcome::End => continue,
            }
            self.gathered[filled..filled + block.len()].copy_from_slice(block);
            filled += block.len();
            // Room for the next block and for the fetch behind the last byte.
            if filled + 255 + FETCH > GATHER {
                outcome = codes.run(&mut self.lengths, &self.gathered[..], filled * 8, &mut bit);
                let whole = bit / 8;
                self.gathered.copy_within(whole..filled, 0);
                filled -= whole;
                bit -= whole * 8;
            }
        }
        if outcome == Outcome::Open {
            outcome = codes.run(&mut self.lengths, &self.gathered[..], filled * 8, &mut bit);
        }
        let what = match outcome {
            Outcome::Invalid => "an impossible LZW code".to_owned(),
            Outcome::Open | Outcome::End if codes.missing == 0 => return Ok(()),
            Outcome::Open | Outcome::End => format!("a frame without its last {} pixels", codes.missing),
        };
        Err(Reason::corrupt(what, blocks.at()))
    }
}

impl Codes {
    fn new(code_size: u8, pixels: u64) -> Self {
        let clear = 1 << code_size;
        let first_bits = u32::from(code_size) + 1;
        Self { clear, first_bits, bits: first_bits, next: clear + 2, previous: None, missing: pixels }
    }

    /// Decodes the codes that lie wholly between `*bit` and `end`, both counted in bits.
    fn run(&mut self, lengths: &mut [u16; MAX_CODES], bytes: &[u8], end: usize, bit: &mut usize) -> Outcome {
        while *bit + self.bits as usize <= end {
            let Some(window) = bytes.get(*bit / 8..).and_then(|rest| rest.first_chunk::<FETCH>()) else { break };
            let mut window = u64::from_le_bytes(*window) >> (*bit % 8);
            // 57 bits are left at least: four codes of twelve.
            for _ in 0..4 {
                let bits = self.bits;
                if *bit + bits as usize > end {
                    break;
                }
                // Twelve bits fit any usize; what did not would be no code.
                let code = usize::try_from(window & ((1 << bits) - 1)).unwrap_or(MAX_CODES);
                window >>= bits;
                *bit += bits as usize;
                match self.take(lengths, code) {
                    Outcome::Open => {}
                    outcome => return outcome,
                }
            }
        }
        Outcome::Open
    }

    fn take(&mut self, lengths: &mut [u16; MAX_CODES], code: usize) -> Outcome {
        if code == self.clear {
            self.next = self.clear + 2;
            self.bits = self.first_bits;
            self.previous = None;
            return Outcome::Open;
        }
        if code == self.clear + 1 {
            return Outcome::End;
        }
        if let Some(previous) = self.previous
            && self.next < MAX_CODES
        {
            // The new string is the one before and one pixel more; the code that comes may be itself.
            lengths[self.next] = previous + 1;
            self.next += 1;
        }
        let is_known = if self.previous.is_some() { code < self.next } else { code < self.clear };
        if !is_known {
            return Outcome::Invalid;
        }
        if self.next >> self.bits != 0 && self.bits < MAX_BITS {
            self.bits += 1;
        }
        let length = lengths[code];
        self.previous = Some(length);
        self.missing = self.missing.saturating_sub(length.into());
        Outcome::Open
    }
}
