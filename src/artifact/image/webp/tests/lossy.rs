//! VP8 frames: headers, partitions, and how long they must be.

use super::fixtures::{Lossy, chunk, riff};
use super::{assert_refused, assert_sound, oracle, verdict};

/// A frame with a byte changed.
fn changed(at: usize, change: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut frame = Lossy::plain(16, 16).frame();
    frame[at] = change(frame[at]);
    riff(&[chunk("VP8 ", &frame)])
}

#[test]
fn every_option_of_the_header() {
    for partitions in 0..4 {
        for segments in [false, true] {
            for skip in [None, Some(0), Some(1), Some(128), Some(255)] {
                for (width, height) in [(1, 1), (16, 16), (17, 40), (64, 33)] {
                    let lossy =
                        Lossy { width, height, segments, skip, partitions, seed: u32::from(width) + partitions };
                    let what = format!("{width}x{height} {segments} {skip:?} {partitions}");
                    assert_sound(&lossy.file(), (width.into(), height.into()), 1, &what);
                }
            }
        }
    }
}

#[test]
fn the_uncompressed_header() {
    for version in 0..4 {
        assert_sound(&changed(0, |b| b & !0xe | version << 1), (16, 16), 1, "version");
    }
    for version in 4..8 {
        assert_refused(&changed(0, |b| b & !0xe | version << 1), "unknown version of VP8 at byte 20", "version");
    }
    assert_refused(&changed(0, |b| b | 1), "no key frame at byte 20", "an interframe");
    assert_refused(&changed(0, |b| b & !0x10), "not to be shown at byte 20", "a hidden frame");
    for at in 3..6 {
        assert_refused(&changed(at, |b| b ^ 1), "no VP8 start code at byte 23", "start code");
    }
    assert_sound(&changed(7, |b| b | 0xc0), (16, 16), 1, "a hint to scale");
    assert_sound(&changed(9, |b| b | 0x40), (16, 16), 1, "a hint to scale");
    assert_refused(&changed(2, |_| 0xff), "truncated", "a first partition longer than the frame");
    for len in 0..10 {
        let frame = &Lossy::plain(16, 16).frame()[..len];
        assert_refused(&riff(&[chunk("VP8 ", frame)]), "truncated", "less than a header");
    }
}

#[test]
fn partitions_must_be_there() {
    for partitions in 1..4 {
        let lossy = Lossy { partitions, ..Lossy::plain(16, 16) };
        let frame = lossy.frame();
        let first = (u32::from_le_bytes([frame[0], frame[1], frame[2], 0]) >> 5) as usize;
        let sizes = 10 + first;
        let parts = sizes + 3 * ((1 << partitions) - 1);
        assert_refused(&riff(&[chunk("VP8 ", &frame[..sizes])]), "truncated", "no sizes");
        assert_refused(&riff(&[chunk("VP8 ", &frame[..parts - 1])]), "truncated", "half of the sizes");
        let mut lying = frame.clone();
        lying[sizes + 2] = 0xff;
        assert_refused(&riff(&[chunk("VP8 ", &lying)]), "truncated", "a size past the end");
        let mut all = 0;
        for size in frame[sizes..parts].chunks_exact(3) {
            all += u32::from_le_bytes([size[0], size[1], size[2], 0]) as usize;
        }
        assert_refused(&riff(&[chunk("VP8 ", &frame[..parts + all])]), "truncated", "an empty last partition");
        let mut lying = frame.clone();
        lying[sizes..sizes + 3].fill(0);
        assert_refused(&riff(&[chunk("VP8 ", &lying)]), "truncated", "nothing for the first row");
    }
}

#[test]
fn a_frame_is_sound_from_one_length_on_and_another_decoder_needs_at_most_a_byte_less() {
    for seed in 1..9 {
        let frame = Lossy { seed, skip: Some(100), ..Lossy::plain(20, 16) }.frame();
        let sound: Vec<bool> =
            (0..=frame.len()).map(|len| verdict(&riff(&[chunk("VP8 ", &frame[..len])])).is_ok()).collect();
        let shortest = sound.iter().position(|sound| *sound).expect("the whole frame is sound");
        assert!(sound[shortest..].iter().all(|sound| *sound), "longer is never worse");
        let decodes = |len: usize| oracle::decode(&riff(&[chunk("VP8 ", &frame[..len])]), (20, 16), 1).is_ok();
        assert!(decodes(shortest));
        assert!(!decodes(shortest - 2), "seed {seed}: {shortest} bytes are not too many");
    }
}

#[test]
fn a_first_partition_that_ends_early() {
    let frame = Lossy::plain(40, 40).frame();
    let first = u32::from_le_bytes([frame[0], frame[1], frame[2], 0]) >> 5;
    let refused = (1..first)
        .filter(|len| {
            let mut short = frame[..10 + *len as usize].to_vec();
            short.extend(&frame[10 + first as usize..]);
            let tag = len << 5 | 0x10;
            short[..3].copy_from_slice(&tag.to_le_bytes()[..3]);
            verdict(&riff(&[chunk("VP8 ", &short)])).is_err()
        })
        .count();
    // The fixture writes 16 bytes of modes for each of nine macroblocks, more than they use.
    assert!((20..first as usize - 20).contains(&refused), "{refused} of {first}");
}
