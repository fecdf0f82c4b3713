//! The verdict on GIF, rule by rule.

use std::io::Cursor;

use crate::fixtures::gif::*;
use artifactd::artifact::image::{Reason, Sound, verdict};
use image::codecs::gif::{GifDecoder, GifEncoder};
use image::{AnimationDecoder, Frame};
use proptest::prelude::*;

/// Whether `image` decodes as many frames as the verdict counts; what comes after them may be broken.
fn decodes(bytes: &[u8], sound: Sound) -> bool {
    let Ok(decoder) = GifDecoder::new(Cursor::new(bytes)) else { return false };
    let frames = decoder.into_frames().take(sound.frames as usize);
    frames.filter(Result::is_ok).count() == sound.frames as usize
}

/// Whether each frame that the verdict counts decodes, one layer below `image`: that refuses a file
/// without a colour table and extensions it does not know, and loses the last pixels of an interlaced
/// frame that has more data than it needs.
fn frames_decode(bytes: &[u8], sound: Sound) -> bool {
    let mut bytes = bytes.to_vec();
    if bytes[10] & 0x80 == 0 {
        bytes[10] = 0x80;
        bytes.splice(13..13, [0; 6]);
    }
    let mut options = gif::DecodeOptions::new();
    options.allow_unknown_blocks(true);
    options.skip_frame_decoding(true);
    let mut pixels = gif::streaming_decoder::FrameDecoder::new(options.clone());
    let Ok(mut decoder) = options.read_info(Cursor::new(bytes)) else { return false };
    (0..sound.frames).all(|_| match decoder.read_next_frame() {
        Ok(Some(frame)) => {
            let mut frame = frame.clone();
            frame.interlaced = false;
            pixels.decode_lzw_encoded_frame(&mut frame).is_ok()
        }
        _ => false,
    })
}

#[track_caller]
fn sound(name: &str, bytes: &[u8]) -> Sound {
    let sound = verdict(bytes).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    assert!(decodes(bytes, sound), "{name}: `image` does not decode it");
    sound
}

/// Sound, though `image` refuses it.
#[track_caller]
fn tolerated(name: &str, bytes: &[u8]) -> Sound {
    let sound = verdict(bytes).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    assert!(!decodes(bytes, sound), "{name}: `image` decodes it too");
    sound
}

#[track_caller]
fn refused(name: &str, bytes: &[u8], reason: &str) {
    match verdict(bytes) {
        Ok(sound) => panic!("{name}: {sound:?}"),
        Err(found) => assert!(found.to_string().contains(reason), "{name}: {found}"),
    }
}

/// A file of one frame, 4 × 3 pixels, in these codes.
fn of_codes(code_size: u8, codes: &[u8]) -> Vec<u8> {
    [screen(4, 3, Some(7)), coded((0, 0, 4, 3), code_size, codes), TRAILER.to_vec()].concat()
}

#[test]
fn what_an_encoder_makes_is_sound() {
    for (width, height, count) in [(1, 1, 1), (67, 41, 1), (300, 200, 1), (31, 64, 4)] {
        let mut bytes = Vec::new();
        GifEncoder::new(&mut bytes)
            .encode_frames((0..count).map(|_| Frame::new(crate::fixtures::picture(width, height))))
            .unwrap();
        let expected = Sound { media_type: "image/gif", width, height, frames: count };
        assert_eq!(sound("encoded", &bytes), expected);
    }
}

#[test]
fn the_screen() {
    let one = |width, height| [screen(width, height, Some(1)), frame((0, 0, 4, 3)), TRAILER.to_vec()].concat();
    assert_eq!(sound("small", &small()), Sound { media_type: "image/gif", width: 4, height: 3, frames: 1 });
    assert_eq!(sound("87a", &[b"GIF87a", &small()[6..]].concat()).frames, 1);
    let sides = |sound: Sound| (sound.width, sound.height);
    assert_eq!(sides(sound("8000", &one(8000, 8000))), (8000, 8000));
    refused("8001", &one(8001, 1), "too_many_pixels: 8001 × 1");
    refused("8001", &one(1, 8001), "too_many_pixels: 1 × 8001");
    // The frame's sides would do, but not every reader takes them.
    refused("a screen of nothing", &one(0, 0), "two readings of the header that disagree");
    refused("a screen of no height", &one(9, 0), "two readings of the header that disagree");
    refused("signature", b"GIF88a\x01\0\x01\0\0\0\0", "does not begin like an image");
    for bytes in [&b"GIF89a"[..], b"GIF89a\x01\0\x01\0\0\0"] {
        assert_eq!(verdict(bytes), Err(Reason::Truncated { at: bytes.len() as u64 }));
    }
}

#[test]
fn colour_tables() {
    for size in 0..8 {
        let global = [screen(4, 3, Some(size)), frame((0, 0, 4, 3)), TRAILER.to_vec()].concat();
        sound("global", &global);
        let frame = |table| [descriptor((0, 0, 4, 3), table), vec![2], sub_blocks(&literals(2, 12))].concat();
        sound("local", &[screen(4, 3, None), frame(Some(size)), TRAILER.to_vec()].concat());
        refused("global, cut short", &global[..13 + (3 << (size + 1)) - 1], "truncated");
        tolerated("none", &[screen(4, 3, None), frame(None), TRAILER.to_vec()].concat());
    }
}

#[test]
fn where_frames_may_be() {
    let at = |place| [screen(4, 3, Some(1)), frame(place), TRAILER.to_vec()].concat();
    for place in [(0, 0, 4, 3), (3, 2, 1, 1), (4, 3, 1, 1), (2, 2, 8, 9), (7990, 0, 10, 1), (0, 7990, 1, 10)] {
        let sound = sound(&format!("{place:?}"), &at(place));
        assert_eq!((sound.width, sound.height), (4, 3), "the screen's sides stay");
    }
    refused("wide", &at((7991, 0, 10, 1)), "too_many_pixels: 8001 × 1");
    refused("high", &at((0, 7991, 1, 10)), "too_many_pixels: 1 × 8001");
    refused("far", &[screen(4, 3, None), descriptor((65535, 65535, 65535, 65535), None)].concat(), "131070 × 131070");
    refused("no width", &at((0, 0, 0, 3)), "a frame of no pixels at byte 26");
    refused("no height", &at((0, 0, 4, 0)), "a frame of no pixels");
}

#[test]
fn frames_are_counted_and_all_must_be_whole() {
    assert_eq!(sound("animated", &animated()).frames, 3);
    refused("none", &[screen(4, 3, Some(1)), TRAILER.to_vec()].concat(), "no frame before the end at byte 25");
    let good = frame((0, 0, 4, 3));
    let broken = [
        ("a frame of no pixels", frame((0, 0, 0, 3))),
        ("LZW code size 9", coded((0, 0, 4, 3), 9, &literals(2, 12))),
        ("without its last 1 pixels", coded((0, 0, 4, 3), 2, &literals(2, 11))),
        ("an impossible LZW code", coded((0, 0, 4, 3), 2, &pack(&[(4, 3), (7, 3)]))),
    ];
    for (reason, bad) in broken {
        for count in 0..3 {
            let bytes =
                [screen(4, 3, Some(1)), good.repeat(count), bad.clone(), good.clone(), TRAILER.to_vec()].concat();
            refused(&format!("after {count}"), &bytes, reason);
        }
    }
}

#[test]
fn extensions() {
    let with =
        |extension: &[u8]| [&screen(4, 3, Some(1))[..], extension, &frame((0, 0, 4, 3)), extension, &TRAILER].concat();
    sound("comment", &with(&[b"\x21\xFE".to_vec(), sub_blocks(&[b'x'; 1000])].concat()));
    sound("empty comment", &with(b"\x21\xFE\0"));
    sound("plain text", &with(&[b"\x21\x01\x0C".to_vec(), vec![0; 12], sub_blocks(b"text")].concat()));
    sound("application", &with(b"\x21\xFF\x0BSOMETHING10\x03abc\0"));
    tolerated("unknown", &with(b"\x21\x42\x03abc\0"));
    sound("graphic control", &with(&control()));
    for empty in [&b"\x21\x01\0"[..], b"\x21\xFF\0", b"\x21\x42\0", b"\x21\xFF\x0BNETSCAPE2.0\0"] {
        refused("empty", &with(empty), "an extension without its data at byte 27");
    }
    sound("loop", &with(b"\x21\xFF\x0BNETSCAPE2.0\x03\x01\0\0\0"));
    for length in [1, 2, 3, 5, 6, 255] {
        let odd = [vec![0x21, 0xF9, length], vec![0; length.into()], vec![0]].concat();
        refused(
            "graphic control",
            &with(&odd),
            &format!("a graphic control of {length} bytes in 1 sub-blocks at byte 27"),
        );
    }
    refused("empty graphic control", &with(b"\x21\xF9\0"), "a graphic control of 0 bytes in 0 sub-blocks");
    refused(
        "graphic control in two",
        &with(b"\x21\xF9\x02\0\0\x02\0\0\0"),
        "a graphic control of 4 bytes in 2 sub-blocks",
    );
}

#[test]
fn after_a_whole_frame_the_file_may_end_in_any_way() {
    let body = [screen(4, 3, Some(1)), frame((0, 0, 4, 3))].concat();
    for end in [
        &b""[..],
        b"\0",
        b"\x3B",
        b"\x3B\0\0\0",
        b"\x3BPK\x03\x04",
        b"\x99garbage",
        b"\0\0\0",
        b"GIF89a",
        b"\x21\xFE",
        b"\x21\xFE\x09short",
        b"\x21\xFE\x05whole",
    ] {
        assert_eq!(sound(&format!("{end:?}"), &[&body[..], end].concat()).frames, 1);
    }
    for end in [&b"\x21"[..], b"\x21\xF9", b"\x21\xF9\x04", b"\x21\xF9\x04\0\0", b"\x21\xF9\x04\0\0\0\0"] {
        refused("what belongs to a next frame, cut", &[&body[..], end].concat(), "truncated");
    }
    refused("a cut frame", &[&body[..], b"\x2C\0\0"].concat(), "truncated");
    let head = screen(4, 3, Some(1));
    refused(
        "garbage before a frame",
        &[&head[..], b"\0", &frame((0, 0, 4, 3))].concat(),
        "unknown block 0x00 at byte 25",
    );
    refused("a cut extension before a frame", &[&head[..], b"\x21\xFE\x09short"].concat(), "truncated");
    refused("nothing", &head, "truncated: the image breaks off at byte 25");
}

#[test]
fn code_sizes() {
    for code_size in 0..=13 {
        let codes = literals(u32::from(code_size.clamp(2, 8)), 12);
        let bytes = of_codes(code_size, &codes);
        match code_size {
            2..=8 => {
                sound("code size", &bytes);
            }
            _ => refused("code size", &bytes, &format!("LZW code size {code_size} at byte 791")),
        }
    }
}

/// Codes of size 2 for one frame: 4 clears, 5 ends, 6 is the first string.
#[test]
fn codes() {
    let good: [(&str, &[(u32, u32)]); 6] = [
        ("literals and clear codes", &[(4, 3), (0, 3), (1, 3), (4, 3), (2, 3), (3, 3), (4, 3), (4, 3), (0, 3), (9, 3)]),
        ("no clear code first", &[(0, 3), (6, 3), (7, 3), (8, 4), (9, 4)]),
        ("strings of themselves", &[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (9, 4), (5, 4)]),
        ("no end code", &[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (9, 4)]),
        ("anything after the end code", &[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (9, 4), (5, 4), (15, 4), (15, 4)]),
        ("more pixels", &[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (9, 4), (10, 4), (11, 4)]),
    ];
    for (name, codes) in good {
        let codes = pack(codes);
        if name == "literals and clear codes" {
            refused(name, &of_codes(2, &codes), "without its last");
        } else {
            sound(name, &of_codes(2, &codes));
        }
    }
    let impossible: [(&str, &[(u32, u32)]); 5] = [
        ("after the last pixel", &[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (9, 4), (15, 4)]),
        ("a string first", &[(6, 3), (1, 3)]),
        ("a string after a clear code", &[(4, 3), (1, 3), (6, 3), (4, 3), (6, 3)]),
        ("the string after the next", &[(4, 3), (1, 3), (7, 3)]),
        ("a string that a clear code forgot", &[(4, 3), (1, 3), (1, 3), (1, 3), (4, 4), (1, 3), (7, 3)]),
    ];
    for (name, codes) in impossible {
        refused(name, &of_codes(2, &pack(codes)), "an impossible LZW code");
    }
    let short: [(&str, &[(u32, u32)]); 3] = [
        ("nothing but the end", &[(5, 3)]),
        ("the end too early", &[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (5, 4), (9, 4)]),
        ("nothing more", &[(4, 3), (1, 3), (6, 3), (7, 3)]),
    ];
    for (name, codes) in short {
        refused(name, &of_codes(2, &pack(codes)), "a frame without its last");
    }
    refused("no codes", &of_codes(2, b""), "a frame without its last 12 pixels");
}

/// Strings grow to the end of the table, which stays full until it is cleared.
#[test]
fn a_full_table() {
    for code_size in 2..=8u32 {
        let clear = 1 << code_size;
        let mut codes = vec![(clear, code_size + 1)];
        let (mut next, mut width, mut pixels) = (clear + 2, code_size + 1, 0usize);
        for n in 0..5000u32 {
            codes.push((n % clear, width));
            pixels += 1;
            if n > 0 && next < 4096 {
                next += 1;
            }
            if next == 1 << width && width < 12 {
                width += 1;
            }
        }
        // The last entry of the table is the string of literals 4095 - clear - 2 and the one after.
        codes.push((4095, 12));
        pixels += 2;
        let bytes = |height| {
            [screen(2, height, Some(7)), coded((0, 0, 2, height), code_size as u8, &pack(&codes)), TRAILER.to_vec()]
                .concat()
        };
        let height = (pixels / 2) as u16;
        sound("full", &bytes(height));
        refused("full, one row more", &bytes(height + 1), "without its last 2 pixels");
    }
}

/// A table left by one frame says nothing about the next, whatever their code sizes.
#[test]
fn each_frame_starts_anew() {
    let grown = coded((0, 0, 4, 3), 2, &pack(&[(4, 3), (1, 3), (6, 3), (7, 3), (8, 4), (9, 4)]));
    let wide =
        |pixels: usize| coded((0, 0, 4, 3), 7, &pack(&[(128, 8), (6, 8), (7, 8), (8, 8), (9, 8)].repeat(pixels / 4)));
    let bytes = |second| [screen(4, 3, Some(7)), grown.clone(), second, TRAILER.to_vec()].concat();
    sound("12 pixels", &bytes(wide(12)));
    refused("8 pixels", &bytes(wide(8)), "without its last 4 pixels");
}

#[test]
fn sub_blocks_of_any_length() {
    let picture = crate::fixtures::picture(90, 70);
    let mut encoded = Vec::new();
    GifEncoder::new(&mut encoded).encode_frames([Frame::new(picture)]).unwrap();
    sound("as encoded", &encoded);
    // The same data in sub-blocks of other lengths: find the frame by its descriptor.
    let descriptor = [0x2C, 0, 0, 0, 0, 90, 0, 70, 0];
    let start = encoded.windows(9).position(|at| at == descriptor).unwrap();
    let table = if encoded[start + 9] & 0x80 == 0 { 0 } else { 3 << ((encoded[start + 9] & 7) + 1) };
    let mut at = start + 10 + table + 1;
    let head = encoded[..at].to_vec();
    let mut data = Vec::new();
    while encoded[at] != 0 {
        let length = usize::from(encoded[at]);
        data.extend(&encoded[at + 1..=at + length]);
        at += 1 + length;
    }
    for length in 1..=255 {
        let blocks: Vec<u8> = data.chunks(length).flat_map(|block| [&[block.len() as u8], block].concat()).collect();
        sound("cut anew", &[&head[..], &blocks, &[0, 0x3B]].concat());
        let last = data.len() - data.len() % length.max(2) - 2;
        let blocks: Vec<u8> =
            data[..last].chunks(length).flat_map(|block| [&[block.len() as u8], block].concat()).collect();
        refused("cut anew, without the last", &[&head[..], &blocks, &[0, 0x3B]].concat(), "without its last");
        refused("no terminator", &[&head[..], &blocks].concat(), "truncated");
    }
}

/// After a whole frame, bytes that start no block are skipped: some readers end there, some do not.
#[test]
fn bytes_between_the_blocks() {
    let one = frame((0, 0, 4, 3));
    let head = screen(4, 3, Some(1));
    for junk in [&b"\0"[..], b"\0\0\0", b"\x99garbage", b"GIF89a"] {
        let bytes = [&head[..], &one, junk, &one, &TRAILER].concat();
        assert_eq!(sound("frames before", &bytes).frames, 1);
        refused("a cut frame after", &bytes[..bytes.len() - 3], "truncated");
        let broken = coded((0, 0, 4, 3), 2, &literals(2, 11));
        refused(
            "a short frame after",
            &[&head[..], &one, junk, &broken, &TRAILER].concat(),
            "without its last 1 pixels",
        );
        refused("what seems a frame", &[&head[..], &one, junk, b"a, b"].concat(), "truncated");
    }
}

/// Files that a fuzzer found.
#[test]
fn found() {
    // A code size of 1 without a clear code, which decoders read in different ways.
    let one_bit = b"GIF89a\x02\0\x02\0\xf0\x02\0\0\x02\x02\x0c\x5e\0\x2c\0\0\0\0\x02\0\x02\0\0\x01\x02\x84\x73\0\x3b";
    refused("one bit", one_bit, "LZW code size 1 at byte 29");
    // An interlaced frame whose last string is longer than what is missing, then a cut introducer.
    let interlaced = b"GIF89a\x0b\0\x1d\0\xa2\0\0\xff\0\0\0\xff\0\xff\xff\0\x8e\x8e\x8e\0\0\0\xff\xff\xff\0\0\0\0\0\0\
        \x2c\0\0\0\0\x0b\0\x1d\0\x5b\x03\x30\x78\xba\xdc\xde\x23\xbe\x48\x21\xad\xeb\x62\xa5\x25\xd3\x93\xf7\x8c\xe4\x27\x9a\
        \x1b\xd7\xa1\x17\x9b\x1e\x24\xf3\x96\x34\x13\xdc\xcf\xad\x37\x7a\x6f\xf7\xb8\x05\x30\x28\xf4\x39\x76\xb5\x64\x02\0";
    let found = tolerated("interlaced", interlaced);
    assert!(frames_decode(interlaced, found));
    refused("cut introducer", &[&interlaced[..], b"\x21"].concat(), "truncated");
    // A graphic control without its sub-block, and one with a second.
    let head = screen(4, 3, Some(1));
    for control in [&b"\x21\xF9\0"[..], b"\x21\xF9\x04\0\0\0\0\x03\0\0\0\0"] {
        refused("graphic control", &[&head, control, &frame((0, 0, 4, 3)), &TRAILER].concat(), "a graphic control of");
    }
}

#[test]
fn frames_are_budgeted() {
    let make = |side: u16, count| {
        let one = [descriptor((0, 0, 1, 1), None), vec![2], sub_blocks(&literals(2, 1))].concat();
        [screen(side, side, Some(1)), one.repeat(count), TRAILER.to_vec()].concat()
    };
    assert_eq!(verdict(&make(1, 10_000)).map(|sound| sound.frames), Ok(10_000));
    refused("frames", &make(1, 10_001), "too_costly: more than 10000 frames");
    assert_eq!(verdict(&make(1024, 1024)).map(|sound| sound.frames), Ok(1024));
    refused("pixels", &make(1024, 1025), "too_costly: 1025 frames of");
    refused("large screens", &make(8000, 17), "too_costly: 17 frames of");
}

#[test]
fn truncations() {
    let three = animated();
    let ends: Vec<usize> = (0..three.len()).filter(|&end| verdict(&three[..end]).is_ok()).collect();
    for end in 0..three.len() {
        match verdict(&three[..end]) {
            Ok(found) => assert!(frames_decode(&three[..end], found), "cut at {end}"),
            Err(_) if end < 6 => {}
            Err(reason) => assert_eq!(reason, Reason::Truncated { at: end as u64 }),
        }
    }
    // A frame's descriptor, its code size, sub-blocks and terminator: a cut in there is never sound.
    let starts: Vec<usize> = (0..three.len()).filter(|&at| three[at..].starts_with(&control())).collect();
    for (frame, &start) in starts.iter().enumerate() {
        let end = starts.get(frame + 1).copied().unwrap_or(three.len() - 1);
        let inside = start + control().len() + 1..end;
        assert!(ends.iter().all(|cut| !inside.contains(cut)), "frame {frame}: {ends:?}");
    }
    assert!(ends.iter().all(|&cut| cut >= starts[1]), "before the first frame is whole: {ends:?}");
}

#[test]
fn every_change_of_a_byte_agrees_with_a_decoder() {
    let (mut accepted, mut refused) = (0, 0);
    for original in [small(), animated()] {
        for at in 6..original.len() {
            for value in 0..=255 {
                let mut bytes = original.clone();
                bytes[at] = value;
                match verdict(&bytes) {
                    Ok(sound) => {
                        assert!(frames_decode(&bytes, sound), "byte {at} = {value}: {sound:?}");
                        accepted += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

proptest! {
    #[test]
    fn sound_means_decodable(
        base in 0..3usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = match base {
            0 => small(),
            1 => animated(),
            _ => {
                let mut bytes = Vec::new();
                GifEncoder::new(&mut bytes).encode_frames([Frame::new(crate::fixtures::picture(9, 5))]).unwrap();
                bytes
            }
        };
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(sound) = verdict(&bytes) {
            prop_assert!(frames_decode(&bytes, sound));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = verdict(&tail);
        let _ = verdict(&[&screen(4, 3, None), &tail[..]].concat());
        let _ = verdict(&of_codes(tail.len() as u8 % 9, &tail));
    }
}
