//! One scan: its header (T.81 B.2.3), then its entropy-coded intervals (B.2.1, E.2).

use super::super::Reason;
use super::bits::Bits;
use super::fault::Fault;
use super::frame::{Frame, Process};
use super::huffman::{Decoder, Table};
use super::progressive::{self, Progress};
use super::sequential::{self, BlockTables};
use super::tables::Tables;

/// Bytes that may follow the last block before the next marker: decoders skip them.
const MAX_LEFT_OVER: usize = 16;
/// Blocks in the MCU of an interleaved scan (B.2.3).
const MAX_BLOCKS_IN_MCU: usize = 10;

/// Which coefficients a scan sends (zig-zag indices), and which of their bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    pub(super) start: u8,
    pub(super) end: u8,
    /// The bit before, 0 in a first scan.
    pub(super) high: u8,
    /// The lowest bit sent.
    pub(super) low: u8,
}

/// A component of a scan.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Its index in the frame.
    component: usize,
    /// The destinations of its Huffman tables.
    dc: usize,
    ac: usize,
}

/// A scan header.
#[derive(Debug)]
pub(super) struct Scan {
    parts: Vec<Part>,
    band: Band,
    /// The offset of its parameters.
    at: usize,
}

impl Scan {
    /// Reads the parameters of a scan header; `at` is their offset.
    pub(super) fn parse(frame: &Frame, parameters: &[u8], at: usize) -> Result<Self, Reason> {
        let [count, specs @ .., start, end, bits] = parameters else {
            return Err(Reason::corrupt("scan header too short", at));
        };
        if !(1..=4).contains(count) || specs.len() != 2 * usize::from(*count) {
            return Err(Reason::corrupt("scan header of wrong length", at));
        }
        let mut parts: Vec<Part> = Vec::with_capacity(4);
        for spec in specs.chunks_exact(2) {
            // The order is that of the frame header, so the search goes on after the last one.
            let from = parts.last().map_or(0, |part| part.component + 1);
            let place = frame.components[from..].iter().position(|component| component.id == spec[0]);
            let place = place.ok_or_else(|| Reason::corrupt(format!("scan of no component {}", spec[0]), at))?;
            let (dc, ac) = (usize::from(spec[1] >> 4), usize::from(spec[1] & 15));
            if dc > 3 || ac > 3 {
                return Err(Reason::corrupt("Huffman table beyond 3", at));
            }
            parts.push(Part { component: from + place, dc, ac });
        }
        if parts.len() > 1 {
            let blocks: usize = parts.iter().map(|part| frame.components[part.component].blocks_in_mcu).sum();
            if blocks > MAX_BLOCKS_IN_MCU {
                return Err(Reason::corrupt(format!("{blocks} blocks in an MCU"), at));
            }
        }
        let band = Band { start: *start, end: *end, high: bits >> 4, low: bits & 15 };
        let legal = match frame.process {
            // Always 0 to 63 and all bits, so decoders look at the range of the values at most, and
            // some encoders write others (Table B.3).
            Process::Sequential => band.start.max(band.end) <= 63 && band.high.max(band.low) <= 13,
            Process::Progressive => {
                let place = match band.start {
                    0 => band.end == 0,
                    start => start <= band.end && band.end <= 63 && parts.len() == 1,
                };
                place && band.low <= 13 && (band.high == 0 || band.high == band.low + 1)
            }
        };
        if !legal {
            let what = format!("scan of coefficients {start} to {end}, bits {} to {}", band.high, band.low);
            return Err(Reason::corrupt(what, at));
        }
        let band = match frame.process {
            Process::Sequential => Band { start: 0, end: 63, high: 0, low: 0 },
            Process::Progressive => band,
        };
        Ok(Self { parts, band, at })
    }

    /// How many MCUs there are (A.2): in a scan of one component an MCU is one block.
    fn mcus(&self, frame: &Frame) -> usize {
        match self.parts[..] {
            [part] => frame.components[part.component].blocks,
            _ => frame.mcus,
        }
    }

    /// A value per block of an MCU, in order, from one per component.
    fn per_block<T: Copy>(&self, frame: &Frame, of: impl Fn(&Part) -> Result<T, Reason>) -> Result<Vec<T>, Reason> {
        let mut blocks = Vec::with_capacity(MAX_BLOCKS_IN_MCU);
        for part in &self.parts {
            let count = if self.parts.len() == 1 { 1 } else { frame.components[part.component].blocks_in_mcu };
            blocks.extend(std::iter::repeat_n(of(part)?, count));
        }
        Ok(blocks)
    }

    /// Blocks that a decoder of this scan visits.
    pub(super) fn block_visits(&self, frame: &Frame) -> u64 {
        let blocks = self.parts.iter().map(|part| match self.parts.len() {
            1 => 1,
            _ => frame.components[part.component].blocks_in_mcu,
        });
        blocks.sum::<usize>() as u64 * self.mcus(frame) as u64
    }

    /// Decodes the scan, whose data start at offset `from` of `file`. Returns the offset of the
    /// marker after it.
    pub(super) fn decode(
        &self,
        file: &[u8],
        from: usize,
        restart: usize,
        frame: &Frame,
        tables: &mut Tables,
        progress: &mut [Progress],
    ) -> Result<usize, Reason> {
        for part in &self.parts {
            if !tables.quantisation[frame.components[part.component].quantisation] {
                return Err(Reason::corrupt("scan without its quantisation table", self.at));
            }
            // A sequential scan is the first and the last of its component.
            let continues = match frame.process {
                Process::Sequential => !progress[part.component].has_dc(),
                Process::Progressive => true,
            };
            if !(progress[part.component].advance(self.band) && continues) {
                return Err(Reason::corrupt("scan does not continue those before it", self.at));
            }
        }
        let intervals = Intervals { file, from, restart, mcus: self.mcus(frame) };
        let first = self.parts[0];
        match (frame.process, self.band) {
            (Process::Sequential, _) => {
                tables.default_huffman();
                let mcu = self.sequential_tables(frame, tables)?;
                intervals.decode(|bits, _, mcus| sequential::interval(bits, &mcu, mcus))
            }
            (_, Band { start: 0, high: 0, .. }) => {
                for part in &self.parts {
                    prepare(&mut tables.dc, part.dc, false, self.at)?;
                }
                let mcu = self.per_block(frame, |part| decoder(&tables.dc, part.dc, self.at))?;
                intervals.decode(|bits, _, mcus| progressive::dc_first(bits, &mcu, mcus))
            }
            (_, Band { start: 0, .. }) => {
                let blocks = self.per_block(frame, |_| Ok(()))?.len();
                intervals.decode(|bits, _, mcus| progressive::dc_refine(bits, mcus * blocks))
            }
            (_, band) => {
                prepare(&mut tables.ac, first.ac, false, self.at)?;
                let table = decoder(&tables.ac, first.ac, self.at)?;
                let nonzero = progress[first.component].nonzero(intervals.mcus);
                intervals.decode(|bits, start, mcus| {
                    let blocks = &mut nonzero[start..start + mcus];
                    match band.high {
                        0 => progressive::ac_first(bits, &table, band, blocks),
                        _ => progressive::ac_refine(bits, &table, band, blocks),
                    }
                })
            }
        }
    }

    fn sequential_tables<'t>(&self, frame: &Frame, tables: &'t mut Tables) -> Result<Vec<BlockTables<'t>>, Reason> {
        for part in &self.parts {
            prepare(&mut tables.dc, part.dc, false, self.at)?;
            prepare(&mut tables.ac, part.ac, true, self.at)?;
        }
        let tables = &*tables;
        self.per_block(frame, |part| {
            let dc = decoder(&tables.dc, part.dc, self.at)?;
            let ac = decoder(&tables.ac, part.ac, self.at)?;
            let runs = ac.runs().ok_or_else(|| missing(self.at))?;
            Ok(BlockTables { dc, ac, runs })
        })
    }
}

fn missing(at: usize) -> Reason {
    Reason::corrupt("scan without its Huffman table", at)
}

fn prepare(tables: &mut [Option<Table>; 4], index: usize, runs: bool, at: usize) -> Result<(), Reason> {
    let table = tables.get_mut(index).and_then(Option::as_mut).ok_or_else(|| missing(at))?;
    table.prepare(runs);
    Ok(())
}

fn decoder(tables: &[Option<Table>; 4], index: usize, at: usize) -> Result<Decoder<'_>, Reason> {
    tables.get(index).and_then(|table| table.as_ref()?.decoder()).ok_or_else(|| missing(at))
}

/// The entropy-coded data of a scan: one interval, or several with restart markers between them.
struct Intervals<'a> {
    file: &'a [u8],
    from: usize,
    /// MCUs of each interval but the last; 0: all in one.
    restart: usize,
    mcus: usize,
}

impl Intervals<'_> {
    /// Calls `interval` with the bits, the first MCU and how many. Returns the offset of the marker
    /// after the last.
    fn decode(
        &self,
        mut interval: impl FnMut(&mut Bits<'_>, usize, usize) -> Result<(), Fault>,
    ) -> Result<usize, Reason> {
        let mut from = self.from;
        let mut done = 0;
        let mut index = 0;
        loop {
            let count = match self.restart {
                0 => self.mcus,
                restart => restart.min(self.mcus - done),
            };
            let mut bits = Bits::new(self.file, from);
            interval(&mut bits, done, count).map_err(|fault| fault.reason(&bits, self.file))?;
            let (marker, left_over) = bits.finish();
            if marker == self.file.len() {
                return Err(Reason::truncated(marker));
            }
            if left_over > MAX_LEFT_OVER {
                let what = format!("{left_over} bytes more than the scan's blocks need");
                return Err(Reason::corrupt(what, marker - left_over));
            }
            done += count;
            if done == self.mcus {
                return Ok(marker);
            }
            from = restart_marker(self.file, marker, index)?;
            index = (index + 1) % 8;
        }
    }
}

/// Checks that RSTn (n is `index`) is at `at`, after any fill bytes. Returns the offset behind it.
fn restart_marker(file: &[u8], at: usize, index: u8) -> Result<usize, Reason> {
    let fill = file[at..].iter().take_while(|&&byte| byte == 0xFF).count();
    match file.get(at + fill) {
        Some(&code) if code == 0xD0 + index => Ok(at + fill + 1),
        Some(code) => Err(Reason::corrupt(format!("marker FF{code:02X} in place of RST{index}"), at)),
        None => Err(Reason::truncated(file.len())),
    }
}
