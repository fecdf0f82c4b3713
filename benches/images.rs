//! The verdict on images: how fast it is beside decoders, and what it takes of each file of a corpus.
//!
//! `cargo bench --bench images -- rates FILE…` prints a line for each format: the files, their bytes,
//! and the processor time of verdict, `image` and zune for them. (`benches/images.py` makes files for it
//! and adds Pillow.) `image` and zune decode whole, of a GIF all frames; zune knows PNG and JPEG.
//!
//! `cargo bench --bench images -- corpus MANIFEST` judges each file that a table names, in a process of
//! its own. The table is of tab-separated columns with a head; `path` is relative to it, and `expect` is
//! `image`, `metadata` or `either`. It fails if a file of `metadata` is sound, if more than one in 150 of
//! `image` are refused, or if a verdict takes more than half a second or 40 MiB (100 MiB for the code
//! tables of a lossless WebP).

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that reports to a terminal")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use artifactd::artifact::image::verdict;
use artifactd::artifact::media::ImageFormat;
use image::AnimationDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder as PngReader;
use image::codecs::webp::WebPDecoder;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_png::PngDecoder;

#[path = "../tests/support/apart.rs"]
mod apart;

const ROUNDS: usize = 5;
const MAX_CPU: Duration = Duration::from_millis(500);
const MAX_PEAK: u64 = 40 << 20;
const MAX_PEAK_OF_TABLES: u64 = 100 << 20;

fn main() -> ExitCode {
    if apart::run(|file| verdict(file).map(|sound| sound.media_type.to_owned()).map_err(|reason| reason.to_string())) {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rates", ref files @ ..] => rates(files),
        ["corpus", manifest] => return corpus(Path::new(manifest)),
        _ => println!("cargo bench --bench images -- rates FILE… | corpus MANIFEST"),
    }
    ExitCode::SUCCESS
}

fn rates(files: &[&str]) {
    let mut formats: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let format = ImageFormat::of(&bytes).unwrap_or_else(|| panic!("{file} is no image"));
        verdict(&bytes).unwrap_or_else(|reason| panic!("{file}: {reason}"));
        formats.entry(format.media_type()).or_default().push(bytes);
    }
    for (format, files) in formats {
        let bytes: usize = files.iter().map(Vec::len).sum();
        print!("{format} files={} bytes={bytes} verdict={}", files.len(), median(&files, |file| verdict(file).is_ok()));
        print!(" image={}", median(&files, |file| by_image(format, file)));
        match format {
            "image/png" => print!(" zune={}", median(&files, by_zune_png)),
            "image/jpeg" => print!(" zune={}", median(&files, by_zune_jpeg)),
            _ => {}
        }
        println!();
    }
}

/// Microseconds of processor time for all files, the median of some rounds.
fn median(files: &[Vec<u8>], work: impl Fn(&[u8]) -> bool) -> u128 {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = apart::cpu_time();
            assert!(files.iter().all(|file| black_box(work(black_box(file)))));
            apart::cpu_time() - begun
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2].as_micros()
}

fn by_image(format: &str, file: &[u8]) -> bool {
    let file = Cursor::new(file);
    let whole = |mut frames: image::Frames<'_>| frames.all(|frame| frame.is_ok());
    match format {
        "image/gif" => whole(GifDecoder::new(file).unwrap().into_frames()),
        "image/webp" if WebPDecoder::new(file.clone()).unwrap().has_animation() => {
            whole(WebPDecoder::new(file).unwrap().into_frames())
        }
        "image/png" if PngReader::new(file.clone()).unwrap().is_apng().unwrap() => {
            whole(PngReader::new(file).unwrap().apng().unwrap().into_frames())
        }
        _ => image::ImageReader::new(file).with_guessed_format().unwrap().decode().is_ok(),
    }
}

fn by_zune_png(file: &[u8]) -> bool {
    PngDecoder::new(ZCursor::new(file)).decode().is_ok()
}

fn by_zune_jpeg(file: &[u8]) -> bool {
    JpegDecoder::new(ZCursor::new(file)).decode().is_ok()
}

fn corpus(manifest: &Path) -> ExitCode {
    let table = std::fs::read_to_string(manifest).unwrap();
    let mut lines = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|title| *title == name).unwrap_or_else(|| panic!("no {name}"));
    let (path, expect) = (column("path"), column("expect"));
    let (mut counted, mut shown, mut refused) = (BTreeMap::<_, usize>::new(), Vec::new(), Vec::new());
    let (mut costly, mut dearest) = (Vec::new(), (Duration::ZERO, 0));
    for line in lines {
        let (name, expect) = (line[path], line[expect]);
        let file = std::fs::read(manifest.parent().unwrap().join(name)).unwrap();
        let cost = apart::judge(Command::new(std::env::current_exe().unwrap()), &file, 1);
        *counted.entry((expect, cost.verdict.is_ok())).or_default() += 1;
        match (expect, &cost.verdict) {
            ("metadata", Ok(media_type)) => shown.push(format!("{name}: {media_type}")),
            ("image", Err(reason)) => refused.push(format!("{name}: {reason}")),
            _ => {}
        }
        let is_webp = ImageFormat::of(&file) == Some(ImageFormat::Webp);
        let most = if is_webp { MAX_PEAK_OF_TABLES } else { MAX_PEAK };
        if cost.cpu > MAX_CPU || cost.peak_bytes > most {
            costly.push(format!("{name}: {:?}, {} bytes", cost.cpu, cost.peak_bytes));
        }
        if cost.peak_bytes > MAX_PEAK {
            println!("more than 40 MiB: {name}: {} bytes", cost.peak_bytes);
        }
        dearest = (dearest.0.max(cost.cpu), dearest.1.max(cost.peak_bytes));
    }
    for ((expect, sound), count) in &counted {
        println!("{count:>5} files that should be {expect:9} are {}", if *sound { "shown" } else { "refused" });
    }
    println!("at most {:?} of processor time and {} bytes of memory", dearest.0, dearest.1);
    for (title, names) in [("SHOWN", &shown), ("refused", &refused), ("COSTLY", &costly)] {
        names.iter().for_each(|name| println!("{title} {name}"));
    }
    let images = counted.iter().filter(|((expect, _), _)| *expect == "image").map(|(_, count)| count).sum::<usize>();
    if shown.is_empty() && costly.is_empty() && refused.len() * 150 <= images {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
