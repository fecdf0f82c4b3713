//! The tables that scans refer to: quantisation (T.81 B.2.4.1), Huffman (B.2.4.2).

use super::super::Reason;
use super::huffman::Table;
use super::standard;

/// What has been defined so far. A destination may be defined again.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Which quantisation tables exist. Their values matter to no verdict: even zeros decode.
    pub(super) quantisation: [bool; 4],
    pub(super) dc: [Option<Table>; 4],
    pub(super) ac: [Option<Table>; 4],
    /// A DHT segment was seen.
    any_huffman: bool,
}

impl Tables {
    /// Reads the parameters of a DQT segment at offset `at`.
    pub(super) fn define_quantisation(&mut self, mut parameters: &[u8], mut at: usize) -> Result<(), Reason> {
        while let [head, rest @ ..] = parameters {
            let length = match head >> 4 {
                0 => 64,
                1 => 128,
                precision => return Err(Reason::corrupt(format!("quantisation precision {precision}"), at)),
            };
            let slot = self.quantisation.get_mut(usize::from(head & 15));
            let slot = slot.ok_or_else(|| Reason::corrupt("quantisation table beyond 3", at))?;
            parameters = rest.get(length..).ok_or_else(|| Reason::corrupt("quantisation table cut short", at))?;
            *slot = true;
            at += 1 + length;
        }
        Ok(())
    }

    /// Reads the parameters of a DHT segment at offset `at`.
    pub(super) fn define_huffman(&mut self, mut parameters: &[u8], mut at: usize) -> Result<(), Reason> {
        self.any_huffman = true;
        while let [head, rest @ ..] = parameters {
            let cut = || Reason::corrupt("Huffman table cut short", at);
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(cut)?;
            let length = counts.iter().map(|&count| usize::from(count)).sum();
            let (symbols, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
            let table =
                Table::new(*counts, symbols).ok_or_else(|| Reason::corrupt("Huffman table is no prefix code", at))?;
            let tables = match head >> 4 {
                0 if symbols.iter().any(|&size| size > 15) => {
                    return Err(Reason::corrupt("DC Huffman table with a size above 15", at));
                }
                0 => &mut self.dc,
                1 => &mut self.ac,
                class => return Err(Reason::corrupt(format!("Huffman table class {class}"), at)),
            };
            let slot = tables.get_mut(usize::from(head & 15));
            *slot.ok_or_else(|| Reason::corrupt("Huffman table beyond 3", at))? = Some(table);
            parameters = rest;
            at += 17 + length;
        }
        Ok(())
    }

    /// Motion JPEG leaves the tables out and means those of T.81 K.3.
    pub(super) fn default_huffman(&mut self) {
        if !self.any_huffman {
            self.any_huffman = true;
            let [dc, ac] = standard::tables();
            for (slots, tables) in [(&mut self.dc, dc), (&mut self.ac, ac)] {
                for (slot, table) in slots.iter_mut().zip(tables) {
                    *slot = table;
                }
            }
        }
    }
}
