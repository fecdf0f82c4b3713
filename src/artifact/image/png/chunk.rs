//! The chunk layer: length, type, data and CRC (PNG 3rd ed., section 5.3).

use crate::artifact::image::Reason;

/// The longest chunk that the format allows, in bytes (section 5.3: "must not exceed 2^31-1").
const MAX_LENGTH: u32 = (1 << 31) - 1;

/// One chunk whose frame is sound: it lies in the file, its name is letters, its CRC is right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'a> {
    /// The four letters.
    pub kind: [u8; 4],
    /// What it carries.
    pub data: &'a [u8],
    /// Where the chunk begins (its length field).
    pub at: usize,
}

impl Chunk<'_> {
    /// Where the data begin.
    pub(super) const fn data_at(&self) -> usize {
        self.at + 8
    }

    /// The letters, for a reason.
    pub(super) fn name(&self) -> String {
        self.kind.iter().copied().map(char::from).collect()
    }

    /// Whether a decoder must understand it: bit 5 of the first letter (section 5.4).
    pub(super) const fn is_critical(&self) -> bool {
        self.kind[0] & 0x20 == 0
    }

    /// [`Reason::Corrupt`] at this chunk.
    pub(super) fn corrupt(&self, what: &str) -> Reason {
        Reason::corrupt(format!("{what} in chunk {}", self.name()), self.at)
    }

    /// The data, if they have exactly this length.
    pub(super) fn exactly<const N: usize>(&self) -> Result<&[u8; N], Reason> {
        self.data.try_into().map_err(|_| self.corrupt(&format!("{} bytes instead of {N}", self.data.len())))
    }
}

/// Walks the chunks of a file.
#[derive(Debug)]
pub(super) struct Chunks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// The chunks from an offset on.
    pub(super) const fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next chunk; there is always one until `IEND`, so the end of the file is an error.
    pub(super) fn next(&mut self) -> Result<Chunk<'a>, Reason> {
        let at = self.at;
        let rest = self.bytes.get(at..).unwrap_or_default();
        let truncated = || Reason::truncated(self.bytes.len());
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        let (kind, _) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        if !kind.iter().all(u8::is_ascii_alphabetic) {
            return Err(Reason::corrupt("a chunk's name is not four letters", at + 4));
        }
        let length = u32::from_be_bytes(*length);
        if length > MAX_LENGTH {
            return Err(Reason::corrupt("a chunk's length exceeds the format's limit", at));
        }
        let length = usize::try_from(length).map_err(|_| truncated())?;
        let (checked, rest) = length.checked_add(4).and_then(|n| rest.split_at_checked(n)).ok_or_else(truncated)?;
        let (crc, _) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        let chunk = Chunk { kind: *kind, data: &checked[4..], at };
        // Section 5.5: the CRC covers the name and the data.
        if crc32fast::hash(checked) != u32::from_be_bytes(*crc) {
            return Err(Reason::corrupt(format!("bad CRC in chunk {}", chunk.name()), at));
        }
        self.at = at + 12 + length;
        Ok(chunk)
    }
}
