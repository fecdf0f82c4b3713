//! The verdict on animated PNG, rule by rule.

use crate::fixtures::png::*;
use artifactd::artifact::image::verdict;

#[test]
fn an_animation() {
    assert_eq!(sound("animated", &file(&animated())).frames, 3);
    let mut apart = animated();
    apart.remove(2);
    for (index, sequence) in [(3, 0u32), (4, 1), (5, 2), (6, 3), (7, 4)] {
        let kind: [u8; 4] = apart[index][4..8].try_into().unwrap();
        let mut data = apart[index][8..apart[index].len() - 4].to_vec();
        data[..4].copy_from_slice(&sequence.to_be_bytes());
        apart[index] = chunk(&kind, &data);
    }
    apart[1] = actl(2);
    assert_eq!(sound("the default image apart", &file(&apart)).frames, 2);
    assert_eq!(sound("fewer declared", &with(animated(), 1, &[actl(2)])).frames, 2);
    refused("more declared", &with(animated(), 1, &[actl(4)]), "3 frames instead of 4");
    refused("many more declared", &with(animated(), 1, &[actl(0x7FFF_FFFF)]), "3 frames instead of 2147483647");
    refused("acTL of 7 bytes", &with(animated(), 1, &[chunk(b"acTL", &[0; 7])]), "7 bytes instead of 8");
    refused("acTL twice", &with(animated(), 1, &[actl(3), actl(3)]), "a second animation");
    let mut late = animated();
    late.swap(1, 2);
    refused("acTL after a frame", &file(&late), "an animation after its first frame");
    sound("text between the chunks", &before(animated(), 5, &[chunk(b"tEXt", b"a\0b")]));
    refused("text in a frame", &before(animated(), 8, &[chunk(b"tEXt", b"a\0b")]), "the compressed data end early");
    refused("IDAT in a frame", &before(animated(), 6, &[chunk(b"IDAT", b"")]), "image data that are not consecutive");
}

#[test]
fn what_is_no_animation_is_a_still_image() {
    // `image` does not look at the frames of these, nor do others; their numbers must be right all the same.
    for frames in [0, 0x8000_0000, u32::MAX] {
        let bytes = with(animated(), 1, &[actl(frames)]);
        assert_eq!(verdict(&bytes).map(|sound| sound.frames), Ok(1), "{frames} frames");
    }
    assert_eq!(sound("no acTL", &with(animated(), 1, &[])).frames, 1);
    let mut late = animated();
    let control = late.remove(1);
    late.insert(3, control);
    assert_eq!(sound("late acTL", &file(&late)).frames, 1);
    assert_eq!(sound("acTL before IEND", &before(small(), 2, &[actl(5)])).frames, 1);
    refused(
        "late acTL, numbers",
        &{
            late.remove(4);
            file(&late)
        },
        "wrong sequence number in chunk fdAT",
    );
}

#[test]
fn frames_of_an_animation() {
    let second = |chunk: Vec<u8>| with(animated(), 4, &[chunk]);
    for (place, good) in [
        ((2, 3, 0, 0), true),
        ((2, 3, 2, 1), true),
        ((2, 3, 3, 1), false),
        ((2, 3, 2, 2), false),
        ((2, 3, u32::MAX, 0), false),
        ((2, 3, 0, u32::MAX), false),
        ((0, 3, 0, 0), false),
        ((2, 0, 0, 0), false),
        ((5, 3, 0, 0), false),
        ((u32::MAX, 3, 1, 0), false),
    ] {
        let bytes = second(fctl(1, place));
        if good {
            sound("place", &bytes);
        } else {
            refused(&format!("{place:?}"), &bytes, "a frame that is empty or outside the canvas");
        }
    }
    refused("more rows than data", &second(fctl(1, (2, 4, 0, 0))), "fewer rows");
    refused("longer rows than data", &second(fctl(1, (4, 3, 0, 0))), "corrupt");
    refused("first frame smaller", &with(animated(), 2, &[fctl(0, (3, 4, 0, 0))]), "smaller than the canvas");
    for length in [0, 3, 4, 25, 27] {
        refused("fcTL length", &second(chunk(b"fcTL", &vec![0; length])), "instead of 26 in chunk fcTL");
    }
    for (operation, at, good) in [(2, 24, true), (3, 24, false), (1, 25, true), (2, 25, false)] {
        let mut data = fctl(1, (2, 3, 2, 1))[8..34].to_vec();
        data[at] = operation;
        let bytes = second(chunk(b"fcTL", &data));
        if good {
            sound("operation", &bytes);
        } else {
            refused("operation", &bytes, "dispose or blend");
        }
    }
    refused("two before IDAT", &before(animated(), 3, &[fctl(1, (4, 4, 0, 0))]), "a frame without data before it");
    refused("two in a row", &before(animated(), 4, &[fctl(1, (4, 4, 0, 0))]), "wrong sequence number");
    refused("no data", &with(animated(), 5, &[]), "wrong sequence number");
    let mut short = animated();
    short.truncate(7);
    refused("no data at the end", &file(&[short, vec![iend()]].concat()), "the last frame has no data");
}

#[test]
fn data_of_a_frame() {
    let second = |stream: &[u8]| with(animated(), 5, &[fdat(2, stream)]);
    let stream = zlib(&rows(2, 3));
    sound("good", &second(&stream));
    for end in 0..stream.len() {
        refused("cut short", &second(&stream[..end]), "the compressed data end early");
    }
    let mut bad = stream.clone();
    *bad.last_mut().unwrap() ^= 1;
    refused("Adler-32", &second(&bad), "broken compressed data");
    refused("rows", &second(&zlib(&rows(2, 2))), "fewer rows");
    refused("filter", &second(&zlib(&[0, 1, 1, 9, 1, 1, 0, 1, 1])), "unknown filter");
    refused("no number", &with(animated(), 5, &[chunk(b"fdAT", &[0; 3])]), "no sequence number");
    for sequence in [0, 1, 3, u32::MAX] {
        refused("number", &with(animated(), 5, &[fdat(sequence, &stream)]), "wrong sequence number");
    }
    refused("without a frame", &with(small(), 1, &[actl(1), fdat(0, &stream), idat(&rows(4, 4))]), "without a frame");
    refused("before the image", &with(animated(), 3, &[fdat(1, &stream), idat(&rows(4, 4))]), "before the image data");
    refused(
        "before the image, not animated",
        &before(small(), 1, &[fctl(0, (4, 4, 0, 0)), fdat(1, b"")]),
        "before the image",
    );
    refused("not animated, without a frame", &before(small(), 2, &[fdat(0, &stream)]), "without a frame");
    let bytes = before(small(), 2, &[fctl(0, (4, 4, 0, 0)), fdat(1, b"whatever")]);
    assert_eq!(sound("not animated", &bytes).frames, 1);
}

#[test]
fn frames_are_budgeted() {
    let make = |side: u32, frames: u32, declared: u32| {
        let mut chunks =
            vec![ihdr(side, side, 1, 0, 0), actl(declared), idat(&rows(side.div_ceil(8) as usize, side as usize))];
        for n in 0..frames {
            chunks.extend([fctl(n * 2, (1, 1, 0, 0)), fdat(n * 2 + 1, &zlib(&[0, 0]))]);
        }
        file(&[chunks, vec![iend()]].concat())
    };
    assert_eq!(verdict(&make(1, 9_999, 9_999)).map(|sound| sound.frames), Ok(9_999));
    refused("frames", &make(1, 10_000, 1), "too_costly: more than 10000 frames");
    // 1,024 of 1,024 × 1,024 pixels: the limit to the pixel.
    assert_eq!(verdict(&make(1024, 1023, 1023)).map(|sound| sound.frames), Ok(1023));
    refused("pixels", &make(1024, 1024, 1), "too_costly: 1025 frames of");
}
