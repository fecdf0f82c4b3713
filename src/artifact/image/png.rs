//! PNG and APNG (PNG third edition): every chunk with its CRC up to IEND, every compressed stream to
//! its end and checksum, every row of every frame unfiltered. Rows are thrown away as they come.

use std::io::{Cursor, ErrorKind};

use flate2::{Decompress, FlushDecompress, Status};
use png::{DecodeOptions, Decoder, DecodingError, Reader};

use super::{Budget, Parts, Reason, Sound, check_sides};

/// Judges a file that begins with the signature.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let mut options = DecodeOptions::default();
    options.set_ignore_checksums(false);
    options.set_skip_ancillary_crc_failures(false);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    let header = decoder.read_header_info().map_err(reason)?;
    let (width, height) = (header.width, header.height);
    check_sides(width, height)?;

    let mut reader = decoder.read_info().map_err(reason)?;
    let info = reader.info();
    let frames = match &info.animation_control {
        None => 1,
        // A picture without a frame header is for readers that do not know animations.
        Some(animation) => animation.num_frames.saturating_add(u32::from(info.frame_control.is_none())),
    };
    let mut budget = Budget::default();
    let canvas = u64::from(width) * u64::from(height);
    for frame in 0..frames {
        budget.spend(canvas)?;
        if frame > 0 {
            reader.next_frame_info().map_err(reason)?;
        }
        read_rows(&mut reader)?;
    }
    reader.finish().map_err(reason)?;
    check_chunks(bytes)?;
    Ok(Sound { media_type: "image/png", width, height, frames })
}

fn read_rows(reader: &mut Reader<Cursor<&[u8]>>) -> Result<(), Reason> {
    while reader.next_row().map_err(reason)?.is_some() {}
    Ok(())
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn reason(error: DecodingError) -> Reason {
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => Reason::Truncated,
        DecodingError::LimitsExceeded => Reason::TooCostly,
        _ => Reason::Corrupt("a chunk, its checksum or its compressed data is wrong"),
    }
}

/// What the decoder lets through, in a file whose checksums it has compared: names that are no
/// names, palettes out of place, compressed streams without an end.
fn check_chunks(bytes: &[u8]) -> Result<(), Reason> {
    const INDEXED: u8 = 3;
    let mut parts = Parts { rest: bytes };
    parts.take(8)?;
    let (mut indexed, mut palettes, mut pictures) = (false, 0, 0);
    let mut stream: Option<([u8; 4], Inflate)> = None;
    loop {
        let length = usize::try_from(u32::from_be_bytes(parts.array()?)).map_err(|_| Reason::Truncated)?;
        let name = parts.array()?;
        let content = parts.take(length)?;
        parts.take(4)?;
        if !name.iter().all(u8::is_ascii_alphabetic) {
            return Err(Reason::Corrupt("a chunk's name is no name"));
        }
        if let Some((_, ended)) = stream.take_if(|(of, _)| *of != name) {
            ended.check_end()?;
        }
        match &name {
            b"IHDR" => indexed = content.get(9) == Some(&INDEXED),
            b"PLTE" if palettes > 0 || pictures > 0 || length % 3 != 0 || length > 768 => {
                return Err(Reason::Corrupt("its palette is wrong"));
            }
            b"PLTE" => palettes += 1,
            b"IDAT" if indexed && palettes == 0 => return Err(Reason::Corrupt("it has no palette")),
            b"IDAT" | b"fdAT" => {
                pictures += 1;
                let sequence_number = if &name == b"fdAT" { 4 } else { 0 };
                let data = content.get(sequence_number..).ok_or(Reason::Corrupt("a frame's chunk is too short"))?;
                stream.get_or_insert_with(|| (name, Inflate::new())).1.feed(data)?;
            }
            b"IEND" => return Ok(()),
            _ => {}
        }
    }
}

/// A zlib stream (RFC 1950) that is read to its checksum and thrown away.
struct Inflate {
    zlib: Decompress,
    ended: bool,
}

impl Inflate {
    fn new() -> Self {
        Self { zlib: Decompress::new(true), ended: false }
    }

    /// Takes the next bytes. What follows the end is no matter.
    fn feed(&mut self, mut data: &[u8]) -> Result<(), Reason> {
        let mut sink = [0; 16 * 1024];
        while !self.ended {
            let (before_in, before_out) = (self.zlib.total_in(), self.zlib.total_out());
            let wrong = |_| Reason::Corrupt("its compressed data is wrong");
            let status = self.zlib.decompress(data, &mut sink, FlushDecompress::None).map_err(wrong)?;
            let taken = usize::try_from(self.zlib.total_in() - before_in).map_err(|_| Reason::TooCostly)?;
            data = &data[taken..];
            self.ended = status == Status::StreamEnd;
            if taken == 0 && self.zlib.total_out() == before_out {
                break;
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), Reason> {
        if self.ended { Ok(()) } else { Err(Reason::Corrupt("its compressed data does not end")) }
    }
}
