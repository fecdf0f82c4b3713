//! PNG files, still and animated, that were changed: what the verdict calls sound, `image` decodes.

use crate::fixtures::png::*;
use artifactd::artifact::image::{Reason, verdict};
use image::{DynamicImage, ImageFormat};
use proptest::prelude::*;

#[test]
fn every_truncation_is_refused_as_such() {
    let encoded = crate::fixtures::encode(&DynamicImage::from(crate::fixtures::picture(9, 5)), ImageFormat::Png);
    for bytes in [file(&small()), file(&animated()), encoded] {
        sound("whole", &bytes);
        for end in 8..bytes.len() {
            assert_eq!(verdict(&bytes[..end]), Err(Reason::Truncated { at: end as u64 }));
        }
        for end in 0..8 {
            assert!(verdict(&bytes[..end]).is_err());
        }
    }
}

#[test]
fn every_change_of_a_header_byte_agrees_with_a_decoder() {
    let (mut accepted, mut refused) = (0, 0);
    for chunks in [small(), animated()] {
        for (index, original) in chunks.iter().enumerate() {
            let kind: [u8; 4] = original[4..8].try_into().unwrap();
            if &kind == b"IDAT" {
                continue;
            }
            // Of an fdAT only the number.
            let fields = if &kind == b"fdAT" { 4 } else { original.len() - 12 };
            for at in 0..fields {
                for value in 0..=255 {
                    let mut data = original[8..original.len() - 4].to_vec();
                    data[at] = value;
                    let bytes = with(chunks.clone(), index, &[chunk(&kind, &data)]);
                    match verdict(&bytes) {
                        Ok(sound) => {
                            assert!(decodes(&bytes, sound), "chunk {index}, byte {at} = {value}: {sound:?}");
                            accepted += 1;
                        }
                        Err(_) => refused += 1,
                    }
                }
            }
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

#[test]
fn any_order_of_the_chunks_agrees_with_a_decoder() {
    let chunks = animated();
    for from in 0..chunks.len() {
        for to in 0..chunks.len() {
            let mut moved = chunks.clone();
            let one = moved.remove(from);
            moved.insert(to, one);
            let bytes = file(&moved);
            if let Ok(sound) = verdict(&bytes) {
                assert!(decodes(&bytes, sound), "chunk {from} moved to {to}");
            }
            let mut doubled = chunks.clone();
            doubled.insert(to, chunks[from].clone());
            let bytes = file(&doubled);
            if let Ok(sound) = verdict(&bytes) {
                assert!(decodes(&bytes, sound), "chunk {from} doubled at {to}");
            }
        }
    }
}

proptest! {
    /// Changes behind the CRC's back, and with its help.
    #[test]
    fn sound_means_decodable(
        base in 0..3usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        mend in any::<bool>(),
    ) {
        let mut bytes = match base {
            0 => file(&small()),
            1 => file(&animated()),
            _ => crate::fixtures::encode(&DynamicImage::from(crate::fixtures::picture(9, 5)), ImageFormat::Png),
        };
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if mend {
            mend_crcs(&mut bytes);
        }
        if let Ok(sound) = verdict(&bytes) {
            prop_assert!(decodes(&bytes, sound));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = verdict(&tail);
        let _ = verdict(&[SIGNATURE, &tail].concat());
        let _ = verdict(&[&file(&small()[..1]), &tail[..]].concat());
    }
}

fn mend_crcs(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let Some(checked) = bytes.get(at + 4..at + 8 + length) else { return };
        let crc = crc32fast::hash(checked).to_be_bytes();
        let Some(place) = bytes.get_mut(at + 8 + length..at + 12 + length) else { return };
        place.copy_from_slice(&crc);
        at += 12 + length;
    }
}
