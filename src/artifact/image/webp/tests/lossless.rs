//! VP8L streams, written bit by bit.

use super::fixtures::{Bits, chunk, encoded, flat, payload, riff};
use super::{assert_agreed, assert_refused, assert_sound};

/// An image of 8x8 without transforms, colour cache and groups.
fn plain() -> Bits {
    Bits::header(8, 8).put(0, 3)
}

/// Codes of one symbol for red, blue, alpha and distance.
fn rest(bits: Bits) -> Bits {
    bits.one(0).one(0).one(255).one(0)
}

#[test]
fn the_header() {
    assert_sound(&riff(&[chunk("VP8L", &flat(8, 8))]), (8, 8), 1, "flat");
    let with = |at: usize, value: u8| {
        let mut image = flat(8, 8);
        image[at] = value;
        riff(&[chunk("VP8L", &image)])
    };
    assert_refused(&with(0, 0x2e), "no VP8L signature at byte 20", "signature");
    for version in 1..8 {
        assert_refused(&with(4, version << 5), "unknown version of VP8L at byte 24", "version");
    }
    assert_sound(&with(4, 0x10), (8, 8), 1, "the alpha hint");
    for len in 0..flat(8, 8).len() - 1 {
        assert_refused(&riff(&[chunk("VP8L", &flat(8, 8)[..len])]), "truncated", "cut");
    }
}

#[test]
fn codes() {
    let bits = |n: u32| vec![1; n as usize];
    let eight = vec![8; 256];
    let long: Vec<u32> = (1..=14).chain([15, 15]).collect();
    let sound = [
        ("one symbol", rest(plain().one(7))),
        ("one symbol of one bit", rest(plain().put(0b001, 3).put(1, 1))),
        ("two symbols", rest(plain().two(7, 9)).put(0x5a5a_5a5a, 32).put(0, 32)),
        ("lengths of one symbol", rest(plain().lengths(&[0, 0, 5]))),
        ("two lengths of 1", rest(plain().lengths(&bits(2))).put(0, 32).put(0, 32)),
        ("256 lengths of 8", {
            let image = rest(plain().lengths(&eight));
            (0..64).fold(image, |image, i| image.put(i * 3, 8))
        }),
        ("lengths up to 15", {
            let image = rest(plain().lengths(&long));
            (0..64_u32).fold(image, |image, i| image.put((1 << (i % 16)) - 1, (i % 16 + 1).min(15)))
        }),
    ];
    for (what, image) in sound {
        assert_sound(&image.file(), (8, 8), 1, what);
    }
    let refused = [
        ("no symbol", rest(plain().lengths(&[0, 0])), "incomplete VP8L code"),
        ("half a code", rest(plain().lengths(&[2, 2])), "incomplete VP8L code"),
        ("three symbols of one bit", rest(plain().lengths(&bits(3))), "too many symbols"),
        ("a bit too many", rest(plain().lengths(&[&long[..], &[15]].concat())), "too many symbols"),
        ("a symbol twice", rest(plain().two(7, 7)), "out of order"),
        ("symbols in another order", rest(plain().two(9, 7)), "out of order"),
        ("a distance of 40", plain().one(1).one(0).one(0).one(0).one(40), "a symbol that does not exist"),
        ("no code of lengths", plain().put(0, 1).put(0, 4).put(0, 12), "incomplete VP8L code"),
        ("half a code of lengths", plain().put(0, 1).put(0, 4).put(1 | 2 << 3, 12), "incomplete VP8L code"),
        (
            "too many lengths",
            {
                // The only token is 18, 138 zeros: a third time is past the alphabet.
                plain().put(0, 1).put(0, 4).put(1 << 3, 12).put(0, 1).put(0x7f, 7).put(0x7f, 7).put(0x7f, 7)
            },
            "more VP8L code lengths than symbols",
        ),
        (
            "more tokens than symbols",
            { plain().put(0, 1).put(0, 4).put(1 << 3, 12).put(1, 1).put(4, 3).put(280, 10) },
            "more VP8L code lengths than symbols",
        ),
    ];
    for (what, image, reason) in refused {
        assert_refused(&image.put(0, 32).put(0, 32).file(), reason, what);
    }
}

#[test]
fn transforms_come_once() {
    let tiles = |bits: Bits| bits.put(0, 3).put(0, 1).one(1).one(0).one(0).one(0).one(0);
    let table = |bits: Bits, colours: u32| bits.put(colours - 1, 8).put(0, 1).one(1).one(0).one(0).one(0).one(0);
    let transform = |bits: Bits, kind: u32| {
        let bits = bits.put(1, 1).put(kind, 2);
        match kind {
            2 => bits,
            3 => table(bits, 5),
            _ => tiles(bits),
        }
    };
    for first in 0..4 {
        let one = transform(Bits::header(8, 8), first);
        assert_sound(&one.clone().put(0, 3).flat().put(0, 8).file(), (8, 8), 1, "one transform");
        for second in 0..4 {
            let two = transform(one.clone(), second).put(0, 3).flat().put(0, 8).file();
            if first == second {
                assert_refused(&two, "a VP8L transform twice", "twice");
            } else {
                assert_sound(&two, (8, 8), 1, "two transforms");
            }
        }
    }
    // Sixteen colours or fewer share pixels: a row of eight takes one, two, four or eight symbols, here
    // of a bit each.
    for (colours, across) in [(2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (256, 8)] {
        let image = table(Bits::header(8, 64).put(1, 1).put(3, 2), colours).put(0, 3).two(0, 1);
        let image = image.one(0).one(0).one(0).one(0);
        let with = |symbols: u32| (0..symbols).fold(image.clone(), |image, _| image.put(1, 1)).file();
        assert_sound(&with(64 * across), (8, 64), 1, "as many symbols as there are");
        assert_refused(&with(64 * across - 8), "truncated", "fewer symbols");
    }
}

#[test]
fn colour_caches() {
    for bits in 0..16 {
        let image = Bits::header(8, 8).put(0, 1).put(1, 1).put(bits, 4).put(0, 1).flat().put(0, 8).file();
        if (1..=11).contains(&bits) {
            assert_sound(&image, (8, 8), 1, "a legal size");
        } else {
            assert_refused(&image, "colour cache of no legal size", "size");
        }
    }
    // A literal, then 63 times its slot: 0xff00_0000 is in slot 0 or 1 of two.
    let cached = |slot: u32| {
        let lengths = [&[1][..], &[0; 279], &[if slot == 0 { 1 } else { 0 }, if slot == 1 { 1 } else { 0 }]].concat();
        let image = Bits::header(8, 8).put(0, 1).put(1, 1).put(1, 4).put(0, 1);
        let image = image.put(0, 1).put(15, 4);
        let image = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
            .iter()
            .fold(image, |image, symbol| image.put(if *symbol < 2 { 1 } else { 0 }, 3));
        let image = lengths.iter().fold(image.put(0, 1), |image, length| image.put(*length, 1));
        let image = image.one(0).one(0).one(255).one(0).put(0, 1);
        (0..63).fold(image, |image, _| image.put(1, 1)).file()
    };
    assert_sound(&cached(0), (8, 8), 1, "slot 0");
    assert_sound(&cached(1), (8, 8), 1, "slot 1");
}

#[test]
fn copies_stay_inside() {
    // Green is colour 1 or a copy of `length` symbol; the distance code is `near`.
    let image = |length: u32, near: u32| {
        let lengths: Vec<u32> = (0..280).map(|i| u32::from(i == 1 || i == 256 + length)).collect();
        let bits = Bits::header(8, 8).put(0, 3).put(0, 1).put(15, 4);
        let bits = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
            .iter()
            .fold(bits, |bits, symbol| bits.put(if *symbol < 2 { 1 } else { 0 }, 3));
        let bits = lengths.iter().fold(bits.put(0, 1), |bits, length| bits.put(*length, 1));
        bits.one(0).one(0).one(255).one(near)
    };
    let literals = |bits: Bits, n: u32| (0..n).fold(bits, |bits, _| bits.put(0, 1));
    // Distance symbol 1 is code 2: the pixel to the left. Length symbol 3 is four pixels.
    assert_sound(&literals(image(3, 1), 60).put(1, 1).file(), (8, 8), 1, "a copy to the last pixel");
    assert_refused(&literals(image(3, 1), 61).put(1, 1).file(), "copy outside the image", "past the last");
    assert_refused(&image(3, 1).put(1, 1).file(), "copy outside the image", "before the first");
    // Distance symbol 0 is code 1: the pixel above, eight back.
    let above = |n: u32| literals(literals(image(0, 0), n).put(1, 1), 63 - n).file();
    assert_refused(&above(7), "copy outside the image", "above the first row");
    assert_sound(&above(8), (8, 8), 1, "above");
    // Length symbol 23 with ten extra bits: up to 4096 pixels.
    assert_refused(&literals(image(23, 1), 1).put(1, 1).put(0, 10).file(), "copy outside the image", "3073 pixels");
    // Nothing but copies of no bits: no pixel to copy from.
    assert_refused(&plain().put(0, 32).file(), "", "nothing");
}

#[test]
fn groups() {
    // Four tiles of 4x4, by the entropy image's red and green.
    let image = |numbers: [u32; 4], groups: u32| {
        let bits = Bits::header(8, 8).put(0, 2).put(1, 1).put(0, 3).put(0, 1);
        let bits = bits.two(0, 1).one(0).one(0).one(0).one(0);
        let bits = numbers.iter().fold(bits, |bits, number| bits.put(*number, 1));
        (0..groups).fold(bits, |bits, i| bits.one(i).one(0).one(0).one(255).one(0))
    };
    assert_sound(&image([0, 0, 0, 0], 1).file(), (8, 8), 1, "one group");
    assert_sound(&image([0, 1, 1, 0], 2).file(), (8, 8), 1, "two groups");
    assert_refused(&image([0, 1, 1, 0], 1).file(), "", "a group that is not there");
    assert_sound(&image([1, 1, 1, 1], 2).file(), (8, 8), 1, "an unused group");
    let bits = Bits::header(8, 8).put(0, 2).put(1, 1).put(0, 3).put(0, 1);
    let bits = bits.one(1).one(0).one(0).one(0).one(0);
    let bad = bits.lengths(&[1, 1, 1]).one(0).one(0).one(0).one(0).flat().put(0, 32);
    assert_refused(&bad.file(), "too many symbols", "an unused group with a bad code");
}

#[test]
fn groups_of_no_bits_take_turns_with_others() {
    // Left tiles: two colours; right tiles: one. Rows of a band repeat, but bits are read in each.
    let bits = Bits::header(8, 8).put(0, 2).put(1, 1).put(0, 3).put(0, 1);
    let bits = bits.two(0, 1).one(0).one(0).one(0).one(0).put(0b1010, 4);
    let bits = bits.two(3, 4).one(0).one(0).one(255).one(0).flat();
    let filled = (0..32).fold(bits, |bits, _| bits.put(1, 1));
    let whole = filled.bytes();
    assert_sound(&riff(&[chunk("VP8L", &whole)]), (8, 8), 1, "whole");
    assert_refused(&riff(&[chunk("VP8L", &whole[..whole.len() - 1])]), "truncated", "cut");
}

#[test]
fn an_encoders_stream_cut_anywhere() {
    let image = payload(&encoded(19, 17));
    let mut shortest = image.len();
    while assert_agreed(&riff(&[chunk("VP8L", &image[..shortest - 1])]), "cut") {
        shortest -= 1;
    }
    assert!(image.len() - shortest < 3, "{shortest} of {} bytes are enough", image.len());
    for len in 0..shortest {
        assert_refused(&riff(&[chunk("VP8L", &image[..len])]), "", "cut");
    }
}
