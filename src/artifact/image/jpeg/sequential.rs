//! Sequential scans (T.81 F.2.2): every block is decoded whole, into nothing.

use super::bits::Bits;
use super::fault::Fault;
use super::huffman::{Decoder, Runs};

/// The tables of one block of an MCU.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockTables<'a> {
    pub(super) dc: Decoder<'a>,
    pub(super) ac: Decoder<'a>,
    pub(super) runs: Runs<'a>,
}

/// Decodes `mcus` units of the blocks given.
pub(super) fn interval(bits: &mut Bits<'_>, mcu: &[BlockTables<'_>], mcus: usize) -> Result<(), Fault> {
    for _ in 0..mcus {
        for tables in mcu {
            block(bits, tables)?;
        }
        if bits.overdrawn() {
            return Err(Fault::EndsEarly);
        }
    }
    Ok(())
}

#[inline(always)]
fn block(bits: &mut Bits<'_>, tables: &BlockTables<'_>) -> Result<(), Fault> {
    bits.refill();
    let size = tables.dc.symbol(bits).ok_or(Fault::NoCode)?;
    bits.skip(u32::from(size));
    // F.2.2.2: k is the index, in zig-zag order, of the next coefficient.
    let mut k = 1;
    while k < 64 {
        bits.refill();
        let run = tables.runs.next(bits);
        if run.bits != 0 && k <= u32::from(run.last_start) {
            bits.skip(u32::from(run.bits));
            k += u32::from(run.coefficients);
            if run.ends {
                return Ok(());
            }
        } else {
            match tables.ac.symbol(bits).ok_or(Fault::NoCode)? {
                0x00 => return Ok(()),
                // A coefficient must follow the 16 zeros.
                0xF0 if k + 16 < 64 => k += 16,
                0xF0 => return Err(Fault::PastBlock),
                symbol if symbol & 15 == 0 => return Err(Fault::BadSymbol),
                symbol => {
                    k += u32::from(symbol >> 4) + 1;
                    if k > 64 {
                        return Err(Fault::PastBlock);
                    }
                    bits.skip(u32::from(symbol & 15));
                }
            }
        }
    }
    Ok(())
}
