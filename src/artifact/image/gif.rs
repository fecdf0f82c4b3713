//! GIF (89a specification): every block to the trailer, every frame's LZW data decoded for as many
//! pixels as the frame has. Pixels are thrown away as they come.

use weezl::decode::Decoder;
use weezl::{BitOrder, LzwStatus};

use super::{Budget, Parts, Reason, Sound, check_sides};

/// Judges a file that begins with the signature.
///
/// After a complete frame, an unknown block, a cut extension or the end of the file end the image,
/// as they do in browsers; a cut frame does not.
pub(super) fn verdict(bytes: &[u8]) -> Result<Sound, Reason> {
    let mut parts = Parts { rest: bytes };
    parts.take(6)?;
    let [w1, w2, h1, h2, flags, _, _] = parts.array()?;
    let (width, height) = (u32::from(u16::from_le_bytes([w1, w2])), u32::from(u16::from_le_bytes([h1, h2])));
    check_sides(width, height)?;
    skip_palette(&mut parts, flags)?;

    let canvas = u64::from(width) * u64::from(height);
    let mut budget = Budget::default();
    loop {
        let shown = budget.frames > 0;
        match parts.array() {
            Ok([b',']) => frame(&mut parts, canvas, &mut budget)?,
            Ok([b'!']) => match extension(&mut parts) {
                Err(Reason::Truncated) if shown => break,
                outcome => outcome?,
            },
            _ if shown => break,
            Ok([b';']) => return Err(Reason::Corrupt("it has no frame")),
            Ok(_) => return Err(Reason::Corrupt("a block is not known")),
            Err(reason) => return Err(reason),
        }
    }
    Ok(Sound { media_type: "image/gif", width, height, frames: budget.frames })
}

fn skip_palette(parts: &mut Parts<'_>, flags: u8) -> Result<(), Reason> {
    if flags & 0x80 != 0 {
        parts.take(3 << ((flags & 7) + 1))?;
    }
    Ok(())
}

fn extension(parts: &mut Parts<'_>) -> Result<(), Reason> {
    const GRAPHIC_CONTROL: u8 = 0xf9;
    let [label] = parts.array()?;
    if label == GRAPHIC_CONTROL && parts.rest.first().is_some_and(|length| *length != 4) {
        return Err(Reason::Corrupt("a graphic control block has a wrong length"));
    }
    while !sub_block(parts)?.is_empty() {}
    Ok(())
}

/// One sub-block; an empty one is the terminator.
fn sub_block<'a>(parts: &mut Parts<'a>) -> Result<&'a [u8], Reason> {
    let [length] = parts.array()?;
    parts.take(length.into())
}

fn frame(parts: &mut Parts<'_>, canvas: u64, budget: &mut Budget) -> Result<(), Reason> {
    let [x1, x2, y1, y2, w1, w2, h1, h2, flags] = parts.array()?;
    let [x, y, width, height] = [[x1, x2], [y1, y2], [w1, w2], [h1, h2]].map(|v| u32::from(u16::from_le_bytes(v)));
    check_sides(width, height)?;
    check_sides(x + width, y + height)?;
    let pixels = u64::from(width) * u64::from(height);
    budget.spend(pixels.max(canvas))?;
    skip_palette(parts, flags)?;
    let [code_size] = parts.array()?;
    if !(1..=8).contains(&code_size) {
        return Err(Reason::Corrupt("a frame has a wrong code size"));
    }
    let mut lzw = Decoder::new(BitOrder::Lsb, code_size);
    let mut missing = pixels;
    loop {
        let mut data = sub_block(parts)?;
        if data.is_empty() {
            break;
        }
        while missing > 0 && !data.is_empty() {
            let mut sink = [0; 4096];
            let step = lzw.decode_bytes(data, &mut sink);
            data = &data[step.consumed_in..];
            missing = missing.saturating_sub(step.consumed_out as u64);
            match step.status {
                Ok(LzwStatus::Ok) => {}
                Ok(LzwStatus::Done | LzwStatus::NoProgress) => break,
                Err(_) if missing == 0 => break,
                Err(_) => return Err(Reason::Corrupt("a frame's compressed data is wrong")),
            }
        }
    }
    // What the decoder holds back until it has room.
    while missing > 0 {
        let mut sink = [0; 4096];
        match lzw.decode_bytes(&[], &mut sink).consumed_out as u64 {
            0 => return Err(Reason::Corrupt("a frame has fewer pixels than it says")),
            more => missing = missing.saturating_sub(more),
        }
    }
    Ok(())
}
