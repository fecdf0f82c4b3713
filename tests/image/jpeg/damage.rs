//! Sound files, damaged in every place: what passes all the same, other decoders decode whole.

use artifactd::artifact::image::verdict;
use proptest::prelude::*;

use super::build::{EOI, encoded, samples};
use super::{decodes, refused, sound};

#[test]
fn the_samples_are_sound() {
    for (name, bytes) in samples() {
        sound(name, &bytes);
    }
}

#[test]
fn a_file_cut_anywhere_is_truncated() {
    for (name, bytes) in samples() {
        for length in 3..bytes.len() {
            let reason = refused(name, &bytes[..length]);
            assert_eq!(reason.to_string(), format!("truncated: the image breaks off at byte {length}"), "{name}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_with_a_new_end() {
    for (name, bytes) in samples() {
        for length in 3..bytes.len() - 2 {
            let bytes = [&bytes[..length], &EOI].concat();
            if let Ok(sound) = verdict(&bytes) {
                // A cut right behind a scan leaves a whole, if poorer, image.
                assert!(matches!(name, "apart" | "progressive"), "{name} cut at {length}");
                decodes(name, &bytes, sound);
            }
        }
    }
}

#[test]
fn every_byte_takes_every_value() {
    for (name, bytes) in samples() {
        for place in 3..bytes.len() {
            for value in 0..=255 {
                let mut bytes = bytes.clone();
                bytes[place] = value;
                if let Ok(sound) = verdict(&bytes) {
                    decodes(&format!("{name}, {value:#x} at {place}"), &bytes, sound);
                }
            }
        }
    }
}

#[test]
fn a_lying_size_is_refused() {
    // Sizes that need another number of blocks; the frame header is where SOF0 is.
    let bytes = encoded(24, 17, 60);
    let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    for (field, sides) in [(5, [1u16, 16, 25, 64, 8000]), (7, [1, 16, 25, 64, 8000])] {
        for side in sides {
            let mut bytes = bytes.clone();
            bytes[frame + field..][..2].copy_from_slice(&side.to_be_bytes());
            assert_eq!(refused("size", &bytes).name(), "corrupt", "{side} at {field}");
        }
    }
}

/// A change to a file.
#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Flip(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
    Swap(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<usize>();
    let marker = prop_oneof![Just(0xC0u8), Just(0xC2), 0xC4..=0xC4u8, 0xD0..=0xDDu8, Just(0xFE), any::<u8>()];
    prop_oneof![
        (place, any::<u8>()).prop_map(|(at, value)| Change::Set(at, value)),
        (place, 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (place, 1..80usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (place, proptest::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (place, marker).prop_map(|(at, marker)| Change::Insert(at, vec![0xFF, marker])),
        (place, 1..80usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        (place, place).prop_map(|(one, other)| Change::Swap(one, other)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let within = |at: &usize| 3 + at % (bytes.len() - 3);
    match change {
        Change::Set(at, value) => {
            let at = within(at);
            bytes[at] = *value;
        }
        Change::Flip(at, bit) => {
            let at = within(at);
            bytes[at] ^= 1 << bit;
        }
        Change::Remove(at, count) => {
            let at = within(at);
            bytes.drain(at..(at + count).min(bytes.len() - 1));
        }
        Change::Insert(at, new) => {
            let at = within(at);
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Repeat(at, count) => {
            let at = within(at);
            let again = bytes[at..(at + count).min(bytes.len())].to_vec();
            bytes.splice(at..at, again);
        }
        Change::Swap(one, other) => {
            let (one, other) = (within(one), within(other));
            bytes.swap(one, other);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_passes_is_decoded(sample in 0..6usize, changes in proptest::collection::vec(change(), 1..4)) {
        let (name, mut bytes) = samples().swap_remove(sample);
        for change in &changes {
            if bytes.len() > 4 {
                apply(&mut bytes, change);
            }
        }
        if let Ok(sound) = verdict(&bytes) {
            decodes(name, &bytes, sound);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let bytes = [&[0xFF, 0xD8, 0xFF][..], &bytes].concat();
        if let Ok(sound) = verdict(&bytes) {
            decodes("random", &bytes, sound);
        }
    }
}
