//! What one verdict may cost.

use super::build::*;
use super::{refused, sound};

/// `count` blocks whose bands end here, in runs of 32767, with the only code of table [`LONG`].
fn ends(mut count: usize) -> Vec<u8> {
    let mut bits = Bits::new();
    while count >= 32767 {
        bits = bits.raw(0, 4).raw(0x3FFF, 14);
        count -= 32767;
    }
    bits.repeat(count, |bits| bits.raw(1, 4)).bytes()
}

/// EOB14 and EOB0.
const LONG: [u8; 2] = [0xE0, 0x00];

/// The largest progressive file of `components`: all the DC scans, then bands without coefficients,
/// one coefficient and one bit at a time, `scans` in all.
pub fn many_scans(side: u16, components: u8, dc: usize, scans: usize) -> Vec<u8> {
    let ids: Vec<u8> = (1..=components).collect();
    let specs: Vec<(u8, u8)> = ids.iter().map(|&id| (id, 0x11)).collect();
    let blocks = usize::from(side).div_ceil(8).pow(2);
    let one_dc_bit = segment(0xC4, &[&[0x00, 1][..], &[0; 15], &[0]].concat());
    let mut file = [&SOI[..], &dqt(0), &one_dc_bit, &dht(0x10, &LONG), &sof(0xC2, side, side, &specs)].concat();
    let bits = vec![0; (blocks * ids.len()).div_ceil(8)];
    for low in (14 - dc..14).rev() {
        let low = u8::try_from(low).expect("a bit");
        file.extend(sos(&ids, 0, 0, if low == 13 { 0 } else { low + 1 }, low));
        file.extend(&bits);
    }
    let data = ends(blocks);
    let bands = ids.iter().flat_map(|&id| (1..64).flat_map(move |k| (0..14).rev().map(move |low| (id, k, low))));
    for (id, k, low) in bands.take(scans - dc) {
        file.extend(sos(&[id], k, k, if low == 13 { 0 } else { low + 1 }, low));
        file.extend(&data);
    }
    file.extend(EOI);
    file
}

#[test]
fn at_most_100_scans() {
    assert_eq!(sound("100", &many_scans(64, 1, 1, 100)).frames, 1);
    assert_eq!(refused("101", &many_scans(64, 1, 1, 101)).to_string(), "too_costly: more than 100 scans");
}

#[test]
fn at_most_100_million_blocks() {
    let reason = refused("blocks", &many_scans(8000, 4, 4, 100)).to_string();
    assert_eq!(reason, "too_costly: scans of 101000000 blocks in all");
}

#[test]
fn what_is_no_segment_does_not_go_on_for_ever() {
    let tables = segment(0xC4, &[&[0x10, 1][..], &[0; 15], &[0]].concat());
    for (name, filling) in [
        ("fill", vec![0xFF; 3 << 19]),
        ("stuffing", [0xFF, 0].repeat(3 << 18)),
        ("restart markers", [0xFF, 0xD0].repeat(3 << 18)),
        ("tables", tables.repeat(3 << 14)),
        ("comments", [0xFF, 0xFE, 0, 2].repeat(3 << 17)),
    ] {
        refused(name, &[&SOI[..], &filling, &EOI].concat());
    }
}
