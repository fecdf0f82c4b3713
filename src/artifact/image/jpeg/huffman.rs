//! Huffman tables (T.81 B.2.4.2, C, F.2.2.3) and the lookups that make them fast.

use super::bits::Bits;

/// Codes up to this many bits are decoded by one lookup.
const LOOK: u32 = 11;

/// A table as a DHT segment defines it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Symbols in the order of their codes.
    symbols: Box<[u8]>,
    /// Per code length (index 0 is length 1): the first code, how many there are, and where their
    /// symbols start.
    lengths: [Length; 16],
    /// Built when a scan first uses the table: a file may define many more than it uses.
    lookup: Option<Box<Lookup>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Length {
    first: u32,
    count: u32,
    start: u32,
}

/// What the next [`LOOK`] bits say.
#[derive(Debug, Clone)]
struct Lookup {
    /// The symbol and the length of its code; length 0: the code is longer, or there is none.
    single: [Single; 1 << LOOK],
    /// For AC tables of sequential scans: all the symbols that start in these bits.
    runs: Option<Box<[Run; 1 << LOOK]>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Single {
    symbol: u8,
    length: u8,
}

/// One or more AC symbols of a sequential block (T.81 F.1.2.2), taken in one step. No value is
/// looked at, so only the last code's magnitude bits may lie outside the looked-up bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    /// Bits of all the codes and magnitudes; 0: take one symbol the long way.
    pub(super) bits: u8,
    /// Coefficients passed.
    pub(super) coefficients: u8,
    /// The last index (1 to 63) of the next coefficient at which the run is legal as a whole.
    pub(super) last_start: u8,
    /// The last symbol is EOB.
    pub(super) ends: bool,
}

impl Table {
    /// Builds a table from the counts of codes per length and the symbols. `None` if the counts do
    /// not make a prefix code that leaves the all-ones code free (T.81 C.2: it is reserved).
    pub(super) fn new(counts: [u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut lengths = [Length::default(); 16];
        let (mut code, mut start) = (0u32, 0u32);
        for (length, (entry, count)) in lengths.iter_mut().zip(counts).enumerate() {
            let count = u32::from(count);
            *entry = Length { first: code, count, start };
            if count > 0 && code + count >= 2 << length {
                return None;
            }
            code = (code + count) << 1;
            start += count;
        }
        (start as usize == symbols.len()).then(|| Self { symbols: symbols.into(), lengths, lookup: None })
    }

    /// Builds the lookups; with `runs` also that of sequential AC symbols. Does nothing the second time.
    pub(super) fn prepare(&mut self, runs: bool) {
        if self.lookup.is_none() {
            self.lookup = Some(Box::new(Lookup { single: self.singles(), runs: None }));
        }
        if let Some(lookup) = self.lookup.as_mut().filter(|lookup| runs && lookup.runs.is_none()) {
            lookup.runs = Some(runs_of(&lookup.single));
        }
    }

    fn singles(&self) -> [Single; 1 << LOOK] {
        let mut single = [Single::default(); 1 << LOOK];
        for (length, entry) in (1..).zip(&self.lengths[..LOOK as usize]) {
            let symbols = &self.symbols[entry.start as usize..][..entry.count as usize];
            let span = 1 << (LOOK - u32::from(length));
            let slots = single[entry.first as usize * span..].chunks_exact_mut(span);
            for (slots, &symbol) in slots.zip(symbols) {
                slots.fill(Single { symbol, length });
            }
        }
        single
    }

    /// The prepared table, for the scan's loops.
    pub(super) fn decoder(&self) -> Option<Decoder<'_>> {
        self.lookup.as_deref().map(|lookup| Decoder { table: self, lookup })
    }

    /// A code longer than [`LOOK`] bits: its symbol and length.
    #[inline(never)]
    fn long(&self, bits: &Bits<'_>) -> Option<(u8, u32)> {
        (1..=16).zip(&self.lengths).skip(LOOK as usize).find_map(|(length, entry)| {
            let place = bits.peek(length).wrapping_sub(entry.first);
            (place < entry.count).then(|| (self.symbols[(entry.start + place) as usize], length))
        })
    }
}

/// A table ready to decode with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder<'a> {
    table: &'a Table,
    lookup: &'a Lookup,
}

impl<'a> Decoder<'a> {
    /// The runs, if the table was prepared for them.
    pub(super) fn runs(&self) -> Option<Runs<'a>> {
        self.lookup.runs.as_deref().map(Runs)
    }

    /// The next symbol, or `None` if the bits are no code. Takes at most 16 bits and does not refill.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> Option<u8> {
        let Single { symbol, length } = self.lookup.single[bits.peek(LOOK) as usize];
        if length != 0 {
            bits.skip(u32::from(length));
            return Some(symbol);
        }
        let (symbol, length) = self.table.long(bits)?;
        bits.skip(length);
        Some(symbol)
    }
}

/// The lookup of runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs<'a>(&'a [Run; 1 << LOOK]);

impl Runs<'_> {
    /// The run that the next bits start, without taking it.
    #[inline(always)]
    pub(super) const fn next(&self, bits: &Bits<'_>) -> Run {
        self.0[bits.peek(LOOK) as usize]
    }
}

fn runs_of(single: &[Single; 1 << LOOK]) -> Box<[Run; 1 << LOOK]> {
    let mut runs = Box::new([Run::default(); 1 << LOOK]);
    for (index, run) in runs.iter_mut().enumerate() {
        let (mut bits, mut coefficients) = (0u8, 0u8);
        // Each symbol's code must lie inside the looked-up bits.
        while u32::from(bits) < LOOK {
            let rest = index << bits & ((1 << LOOK) - 1);
            let Single { symbol, length } = single[rest];
            if length == 0 || u32::from(bits + length) > LOOK {
                break;
            }
            let (zeros, size) = (symbol >> 4, symbol & 15);
            let (passed, ends) = match (zeros, size) {
                (0, 0) => (0, true),
                (15, 0) => (16, false),
                (_, 0) => break,
                _ => (zeros + 1, false),
            };
            // After EOB and ZRL a coefficient must still be missing; after others the block may be full.
            let needed = coefficients + passed + u8::from(size == 0);
            if needed > 63 {
                break;
            }
            bits += length + size;
            coefficients += passed;
            *run = Run { bits, coefficients, last_start: 64 - needed, ends };
            if ends {
                break;
            }
        }
    }
    runs
}
