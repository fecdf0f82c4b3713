//! RIFF chunks (WebP container specification, "RIFF file format").

use super::Span;
use crate::artifact::image::Reason;

/// Bytes of a chunk's header.
const HEADER: usize = 8;

/// A chunk.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) name: [u8; 4],
    /// Offset of its header in the file.
    pub(super) at: usize,
    pub(super) payload: Span<'a>,
}

impl Chunk<'_> {
    /// A refusal of this chunk: what is wrong with it, then its name.
    pub(super) fn refuse(&self, what: &str) -> Reason {
        Reason::corrupt(format!("{what} {}", self.name.escape_ascii()), self.at)
    }
}

/// The chunks that fill a part of the file to its last byte, each padded to an even size.
#[derive(Clone)]
pub(super) struct Chunks<'a> {
    rest: Span<'a>,
}

impl<'a> Chunks<'a> {
    pub(super) const fn new(span: Span<'a>) -> Self {
        Self { rest: span }
    }

    /// Offset in the file of what follows them.
    pub(super) const fn end(&self) -> usize {
        self.rest.end()
    }

    /// The next chunk, if there is another.
    pub(super) fn next(&mut self) -> Result<Option<Chunk<'a>>, Reason> {
        if self.rest.bytes.is_empty() {
            return Ok(None);
        }
        let Some([n0, n1, n2, n3, size @ ..]) = self.rest.bytes.first_chunk::<HEADER>() else {
            return Err(Reason::truncated(self.rest.end()));
        };
        let name = [*n0, *n1, *n2, *n3];
        let size = u32::from_le_bytes(*size) as usize;
        let body = self.rest.from(HEADER);
        let overrun = || {
            let what = format!("chunk {} of {size} bytes, more than there are", name.escape_ascii());
            Reason::corrupt(what, self.rest.at)
        };
        let padded = size.checked_add(size & 1).ok_or_else(overrun)?;
        let payload = body.upto(size).filter(|_| padded <= body.bytes.len()).ok_or_else(overrun)?;
        let chunk = Chunk { name, at: self.rest.at, payload };
        self.rest = body.from(padded);
        Ok(Some(chunk))
    }
}
