//! Prefix codes (WebP lossless, section 6.2): read, proven complete, and kept as tables.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bits::Bits;
use crate::artifact::image::Reason;
use crate::artifact::image::webp::effort::Effort;

/// Codes up to this length are found in one step.
const ROOT: u8 = 8;
/// Entries that the tables of one image may have: 64 MiB.
const MAX_ENTRIES: usize = 32 << 20;
/// Entries beyond which tables are large: 8 MiB. No image of an encoder has so many.
const LARGE: usize = 4 << 20;
/// Held while the tables of an image are large: of such verdicts one runs at a time, so that however
/// many cores there are, they take the memory of one.
static LARGE_TABLES: Mutex<()> = Mutex::new(());
/// The longest code.
const LONGEST: usize = 15;
/// Order in which the lengths of the code of code lengths are written.
const ORDER: [usize; 19] = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Where a code's table lies.
#[derive(Clone, Copy, Default)]
pub(super) struct Code {
    base: u32,
    /// Bits that index its first level, set.
    mask: u32,
}

/// The tables of all codes of an image.
///
/// An entry is a symbol in the upper 12 bits and the code's length in the lower 4. Codes longer than
/// [`ROOT`] have a second table: its entry in the first holds the offset from there, and 8 plus the
/// bits that index it; its own entries hold the rest of the length.
#[derive(Default)]
pub(super) struct Tables {
    entries: Vec<u16>,
    turn: Option<MutexGuard<'static, ()>>,
}

impl Tables {
    /// Reads a symbol; [`LONGEST`] bits must be loaded.
    #[inline]
    pub(super) fn symbol(&self, code: Code, bits: &mut Bits<'_>) -> u32 {
        let index = bits.peek() & code.mask;
        let entry = u32::from(self.entries[(code.base + index) as usize]);
        let length = entry & 15;
        if length <= u32::from(ROOT) {
            bits.drop(length);
            return entry >> 4;
        }
        bits.drop(ROOT.into());
        let index = bits.peek() & ((1 << (length - u32::from(ROOT))) - 1);
        let entry = u32::from(self.entries[(code.base + (entry >> 4) + index) as usize]);
        bits.drop(entry & 15);
        entry >> 4
    }

    /// The only symbol of a code that takes no bits.
    pub(super) fn only(&self, code: Code) -> Option<u32> {
        let entry = u32::from(self.entries[code.base as usize]);
        (entry & 15 == 0).then_some(entry >> 4)
    }
}

/// The lengths of one code, as they are read: only symbols that occur.
#[derive(Default)]
pub(super) struct Lengths {
    /// Symbols and their lengths, in the order of the symbols.
    symbols: Vec<(u16, u8)>,
    /// The same in the order of the codes.
    sorted: Vec<(u16, u8)>,
}

impl Lengths {
    /// Reads the code of an alphabet of at most 2328 symbols.
    pub(super) fn read(&mut self, bits: &mut Bits<'_>, alphabet: u16, effort: &mut Effort) -> Result<(), Reason> {
        self.symbols.clear();
        if bits.flag() {
            self.read_simple(bits, alphabet)?;
        } else {
            self.read_normal(bits, alphabet)?;
        }
        bits.check()?;
        effort.spend(2 * self.symbols.len() as u64)?;
        check_complete(&self.symbols, bits)
    }

    /// One or two symbols (section 6.2.1, "simple code length code").
    fn read_simple(&mut self, bits: &mut Bits<'_>, alphabet: u16) -> Result<(), Reason> {
        let two = bits.flag();
        let wide = bits.flag();
        let widths = [if wide { 8 } else { 1 }, 8];
        for width in &widths[..1 + usize::from(two)] {
            #[expect(clippy::cast_possible_truncation, reason = "at most 8 bits")]
            let symbol = bits.read(*width) as u16;
            if symbol >= alphabet {
                return Err(Reason::corrupt("VP8L code for a symbol that does not exist", bits.position()));
            }
            // Canonical codes go by the symbols' order. Encoders write them so; of two in another order,
            // or of one twice, decoders make different things.
            if self.symbols.last().is_some_and(|(last, _)| *last >= symbol) {
                return Err(Reason::corrupt("symbols of a VP8L code out of order", bits.position()));
            }
            self.symbols.push((symbol, 1));
        }
        Ok(())
    }

    /// Lengths written in a code of their own (section 6.2.1, "normal code length code").
    fn read_normal(&mut self, bits: &mut Bits<'_>, alphabet: u16) -> Result<(), Reason> {
        let mut lengths = [0; 19];
        let count = 4 + bits.read(4) as usize;
        for place in &ORDER[..count] {
            #[expect(clippy::cast_possible_truncation, reason = "3 bits")]
            let length = bits.read(3) as u8;
            lengths[*place] = length;
        }
        let table = length_table(&lengths, bits)?;
        let mut left = if bits.flag() {
            let width = 2 + 2 * bits.read(3);
            2 + bits.read(width)
        } else {
            u32::from(alphabet)
        };
        if left > u32::from(alphabet) {
            return Err(Reason::corrupt("more VP8L code lengths than symbols", bits.position()));
        }
        let mut symbol = 0;
        let mut previous = 8;
        while symbol < alphabet && left > 0 {
            left -= 1;
            bits.fill();
            let (token, length) = table[(bits.peek() & 127) as usize];
            bits.drop(u32::from(length));
            let (run, length) = match token {
                0..16 => (1, token),
                16 => (3 + bits.take(2), previous),
                17 => (3 + bits.take(3), 0),
                _ => (11 + bits.take(7), 0),
            };
            #[expect(clippy::cast_possible_truncation, reason = "at most 138")]
            let end = symbol + run as u16;
            if end > alphabet {
                return Err(Reason::corrupt("more VP8L code lengths than symbols", bits.position()));
            }
            if length != 0 {
                self.symbols.extend((symbol..end).map(|symbol| (symbol, length)));
                previous = length;
            }
            symbol = end;
        }
        Ok(())
    }

    /// Adds the table of the code that was read last.
    pub(super) fn tabulate(&mut self, tables: &mut Tables) -> Result<Code, Reason> {
        let base = tables.entries.len();
        if base > MAX_ENTRIES {
            return Err(Reason::TooCostly { what: "more than 64 MiB of VP8L code tables".into() });
        }
        // A verdict has the tables of one image at a time, so it never waits for itself.
        if base > LARGE && tables.turn.is_none() {
            tables.turn = Some(LARGE_TABLES.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let entries = &mut tables.entries;
        let code = |mask| Code { base: u32::try_from(base).unwrap_or(u32::MAX), mask };
        if let [(symbol, _)] = self.symbols[..] {
            entries.push(symbol << 4);
            return Ok(code(0));
        }
        let longest = self.symbols.iter().map(|(_, length)| *length).max().unwrap_or(0);
        let root = longest.min(ROOT);
        entries.resize(base + (1 << root), 0);
        if longest <= ROOT {
            // Every table is of one level: the symbols need no sorting.
            let mut canonical = Canonical::new(&self.symbols);
            let table = &mut entries[base..];
            for (symbol, length) in &self.symbols {
                repeat(table, canonical.next(*length), *length, symbol << 4 | u16::from(*length));
            }
        } else {
            self.sort();
            two_levels(&self.sorted, entries, base);
        }
        Ok(code((1 << root) - 1))
    }

    /// Sorts the symbols by length, and by number among equals.
    fn sort(&mut self) {
        let mut starts = [0; LONGEST + 2];
        for (_, length) in &self.symbols {
            starts[usize::from(*length) + 1] += 1;
        }
        for length in 1..starts.len() {
            starts[length] += starts[length - 1];
        }
        self.sorted.clear();
        self.sorted.resize(self.symbols.len(), (0, 0));
        for (symbol, length) in &self.symbols {
            let place = &mut starts[usize::from(*length)];
            self.sorted[*place] = (*symbol, *length);
            *place += 1;
        }
    }
}

/// Fills the two levels of a code's table that begins at `base`.
fn two_levels(sorted: &[(u16, u8)], entries: &mut Vec<u16>, base: usize) {
    let mut canonical = Canonical::new(sorted);
    let mut at = 0;
    while let Some((symbol, length)) = sorted.get(at).copied() {
        if length <= ROOT {
            let entry = symbol << 4 | u16::from(length);
            repeat(&mut entries[base..], canonical.next(length), length, entry);
            at += 1;
            continue;
        }
        // The codes that share their first bits follow each other, and fill what they share.
        let mut share = 1 << (LONGEST - usize::from(ROOT));
        let count = sorted[at..]
            .iter()
            .take_while(|(_, length)| {
                let open = share > 0;
                share -= 1 << (LONGEST - usize::from(*length));
                open
            })
            .count();
        let group = &sorted[at..at + count];
        let width = group.last().map_or(0, |(_, length)| length - ROOT);
        let offset = entries.len() - base;
        entries.resize(base + offset + (1 << width), 0);
        for (symbol, length) in group {
            let first = canonical.next(*length);
            let rest = length - ROOT;
            #[expect(clippy::cast_possible_truncation, reason = "2328 codes of 15 bits take 2704 entries")]
            let pointer = (offset as u16) << 4 | u16::from(ROOT + width);
            entries[base + (first & 255)] = pointer;
            repeat(&mut entries[base + offset..], first >> ROOT, rest, symbol << 4 | u16::from(rest));
        }
        at += count;
    }
}

/// Fills the slots of a table that begin with a code of `length` bits.
fn repeat(table: &mut [u16], first: usize, length: u8, entry: u16) {
    let mut slot = first;
    while let Some(place) = table.get_mut(slot) {
        *place = entry;
        slot += 1 << length;
    }
}

/// Hands out canonical codes (RFC 1951, section 3.2.2), the first bit lowest.
struct Canonical {
    next: [u16; LONGEST + 1],
}

impl Canonical {
    fn new(symbols: &[(u16, u8)]) -> Self {
        let mut counts = [0; LONGEST + 1];
        symbols.iter().for_each(|(_, length)| counts[usize::from(*length)] += 1);
        let mut next = [0_u16; LONGEST + 1];
        for length in 1..LONGEST {
            next[length + 1] = next[length].wrapping_add(counts[length]) << 1;
        }
        Self { next }
    }

    /// The next code of a length; symbols come in order.
    fn next(&mut self, length: u8) -> usize {
        let next = &mut self.next[usize::from(length)];
        let code = next.reverse_bits() >> (16 - length);
        *next = next.wrapping_add(1);
        usize::from(code)
    }
}

/// Refuses a code that has no symbol, or leaves out or uses twice some sequence of bits. One symbol
/// alone takes no bits, whatever its length.
fn check_complete(symbols: &[(u16, u8)], bits: &Bits<'_>) -> Result<(), Reason> {
    let sum: u32 = symbols.iter().map(|(_, length)| 1 << (LONGEST - usize::from(*length))).sum();
    if symbols.len() == 1 || sum == 1 << LONGEST {
        return Ok(());
    }
    let what = if sum < 1 << LONGEST { "incomplete VP8L code" } else { "VP8L code with too many symbols" };
    Err(Reason::corrupt(what, bits.position()))
}

/// The code of code lengths, by the next seven bits: the symbol, and how many bits it takes.
fn length_table(lengths: &[u8; 19], bits: &Bits<'_>) -> Result<[(u8, u8); 128], Reason> {
    let mut table = [(0, 0); 128];
    let mut symbols = [(0, 0); 19];
    let mut count = 0;
    for length in 1..8 {
        for symbol in (0..19).filter(|symbol| lengths[usize::from(*symbol)] == length) {
            symbols[count] = (symbol, length);
            count += 1;
        }
    }
    let symbols = &symbols[..count];
    check_complete(symbols, bits)?;
    #[expect(clippy::cast_possible_truncation, reason = "19 symbols")]
    let narrow = |symbol: u16| symbol as u8;
    if let [(symbol, _)] = symbols {
        return Ok([(narrow(*symbol), 0); 128]);
    }
    let mut canonical = Canonical::new(symbols);
    for (symbol, length) in symbols {
        let first = canonical.next(*length);
        table.iter_mut().skip(first).step_by(1 << length).for_each(|slot| *slot = (narrow(*symbol), *length));
    }
    Ok(table)
}
