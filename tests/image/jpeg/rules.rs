//! Each rule on segments, headers, tables and sequential scans: what keeps it and what breaks it.

use super::build::*;
use super::{refused, sound};

/// A grey file of one block with segments put in behind its tables.
fn with(segments: &[u8]) -> Vec<u8> {
    let frame = sof(0xC0, 8, 8, &[(1, 0x11)]);
    let data = Bits::new().flat(1).bytes();
    [&SOI[..], &tables(), segments, &frame, &sos_all(&[1]), &data, &EOI].concat()
}

/// A file of one frame and one scan of all its components, with as many flat blocks.
fn frame(marker: u8, width: u16, height: u16, components: &[(u8, u8)], blocks: usize) -> Vec<u8> {
    let ids: Vec<u8> = components.iter().map(|component| component.0).collect();
    let data = Bits::new().flat(blocks).bytes();
    [&SOI[..], &tables(), &sof(marker, width, height, components), &sos_all(&ids), &data, &EOI].concat()
}

/// A grey file in rows of one interval each; `between` stands where the restart markers belong.
fn restarts(interval: u16, blocks_and_between: &[(usize, &[u8])]) -> Vec<u8> {
    let rows: Vec<u8> = blocks_and_between
        .iter()
        .flat_map(|&(blocks, between)| [Bits::new().flat(blocks).bytes(), between.to_vec()].concat())
        .collect();
    [&SOI[..], &tables(), &dri(interval), &sof(0xC0, 32, 8, &[(1, 0x11)]), &sos_all(&[1]), &rows, &EOI].concat()
}

#[test]
fn what_is_tolerated() {
    let data = Bits::new().flat(1).bytes();
    let k3 = Bits::new().raw(0b00, 2).raw(0b1010, 4).bytes();
    let grey_frame = sof(0xC0, 8, 8, &[(1, 0x11)]);
    let three = [(1, 0x11), (2, 0x11), (3, 0x11)];
    let after = |scan: &[u8], tail: &[u8]| [&grey(8, 8, scan)[..], tail].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no extras", with(&[])),
        ("extended sequential", frame(0xC1, 8, 8, &[(1, 0x11)], 1)),
        ("three components", frame(0xC0, 8, 8, &three, 3)),
        ("component ids of any value", frame(0xC0, 8, 8, &[(0, 0x11), (255, 0x11), (82, 0x11)], 3)),
        ("component ids all the same", frame(0xC0, 8, 8, &[(1, 0x11), (1, 0x11), (1, 0x11)], 3)),
        ("four components", frame(0xC0, 9, 9, &[(1, 0x11), (2, 0x11), (3, 0x11), (4, 0x11)], 16)),
        ("one component's sampling does not matter", frame(0xC0, 17, 8, &[(1, 0x22)], 3)),
        ("4:1:1", frame(0xC0, 33, 8, &[(1, 0x41), (2, 0x11), (3, 0x11)], 12)),
        ("ten blocks in an MCU", frame(0xC0, 8, 8, &[(1, 0x22), (2, 0x12), (3, 0x22)], 10)),
        ("8000 pixels", frame(0xC0, 8000, 8, &[(1, 0x11)], 1000)),
        ("8000 lines", frame(0xC0, 1, 8000, &[(1, 0x11)], 1000)),
        ("fill bytes before a marker", with(&[0xFF, 0xFF, 0xFF])),
        ("garbage between segments", with(b"garbage\xFF\0")),
        ("a restart marker between segments", with(&[0xFF, 0xD3])),
        ("an empty comment", with(&segment(0xFE, b""))),
        ("markers inside a comment", with(&segment(0xFE, b"\xFF\xD9\xFF\xC0\xFF"))),
        ("any application segment", with(&(0xE0..=0xEF).flat_map(|m| segment(m, b"Exif\0\0MM")).collect::<Vec<_>>())),
        ("a restart interval of none", with(&dri(0))),
        ("a restart interval longer than the scan", with(&dri(2))),
        ("a 16-bit quantisation table", with(&segment(0xDB, &[&[0x11][..], &[1; 128]].concat()))),
        ("zero quantisers", with(&segment(0xDB, &[0; 65]))),
        ("two tables in a segment", with(&segment(0xDB, &[&[1][..], &[1; 64], &[2], &[1; 64]].concat()))),
        ("an empty table segment", with(&segment(0xC4, &[]))),
        ("a table without codes that is not used", with(&dht(0x03, &[]))),
        ("the height again after the scan", [&after(&data, &[])[..], &segment(0xDC, &[0, 8]), &EOI].concat()),
        ("padding of zeros", grey(8, 8, &Bits::new().flat(1).raw(0, 8).bytes())),
        ("16 bytes left over", grey(8, 8, &[&data[..], &[0x55; 16]].concat())),
        ("fill bytes after a scan", grey(8, 8, &[&data[..], &[0xFF, 0xFF]].concat())),
        ("no Huffman tables", [&SOI[..], &dqt(0), &grey_frame, &sos_all(&[1]), &k3, &EOI].concat()),
        ("a component without a scan", {
            let frame = sof(0xC0, 8, 8, &three);
            [&SOI[..], &tables(), &frame, &sos_all(&[2]), &data, &EOI].concat()
        }),
        ("tables between scans", {
            let frame = sof(0xC0, 8, 8, &three);
            let (first, rest) =
                ([sos_all(&[1]), data.clone()].concat(), [sos_all(&[2, 3]), Bits::new().flat(2).bytes()]);
            [&SOI[..], &tables(), &frame, &first, &tables(), &segment(0xFE, b"x"), &rest.concat(), &EOI].concat()
        }),
        ("a sequential scan of no coefficients", {
            [&SOI[..], &tables(), &grey_frame, &sos(&[1], 0, 0, 0, 0), &data, &EOI].concat()
        }),
        ("a sequential scan of some coefficients and bits", {
            [&SOI[..], &tables(), &grey_frame, &sos(&[1], 17, 20, 2, 1), &data, &EOI].concat()
        }),
        ("restart markers", restarts(2, &[(2, b"\xFF\xD0"), (2, b"")])),
        ("fill bytes before a restart marker", restarts(3, &[(3, b"\xFF\xFF\xFF\xD0"), (1, b"")])),
        ("zeros behind the end", after(&data, &[0; 1000])),
        ("a second image behind the end", after(&data, &grey(8, 8, &data))),
        ("text behind the end", after(&data, b"\n<html>")),
    ];
    for (name, bytes) in cases {
        sound(name, &bytes);
    }
}

#[test]
fn the_size_is_that_of_the_frame_header() {
    for (width, height) in [(1, 1), (8, 8), (9, 7), (8, 9), (17, 33), (100, 1)] {
        let blocks = usize::from(width).div_ceil(8) * usize::from(height).div_ceil(8);
        let seen = sound("grey", &frame(0xC0, width, height, &[(1, 0x11)], blocks));
        assert_eq!((seen.width, seen.height), (u32::from(width), u32::from(height)));
    }
}

#[test]
fn every_component_of_a_scan_has_the_blocks_of_its_sampling() {
    // Width, height, components, blocks in one interleaved scan, blocks of each alone (T.81 A.2).
    type Case = (u16, u16, [(u8, u8); 3], usize, [usize; 3]);
    let cases: [Case; 5] = [
        (17, 17, [(1, 0x11), (2, 0x11), (3, 0x11)], 27, [9, 9, 9]),
        (17, 17, [(1, 0x22), (2, 0x11), (3, 0x11)], 24, [9, 4, 4]),
        (17, 9, [(1, 0x21), (2, 0x11), (3, 0x11)], 16, [6, 4, 4]),
        (9, 17, [(1, 0x12), (2, 0x11), (3, 0x11)], 16, [6, 4, 4]),
        (40, 8, [(1, 0x41), (2, 0x11), (3, 0x21)], 14, [5, 2, 3]),
    ];
    for (width, height, components, interleaved, alone) in cases {
        let name = format!("{width} × {height} {components:x?}");
        sound(&name, &frame(0xC0, width, height, &components, interleaved));
        let one_less = refused(&name, &frame(0xC0, width, height, &components, interleaved - 1));
        assert!(one_less.to_string().starts_with("corrupt: entropy-coded data ends early"), "{name}: {one_less}");

        let scans: Vec<u8> = components
            .iter()
            .zip(alone)
            .flat_map(|((id, _), blocks)| [sos_all(&[*id]), Bits::new().flat(blocks).bytes()].concat())
            .collect();
        sound(&name, &[&SOI[..], &tables(), &sof(0xC0, width, height, &components), &scans, &EOI].concat());
    }
}

#[test]
fn what_is_refused() {
    let data = Bits::new().flat(1).bytes();
    let grey_frame = sof(0xC0, 8, 8, &[(1, 0x11)]);
    let scan = [sos_all(&[1]), data.clone()].concat();
    let three = sof(0xC0, 8, 8, &[(1, 0x11), (2, 0x11), (3, 0x11)]);
    let file = |parts: &[&[u8]]| [&SOI[..], &parts.concat(), &EOI].concat();
    let of_three = |scans: &[u8]| file(&[&tables(), &three, scans]);
    let header = |parameters: &[u8]| file(&[&tables(), &segment(0xC0, parameters), &scan]);
    let scan_header = |parameters: &[u8]| of_three(&segment(0xDA, parameters));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        // Markers and segments.
        ("corrupt: second SOI marker", with(&SOI)),
        ("corrupt: unknown marker FF01", with(&[0xFF, 0x01])),
        ("corrupt: unknown marker FF02", with(&[0xFF, 0x02])),
        ("corrupt: unknown marker FFBF", with(&segment(0xBF, b"x"))),
        ("corrupt: unknown marker FFC8", with(&segment(0xC8, b"x"))),
        ("corrupt: unknown marker FFF0", with(&segment(0xF0, b"x"))),
        ("corrupt: unknown marker FFFD", with(&segment(0xFD, b"x"))),
        ("corrupt: segment of length 0", with(&[0xFF, 0xFE, 0, 0])),
        ("corrupt: segment of length 1", with(&[0xFF, 0xFE, 0, 1])),
        ("truncated", with(&[0xFF, 0xFE, 0xFF, 0xFF])),
        ("corrupt: restart interval of wrong length", with(&segment(0xDD, &[1]))),
        ("corrupt: restart interval of wrong length", with(&segment(0xDD, &[0, 1, 0]))),
        ("corrupt: unreadable application segment APP0", with(&segment(0xE0, b"JFIF\0"))),
        ("corrupt: unreadable application segment APP14", with(&segment(0xEE, b"Adobe\0\x64\0\0\0\0\x07"))),
        ("truncated", grey(8, 8, &data)[..grey(8, 8, &data).len() - 2].to_vec()),
        ("truncated", [&grey(8, 8, &data)[..grey(8, 8, &data).len() - 2], &[0xFF, 0xDA]].concat()),
        ("corrupt: no frame header before EOI", [SOI, EOI].concat()),
        ("corrupt: no scan before EOI", file(&[&tables(), &grey_frame])),
        ("corrupt: scan before the frame header", file(&[&tables(), &scan, &grey_frame])),
        // Processes.
        ("unsupported: lossless JPEG", frame(0xC3, 8, 8, &[(1, 0x11)], 1)),
        ("unsupported: hierarchical JPEG", frame(0xC5, 8, 8, &[(1, 0x11)], 1)),
        ("unsupported: arithmetic-coded JPEG", frame(0xC9, 8, 8, &[(1, 0x11)], 1)),
        ("unsupported: arithmetic-coded JPEG", frame(0xCA, 8, 8, &[(1, 0x11)], 1)),
        ("unsupported: arithmetic-coded JPEG", with(&segment(0xCC, &[0, 0x10]))),
        ("unsupported: hierarchical JPEG", frame(0xCF, 8, 8, &[(1, 0x11)], 1)),
        ("unsupported: hierarchical JPEG", with(&segment(0xDE, &[8, 0, 8, 0, 8, 1, 1, 0x11, 0]))),
        ("unsupported: hierarchical JPEG", with(&segment(0xDF, &[0x11]))),
        ("unsupported: JPEG-LS", frame(0xF7, 8, 8, &[(1, 0x11)], 1)),
        ("unsupported: JPEG of 12 bits per sample", header(&[12, 0, 8, 0, 8, 1, 1, 0x11, 0])),
        // The frame header.
        ("corrupt: frame header too short", header(&[8, 0, 8, 0, 8])),
        ("corrupt: frame header of wrong length", header(&[8, 0, 8, 0, 8, 1, 1, 0x11])),
        ("corrupt: frame header of wrong length", header(&[8, 0, 8, 0, 8, 1, 1, 0x11, 0, 0])),
        ("corrupt: sample precision 0", header(&[0, 0, 8, 0, 8, 1, 1, 0x11, 0])),
        ("corrupt: sample precision 16", header(&[16, 0, 8, 0, 8, 1, 1, 0x11, 0])),
        ("corrupt: second frame header", with(&grey_frame)),
        ("unsupported: JPEG with other than 1, 3 or 4 components", header(&[8, 0, 8, 0, 8, 0])),
        ("unsupported: JPEG with other than 1, 3 or 4 components", frame(0xC0, 8, 8, &[(1, 0x11), (2, 0x11)], 2)),
        ("corrupt: no pixels", frame(0xC0, 0, 8, &[(1, 0x11)], 1)),
        ("unsupported: JPEG without a height in its header", frame(0xC0, 8, 0, &[(1, 0x11)], 1)),
        ("too_many_pixels: 8001 × 8 px", frame(0xC0, 8001, 8, &[(1, 0x11)], 1001)),
        ("too_many_pixels: 8 × 8001 px", frame(0xC0, 8, 8001, &[(1, 0x11)], 1001)),
        ("corrupt: sampling factors 0 × 1", frame(0xC0, 8, 8, &[(1, 0x01)], 1)),
        ("corrupt: sampling factors 1 × 5", frame(0xC0, 8, 8, &[(1, 0x15)], 1)),
        ("unsupported: JPEG with fractional sampling", frame(0xC0, 8, 8, &[(1, 0x31), (2, 0x21), (3, 0x11)], 6)),
        ("corrupt: quantisation table 4", header(&[8, 0, 8, 0, 8, 1, 1, 0x11, 4])),
        ("corrupt: number of lines out of place", with(&segment(0xDC, &[0, 8]))),
        ("corrupt: number of lines out of place", file(&[&tables(), &grey_frame, &scan, &segment(0xDC, &[0, 9])])),
        ("corrupt: number of lines out of place", file(&[&tables(), &grey_frame, &scan, &segment(0xDC, &[0, 8, 0])])),
        // Tables.
        ("corrupt: quantisation table cut short", with(&segment(0xDB, &[1; 64]))),
        ("corrupt: quantisation table cut short", with(&segment(0xDB, &[0x11; 128]))),
        ("corrupt: quantisation table beyond 3", with(&segment(0xDB, &[4; 65]))),
        ("corrupt: quantisation precision 2", with(&segment(0xDB, &[0x20; 129]))),
        ("corrupt: Huffman table cut short", with(&segment(0xC4, &[0; 16]))),
        (
            "corrupt: Huffman table cut short",
            with(&segment(0xC4, &[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
        ),
        ("corrupt: Huffman table beyond 3", with(&dht(0x04, &DC))),
        ("corrupt: Huffman table class 2", with(&dht(0x20, &DC))),
        ("corrupt: Huffman table is no prefix code", with(&dht(0x10, &[1; 16]))),
        ("corrupt: Huffman table is no prefix code", with(&dht(0x10, &[1; 17]))),
        ("corrupt: DC Huffman table with a size above 15", with(&dht(0x00, &[16]))),
        // The scan header.
        ("corrupt: scan header too short", scan_header(&[1, 0, 63])),
        ("corrupt: scan header of wrong length", scan_header(&[1, 1, 0, 0, 0, 63, 0])),
        ("corrupt: scan header of wrong length", scan_header(&[0, 0, 63, 0])),
        ("corrupt: scan header of wrong length", of_three(&sos_all(&[1, 2, 3, 1, 2]))),
        ("corrupt: scan of no component 4", of_three(&sos_all(&[4]))),
        ("corrupt: scan of no component 2", of_three(&sos_all(&[2, 2]))),
        ("corrupt: scan of no component 1", of_three(&sos_all(&[2, 1]))),
        ("corrupt: Huffman table beyond 3", scan_header(&[1, 1, 0x40, 0, 63, 0])),
        ("corrupt: Huffman table beyond 3", scan_header(&[1, 1, 0x04, 0, 63, 0])),
        ("corrupt: scan without its Huffman table", scan_header(&[1, 1, 0x10, 0, 63, 0])),
        ("corrupt: scan without its Huffman table", scan_header(&[1, 1, 0x01, 0, 63, 0])),
        ("corrupt: scan without its Huffman table", file(&[&dqt(0), &dht(0x10, &AC), &grey_frame, &scan])),
        ("corrupt: scan without its quantisation table", file(&[&dht(0, &DC), &dht(0x10, &AC), &grey_frame, &scan])),
        ("corrupt: scan of coefficients 64 to 63", of_three(&sos(&[1], 64, 63, 0, 0))),
        ("corrupt: scan of coefficients 0 to 64", of_three(&sos(&[1], 0, 64, 0, 0))),
        ("corrupt: scan of coefficients 0 to 63, bits 14 to 0", of_three(&sos(&[1], 0, 63, 14, 0))),
        ("corrupt: scan of coefficients 0 to 63, bits 0 to 14", of_three(&sos(&[1], 0, 63, 0, 14))),
        ("corrupt: scan does not continue those before it", of_three(&[&scan[..], &scan].concat())),
        ("corrupt: 11 blocks in an MCU", frame(0xC0, 8, 8, &[(1, 0x42), (2, 0x21), (3, 0x11)], 11)),
        ("corrupt: scan does not continue those before it", {
            let frame = sof(0xC0, 8, 8, &[(1, 0x11), (1, 0x11), (2, 0x11)]);
            file(&[&tables(), &frame, &scan, &scan])
        }),
        // Entropy-coded data.
        ("corrupt: entropy-coded data ends early", grey(9, 8, &data)),
        ("corrupt: entropy-coded data ends early", grey(8, 8, &[])),
        ("corrupt: 17 bytes more than the scan's blocks need", grey(8, 8, &[&data[..], &[0x55; 17]].concat())),
        ("corrupt: no Huffman code", grey(8, 8, &Bits::new().raw(0b1111, 4).raw(0, 32).bytes())),
        ("corrupt: no Huffman code", grey(8, 8, &Bits::new().dc(0).raw(0b1111, 4).raw(0, 32).bytes())),
        ("corrupt: meaningless Huffman symbol", grey(8, 8, &Bits::new().dc(0).ac(0x10).raw(0, 32).bytes())),
        ("corrupt: marker FFD1 in place of RST0", restarts(2, &[(2, b"\xFF\xD1"), (2, b"")])),
        ("corrupt: marker FFD9 in place of RST0", restarts(2, &[(2, b"")])),
        ("corrupt: marker FFDB in place of RST0", restarts(2, &[(2, &dqt(0)), (2, b"")])),
        ("corrupt: entropy-coded data ends early", restarts(2, &[(1, b"\xFF\xD0"), (2, b"")])),
        ("corrupt: entropy-coded data ends early", restarts(0, &[(2, b"\xFF\xD0"), (2, b"")])),
    ];
    for (expected, bytes) in cases {
        let reason = refused(expected, &bytes).to_string();
        assert!(reason.starts_with(expected), "{reason}, expected {expected}");
    }
}

#[test]
fn no_block_has_a_coefficient_past_63() {
    // A block whose next coefficient is that of index k.
    let at = |k: usize| Bits::new().dc(0).repeat(k - 1, |bits| bits.ac(0x01));
    let full = [
        ("63 coefficients", at(64)),
        ("15 zeros and the last coefficient", at(48).ac(0xF1)),
        ("16 zeros and the last coefficient", at(47).ac(0xF0).ac(0x01)),
        ("48 zeros in three steps", at(1).ac(0xF0).ac(0xF0).ac(0xF0).ac(0xE1)),
    ];
    for (name, bits) in full {
        sound(name, &grey(8, 8, &bits.bytes()));
    }
    let overfull = [
        ("one zero too many", at(49).ac(0xF1)),
        ("16 zeros to the end", at(48).ac(0xF0).ac(0)),
        ("16 zeros past the end", at(60).ac(0xF0).ac(0)),
    ];
    for (name, bits) in overfull {
        let reason = refused(name, &grey(8, 8, &bits.raw(0, 32).bytes())).to_string();
        assert!(reason.starts_with("corrupt: coefficients past their block"), "{name}: {reason}");
    }
}

#[test]
fn codes_of_every_length_are_decoded() {
    // One code of each length from 1 to 16: ones and a zero. Length 16 stands for EOB.
    let symbols: Vec<u8> = (1..16).map(|run| run << 4 | 1).chain([0]).collect();
    let table = segment(0xC4, &[&[0x10], &[1; 16][..], &symbols].concat());
    let frame = sof(0xC0, 8, 8, &[(1, 0x11)]);
    let head = [&SOI[..], &dqt(0), &dht(0, &DC), &table, &frame, &sos_all(&[1])].concat();
    let end = |bits: Bits| bits.raw(0xFFFE, 16);
    for run in 1..16u32 {
        let code = (1 << run) - 2;
        let bits = end(Bits::new().dc(0).raw(code, run).raw(0, 1));
        sound("code", &[&head[..], &bits.bytes(), &EOI].concat());
        let three_long =
            end(Bits::new().dc(15).raw(code, run).raw(0, 1).raw(code, run).raw(1, 1).raw(code, run).raw(0, 1));
        sound("codes", &[&head[..], &three_long.bytes(), &EOI].concat());
    }
    let none = Bits::new().dc(0).raw(0xFFFF, 16).raw(0, 32);
    let reason = refused("no code", &[&head[..], &none.bytes(), &EOI].concat()).to_string();
    assert!(reason.starts_with("corrupt: no Huffman code"), "{reason}");
}
