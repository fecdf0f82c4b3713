//! A part of the file that knows where it lies.

/// Some bytes of the file.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset in the file.
    pub(super) at: usize,
}

impl Span<'_> {
    /// Offset in the file of what follows.
    pub(super) const fn end(self) -> usize {
        self.at + self.bytes.len()
    }

    /// What comes after the first `n` bytes; nothing if there are no more.
    pub(super) fn from(self, n: usize) -> Self {
        let n = n.min(self.bytes.len());
        Self { bytes: &self.bytes[n..], at: self.at + n }
    }

    /// The first `n` bytes, if there are as many.
    pub(super) fn upto(self, n: usize) -> Option<Self> {
        Some(Self { bytes: self.bytes.get(..n)?, at: self.at })
    }
}

/// Sides in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Size {
    /// Pixels in all.
    pub(super) fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}
