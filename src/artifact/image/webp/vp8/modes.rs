//! The prediction modes of a macroblock: RFC 6386, sections 8.1, 10 and 11.

use super::bools::Bools;
use super::tables::SUBMODES;

/// Number of a 4x4 mode in the tables; `B_DC_PRED` is also what lies outside the picture.
const B_DC: u8 = 0;
const B_TM: u8 = 1;
const B_VE: u8 = 2;
const B_HE: u8 = 3;

/// The modes of the 4x4 blocks that the next macroblocks see above and to the left.
pub(super) struct Neighbours {
    above: Vec<[u8; 4]>,
    left: [u8; 4],
}

impl Neighbours {
    /// For `columns` macroblocks a row.
    pub(super) fn new(columns: usize) -> Self {
        Self { above: vec![[B_DC; 4]; columns], left: [B_DC; 4] }
    }

    /// Begins a row.
    pub(super) fn start_row(&mut self) {
        self.left = [B_DC; 4];
    }

    /// Reads the luma and chroma modes of the macroblock in `column`; true if its luma is predicted
    /// as one block of 16x16, and so has a Y2 block.
    pub(super) fn read(&mut self, bools: &mut Bools<'_>, column: usize) -> bool {
        let above = &mut self.above[column];
        // kf_ymode_tree (section 11.2): B_PRED, then DC or V, then H or TM.
        let whole = bools.read(145);
        if whole {
            let mode = match bools.read(156) {
                false if bools.read(163) => B_VE,
                false => B_DC,
                true if bools.read(128) => B_TM,
                true => B_HE,
            };
            *above = [mode; 4];
            self.left = [mode; 4];
        } else {
            for left in &mut self.left {
                for above in above.iter_mut() {
                    *left = submode(bools, &SUBMODES[usize::from(*above)][usize::from(*left)]);
                    *above = *left;
                }
            }
        }
        // uv_mode_tree (section 11.2): DC, V, then H or TM.
        if bools.read(142) && bools.read(114) {
            bools.read(183);
        }
        whole
    }
}

/// Reads the mode of a 4x4 block: bmode_tree of section 11.2.
fn submode(bools: &mut Bools<'_>, probs: &[u8; 9]) -> u8 {
    if !bools.read(probs[0]) {
        B_DC
    } else if !bools.read(probs[1]) {
        B_TM
    } else if !bools.read(probs[2]) {
        B_VE
    } else if !bools.read(probs[3]) {
        if !bools.read(probs[4]) { B_HE } else { 5 + u8::from(bools.read(probs[5])) }
    } else if !bools.read(probs[6]) {
        4
    } else if !bools.read(probs[7]) {
        7
    } else {
        8 + u8::from(bools.read(probs[8]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::BoolWriter;
    use super::{Bools, submode};
    use crate::artifact::image::webp::Span;

    #[test]
    fn every_leaf_of_the_submode_tree() {
        let leaves: [(&[bool], &[usize], u8); 10] = [
            (&[false], &[0], 0),
            (&[true, false], &[0, 1], 1),
            (&[true, true, false], &[0, 1, 2], 2),
            (&[true, true, true, false, false], &[0, 1, 2, 3, 4], 3),
            (&[true, true, true, false, true, false], &[0, 1, 2, 3, 4, 5], 5),
            (&[true, true, true, false, true, true], &[0, 1, 2, 3, 4, 5], 6),
            (&[true, true, true, true, false], &[0, 1, 2, 3, 6], 4),
            (&[true, true, true, true, true, false], &[0, 1, 2, 3, 6, 7], 7),
            (&[true, true, true, true, true, true, false], &[0, 1, 2, 3, 6, 7, 8], 8),
            (&[true, true, true, true, true, true, true], &[0, 1, 2, 3, 6, 7, 8], 9),
        ];
        let probs = [10, 30, 50, 70, 90, 110, 130, 150, 170];
        for (bits, nodes, mode) in leaves {
            let mut writer = BoolWriter::default();
            for (bit, node) in bits.iter().zip(nodes) {
                writer.write(*bit, probs[*node]);
            }
            writer.write(true, 3);
            let partition = writer.finish();
            let mut bools = Bools::new(Span { bytes: &partition, at: 0 }).expect("a possible partition");
            assert_eq!(submode(&mut bools, &probs), mode);
            assert!(bools.read(3), "what follows mode {mode} is where it should be");
        }
    }
}
