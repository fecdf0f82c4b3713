//! Progressive scans (T.81 G.1.2, G.2): of each coefficient only whether it is zero is remembered.

use super::bits::Bits;
use super::fault::Fault;
use super::huffman::Decoder;
use super::scan::Band;

/// What the scans so far have told of one component.
#[derive(Debug)]
pub(super) struct Progress {
    /// Per coefficient: the lowest bit sent, or nothing yet.
    low: [Option<u8>; 64],
    /// Per block, bit k: the AC coefficient k is not zero. Empty before the first AC scan.
    nonzero: Vec<u64>,
}

impl Progress {
    /// Nothing sent.
    pub(super) const fn new() -> Self {
        Self { low: [None; 64], nonzero: Vec::new() }
    }

    /// Whether the DC coefficients have been sent.
    pub(super) const fn has_dc(&self) -> bool {
        self.low[0].is_some()
    }

    /// Notes that a scan sends `band`; false if it does not continue what was sent (G.1.1.1): each
    /// coefficient first without, then with one more bit each time, DC before AC.
    pub(super) fn advance(&mut self, band: Band) -> bool {
        if band.start > 0 && !self.has_dc() {
            return false;
        }
        let before = (band.high > 0).then_some(band.high);
        let coefficients = &mut self.low[usize::from(band.start)..=usize::from(band.end)];
        let fits = coefficients.iter().all(|&low| low == before);
        coefficients.fill(Some(band.low));
        fits
    }

    /// The map of non-zero coefficients of a component of `blocks` blocks.
    pub(super) fn nonzero(&mut self, blocks: usize) -> &mut [u64] {
        if self.nonzero.is_empty() {
            self.nonzero = vec![0; blocks];
        }
        &mut self.nonzero
    }
}

/// First scan of DC coefficients (G.1.2.1): `mcus` units of the blocks whose tables are given.
pub(super) fn dc_first(bits: &mut Bits<'_>, mcu: &[Decoder<'_>], mcus: usize) -> Result<(), Fault> {
    for _ in 0..mcus {
        for table in mcu {
            bits.refill();
            let size = table.symbol(bits).ok_or(Fault::NoCode)?;
            bits.skip(u32::from(size));
        }
        if bits.overdrawn() {
            return Err(Fault::EndsEarly);
        }
    }
    Ok(())
}

/// Refining scan of DC coefficients: a bit per block.
pub(super) fn dc_refine(bits: &mut Bits<'_>, blocks: usize) -> Result<(), Fault> {
    bits.skip_many(blocks);
    if bits.overdrawn() { Err(Fault::EndsEarly) } else { Ok(()) }
}

/// First scan of a band of AC coefficients (G.1.2.2) over the blocks of `nonzero`.
pub(super) fn ac_first(bits: &mut Bits<'_>, table: &Decoder<'_>, band: Band, nonzero: &mut [u64]) -> Result<(), Fault> {
    let end = u32::from(band.end);
    let mut block = 0;
    'blocks: while block < nonzero.len() {
        if bits.overdrawn() {
            return Err(Fault::EndsEarly);
        }
        let mut k = u32::from(band.start);
        let mut found = 0u64;
        while k <= end {
            bits.refill();
            let symbol = table.symbol(bits).ok_or(Fault::NoCode)?;
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if size > 0 {
                k += run;
                if k > end {
                    return Err(Fault::PastBlock);
                }
                bits.skip(size);
                found |= 1 << k;
                k += 1;
            } else if run == 15 {
                k += 16;
                if k > end {
                    return Err(Fault::PastBlock);
                }
            } else {
                nonzero[block] |= found;
                block += end_of_band(bits, run);
                continue 'blocks;
            }
        }
        nonzero[block] |= found;
        block += 1;
    }
    ended(bits, block == nonzero.len())
}

/// Refining scan of a band of AC coefficients (G.1.2.3) over the blocks of `nonzero`.
pub(super) fn ac_refine(
    bits: &mut Bits<'_>,
    table: &Decoder<'_>,
    band: Band,
    nonzero: &mut [u64],
) -> Result<(), Fault> {
    let (start, end) = (u32::from(band.start), u32::from(band.end));
    let mut rest = nonzero;
    while let [coefficients, others @ ..] = rest {
        if bits.overdrawn() {
            return Err(Fault::EndsEarly);
        }
        let mut k = start;
        let mut found = 0u64;
        let mut ended_bands = 0;
        while k <= end {
            bits.refill();
            let symbol = table.symbol(bits).ok_or(Fault::NoCode)?;
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            match (run, size) {
                (_, 1) => bits.skip(1),
                (15, 0) => {}
                (_, 0) => {
                    ended_bands = end_of_band(bits, run);
                    bits.skip_many((*coefficients & band_mask(k, end)).count_ones() as usize);
                    break;
                }
                _ => return Err(Fault::BadSymbol),
            }
            // The run counts coefficients that are still zero; each of the others on the way has a
            // correction bit.
            let mut zeros = !*coefficients & band_mask(k, end);
            for _ in 0..run {
                zeros &= zeros.wrapping_sub(1);
            }
            if zeros == 0 {
                return Err(Fault::PastBlock);
            }
            let place = zeros.trailing_zeros();
            bits.skip_after_symbol(place - k - run);
            found |= u64::from(size) << place;
            k = place + 1;
            if size == 0 && k > end {
                return Err(Fault::PastBlock);
            }
        }
        *coefficients |= found;
        rest = others;
        if ended_bands > 1 {
            let blocks = rest.split_at_mut_checked(ended_bands - 1);
            let Some((skipped, others)) = blocks else { return ended(bits, false) };
            bits.skip_many(count_nonzero(skipped, band_mask(start, end)));
            rest = others;
        }
    }
    ended(bits, true)
}

/// The blocks whose bands end here, this one included: EOBn (G.1.2.2), at least 1.
fn end_of_band(bits: &mut Bits<'_>, n: u32) -> usize {
    bits.refill();
    let extra = if n == 0 { 0 } else { bits.peek(n) };
    bits.skip(n);
    (1 << n) + extra as usize
}

/// Coefficients from `start` to `end` (at most 63).
const fn band_mask(start: u32, end: u32) -> u64 {
    u64::MAX << start & u64::MAX >> (63 - end)
}

/// How many bits of `mask` are set in all blocks together. Most blocks have none, which is what
/// makes long runs cheap: those that have some are paid for by the file's bits.
fn count_nonzero(blocks: &[u64], mask: u64) -> usize {
    let count = |block: &u64| (block & mask).count_ones() as usize;
    let mut groups = blocks.chunks_exact(8);
    let some = groups.by_ref().filter(|group| group.iter().fold(0, |all, block| all | block) & mask != 0);
    some.flatten().map(count).sum::<usize>() + groups.remainder().iter().map(count).sum::<usize>()
}

fn ended(bits: &Bits<'_>, exactly: bool) -> Result<(), Fault> {
    match exactly {
        _ if bits.overdrawn() => Err(Fault::EndsEarly),
        true => Ok(()),
        false => Err(Fault::PastInterval),
    }
}
