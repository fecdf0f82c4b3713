//! What an agent sees of images: the picture, or each reason why not, kept as files.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::golden::{check, shown, without_times};
use super::world::World;

const PLENTY: u64 = 1 << 40;

/// A grey square of four pixels.
fn png() -> Vec<u8> {
    BASE64_STANDARD
        .decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR42mNoaGBoaAAABgYCATGpHqEAAAAASUVORK5CYII=")
        .expect("base64")
}

/// The picture, with other bytes at this place.
fn patched(mut picture: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    picture[at..at + bytes.len()].copy_from_slice(bytes);
    picture
}

/// One lossless pixel.
fn webp() -> Vec<u8> {
    BASE64_STANDARD.decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==").expect("base64")
}

/// One grey block of 8 x 8 pixels, with `more` segments in front of its frame.
fn jpeg(more: &[u8]) -> Vec<u8> {
    let dqt = [&b"\xff\xdb\0\x43\0"[..], &[1; 64]].concat();
    // Each table has one code, of one bit, for the symbol 0.
    let dht = |class: u8| [&[0xff, 0xc4, 0, 20, class, 1][..], &[0; 16]].concat();
    let frame = b"\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0";
    let scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x3f\xff\xd9";
    [b"\xff\xd8", &dqt[..], &dht(0), &dht(0x10), more, frame, scan].concat()
}

/// So many frames of one pixel.
fn gif(frames: usize) -> Vec<u8> {
    let screen = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff";
    let frame = b",\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0";
    [screen, frame.repeat(frames).as_slice(), b";"].concat()
}

#[tokio::test]
async fn every_format_and_every_reason() {
    let large = [png(), vec![0; 3 << 20]].concat();
    // Width 8001, with the checksum that goes with it.
    let wide = patched(patched(png(), 16, &8001_u32.to_be_bytes()), 29, &wide_crc());
    for (kind, file) in [
        ("png", png()),
        ("jpeg", jpeg(b"")),
        ("gif", gif(1)),
        ("gif_animated", gif(3)),
        ("webp", webp()),
        ("too_large", large),
        ("too_many_pixels", wide),
        ("truncated", png()[..60].to_vec()),
        ("corrupt", patched(png(), 50, b"\xff")),
        ("too_costly", gif(10_001)),
        ("unsupported", jpeg(b"\xff\xcc\0\x04\0\x10")),
    ] {
        let world = World::new(PLENTY, &[("agent/shot", &file)]);
        check(&format!("read/image_{kind}.txt"), &shown(&world.read("agent/shot", json!({})).await));
    }
}

#[tokio::test]
async fn what_is_not_shown_comes_with_a_link_where_links_are_made() {
    let (broken, zip) = (&png()[..60], b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0");
    let world = World::with_links(&[("shot \u{202e}\u{2713}.png", broken), ("all.zip", zip)]);
    for (kind, name) in [("image_link", "shot \u{202e}\u{2713}.png"), ("zip_link", "all.zip")] {
        let mut text = without_times(&shown(&world.read(name, json!({})).await));
        let token = text.find("/download/").expect("a link") + "/download/".len();
        let end = token + text[token..].find('/').expect("a name behind the token");
        assert!(end - token > 100, "{text}");
        text.replace_range(token..end, "TOKEN");
        check(&format!("read/{kind}.txt"), &text);
    }
}

/// The CRC of a header of 8001 by 2 pixels, 8 bits of grey (PNG §5.5).
fn wide_crc() -> [u8; 4] {
    let header = patched(png(), 16, &8001_u32.to_be_bytes());
    crc32fast::hash(&header[12..29]).to_be_bytes()
}
