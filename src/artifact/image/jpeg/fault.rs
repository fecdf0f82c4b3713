//! What can be wrong inside entropy-coded data.

use super::super::Reason;
use super::bits::Bits;

/// A fault of the entropy-coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bits are no code of the table.
    NoCode,
    /// The code's symbol has no meaning here.
    BadSymbol,
    /// A run passes the end of its block or band.
    PastBlock,
    /// A run of ended bands passes the end of the scan or restart interval.
    PastInterval,
    /// A marker, or the end of the file, comes before the last block.
    EndsEarly,
}

impl Fault {
    /// The reason, with the place where the reader stands.
    pub(super) fn reason(self, bits: &Bits<'_>, file: &[u8]) -> Reason {
        let ends = bits.overdrawn() || self == Self::NoCode && bits.running_out();
        let what = match self {
            // Invented zeros decode to anything: that the data end comes before what they mean.
            _ if ends => "entropy-coded data ends early",
            Self::EndsEarly => "entropy-coded data ends early",
            Self::NoCode => "no Huffman code",
            Self::BadSymbol => "meaningless Huffman symbol",
            Self::PastBlock => "coefficients past their block",
            Self::PastInterval => "end-of-band run past its scan",
        };
        let (marker, _) = bits.finish();
        if ends && marker == file.len() {
            return Reason::truncated(marker);
        }
        Reason::corrupt(what, bits.position())
    }
}
