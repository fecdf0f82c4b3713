//! Small files that ask for much.

use std::process::Command;

use super::assert_refused;
use super::fixtures::{Bits, Lossy, anim, anmf, chunk, flat, riff, vp8x};
use super::{assert_sound, verdict};

#[path = "../../../../../tests/support/apart.rs"]
mod apart;

#[test]
fn frames_are_bounded() {
    let frame = anmf(0, 0, 1, 1, &[chunk("VP8L", &flat(1, 1))]);
    let file = |n: usize| riff(&[&[vp8x(2, 1, 1), anim()], &vec![frame.clone(); n][..]].concat());
    assert_sound(&file(10_000), (1, 1), 10_000, "as many as may be");
    assert_refused(&file(10_001), "too_costly: more than 10000 frames", "one more");
}

#[test]
fn pixels_are_bounded_by_the_canvas_not_the_frame() {
    let frame = anmf(0, 0, 1, 1, &[chunk("VP8L", &flat(1, 1))]);
    let file = |n: usize| riff(&[&[vp8x(2, 8000, 8000), anim()], &vec![frame.clone(); n][..]].concat());
    assert_eq!(verdict(&file(16)).map(|sound| sound.frames), Ok(16));
    assert_refused(&file(17), "too_costly: 17 frames of 1088000000 pixels in all", "one more");
}

#[test]
fn a_flat_image_of_any_size_costs_nothing() {
    let frame = anmf(0, 0, 8000, 8000, &[chunk("VP8L", &flat(8000, 8000))]);
    let file = riff(&[&[vp8x(2, 8000, 8000), anim()], &vec![frame; 16][..]].concat());
    assert_eq!(verdict(&file).map(|sound| sound.frames), Ok(16));
}

/// A code of 256 symbols of eight bits in eleven bytes: nothing but repeats of the first length.
fn full(bits: Bits) -> Bits {
    // Code lengths 17, 18, 0, 1, 2, 3, 4, 5, 16: only the last occurs.
    let bits = bits.put(0, 1).put(5, 4).put(1 << 24, 27).put(1, 1).put(2, 3).put(41, 6);
    (0..42).fold(bits, |bits, _| bits.put(3, 2)).put(1, 2)
}

/// An image of 1024x1024 in tiles of 4x4, each with its own group of `codes`.
fn grouped(groups: u32, codes: impl Fn(Bits) -> Bits) -> Vec<u8> {
    begun(groups, codes).put(0, 8).file()
}

/// The same without its pixels.
fn begun(groups: u32, codes: impl Fn(Bits) -> Bits) -> Bits {
    let bits = Bits::header(1024, 1024).put(0, 2).put(1, 1).put(0, 3).put(0, 1);
    let bits = full(full(bits)).one(0).one(0).one(0);
    let bits = (0..65_536_u32).fold(bits, |bits, tile| {
        let group = tile.min(groups - 1);
        bits.put((group & 255).reverse_bits() >> 24, 8).put((group >> 8).reverse_bits() >> 24, 8)
    });
    (0..groups).fold(bits, |bits, _| codes(bits))
}

#[test]
fn tables_of_codes_are_bounded() {
    assert_eq!(verdict(&grouped(65_536, Bits::flat)).map(|sound| sound.width), Ok(1024));
    // Lengths from 1 to 15: sixteen symbols, 384 entries; five of them in each group.
    let ladder: Vec<u32> = (1..=15).chain([15]).collect();
    let deep = |bits: Bits| (0..5).fold(bits, |bits, _| bits.lengths(&ladder));
    assert_refused(&grouped(18_000, deep), "too_costly: more than 64 MiB of VP8L code tables", "deep codes");
}

/// No test, but the process that the next one starts.
#[test]
#[ignore = "run by the next test, apart"]
fn judged_apart() {
    apart::run(|file| verdict(file).map(|sound| sound.media_type.to_owned()).map_err(|reason| reason.to_string()));
}

#[test]
fn large_tables_are_held_by_one_verdict_at_a_time() {
    let ladder: Vec<u32> = (1..=15).chain([15]).collect();
    let deep = |bits: Bits| (0..5).fold(bits, |bits, _| bits.lengths(&ladder));
    // Four bits for each pixel.
    let file = (0..1 << 18).fold(begun(16_000, deep), |bits, _| bits.put(0, 16)).file();
    let peak = |at_once| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", &format!("{}::judged_apart", module_path!().split_once("::").expect("a path").1)]);
        command.args(["--ignored", "--nocapture"]);
        let cost = apart::judge(command, &file, at_once);
        assert_eq!(cost.verdict, Ok("image/webp".to_owned()));
        cost.peak_bytes
    };
    let (one, four) = (peak(1), peak(4));
    assert!(one > 50 << 20, "the tables are large: {one} bytes");
    assert!(one <= 100 << 20 && four <= one + (40 << 20), "{one} bytes, and four of them {four}");
}

#[test]
fn steps_are_bounded() {
    let wide = |bits: Bits| full(full(full(full(bits)))).one(0);
    assert_refused(&grouped(25_000, wide), "too_costly: more than 50000000 steps", "wide codes");

    // Macroblocks of next to no bits: the probability that there is nothing is 255 in 256 throughout.
    let still = Lossy::plain(8000, 8000).flat_frame();
    assert_eq!(verdict(&riff(&[chunk("VP8 ", &still)])).map(|sound| sound.width), Ok(8000));
    let frame = anmf(0, 0, 8000, 8000, &[chunk("VP8 ", &still)]);
    let file = riff(&[&[vp8x(2, 8000, 8000), anim()], &vec![frame; 16][..]].concat());
    assert!(file.len() < 3 << 20);
    assert_refused(&file, "too_costly: more than 50000000 steps", "sixteen lossy frames");
}

#[test]
fn tiles_of_no_bits_are_counted() {
    // The first tile of each row takes bits, the others none: two thousand runs for four bits.
    let bits = Bits::header(8000, 8000).put(0, 2).put(1, 1).put(0, 3).put(0, 1);
    let bits = bits.two(0, 1).one(0).one(0).one(0).one(0);
    let bits = (0..2000 * 2000).fold(bits, |bits, tile| bits.put(u32::from(tile % 2000 != 0), 1));
    let bits = bits.two(0, 1).one(0).one(0).one(0).one(0).flat();
    let image = (0..8000).fold(bits, |bits, _| bits.put(0, 4)).bytes();
    assert_eq!(verdict(&riff(&[chunk("VP8L", &image)])).map(|sound| sound.width), Ok(8000));
    let frame = anmf(0, 0, 8000, 8000, &[chunk("VP8L", &image)]);
    let file = riff(&[&[vp8x(2, 8000, 8000), anim()], &vec![frame; 5][..]].concat());
    assert!(file.len() < 3 << 20);
    assert_refused(&file, "too_costly: more than 50000000 steps", "five frames");
}
