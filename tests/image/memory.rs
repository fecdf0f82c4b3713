//! What a verdict holds at its peak: bitmaps and rows, never the picture.

use std::process::Command;

use artifactd::artifact::image::verdict;

use super::fixtures::{gif, png};
use super::jpeg::cost::many_scans;

#[path = "../support/apart.rs"]
mod apart;

/// Beyond the file itself.
const MAX_BYTES: u64 = 40 << 20;

/// No test, but the process that [`apart::judge`] starts.
#[test]
#[ignore = "run by the test below, apart"]
fn judged_apart() {
    apart::run(|file| verdict(file).map(|sound| sound.media_type.to_owned()).map_err(|reason| reason.to_string()));
}

/// A picture of 8000 x 8000 pixels would take 64 MB and more.
#[test]
fn the_largest_pictures_take_a_few_megabytes() {
    // Each row has a byte for its filter, and an interlaced image has 15,000 rows.
    let grey = |interlace, extra: usize| {
        let rows = png::idat(&vec![0; 64_000_000 + extra]);
        png::file(&[png::ihdr(8000, 8000, 8, 0, interlace), rows, png::iend()])
    };
    let flat = gif::coded((0, 0, 8000, 8000), 2, &flat_codes(64_000_000));
    let frames = [gif::screen(8000, 8000, Some(1)), flat.repeat(16), gif::TRAILER.to_vec()].concat();
    for (name, file, media_type) in [
        ("PNG", grey(0, 8_000), "image/png"),
        ("interlaced PNG", grey(1, 15_000), "image/png"),
        ("GIF of 16 frames", frames, "image/gif"),
        ("progressive JPEG of four components", many_scans(8000, 4, 4, 24), "image/jpeg"),
    ] {
        assert!(file.len() < 3 << 20, "{name}: {} bytes", file.len());
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "memory::judged_apart", "--ignored", "--nocapture"]);
        let cost = apart::judge(command, &file, 1);
        assert_eq!(cost.verdict.as_deref(), Ok(media_type), "{name}");
        assert!(cost.peak_bytes <= MAX_BYTES, "{name}: {cost:?}");
    }
}

/// Codes of so many pixels of one colour, or a few more: each stands for one pixel more than the last.
fn flat_codes(pixels: u64) -> Vec<u8> {
    let (mut codes, mut made) = (Vec::new(), 0);
    while made < pixels {
        codes.extend([(4, if codes.is_empty() { 3 } else { 12 }), (0, 3)]);
        for code in 6..4096_u32 {
            codes.push((code, u32::BITS - code.leading_zeros()));
        }
        made += 4091 * 4092 / 2;
    }
    codes.push((5, 12));
    gif::pack(&codes)
}
