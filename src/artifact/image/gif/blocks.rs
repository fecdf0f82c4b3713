//! The block layer: header, descriptors, colour tables, extensions and data sub-blocks
//! (GIF89a, sections 15 to 23).

use crate::artifact::image::Reason;

/// The label of the graphic control extension (section 23).
const GRAPHIC_CONTROL: u8 = 0xF9;
/// The label of the comment extension (section 24).
const COMMENT: u8 = 0xFE;
/// The label of the application extension (section 26).
const APPLICATION: u8 = 0xFF;
/// The application whose second sub-block says how often an animation plays.
const LOOP: &[u8] = b"NETSCAPE2.0";

/// The logical screen (section 18). Either side may be 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

/// A frame's place on the screen (section 20); each at most 65,535 pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    /// From the left edge.
    pub left: u32,
    /// From the upper edge.
    pub top: u32,
    /// May be 0.
    pub width: u32,
    /// May be 0.
    pub height: u32,
}

/// Reads a file from front to back.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Blocks<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Where the next byte is.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end).ok_or_else(|| self.truncated())?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.truncated())
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, Reason> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Header, logical screen and global colour table (sections 17 to 19).
    pub(super) fn header(&mut self) -> Result<Screen, Reason> {
        if !matches!(&self.array::<6>()?, b"GIF87a" | b"GIF89a") {
            return Err(Reason::corrupt("no GIF signature", 0));
        }
        let [w0, w1, h0, h1, packed, _background, _aspect] = self.array()?;
        self.colour_table(packed)?;
        Ok(Screen { width: word(w0, w1), height: word(h0, h1) })
    }

    /// Image descriptor and local colour table (sections 20 and 21).
    pub(super) fn descriptor(&mut self) -> Result<Descriptor, Reason> {
        let [x0, x1, y0, y1, w0, w1, h0, h1, packed] = self.array()?;
        self.colour_table(packed)?;
        Ok(Descriptor { left: word(x0, x1), top: word(y0, y1), width: word(w0, w1), height: word(h0, h1) })
    }

    /// Skips the colour table that a packed field announces: 2^(n+1) colours of three bytes.
    fn colour_table(&mut self, packed: u8) -> Result<(), Reason> {
        if packed & 0x80 != 0 {
            self.take(3 << ((packed & 7) + 1))?;
        }
        Ok(())
    }

    /// [`Reason::Truncated`] at the end of the file.
    pub(super) fn truncated(&self) -> Reason {
        Reason::truncated(self.bytes.len())
    }

    /// An extension whose introducer has been read: a label and sub-blocks. False if the file ends in
    /// it, unless it is a graphic control, for that belongs to a frame.
    pub(super) fn extension(&mut self) -> Result<bool, Reason> {
        let label = self.byte()?;
        let at = self.at;
        let mut is_loop = false;
        let (mut blocks, mut bytes) = (0, 0);
        loop {
            match self.sub_block() {
                Ok(Some(block)) => {
                    is_loop |= blocks == 0 && label == APPLICATION && block.starts_with(LOOP);
                    blocks += 1;
                    bytes += block.len();
                }
                Ok(None) => break,
                Err(truncated) if label == GRAPHIC_CONTROL => return Err(truncated),
                Err(_) => return Ok(false),
            }
        }
        // Section 23: a graphic control is one sub-block of four bytes. Of any other, and of extensions
        // that lack the sub-blocks they must have, some readers take the next block for a part.
        if label == GRAPHIC_CONTROL && (blocks, bytes) != (1, 4) {
            return Err(Reason::corrupt(format!("a graphic control of {bytes} bytes in {blocks} sub-blocks"), at));
        }
        if blocks < 1 + usize::from(is_loop) && label != COMMENT {
            return Err(Reason::corrupt("an extension without its data", at));
        }
        Ok(true)
    }

    /// The next data sub-block (section 15), or none at the terminator (section 16).
    pub(super) fn sub_block(&mut self) -> Result<Option<&'a [u8]>, Reason> {
        match self.byte()? {
            0 => Ok(None),
            length => self.take(length.into()).map(Some),
        }
    }
}

fn word(low: u8, high: u8) -> u32 {
    u32::from(u16::from_le_bytes([low, high]))
}
