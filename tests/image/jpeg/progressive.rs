//! The rules of progressive scans (T.81 G).

use super::build::*;
use super::{refused, sound};

/// A scan of the only component.
fn scan(start: u8, end: u8, high: u8, low: u8, bits: &Bits) -> Vec<u8> {
    [sos(&[1], start, end, high, low), bits.bytes()].concat()
}

/// Three blocks: the first with coefficients 1 and 3, the second with 1, the third with none.
fn first_ac() -> Vec<u8> {
    scan(1, 63, 0, 1, &Bits::new().ac(0x01).ac(0x11).ac(0).ac(0x01).ac(0x10))
}

/// `count` bits of correction.
fn corrections(bits: Bits, count: u32) -> Bits {
    bits.raw(0x5555_5555, count)
}

#[test]
fn legal_successions() {
    let none = Bits::new().ac(0x20);
    let dc = |high, low| scan(0, 0, high, low, &Bits::new().raw(0, 4));
    let empty = |start, end, high, low| scan(start, end, high, low, &none);
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("the first DC scan alone", vec![]),
        ("all bits of DC", vec![dc(1, 0)]),
        ("bands", vec![empty(1, 5, 0, 0), empty(6, 63, 0, 0)]),
        ("a band of one", vec![empty(63, 63, 0, 0)]),
        ("bits from 13 down", vec![empty(1, 63, 0, 13), empty(1, 63, 13, 12), empty(1, 63, 12, 11)]),
        ("bands refined apart", vec![empty(1, 63, 0, 1), empty(1, 2, 1, 0), empty(3, 63, 1, 0)]),
        ("bands refined together", vec![empty(1, 2, 0, 1), empty(3, 63, 0, 1), empty(1, 63, 1, 0)]),
        ("AC before the last bit of DC", vec![empty(1, 63, 0, 0), dc(1, 0)]),
    ];
    for (name, scans) in cases {
        sound(name, &progressive(4, &scans));
    }
}

#[test]
fn illegal_successions() {
    let none = Bits::new().ac(0x20);
    let dc = |high, low| scan(0, 0, high, low, &Bits::new().raw(0, 4));
    let empty = |start, end, high, low| scan(start, end, high, low, &none);
    let order = "corrupt: scan does not continue those before it";
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        (order, vec![dc(0, 1)]),
        (order, vec![dc(1, 0), dc(1, 0)]),
        (order, vec![dc(3, 2)]),
        (order, vec![empty(1, 63, 1, 0)]),
        (order, vec![empty(1, 63, 0, 1), empty(1, 63, 0, 1)]),
        (order, vec![empty(1, 63, 0, 2), empty(1, 63, 1, 0)]),
        (order, vec![empty(1, 5, 0, 1), empty(1, 63, 1, 0)]),
        (order, vec![empty(1, 5, 0, 0), empty(5, 63, 0, 0)]),
        ("corrupt: scan of coefficients 0 to 1", vec![empty(0, 1, 0, 0)]),
        ("corrupt: scan of coefficients 5 to 4", vec![empty(5, 4, 0, 0)]),
        ("corrupt: scan of coefficients 1 to 64", vec![empty(1, 64, 0, 0)]),
        ("corrupt: scan of coefficients 64 to 64", vec![empty(64, 64, 0, 0)]),
        ("corrupt: scan of coefficients 1 to 63, bits 0 to 14", vec![empty(1, 63, 0, 14)]),
        ("corrupt: scan of coefficients 1 to 63, bits 2 to 0", vec![empty(1, 63, 2, 0)]),
        ("corrupt: scan of coefficients 1 to 63, bits 1 to 1", vec![empty(1, 63, 1, 1)]),
    ];
    for (expected, scans) in cases {
        let reason = refused(expected, &progressive(4, &scans)).to_string();
        assert!(reason.starts_with(expected), "{reason}, expected {expected}");
    }
}

#[test]
fn scans_of_several_components() {
    let colour = [(1, 0x21), (2, 0x11), (3, 0x11)];
    let file = |scans: &[u8]| [&SOI[..], &tables(), &sof(0xC2, 17, 8, &colour), scans, &EOI].concat();
    let dc = [sos(&[1, 2, 3], 0, 0, 0, 1), Bits::new().repeat(8, |bits| bits.dc(1)).bytes()].concat();
    let refine = [sos(&[1, 2, 3], 0, 0, 1, 0), vec![0xAA]].concat();
    let ac = |id: u8| [sos(&[id], 1, 63, 0, 0), Bits::new().repeat(2, |bits| bits.ac(0)).bytes()].concat();
    let ac_of_three = [sos(&[1], 1, 63, 0, 0), Bits::new().repeat(3, |bits| bits.ac(0)).bytes()].concat();
    sound("together", &file(&[&dc[..], &refine, &ac_of_three, &ac(2), &ac(3)].concat()));

    let short = [sos(&[1, 2, 3], 0, 0, 0, 1), Bits::new().repeat(7, |bits| bits.dc(1)).bytes()].concat();
    let interleaved_ac = [sos(&[2, 3], 1, 63, 0, 0), vec![0; 4]].concat();
    let cases: [(&str, Vec<u8>); 4] = [
        ("corrupt: entropy-coded data ends early", short),
        ("corrupt: entropy-coded data ends early", [&dc[..], &sos(&[1, 2, 3], 0, 0, 1, 0)].concat()),
        ("corrupt: scan of coefficients 1 to 63", [&dc[..], &interleaved_ac].concat()),
        ("corrupt: scan does not continue those before it", [&ac(2)[..], &dc].concat()),
    ];
    for (expected, scans) in cases {
        let reason = refused(expected, &file(&scans)).to_string();
        assert!(reason.starts_with(expected), "{reason}, expected {expected}");
    }
}

#[test]
fn first_scans_of_a_band() {
    let many = |count| Bits::new().repeat(count, |bits| bits.ac(0x01));
    type Case = (&'static str, Option<&'static str>, (u8, u8), Bits);
    let cases: Vec<Case> = vec![
        ("blocks end one by one", None, (1, 63), Bits::new().repeat(4, |bits| bits.ac(0))),
        ("blocks end together", None, (1, 63), Bits::new().ac(0x20)),
        ("a full band needs no end", None, (1, 4), many(16)),
        ("zeros to the last coefficient", None, (1, 8), Bits::new().repeat(4, |bits| bits.ac(0x71))),
        ("a run ends with the scan", None, (1, 63), Bits::new().ac(0).ac(0x11).ac(0x10).ac(0)),
        ("16 zeros", None, (1, 63), Bits::new().ac(0xF0).ac(0x01).ac(0x20)),
        ("no end", Some("entropy-coded data ends early"), (1, 63), Bits::new().ac(0x10)),
        ("too many ends", Some("end-of-band run past its scan"), (1, 63), Bits::new().ac(0).ac(0x20).raw(0, 32)),
        ("past the band", Some("coefficients past their block"), (1, 7), Bits::new().ac(0x71).raw(0, 32)),
        ("zeros to the end", Some("coefficients past their block"), (48, 63), Bits::new().ac(0xF0).raw(0, 32)),
        ("no code", Some("no Huffman code"), (1, 63), Bits::new().raw(0b1111, 4).raw(0, 32)),
    ];
    for (name, fault, (start, end), bits) in cases {
        let bytes = progressive(4, &[scan(start, end, 0, 0, &bits)]);
        match fault {
            None => drop(sound(name, &bytes)),
            Some(fault) => {
                let reason = refused(name, &bytes).to_string();
                assert!(reason.starts_with(&format!("corrupt: {fault}")), "{name}: {reason}");
            }
        }
    }
}

#[test]
fn refining_scans_of_a_band() {
    let new = Bits::new;
    let cases: Vec<(&str, Option<&str>, Bits)> = vec![
        // Blocks 0 and 1 end together: corrections of 1 and 3, and of 1.
        ("corrections alone", None, corrections(new().ac(0x10), 3).ac(0)),
        ("nothing after a new one", Some("entropy-coded data ends early"), new().ac(0x01)),
        ("a new one and all corrections", None, corrections(corrections(new().ac(0x01), 1).ac(0x10), 2).ac(0)),
        ("a run of zeros passes corrections", None, corrections(corrections(new().ac(0x71), 2).ac(0x10), 1).ac(0)),
        ("16 zeros pass corrections", None, {
            let zeros = corrections(new().ac(0xF0), 2);
            corrections(zeros.ac(0x01).ac(0x10), 1).ac(0)
        }),
        ("a value of two bits", Some("meaningless Huffman symbol"), new().ac(0x02).raw(0, 32)),
        ("fewer zeros than the run", Some("coefficients past their block"), {
            corrections(new().ac(0xF0), 2).ac(0xF0).ac(0xF0).ac(0xF0).raw(0, 64)
        }),
        ("too many ends", Some("end-of-band run past its scan"), new().ac(0x20).raw(0, 64)),
        ("nothing after the corrections", Some("entropy-coded data ends early"), new().ac(0x10)),
        ("no code", Some("no Huffman code"), new().raw(0b1111, 4).raw(0, 32)),
    ];
    for (name, fault, bits) in cases {
        let bytes = progressive(3, &[first_ac(), scan(1, 63, 1, 0, &bits)]);
        match fault {
            None => drop(sound(name, &bytes)),
            Some(fault) => {
                let reason = refused(name, &bytes).to_string();
                assert!(reason.starts_with(&format!("corrupt: {fault}")), "{name}: {reason}");
            }
        }
    }
}

#[test]
fn a_long_run_has_the_corrections_of_all_its_blocks() {
    // 100 blocks; coefficient 2 of every third is set, then all are corrected in one run of 64 + 36.
    let first = (0..100).fold(Bits::new(), |bits, block| match block % 3 {
        0 => bits.ac(0x11).ac(0),
        _ => bits.ac(0),
    });
    // EOB6 is the only symbol of a table of its own.
    let table = dht(0x10, &[0x60]);
    let refine = |corrections: u32| {
        let bits = Bits::new().raw(0, 4).raw(36, 6);
        [table.clone(), scan(1, 63, 1, 0, &(0..corrections).fold(bits, |bits, _| bits.raw(0, 1)))].concat()
    };
    let file = |corrections| progressive(100, &[scan(1, 63, 0, 1, &first), refine(corrections)]);
    sound("all", &file(34));
    let missing = refused("missing", &file(34 - 8)).to_string();
    assert!(missing.starts_with("corrupt: entropy-coded data ends early"), "{missing}");
}

#[test]
fn a_run_ends_with_its_restart_interval() {
    let file = |ends: u8| {
        let intervals = [Bits::new().ac(ends).bytes(), vec![0xFF, 0xD0], Bits::new().ac(0x10).bytes()].concat();
        progressive(4, &[dri(2), [sos(&[1], 1, 63, 0, 0), intervals].concat()])
    };
    sound("two and two", &file(0x10));
    let reason = refused("four and two", &file(0x20)).to_string();
    assert!(reason.starts_with("corrupt: end-of-band run past its scan"), "{reason}");
}

#[test]
fn nothing_else_stands_in_for_missing_tables() {
    let frame = sof(0xC2, 8, 8, &[(1, 0x11)]);
    let reason = refused("tables", &[&SOI[..], &dqt(0), &frame, &sos(&[1], 0, 0, 0, 0), &[0; 4], &EOI].concat());
    assert!(reason.to_string().starts_with("corrupt: scan without its Huffman table"), "{reason}");
}
