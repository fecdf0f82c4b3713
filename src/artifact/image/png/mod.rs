//! The verdict on a PNG or APNG file, after Portable Network Graphics, third edition (W3C, 2025).
//!
//! Chunks are walked in order from the signature to `IEND`; what follows `IEND` is not part of the
//! image. Every CRC and every Adler-32 is checked, every row of every frame is counted.

mod ancillary;
mod animation;
mod chunk;
mod header;
mod pixels;

use ancillary::Texts;
use animation::{Frame, Sequence};
use chunk::{Chunk, Chunks};
use header::Header;
use pixels::{Inflater, Rows};

use super::budget::Budget;
use super::{Reason, Sound};

/// Section 5.2.
const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// The verdict on a file that starts with the signature.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(Reason::corrupt("no PNG signature", 0));
    }
    let mut chunks = Chunks::new(bytes, SIGNATURE.len());
    let mut walk = Walk::new(Header::read(&chunks.next()?)?);
    loop {
        let chunk = chunks.next()?;
        if &chunk.kind == b"IEND" {
            return walk.end(&chunk);
        }
        walk.take(&chunk)?;
    }
}

/// Whose data the chunks that come next may be.
enum Stage {
    /// No `IDAT` yet.
    Head,
    /// In the `IDAT` chunks of the default image.
    Default(Rows),
    /// In the `fdAT` chunks of a frame.
    Frame(Rows),
    /// After an `fcTL`, before its data.
    Announced(Frame),
    /// After the data of the default image or of a frame.
    Between,
}

/// What has been seen of a file.
struct Walk {
    header: Header,
    stage: Stage,
    has_palette: bool,
    inflater: Inflater,
    texts: Texts,
    budget: Budget,
    sequence: Sequence,
    /// Frames that a valid `acTL` before the data declares.
    declared: Option<u32>,
    /// The default image is the animation's first frame.
    starts_with_default: bool,
    /// Frames of the animation found.
    found: u32,
}

impl Walk {
    fn new(header: Header) -> Self {
        Self {
            header,
            stage: Stage::Head,
            has_palette: false,
            inflater: Inflater::new(),
            texts: Texts::default(),
            budget: Budget::default(),
            sequence: Sequence::default(),
            declared: None,
            starts_with_default: false,
            found: 0,
        }
    }

    /// Takes a chunk between `IHDR` and `IEND`.
    fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        match &chunk.kind {
            b"IDAT" => self.default_data(chunk),
            b"fdAT" => self.frame_data(chunk),
            // The data of an image are consecutive chunks (section 5.6), so any other chunk ends them.
            _ => {
                self.close(chunk.at)?;
                self.take_other(chunk)
            }
        }
    }

    fn take_other(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        match &chunk.kind {
            b"IHDR" => Err(chunk.corrupt("a second header")),
            b"PLTE" => self.palette(chunk),
            b"acTL" => self.control(chunk),
            b"fcTL" => self.announce(chunk),
            // Section 5.6: where it names a colour of the palette, it follows the palette.
            b"bKGD" if self.header.is_indexed() && !self.has_palette => Err(chunk.corrupt("no palette before it")),
            _ if chunk.is_critical() => {
                Err(Reason::corrupt(format!("unknown critical chunk {}", chunk.name()), chunk.at))
            }
            _ => self.texts.check(chunk, &self.header, &mut self.inflater),
        }
    }

    /// Section 11.2.2.
    fn palette(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        if self.has_palette {
            return Err(chunk.corrupt("a second palette"));
        }
        if !matches!(self.stage, Stage::Head) {
            return Err(chunk.corrupt("a palette after the image data"));
        }
        if !(3..=768).contains(&chunk.data.len()) || !chunk.data.len().is_multiple_of(3) {
            return Err(chunk.corrupt("wrong length"));
        }
        self.has_palette = true;
        Ok(())
    }

    /// `acTL`; after the image data it means nothing to readers.
    fn control(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        let declared = animation::declared(chunk)?;
        if !matches!(self.stage, Stage::Head) {
            return Ok(());
        }
        if self.declared.is_some() {
            return Err(chunk.corrupt("a second animation"));
        }
        if self.starts_with_default {
            return Err(chunk.corrupt("an animation after its first frame"));
        }
        self.declared = declared;
        Ok(())
    }

    /// `fcTL`: a frame begins.
    fn announce(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        let frame = self.sequence.frame(chunk, &self.header)?;
        match self.stage {
            Stage::Head => {
                // Section 11.3.6.2: the one frame that may come first is the default image.
                if self.starts_with_default {
                    return Err(chunk.corrupt("a frame without data before it"));
                }
                if self.declared.is_some() && !frame.is_full {
                    return Err(chunk.corrupt("a first frame smaller than the canvas"));
                }
                self.starts_with_default = true;
            }
            Stage::Announced(_) => return Err(chunk.corrupt("a frame without data before it")),
            Stage::Default(_) | Stage::Frame(_) | Stage::Between => {
                if self.declared.is_some() {
                    self.budget.spend(frame.width, frame.height, self.header.canvas())?;
                    self.stage = Stage::Announced(frame);
                }
            }
        }
        Ok(())
    }

    /// `IDAT`.
    fn default_data(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        if matches!(self.stage, Stage::Head) {
            if self.header.is_indexed() && !self.has_palette {
                return Err(Reason::corrupt("no palette before the image data", chunk.at));
            }
            let (width, height) = (self.header.width, self.header.height);
            self.budget.spend(width, height, self.header.canvas())?;
            self.found = u32::from(self.starts_with_default);
            self.stage = Stage::Default(Rows::begin(self.header.passes(width, height), &mut self.inflater));
        }
        match &mut self.stage {
            Stage::Default(rows) => rows.feed(&mut self.inflater, chunk.data, chunk.data_at()),
            _ => Err(chunk.corrupt("image data that are not consecutive")),
        }
    }

    /// `fdAT`; in a file that is not animated readers skip it, but look at its number.
    fn frame_data(&mut self, chunk: &Chunk<'_>) -> Result<(), Reason> {
        let data = self.sequence.data(chunk)?;
        match self.stage {
            Stage::Head => return Err(chunk.corrupt("frame data before the image data")),
            Stage::Default(_) => self.close(chunk.at)?,
            Stage::Announced(_) | Stage::Frame(_) | Stage::Between => {}
        }
        if self.declared.is_none() {
            return Ok(());
        }
        if let Stage::Announced(frame) = self.stage {
            let passes = self.header.passes(frame.width, frame.height);
            self.found += 1;
            self.stage = Stage::Frame(Rows::begin(passes, &mut self.inflater));
        }
        match &mut self.stage {
            Stage::Frame(rows) => rows.feed(&mut self.inflater, data, chunk.data_at() + 4),
            _ => Err(chunk.corrupt("frame data without a frame")),
        }
    }

    /// Ends the data that have begun, if any, at `at`.
    fn close(&mut self, at: usize) -> Result<(), Reason> {
        if let Stage::Default(rows) | Stage::Frame(rows) = &self.stage {
            rows.finish(at)?;
            self.stage = Stage::Between;
        }
        Ok(())
    }

    /// `IEND` (section 11.2.4): nothing may be missing.
    fn end(mut self, chunk: &Chunk<'_>) -> Result<Sound, Reason> {
        chunk.exactly::<0>()?;
        self.close(chunk.at)?;
        match self.stage {
            Stage::Between => {}
            Stage::Announced(_) => return Err(Reason::corrupt("the last frame has no data", chunk.at)),
            Stage::Head | Stage::Default(_) | Stage::Frame(_) => {
                return Err(Reason::corrupt("no image data", chunk.at));
            }
        }
        if let Some(declared) = self.declared
            && self.found < declared
        {
            let what = format!("{} frames instead of {declared}", self.found);
            return Err(Reason::corrupt(what, chunk.at));
        }
        Ok(Sound {
            media_type: "image/png",
            width: self.header.width,
            height: self.header.height,
            frames: self.declared.unwrap_or(1),
        })
    }
}
