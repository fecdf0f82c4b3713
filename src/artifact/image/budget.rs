//! What the frames of one image may cost whoever reads it, counted as they are found.

use super::Reason;

/// Frames of an animation.
pub const MAX_FRAMES: u32 = 10_000;
/// Pixels of all frames together; a frame counts as its canvas if that is larger, for that is what
/// readers touch.
pub const MAX_PIXELS: u64 = 1 << 30;

/// Counts the frames of one image.
#[derive(Debug, Default)]
pub(super) struct Budget {
    frames: u32,
    pixels: u64,
}

impl Budget {
    /// Counts a frame of `width` × `height` on a canvas of `canvas` pixels.
    pub(super) fn spend(&mut self, width: u32, height: u32, canvas: u64) -> Result<(), Reason> {
        self.frames += 1;
        self.pixels += (u64::from(width) * u64::from(height)).max(canvas);
        if self.frames > MAX_FRAMES {
            return Err(Reason::TooCostly { what: format!("more than {MAX_FRAMES} frames") });
        }
        if self.pixels > MAX_PIXELS {
            return Err(Reason::TooCostly { what: format!("{} frames of {} pixels in all", self.frames, self.pixels) });
        }
        Ok(())
    }

    /// Frames counted so far.
    pub(super) const fn frames(&self) -> u32 {
        self.frames
    }
}
