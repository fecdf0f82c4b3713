//! No bytes make the verdict panic, and what it calls sound decodes to the last frame, in `image` and
//! in `png` at its strictest.
#![no_main]

use std::io::Cursor;

use flate2::{Decompress, FlushDecompress};
use image::codecs::png::PngDecoder;
use image::{AnimationDecoder, ImageDecoder};
use libfuzzer_sys::fuzz_target;
use artifactd::artifact::image::{Sound, verdict};

/// Pixels of all frames beyond which decoding them all is too slow for a fuzzer.
const MAX_PIXELS: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut mended = bytes.to_vec();
    if mend(&mut mended).is_some() {
        check(&mended);
    }
});

fn check(bytes: &[u8]) {
    if let Ok(sound) = verdict(bytes)
        && u64::from(sound.width) * u64::from(sound.height) * u64::from(sound.frames) <= MAX_PIXELS
    {
        strict(bytes, sound);
        lenient(bytes, sound);
    }
}

fn strict(bytes: &[u8], sound: Sound) {
    let mut options = png::DecodeOptions::default();
    options.set_ignore_adler32(false);
    options.set_skip_ancillary_crc_failures(false);
    let mut reader = png::Decoder::new_with_options(Cursor::new(bytes), options).read_info().expect("a header");
    assert_eq!((reader.info().width, reader.info().height), (sound.width, sound.height));
    let mut buffer = vec![0; reader.output_buffer_size().expect("a size")];
    // `png` takes an animation that plays 2^31 times for a still image.
    let is_animated = reader.info().animation_control.is_some();
    let is_apart = is_animated && reader.info().frame_control.is_none();
    let stored = if is_animated { sound.frames + u32::from(is_apart) } else { 1 };
    for n in 0..stored {
        if let Err(error) = reader.next_frame(&mut buffer) {
            panic!("frame {n} of {stored}: {error}");
        }
    }
}

fn lenient(bytes: &[u8], sound: Sound) {
    let decoder = PngDecoder::new(Cursor::new(bytes)).expect("a header");
    assert_eq!(decoder.dimensions(), (sound.width, sound.height));
    if decoder.is_apng().expect("a header") {
        let frames = decoder.apng().expect("an animation").into_frames();
        let count = frames.map(|frame| frame.expect("a frame that decodes")).count();
        assert_eq!(count, sound.frames as usize);
    } else {
        let mut buffer = vec![0; usize::try_from(decoder.total_bytes()).expect("a size")];
        decoder.read_image(&mut buffer).expect("an image that decodes");
    }
}

/// Sets right each CRC and each Adler-32, which no fuzzer finds by itself.
fn mend(bytes: &mut [u8]) -> Option<()> {
    let chunks = chunks(bytes);
    let mut at = 0;
    while at < chunks.len() {
        let kind = &bytes[chunks[at].0 + 4..chunks[at].0 + 8];
        let skip = match kind {
            b"IDAT" => 0,
            b"fdAT" => 4,
            _ => {
                at += 1;
                continue;
            }
        };
        let kind = kind.to_vec();
        let run = chunks[at..].iter().take_while(|(from, _)| bytes[from + 4..from + 8] == kind).count();
        let places: Vec<usize> = chunks[at..at + run]
            .iter()
            .flat_map(|&(from, length)| from + 8 + skip.min(length)..from + 8 + length)
            .collect();
        let stream: Vec<u8> = places.iter().map(|&place| bytes[place]).collect();
        if let Some((end, adler)) = adler(&stream) {
            for (place, byte) in places.iter().skip(end).zip(adler.to_be_bytes()) {
                bytes[*place] = byte;
            }
        }
        at += run;
    }
    for (from, length) in chunks {
        let crc = crc32fast::hash(&bytes[from + 4..from + 8 + length]);
        bytes[from + 8 + length..from + 12 + length].copy_from_slice(&crc.to_be_bytes());
    }
    Some(())
}

/// Offset and length of the data of each whole chunk.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 8;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        if at + 12 + length > bytes.len() {
            break;
        }
        found.push((at, length));
        at += 12 + length;
    }
    found
}

/// Where the Adler-32 of a zlib stream is, and what it must be.
fn adler(stream: &[u8]) -> Option<(usize, u32)> {
    let mut inflater = Decompress::new(false);
    let mut out = vec![0; 1 << 20];
    let status = inflater.decompress(stream.get(2..)?, &mut out, FlushDecompress::Finish).ok()?;
    if status != flate2::Status::StreamEnd {
        return None;
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in &out[..inflater.total_out() as usize] {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    Some((2 + inflater.total_in() as usize, b << 16 | a))
}
