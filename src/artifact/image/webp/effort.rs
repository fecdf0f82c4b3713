//! What looking at one file may cost us, counted where few bytes can ask for much work.

use crate::artifact::image::Reason;

/// Steps of about five nanoseconds each: a block of a lossy frame, a run of lossless pixels under one
/// group of codes, half of a code, a pixel of an image that must be kept. A photograph of 8000 x 8000
/// pixels has eleven million; what else a file asks for is bounded by its size.
const MAX_STEPS: u64 = 50_000_000;

/// Counts the steps taken for one file.
#[derive(Default)]
pub(super) struct Effort {
    steps: u64,
}

impl Effort {
    /// Counts `steps` more.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), Reason> {
        self.steps += steps;
        if self.steps > MAX_STEPS {
            return Err(Reason::TooCostly { what: format!("more than {MAX_STEPS} steps of decoding") });
        }
        Ok(())
    }
}
