//! Lossy images: a VP8 key frame, RFC 6386. Everything in it is parsed; nothing is reconstructed.

mod bools;
mod header;
mod modes;
mod tables;
mod tokens;
#[cfg(test)]
pub(super) mod writer;

use bools::Bools;
use header::{Frame, Tag};
use modes::Neighbours;
use tokens::{Edge, skip_macroblock};

use super::effort::Effort;
use super::{Size, Span};
use crate::artifact::image::Reason;

/// The size that the frame's header names.
pub(super) fn size(frame: Span<'_>) -> Result<Size, Reason> {
    let tag = Tag::read(frame)?;
    Ok(Size { width: tag.width, height: tag.height })
}

/// Walks through the whole frame.
pub(super) fn check(frame: Span<'_>, effort: &mut Effort) -> Result<(), Reason> {
    let tag = Tag::read(frame)?;
    let body = frame.from(header::BYTES);
    let first = body.upto(tag.first_partition).ok_or(Reason::truncated(frame.end()))?;
    let mut bools = Bools::new(first)?;
    let head = Frame::read(&mut bools, first.at)?;
    if bools.overrun() {
        return Err(Reason::truncated(first.end()));
    }
    let partitions = token_partitions(body.from(tag.first_partition), head.partitions)?;
    let mut tokens = partitions.iter().map(|part| Bools::new(*part)).collect::<Result<Vec<_>, _>>()?;

    let columns = tag.width.div_ceil(16) as usize;
    let mut modes = Neighbours::new(columns);
    let mut above = vec![Edge::default(); columns];
    for row in 0..tag.height.div_ceil(16) as usize {
        // Rows take the partitions in turn (section 9.5).
        let part = row & (head.partitions - 1);
        modes.start_row();
        let mut left = Edge::default();
        let mut visits = 0;
        for (column, above) in above.iter_mut().enumerate() {
            // The macroblock's header (section 19.3).
            if let Some([root, low, high]) = head.segments {
                let branch = if bools.read(root) { high } else { low };
                bools.read(branch);
            }
            let empty = head.skip.is_some_and(|prob| bools.read(prob));
            let whole = modes.read(&mut bools, column);
            visits += if whole { 1 } else { 16 };
            if empty {
                above.clear(whole);
                left.clear(whole);
            } else {
                skip_macroblock(&mut tokens[part], &head.probs, whole, above, &mut left);
                visits += 25;
            }
        }
        if bools.overrun() {
            return Err(Reason::truncated(first.end()));
        }
        if tokens[part].overrun() {
            return Err(Reason::truncated(partitions[part].end()));
        }
        effort.spend(visits)?;
    }
    Ok(())
}

/// Splits what follows the first partition: the sizes of all partitions but the last, three bytes
/// each, then the partitions (section 9.5). The last takes the rest, which cannot be nothing.
fn token_partitions(body: Span<'_>, count: usize) -> Result<Vec<Span<'_>>, Reason> {
    let sizes = body.upto(3 * (count - 1)).ok_or(Reason::truncated(body.end()))?;
    let mut rest = body.from(sizes.bytes.len());
    let mut partitions = Vec::with_capacity(count);
    for size in sizes.bytes.chunks_exact(3) {
        let size = usize::from(size[0]) | usize::from(size[1]) << 8 | usize::from(size[2]) << 16;
        let part = rest.upto(size).ok_or(Reason::truncated(body.end()))?;
        rest = rest.from(size);
        partitions.push(part);
    }
    if rest.bytes.is_empty() {
        return Err(Reason::truncated(body.end()));
    }
    partitions.push(rest);
    Ok(partitions)
}
