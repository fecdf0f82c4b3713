//! Chunks that a picture can do without, but whose faults make readers refuse the file
//! (PNG 3rd ed., section 11.3). What they say is not judged, only their shape and size.

use super::chunk::Chunk;
use super::header::Header;
use super::pixels::Inflater;
use crate::artifact::image::Reason;

/// Bytes that one text or profile may inflate to; one more and readers give up.
const MAX_TEXT: usize = 1024 * 1024;
/// Bytes of all texts and profiles of a file, inflated.
const MAX_TEXTS: usize = 64 * MAX_TEXT;

/// What the texts of a file have cost so far.
#[derive(Debug, Default)]
pub(super) struct Texts {
    inflated: usize,
}

impl Texts {
    fn inflate(&mut self, chunk: &Chunk<'_>, stream: &[u8], inflater: &mut Inflater) -> Result<(), Reason> {
        let size = inflater.measure(stream, MAX_TEXT);
        self.inflated += size;
        if size >= MAX_TEXT || self.inflated > MAX_TEXTS {
            return Err(Reason::TooCostly { what: format!("inflating chunk {} at byte {}", chunk.name(), chunk.at) });
        }
        Ok(())
    }

    /// Looks at an ancillary chunk.
    pub(super) fn check(&mut self, chunk: &Chunk<'_>, header: &Header, inflater: &mut Inflater) -> Result<(), Reason> {
        match &chunk.kind {
            b"gAMA" => chunk.exactly::<4>().map(drop),
            b"cHRM" => chunk.exactly::<32>().map(drop),
            b"sRGB" => chunk.exactly::<1>().map(drop),
            b"pHYs" => chunk.exactly::<9>().map(drop),
            b"mDCV" => chunk.exactly::<24>().map(drop),
            b"cLLI" => chunk.exactly::<8>().map(drop),
            // Section 11.3.2.6: pixels are RGB, so the third byte is 0; the fourth is a flag.
            b"cICP" => match chunk.exactly::<4>()? {
                [_, _, 0, 0 | 1] => Ok(()),
                _ => Err(chunk.corrupt("impossible code points")),
            },
            b"tRNS" => {
                let (least, most) = header.transparency_lengths();
                if (least..=most).contains(&chunk.data.len()) { Ok(()) } else { Err(chunk.corrupt("wrong length")) }
            }
            // Section 11.3.2.3: name, NUL, method, stream.
            b"iCCP" => match after_nul(chunk.data) {
                Some([0, stream @ ..]) => self.inflate(chunk, stream, inflater),
                Some([_, ..]) => Err(chunk.corrupt("unknown compression method")),
                Some([]) | None => Err(chunk.corrupt("no profile")),
            },
            // Section 11.3.3.3: keyword, NUL, method, stream. Readers take a keyword alone.
            b"zTXt" => match after_nul(chunk.data) {
                Some([0, stream @ ..]) => self.inflate(chunk, stream, inflater),
                Some([_, ..]) => Err(chunk.corrupt("unknown compression method")),
                Some([]) | None => Ok(()),
            },
            // Section 11.3.3.4: keyword, NUL, flag, method, language, NUL, translated keyword, NUL, text.
            // One that is cut short, or compressed in an unknown way, is skipped by readers.
            b"iTXt" => match after_nul(chunk.data) {
                Some([flag, 0, rest @ ..]) if *flag != 0 => match after_nul(rest).and_then(after_nul) {
                    Some(stream) => self.inflate(chunk, stream, inflater),
                    None => Ok(()),
                },
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// What follows the first NUL.
fn after_nul(bytes: &[u8]) -> Option<&[u8]> {
    let nul = bytes.iter().position(|&byte| byte == 0)?;
    bytes.get(nul + 1..)
}
