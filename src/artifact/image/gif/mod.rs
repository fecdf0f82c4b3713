//! The verdict on a GIF file, after the Graphics Interchange Format, version 89a (CompuServe, 1990).
//!
//! Blocks are walked from the header to the trailer, and each frame's codes are decoded to the
//! lengths of what they stand for. A file whose frames are whole but whose end is not (no trailer,
//! a cut extension) is sound: every reader shows it. Where a byte starts no block, some readers end
//! and some look for the next block; the file is sound if both find nothing but whole frames.

mod blocks;
mod lzw;

use blocks::{Blocks, Descriptor, Screen};
use lzw::Lzw;

use super::budget::Budget;
use super::{MAX_SIDE, Reason, Sound};

/// Section 20.
const IMAGE: u8 = 0x2C;
/// Section 23 and following.
const EXTENSION: u8 = 0x21;
/// Section 27.
const TRAILER: u8 = 0x3B;

/// The verdict on a file that starts with the signature.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let mut blocks = Blocks::new(bytes);
    let screen = blocks.header()?;
    check(screen.width, screen.height)?;
    let mut walk = Walk { screen, first: None, frames: None, budget: Budget::default(), lzw: Lzw::new() };
    loop {
        let at = blocks.at();
        match blocks.byte() {
            Ok(IMAGE) => walk.frame(&mut blocks)?,
            Ok(EXTENSION) => match blocks.extension()? {
                true => {}
                false if walk.first.is_some() => return walk.sound(at),
                false => return Err(blocks.truncated()),
            },
            Ok(TRAILER) => return walk.sound(at),
            Ok(_) if walk.first.is_some() => {
                walk.frames.get_or_insert(walk.budget.frames());
            }
            Ok(other) => return Err(Reason::corrupt(format!("unknown block 0x{other:02X}"), at)),
            Err(_) if walk.first.is_some() => return walk.sound(at),
            Err(truncated) => return Err(truncated),
        }
    }
}

/// Refuses long sides; none at all is for the caller to judge.
fn check(width: u32, height: u32) -> Result<(), Reason> {
    if width > MAX_SIDE || height > MAX_SIDE { Err(Reason::TooManyPixels { width, height }) } else { Ok(()) }
}

/// What has been seen of a file.
struct Walk {
    screen: Screen,
    /// The first frame that is whole.
    first: Option<Descriptor>,
    /// The frames before the first byte that starts no block: those that every reader shows.
    frames: Option<u32>,
    budget: Budget,
    lzw: Lzw,
}

impl Walk {
    /// A frame whose introducer has been read.
    fn frame(&mut self, blocks: &mut Blocks<'_>) -> Result<(), Reason> {
        let at = blocks.at();
        let frame = blocks.descriptor()?;
        if frame.width == 0 || frame.height == 0 {
            return Err(Reason::corrupt("a frame of no pixels", at));
        }
        // Frames may stick out of the screen; readers enlarge it or cut them.
        let (right, bottom) = (frame.left + frame.width, frame.top + frame.height);
        check(right, bottom)?;
        let canvas = u64::from(self.screen.width.max(right)) * u64::from(self.screen.height.max(bottom));
        self.budget.spend(frame.width, frame.height, canvas)?;
        let at = blocks.at();
        let code_size = blocks.byte()?;
        // Appendix F: pixels have at most 8 bits, and those of one bit are coded as if of two. A code size
        // of 1 is read by some with codes that grow at once and by some with codes that never do.
        if !(2..=8).contains(&code_size) {
            return Err(Reason::corrupt(format!("LZW code size {code_size}"), at));
        }
        self.lzw.decode(code_size, u64::from(frame.width) * u64::from(frame.height), blocks)?;
        self.first.get_or_insert(frame);
        Ok(())
    }

    /// The file is over, at `at`.
    fn sound(&self, at: usize) -> Result<Sound, Reason> {
        let Some(first) = &self.first else {
            return Err(Reason::corrupt("no frame before the end", at));
        };
        // A screen without a side takes the first frame's.
        let side = |screen: u32, frame: u32| if screen == 0 { frame } else { screen };
        Ok(Sound {
            media_type: "image/gif",
            width: side(self.screen.width, first.left + first.width),
            height: side(self.screen.height, first.top + first.height),
            frames: self.frames.unwrap_or(self.budget.frames()),
        })
    }
}
