//! The image data: inflated into nothing while rows are counted and their filters looked at
//! (PNG 3rd ed., sections 9 and 10).

use flate2::{Decompress, FlushDecompress, Status};

use super::header::Pass;
use crate::artifact::image::Reason;

/// Bytes inflated at a time. Less costs time, for the last 32 KiB are copied after each step; more
/// does not pay.
const SINK: usize = 128 * 1024;
/// Bytes that may follow the last row; every reader skips a few, none needs many.
const MAX_SURPLUS: usize = 64 * 1024;

/// One inflater for everything in a file that is deflated, one stream after the other.
pub(super) struct Inflater {
    zlib: Decompress,
    sink: Box<[u8]>,
}

/// What an inflater did with some input.
struct Step<'a> {
    consumed: usize,
    produced: &'a [u8],
    ended: bool,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self { zlib: Decompress::new(true), sink: vec![0; SINK].into_boxed_slice() }
    }

    fn step(&mut self, input: &[u8]) -> Result<Step<'_>, ()> {
        let (before_in, before_out) = (self.zlib.total_in(), self.zlib.total_out());
        let status = self.zlib.decompress(input, &mut self.sink, FlushDecompress::None).map_err(|_| ())?;
        // Both differences are at most the lengths of the buffers.
        let consumed = usize::try_from(self.zlib.total_in() - before_in).map_err(|_| ())?;
        let produced = usize::try_from(self.zlib.total_out() - before_out).map_err(|_| ())?;
        Ok(Step { consumed, produced: &self.sink[..produced], ended: status == Status::StreamEnd })
    }

    /// How many bytes a stream of its own inflates to, up to where it ends, breaks, or reaches
    /// `limit`: what stands in a text or a profile need not be sound, only bounded.
    pub(super) fn measure(&mut self, mut input: &[u8], limit: usize) -> usize {
        self.zlib.reset(true);
        let mut total = 0;
        while let Ok(step) = self.step(input) {
            total += step.produced.len();
            input = &input[step.consumed..];
            if step.ended || total >= limit || (step.consumed == 0 && step.produced.is_empty()) {
                break;
            }
        }
        total
    }
}

/// The rows of one frame on their way through the inflater.
#[derive(Debug, Default)]
pub(super) struct Rows {
    passes: std::vec::IntoIter<Pass>,
    pass: Option<Pass>,
    /// Bytes missing of the row that has begun.
    missing: usize,
    surplus: usize,
    ended: bool,
}

impl Rows {
    /// Expects the rows of these passes; resets the inflater.
    pub(super) fn begin(passes: Vec<Pass>, inflater: &mut Inflater) -> Self {
        inflater.zlib.reset(true);
        let mut passes = passes.into_iter();
        let pass = passes.next();
        Self { passes, pass, missing: 0, surplus: 0, ended: false }
    }

    /// Takes a piece of the zlib stream that lies at `at`. What follows the stream's end is skipped,
    /// as by every reader.
    pub(super) fn feed(&mut self, inflater: &mut Inflater, mut input: &[u8], mut at: usize) -> Result<(), Reason> {
        while !self.ended {
            // Section 10.1 with RFC 1950: header, deflate stream and Adler-32 are all checked here.
            let step = inflater.step(input).map_err(|()| Reason::corrupt("broken compressed data", at))?;
            if !self.look(step.produced) {
                return Err(Reason::corrupt("a row with an unknown filter", at));
            }
            if self.surplus > MAX_SURPLUS {
                return Err(Reason::corrupt("more pixels than the image has", at));
            }
            self.ended = step.ended;
            if step.consumed == 0 && step.produced.is_empty() {
                break;
            }
            input = &input[step.consumed..];
            at += step.consumed;
        }
        Ok(())
    }

    /// Counts rows; false if a filter is unknown (section 9.2: there are five).
    fn look(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(pass) = &mut self.pass {
            if self.missing > 0 {
                let skip = self.missing.min(bytes.len());
                self.missing -= skip;
                bytes = &bytes[skip..];
                if self.missing > 0 {
                    return true;
                }
                pass.rows -= 1;
                if pass.rows == 0 {
                    self.pass = self.passes.next();
                }
            } else {
                let Some((&filter, rest)) = bytes.split_first() else { return true };
                if filter > 4 {
                    return false;
                }
                bytes = rest;
                self.missing = pass.row as usize;
            }
        }
        self.surplus += bytes.len();
        true
    }

    /// The data are over, at `at`: nothing may be missing.
    pub(super) fn finish(&self, at: usize) -> Result<(), Reason> {
        if !self.ended {
            return Err(Reason::corrupt("the compressed data end early", at));
        }
        if self.pass.is_some() {
            return Err(Reason::corrupt("fewer rows than the image has", at));
        }
        Ok(())
    }
}
