//! One picture: lossy, lossy with alpha, or lossless.

use super::chunks::{Chunk, Chunks};
use super::effort::Effort;
use super::{Size, alpha, vp8, vp8l};
use crate::artifact::image::Reason;

/// The chunks of one picture.
pub(super) struct Picture<'a> {
    alpha: Option<Chunk<'a>>,
    image: Chunk<'a>,
    /// Pixels, as its own header says.
    pub(super) size: Size,
}

impl<'a> Picture<'a> {
    /// Whether a chunk of this name begins a picture.
    pub(super) const fn begins(name: [u8; 4]) -> bool {
        matches!(&name, b"ALPH" | b"VP8 " | b"VP8L")
    }

    /// Takes a picture that begins with `first`, which [`Picture::begins`] one.
    pub(super) fn take(first: Chunk<'a>, rest: &mut Chunks<'a>) -> Result<Self, Reason> {
        let (alpha, image) = if &first.name == b"ALPH" {
            match rest.next()? {
                Some(image) if &image.name == b"VP8 " => (Some(first), image),
                Some(_) => return Err(first.refuse("no lossy image right after")),
                None => return Err(Reason::truncated(first.payload.end())),
            }
        } else {
            (None, first)
        };
        let size = if &image.name == b"VP8 " { vp8::size(image.payload) } else { vp8l::size(image.payload) }?;
        Ok(Self { alpha, image, size })
    }

    /// Walks through the picture.
    pub(super) fn check(&self, effort: &mut Effort) -> Result<(), Reason> {
        if let Some(alpha) = &self.alpha {
            alpha::check(alpha, self.size, effort)?;
        }
        match &self.image.name {
            b"VP8 " => vp8::check(self.image.payload, effort),
            _ => vp8l::check(self.image.payload, effort),
        }
    }

    /// Offset of the image chunk.
    pub(super) const fn at(&self) -> usize {
        self.image.at
    }
}
