//! Damaged files: never a panic, and never sound unless another decoder agrees.

use proptest::prelude::*;

use super::fixtures::{Fixture, all, riff};
use super::{assert_agreed, assert_refused};

#[test]
fn no_beginning_of_a_file_is_sound() {
    for Fixture { what, file, .. } in all() {
        for len in 0..file.len() {
            assert_refused(&file[..len], "", &format!("{what}, {len} of {} bytes", file.len()));
        }
    }
}

#[test]
fn no_beginning_of_a_form_is_sound_unless_another_decoder_agrees() {
    for Fixture { what, file, .. } in all() {
        for len in 12..file.len() {
            let mut cut = file[..len].to_vec();
            let size = u32::try_from(len - 8).expect("small");
            cut[4..8].copy_from_slice(&size.to_le_bytes());
            assert_agreed(&cut, &format!("{what}, {len} of {} bytes", file.len()));
        }
    }
}

#[test]
fn every_change_of_a_byte_of_the_headers() {
    let mut sound = 0;
    for Fixture { what, file, .. } in all() {
        let headers: Vec<usize> = (0..file.len().min(64))
            .chain(file.windows(3).enumerate().filter(|(_, w)| w == b"VP8" || w == b"ALP").flat_map(|(i, _)| i..i + 24))
            .filter(|at| *at < file.len())
            .collect();
        for at in headers {
            for change in 1..=255 {
                let mut changed = file.clone();
                changed[at] ^= change;
                sound += u32::from(assert_agreed(&changed, &format!("{what}, byte {at} ^ {change:#x}")));
            }
        }
    }
    assert!(sound > 1000, "only {sound} changes left a sound file: the comparison says little");
}

#[test]
fn chunks_left_out_repeated_or_exchanged() {
    for Fixture { what, file, .. } in all() {
        let mut chunks = Vec::new();
        let mut at = 12;
        while at < file.len() {
            let size = u32::from_le_bytes(file[at + 4..at + 8].try_into().expect("four")) as usize;
            let next = at + 8 + size.next_multiple_of(2);
            chunks.push(file[at..next].to_vec());
            at = next;
        }
        for i in 0..chunks.len() {
            let mut without = chunks.clone();
            without.remove(i);
            assert_agreed(&riff(&without), &format!("{what} without chunk {i}"));
            for j in 0..chunks.len() {
                let mut repeated = chunks.clone();
                repeated.insert(j, chunks[i].clone());
                assert_agreed(&riff(&repeated), &format!("{what} with chunk {i} again at {j}"));
                let mut exchanged = chunks.clone();
                exchanged.swap(i, j);
                assert_agreed(&riff(&exchanged), &format!("{what} with chunks {i} and {j} exchanged"));
            }
        }
    }
}

/// A change at a place that is a fraction of the file.
#[derive(Debug, Clone)]
enum Change {
    Set(f64, u8),
    Flip(f64, u8),
    Remove(f64, usize),
    Repeat(f64, usize),
    Cut(f64),
}

fn change() -> impl Strategy<Value = Change> {
    let place = 0.0..1.0;
    prop_oneof![
        4 => (place.clone(), any::<u8>()).prop_map(|(p, b)| Change::Set(p, b)),
        4 => (place.clone(), 0_u8..8).prop_map(|(p, b)| Change::Flip(p, b)),
        1 => (place.clone(), 1_usize..40).prop_map(|(p, n)| Change::Remove(p, n)),
        1 => (place.clone(), 1_usize..40).prop_map(|(p, n)| Change::Repeat(p, n)),
        1 => place.prop_map(Change::Cut),
    ]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
fn apply(file: &mut Vec<u8>, change: &Change) {
    let place = |p: &f64| (p * file.len() as f64) as usize;
    match change {
        Change::Set(p, byte) => {
            let at = place(p);
            file[at] = *byte;
        }
        Change::Flip(p, bit) => {
            let at = place(p);
            file[at] ^= 1 << bit;
        }
        Change::Remove(p, n) => {
            let at = place(p);
            file.drain(at..(at + n).min(file.len() - 1).max(at));
        }
        Change::Repeat(p, n) => {
            let at = place(p);
            let part = file[at..(at + n).min(file.len())].to_vec();
            file.splice(at..at, part);
        }
        Change::Cut(p) => {
            let at = place(p);
            file.truncate(at.max(1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_never_panic_and_what_is_sound_decodes(
        kind in 0_usize..7,
        changes in prop::collection::vec(change(), 1..6),
        mend in any::<bool>(),
    ) {
        let Fixture { what, mut file, .. } = all().into_iter().nth(kind).expect("seven kinds");
        changes.iter().for_each(|change| apply(&mut file, change));
        if mend && file.len() > 20 {
            // Sizes that fit again, so that what is inside gets its turn.
            file.truncate(file.len() & !1);
            let size = u32::try_from(file.len() - 8).expect("small");
            file[4..8].copy_from_slice(&size.to_le_bytes());
            if file[15] != b'X' {
                file[16..20].copy_from_slice(&(size - 12).to_le_bytes());
            }
        }
        assert_agreed(&file, what);
    }
}
