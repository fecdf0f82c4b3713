//! The rules of the container, each accepted and refused.

use super::fixtures::{Fixture, Lossy, all, anim, animated, anmf, chunk, encoded, flat, riff, vp8x};
use super::{assert_refused, assert_sound, oracle, verdict};
use crate::artifact::image::Reason;

fn still(chunks: &[Vec<u8>]) -> Vec<u8> {
    let image = chunk("VP8L", &flat(9, 5));
    riff(&[&[vp8x(0, 9, 5)], chunks, &[image]].concat())
}

#[test]
fn one_of_each_kind_is_sound() {
    for Fixture { what, file, size, frames } in all() {
        assert_sound(&file, size, frames, what);
    }
}

#[test]
fn what_the_verdict_tolerates() {
    let image = chunk("VP8L", &flat(9, 5));
    let lossy = chunk("VP8 ", &Lossy::plain(9, 5).frame());
    let junk = chunk("JUNK", b"odd");
    let long = chunk("VP8L", &[flat(9, 5), vec![0xaa; 31]].concat());
    let frame = |chunks: &[Vec<u8>]| riff(&[vp8x(2, 9, 5), anim(), anmf(0, 0, 9, 5, chunks)]);
    let files = [
        ("bytes after the form", [riff(std::slice::from_ref(&image)), b"PK\x03\x04<html>\n".to_vec()].concat()),
        ("a chunk after a simple image", riff(&[image.clone(), junk.clone()])),
        ("metadata after a simple image", riff(&[image.clone(), chunk("EXIF", b"?")])),
        ("bytes after the stream in its chunk", riff(&[long])),
        ("unknown chunks around an image", riff(&[vp8x(0, 9, 5), junk.clone(), image.clone(), junk.clone()])),
        ("metadata flags without chunks", riff(&[vp8x(0x2c, 9, 5), image.clone()])),
        ("metadata without flags", still(&[chunk("ICCP", b"?"), chunk("XMP ", b"<"), chunk("EXIF", b"")])),
        ("an alpha flag without alpha", riff(&[vp8x(0x10, 9, 5), lossy.clone()])),
        ("no alpha flag for a lossless image", riff(&[vp8x(0, 9, 5), image.clone()])),
        ("a raw alpha plane that goes on", {
            let plane = vec![0; 1 + 45 + 8];
            riff(&[vp8x(0x10, 9, 5), chunk("ALPH", &plane), lossy.clone()])
        }),
        ("alpha without its flag", riff(&[vp8x(0, 9, 5), chunk("ALPH", &[0; 46]), lossy.clone()])),
        ("an unknown chunk in a frame", frame(&[image.clone(), junk.clone()])),
        ("one frame", frame(std::slice::from_ref(&image))),
        ("two ANIM chunks", riff(&[vp8x(2, 9, 5), anim(), anim(), anmf(0, 0, 9, 5, std::slice::from_ref(&image))])),
        ("junk between frames", {
            riff(&[vp8x(2, 9, 5), junk.clone(), anim(), junk.clone(), anmf(0, 0, 9, 5, &[image]), junk])
        }),
    ];
    for (what, file) in files {
        assert_sound(&file, (9, 5), 1, what);
    }
}

#[test]
fn what_the_verdict_refuses() {
    let image = chunk("VP8L", &flat(9, 5));
    let lossy = chunk("VP8 ", &Lossy::plain(9, 5).frame());
    let plane = chunk("ALPH", &[0; 46]);
    let frame = |chunks: &[Vec<u8>]| riff(&[vp8x(2, 9, 5), anim(), anmf(0, 0, 9, 5, chunks)]);
    let whole = anmf(0, 0, 9, 5, std::slice::from_ref(&image));
    let reserved = |bit: u8| riff(&[vp8x(1 << bit, 9, 5), image.clone()]);
    let alpha = |head: u8, len: usize| {
        let plane = [vec![head], vec![0; len]].concat();
        riff(&[vp8x(0x10, 9, 5), chunk("ALPH", &plane), lossy.clone()])
    };
    let files = [
        ("no chunk", riff(&[]), "truncated: the image breaks off at byte 12"),
        ("metadata first", riff(&[chunk("EXIF", b"?"), image.clone()]), "no image first but EXIF at byte 12"),
        ("alpha first", riff(&[plane.clone(), lossy.clone()]), "no image first but ALPH at byte 12"),
        ("a second image", riff(&[image.clone(), lossy.clone()]), "out of place: VP8 "),
        ("alpha after a simple image", riff(&[lossy.clone(), plane.clone()]), "out of place: ALPH"),
        ("VP8X after a simple image", riff(&[image.clone(), vp8x(0, 9, 5)]), "out of place: VP8X"),
        ("a frame after a simple image", riff(&[image.clone(), whole.clone()]), "out of place: ANMF"),
        ("a second image on a canvas", riff(&[vp8x(0, 9, 5), image.clone(), image.clone()]), "a second image in VP8L"),
        ("no image on the canvas", riff(&[vp8x(0, 9, 5)]), "truncated: the image breaks off at byte 30"),
        ("an image smaller than the canvas", riff(&[vp8x(0, 9, 6), image.clone()]), "than its canvas at byte 30"),
        ("a second VP8X", riff(&[vp8x(0, 9, 5), vp8x(0, 9, 5), image.clone()]), "out of place: VP8X"),
        ("a long VP8X", riff(&[chunk("VP8X", &[0; 12]), image.clone()]), "wrong length of VP8X"),
        ("a short VP8X", riff(&[chunk("VP8X", &[0; 8]), image.clone()]), "wrong length of VP8X"),
        ("reserved bit 0", reserved(0), "reserved bit set in VP8X"),
        ("reserved bit 6", reserved(6), "reserved bit set in VP8X"),
        ("reserved bit 7", reserved(7), "reserved bit set in VP8X"),
        ("ANIM on a still", still(&[anim()]), "out of place: ANIM"),
        ("a frame on a still", still(std::slice::from_ref(&whole)), "out of place: ANMF"),
        ("alpha of a lossless image", still(std::slice::from_ref(&plane)), "no lossy image right after ALPH"),
        ("alpha twice", riff(&[vp8x(0x10, 9, 5), plane.clone(), plane.clone(), lossy.clone()]), "right after ALPH"),
        ("alpha after its image", riff(&[vp8x(0x10, 9, 5), lossy.clone(), plane.clone()]), "a second image in ALPH"),
        ("alpha alone", riff(&[vp8x(0x10, 9, 5), plane.clone()]), "truncated"),
        ("an empty ALPH", riff(&[vp8x(0x10, 9, 5), chunk("ALPH", b""), lossy.clone()]), "truncated"),
        ("a short raw plane", alpha(0, 44), "truncated"),
        ("a short lossless plane", alpha(1, 1), "truncated"),
        ("alpha compression 2", alpha(2, 45), "unknown compression in ALPH"),
        ("alpha compression 3", alpha(3, 45), "unknown compression in ALPH"),
        ("alpha pre-processing 2", alpha(0x20, 45), "unknown pre-processing in ALPH"),
        ("the lower reserved bit of alpha", alpha(0x40, 45), "reserved bit set in ALPH"),
        ("the upper reserved bit of alpha", alpha(0x80, 45), "reserved bit set in ALPH"),
        ("an animation without frames", riff(&[vp8x(2, 9, 5), anim()]), "truncated"),
        ("an animation without ANIM", riff(&[vp8x(2, 9, 5), whole.clone()]), "out of place: ANMF"),
        ("ANIM after the frames", riff(&[vp8x(2, 9, 5), whole.clone(), anim()]), "out of place: ANMF"),
        ("a short ANIM", riff(&[vp8x(2, 9, 5), chunk("ANIM", &[0; 4]), whole.clone()]), "truncated"),
        (
            "a bare image in an animation",
            riff(&[vp8x(2, 9, 5), anim(), whole.clone(), image.clone()]),
            "out of place: VP8L",
        ),
        ("an empty frame", frame(&[]), "truncated"),
        ("a frame without its place", riff(&[vp8x(2, 9, 5), anim(), chunk("ANMF", &[0; 14])]), "truncated"),
        ("a frame of metadata", frame(&[chunk("EXIF", b"?")]), "frame without an image: EXIF"),
        ("two images in a frame", frame(&[image.clone(), image.clone()]), "out of place: VP8L"),
        ("a frame in a frame", frame(&[image.clone(), whole.clone()]), "out of place: ANMF"),
        (
            "a frame right of the canvas",
            { riff(&[vp8x(2, 9, 5), anim(), anmf(2, 0, 9, 5, std::slice::from_ref(&image))]) },
            "frame outside the canvas",
        ),
        (
            "a frame below the canvas",
            { riff(&[vp8x(2, 9, 5), anim(), anmf(0, 2, 9, 5, std::slice::from_ref(&image))]) },
            "frame outside the canvas",
        ),
        (
            "a frame that lies about its size",
            { riff(&[vp8x(2, 9, 5), anim(), anmf(0, 0, 8, 5, std::slice::from_ref(&image))]) },
            "another size than its frame",
        ),
    ];
    for (what, file, reason) in files {
        assert_refused(&file, reason, what);
    }
}

#[test]
fn sides_are_bounded() {
    for (width, height) in [(8000, 1), (1, 8000)] {
        assert_sound(&riff(&[chunk("VP8L", &flat(width, height))]), (width, height), 1, "8000");
        assert_sound(&riff(&[vp8x(0, width, height), chunk("VP8L", &flat(width, height))]), (width, height), 1, "8000");
    }
    for (width, height) in [(8001, 1), (1, 8001), (16384, 16384)] {
        let image = chunk("VP8L", &flat(width, height));
        for file in [riff(std::slice::from_ref(&image)), riff(&[vp8x(0, width, height), image.clone()])] {
            assert_eq!(verdict(&file), Err(Reason::TooManyPixels { width, height }));
        }
    }
    let lossy = Lossy::plain(8001, 1).file();
    assert_eq!(verdict(&lossy), Err(Reason::TooManyPixels { width: 8001, height: 1 }));
    assert_refused(&riff(&[chunk("VP8 ", &Lossy::plain(0, 5).frame())]), "no pixels", "no width");
    assert_refused(&riff(&[chunk("VP8 ", &Lossy::plain(5, 0).frame())]), "no pixels", "no height");
}

#[test]
fn the_form_must_be_in_the_file_and_filled() {
    for Fixture { what, file, .. } in all() {
        let len = u32::try_from(file.len()).expect("small") - 8;
        for size in [
            0,
            3,
            4,
            11,
            len.saturating_sub(101),
            len - 2,
            len - 1,
            len + 1,
            len + 2,
            len + 1000,
            u32::MAX - 7,
            u32::MAX,
        ] {
            let mut lying = file.clone();
            lying[4..8].copy_from_slice(&size.to_le_bytes());
            assert!(verdict(&lying).is_err(), "{what} with a form of {size} bytes, not {len}");
        }
    }
}

#[test]
fn odd_chunks_are_padded() {
    let mut file = riff(&[chunk("VP8L", &flat(9, 5)), chunk("JUNK", b"odd")]);
    assert_sound(&file, (9, 5), 1, "padded");
    file.pop();
    let size = u32::try_from(file.len()).expect("small") - 8;
    file[4..8].copy_from_slice(&size.to_le_bytes());
    assert_refused(&file, "chunk JUNK of 3 bytes, more than there are", "not padded");
}

#[test]
fn any_beginning_but_the_header_is_no_webp() {
    for (what, file) in [
        ("nothing", &b""[..]),
        ("half a header", b"RIFF\x04\0\0\0WE"),
        ("a wave", b"RIFF\x04\0\0\0WAVE"),
        ("big-endian", b"RIFX\0\0\0\x04WEBP"),
    ] {
        assert_refused(file, "no WebP header", what);
    }
}

#[test]
fn the_oracle_notices_what_it_must() {
    assert!(oracle::decode(&encoded(9, 5), (9, 6), 1).is_err(), "another size");
    assert!(oracle::decode(&animated(), (24, 20), 2).is_err(), "another number of frames");
}
