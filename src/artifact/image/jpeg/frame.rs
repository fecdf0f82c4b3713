//! The frame header (T.81 B.2.2) and the sizes that follow from it (A.1.1, A.2).

use super::super::{Reason, check_sides};

/// How the scans code the coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    /// SOF0 and SOF1: each block whole, in one scan.
    Sequential,
    /// SOF2: bands and bits of the blocks, in many scans.
    Progressive,
}

/// The frame header.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) process: Process,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Minimum coded units of an interleaved scan.
    pub(super) mcus: usize,
    pub(super) components: Vec<Component>,
}

/// A component of the frame.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks in an MCU of an interleaved scan, 1 to 16.
    pub(super) blocks_in_mcu: usize,
    /// The destination of its quantisation table, 0 to 3.
    pub(super) quantisation: usize,
    /// Blocks of a scan of this component alone.
    pub(super) blocks: usize,
}

impl Frame {
    /// Reads the parameters of a frame header; `at` is their offset.
    pub(super) fn parse(process: Process, parameters: &[u8], at: usize) -> Result<Self, Reason> {
        let [precision, h1, h0, w1, w0, count, specs @ ..] = parameters else {
            return Err(Reason::corrupt("frame header too short", at));
        };
        match precision {
            8 => {}
            12 => return Err(Reason::Unsupported { what: "JPEG of 12 bits per sample" }),
            _ => return Err(Reason::corrupt(format!("sample precision {precision}"), at)),
        }
        if specs.len() != 3 * usize::from(*count) {
            return Err(Reason::corrupt("frame header of wrong length", at));
        }
        if !matches!(count, 1 | 3 | 4) {
            return Err(Reason::Unsupported { what: "JPEG with other than 1, 3 or 4 components" });
        }
        let (width, height) = (u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0]));
        if height == 0 {
            // B.2.5: the number of lines may follow the first scan.
            return Err(Reason::Unsupported { what: "JPEG without a height in its header" });
        }
        let (width, height) = (u32::from(width), u32::from(height));
        check_sides(width, height, at + 1)?;

        let specs: Vec<Spec> =
            specs.chunks_exact(3).enumerate().map(|(i, c)| Spec::parse(c, at + 6 + 3 * i)).collect::<Result<_, _>>()?;
        let h_max = specs.iter().map(|spec| spec.h).max().unwrap_or(1);
        let v_max = specs.iter().map(|spec| spec.v).max().unwrap_or(1);
        // Legal by T.81, but decoders do not scale by fractions.
        if specs.iter().any(|spec| h_max % spec.h != 0 || v_max % spec.v != 0) {
            return Err(Reason::Unsupported { what: "JPEG with fractional sampling" });
        }
        let components = specs
            .iter()
            .map(|spec| Component {
                id: spec.id,
                blocks_in_mcu: (spec.h * spec.v) as usize,
                quantisation: spec.quantisation,
                blocks: count_units(width * spec.h, height * spec.v, 8 * h_max, 8 * v_max),
            })
            .collect();
        let mcus = count_units(width, height, 8 * h_max, 8 * v_max);
        Ok(Self { process, width, height, mcus, components })
    }
}

/// How many units of `w` × `h` cover `width` × `height`.
fn count_units(width: u32, height: u32, w: u32, h: u32) -> usize {
    width.div_ceil(w) as usize * height.div_ceil(h) as usize
}

/// A component as written.
struct Spec {
    id: u8,
    h: u32,
    v: u32,
    quantisation: usize,
}

impl Spec {
    fn parse(bytes: &[u8], at: usize) -> Result<Self, Reason> {
        let &[id, sampling, quantisation] = bytes else {
            return Err(Reason::corrupt("frame header too short", at));
        };
        let (h, v) = (u32::from(sampling >> 4), u32::from(sampling & 15));
        if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
            return Err(Reason::corrupt(format!("sampling factors {h} × {v}"), at + 1));
        }
        if quantisation > 3 {
            return Err(Reason::corrupt(format!("quantisation table {quantisation}"), at + 2));
        }
        Ok(Self { id, h, v, quantisation: usize::from(quantisation) })
    }
}
