//! JPEG (ITU T.81): baseline, extended sequential and progressive Huffman coding, 8 bits.
//!
//! The file is walked from SOI to EOI; every scan is decoded as far as the lengths of its codes go.
//! No sample is computed. What follows EOI is not looked at.

mod application;
mod bits;
mod fault;
mod frame;
mod huffman;
mod progressive;
mod scan;
mod sequential;
mod standard;
mod tables;

use super::{Reason, Sound};
use frame::{Frame, Process};
use progressive::Progress;
use scan::Scan;
use tables::Tables;

/// Scans of one image. Encoders write about ten.
const MAX_SCANS: u32 = 100;
/// Blocks that all scans together visit: what they cost a reader. A picture of 8000 × 8000 with
/// three full components has 3 million blocks.
const MAX_BLOCK_VISITS: u64 = 100_000_000;

/// The verdict on bytes that start with FF D8 FF.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let mut image = Image::default();
    let mut at = 2;
    loop {
        let (marker, place) = next_marker(bytes, at)?;
        let after = place + 2;
        at = match marker {
            EOI => return image.sound(place),
            SOI => return Err(Reason::corrupt("second SOI marker", place)),
            // Between segments a stray restart marker means nothing.
            RST0..=RST7 => after,
            _ => {
                refuse_unreadable(marker, place)?;
                let segment = parameters(bytes, after)?;
                let from = after + 2 + segment.len();
                match marker {
                    SOS => image.scan(bytes, segment, from)?,
                    _ => {
                        image.segment(marker, segment, after + 2)?;
                        from
                    }
                }
            }
        };
    }
}

// Table B.1.
const SOF0: u8 = 0xC0;
const SOF1: u8 = 0xC1;
const SOF2: u8 = 0xC2;
const DHT: u8 = 0xC4;
const RST0: u8 = 0xD0;
const RST7: u8 = 0xD7;
const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const DQT: u8 = 0xDB;
const DNL: u8 = 0xDC;
const DRI: u8 = 0xDD;
const APP0: u8 = 0xE0;
const APP15: u8 = 0xEF;
const COM: u8 = 0xFE;

/// The next marker's code and offset. Decoders skip fill bytes (B.1.1.2) and also garbage.
fn next_marker(bytes: &[u8], mut at: usize) -> Result<(u8, usize), Reason> {
    while let Some(gap) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == 0xFF)) {
        at += gap;
        match bytes.get(at + 1) {
            None => break,
            Some(0xFF) => at += 1,
            Some(0) => at += 2,
            Some(&marker) => return Ok((marker, at)),
        }
    }
    Err(Reason::truncated(bytes.len()))
}

/// The parameters of the marker segment whose length is at `at` (B.1.1.4).
fn parameters(bytes: &[u8], at: usize) -> Result<&[u8], Reason> {
    let rest = bytes.get(at..).unwrap_or_default();
    let (length, rest) = rest.split_first_chunk::<2>().ok_or(Reason::truncated(bytes.len()))?;
    let length = usize::from(u16::from_be_bytes(*length));
    let length = length.checked_sub(2).ok_or_else(|| Reason::corrupt(format!("segment of length {length}"), at))?;
    rest.get(..length).ok_or(Reason::truncated(bytes.len()))
}

/// Refuses the markers of processes that are not shown, and those that mean nothing (Table B.1).
fn refuse_unreadable(marker: u8, at: usize) -> Result<(), Reason> {
    let what = match marker {
        0xC3 => "lossless JPEG",
        0xC5..=0xC7 | 0xCD..=0xCF | 0xDE | 0xDF => "hierarchical JPEG",
        0xC9..=0xCC => "arithmetic-coded JPEG",
        0xF7 => "JPEG-LS",
        SOF0..=SOF2 | DHT | SOS | DQT | DNL | DRI | APP0..=APP15 | COM => return Ok(()),
        _ => return Err(Reason::corrupt(format!("unknown marker FF{marker:02X}"), at)),
    };
    Err(Reason::Unsupported { what })
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Image {
    tables: Tables,
    /// MCUs between restart markers, 0 for none (B.2.4.4).
    restart: usize,
    frame: Option<Frame>,
    /// Per component of the frame.
    progress: Vec<Progress>,
    scans: u32,
    block_visits: u64,
}

impl Image {
    /// Takes in a segment other than SOS; `at` is the offset of its parameters.
    fn segment(&mut self, marker: u8, parameters: &[u8], at: usize) -> Result<(), Reason> {
        match marker {
            SOF0 | SOF1 => self.start_frame(Process::Sequential, parameters, at),
            SOF2 => self.start_frame(Process::Progressive, parameters, at),
            DHT => self.tables.define_huffman(parameters, at),
            DQT => self.tables.define_quantisation(parameters, at),
            DRI => match *parameters {
                [high, low] => {
                    self.restart = usize::from(u16::from_be_bytes([high, low]));
                    Ok(())
                }
                _ => Err(Reason::corrupt("restart interval of wrong length", at)),
            },
            APP0..=APP15 if application::is_bad(marker, parameters) => {
                Err(Reason::corrupt(format!("unreadable application segment APP{}", marker - APP0), at))
            }
            DNL => self.check_lines(parameters, at),
            // The contents of other segments change nothing.
            _ => Ok(()),
        }
    }

    /// B.2.5: after the first scan the number of lines may be given; here it is for the second time.
    fn check_lines(&self, parameters: &[u8], at: usize) -> Result<(), Reason> {
        let height = self.frame.as_ref().filter(|_| self.scans == 1).map(|frame| frame.height);
        match *parameters {
            [high, low] if height == Some(u32::from(u16::from_be_bytes([high, low]))) => Ok(()),
            _ => Err(Reason::corrupt("number of lines out of place", at)),
        }
    }

    fn start_frame(&mut self, process: Process, parameters: &[u8], at: usize) -> Result<(), Reason> {
        if self.frame.is_some() {
            return Err(Reason::corrupt("second frame header", at));
        }
        let frame = Frame::parse(process, parameters, at)?;
        self.progress = frame.components.iter().map(|_| Progress::new()).collect();
        self.frame = Some(frame);
        Ok(())
    }

    /// Decodes the scan whose header's parameters end at `from`. Returns the offset of the marker after it.
    fn scan(&mut self, bytes: &[u8], parameters: &[u8], from: usize) -> Result<usize, Reason> {
        let at = from - parameters.len();
        let frame = self.frame.as_ref().ok_or_else(|| Reason::corrupt("scan before the frame header", at))?;
        let scan = Scan::parse(frame, parameters, at)?;
        self.scans += 1;
        if self.scans > MAX_SCANS {
            return Err(Reason::TooCostly { what: format!("more than {MAX_SCANS} scans") });
        }
        self.block_visits += scan.block_visits(frame);
        if self.block_visits > MAX_BLOCK_VISITS {
            return Err(Reason::TooCostly { what: format!("scans of {} blocks in all", self.block_visits) });
        }
        scan.decode(bytes, from, self.restart, frame, &mut self.tables, &mut self.progress)
    }

    /// The verdict at EOI, which is at `at`.
    fn sound(self, at: usize) -> Result<Sound, Reason> {
        let frame = self.frame.ok_or_else(|| Reason::corrupt("no frame header before EOI", at))?;
        // Decoders take components and bits that no scan has sent for zero, as when a progressive
        // file ends after a whole scan; they refuse an image without any.
        if self.scans == 0 {
            return Err(Reason::corrupt("no scan before EOI", at));
        }
        Ok(Sound { media_type: "image/jpeg", width: frame.width, height: frame.height, frames: 1 })
    }
}
