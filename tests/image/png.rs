//! The verdict on PNG, rule by rule.

use crate::fixtures::png::*;
use artifactd::artifact::image::{Sound, verdict};
use image::{DynamicImage, ImageFormat};

#[test]
fn what_an_encoder_makes_is_sound() {
    let picture = DynamicImage::from(crate::fixtures::picture(67, 41));
    let kinds = [
        picture.to_luma8().into(),
        picture.to_luma16().into(),
        picture.to_luma_alpha8().into(),
        picture.to_luma_alpha16().into(),
        picture.to_rgb8().into(),
        picture.to_rgb16().into(),
        picture.to_rgba8().into(),
        picture.to_rgba16().into(),
    ];
    for kind in kinds {
        let kind: DynamicImage = kind;
        let file = crate::fixtures::encode(&kind, ImageFormat::Png);
        let expected = Sound { media_type: "image/png", width: 67, height: 41, frames: 1 };
        assert_eq!(sound(&format!("{:?}", kind.color()), &file), expected);
    }
}

#[test]
fn each_colour_type_and_depth_with_and_without_interlace() {
    for colour in 0..=7 {
        for depth in 0..=17 {
            for interlace in 0..=2 {
                let samples = match (colour, depth) {
                    (0, 1 | 2 | 4 | 8 | 16) | (3, 1 | 2 | 4 | 8) => Some(1),
                    (4, 8 | 16) => Some(2),
                    (2, 8 | 16) => Some(3),
                    (6, 8 | 16) => Some(4),
                    _ => None,
                };
                for (width, height) in [(1, 1), (2, 3), (5, 5), (9, 7), (16, 1), (1, 16)] {
                    let name = format!("colour {colour}, depth {depth}, interlace {interlace}, {width} × {height}");
                    let bits = samples.unwrap_or(1) * usize::from(depth);
                    let raw = if interlace == 1 {
                        adam7(width, height, bits)
                    } else {
                        rows((width * bits).div_ceil(8), height)
                    };
                    let make = |raw: &[u8]| {
                        let palette = if colour == 3 { vec![chunk(b"PLTE", &[7; 768])] } else { vec![] };
                        let head = ihdr(width as u32, height as u32, depth, colour, interlace);
                        file(&[vec![head], palette, vec![idat(raw), iend()]].concat())
                    };
                    if samples.is_some() && interlace < 2 {
                        // Indices beyond the palette cannot occur: it has 256 entries.
                        sound(&name, &make(&raw));
                        refused(&name, &make(&raw[..raw.len() - 1]), "fewer rows");
                        if interlace == 1 {
                            refused(&name, &make(&[&raw[..raw.len()], &[0; 65_537]].concat()), "more pixels");
                        }
                    } else {
                        refused(
                            &name,
                            &make(&raw),
                            if samples.is_some() { "interlace" } else { "colour type or depth" },
                        );
                    }
                }
            }
        }
    }
}

/// The rows of the seven passes, from the pattern in figure 8.1 of the specification.
fn adam7(width: usize, height: usize, bits: usize) -> Vec<u8> {
    const PATTERN: [[u8; 8]; 8] = [
        [1, 6, 4, 6, 2, 6, 4, 6],
        [7; 8],
        [5, 6, 5, 6, 5, 6, 5, 6],
        [7; 8],
        [3, 6, 4, 6, 3, 6, 4, 6],
        [7; 8],
        [5, 6, 5, 6, 5, 6, 5, 6],
        [7; 8],
    ];
    let mut out = Vec::new();
    for pass in 1..=7 {
        for y in 0..height {
            let pixels = (0..width).filter(|x| PATTERN[y % 8][x % 8] == pass).count();
            if pixels > 0 {
                out.extend(rows((pixels * bits).div_ceil(8), 1));
            }
        }
    }
    out
}

#[test]
fn the_header() {
    let first = |data: &[u8]| with(small(), 0, &[chunk(b"IHDR", data)]);
    let good = [0, 0, 0, 4, 0, 0, 0, 4, 8, 0, 0, 0, 0];
    sound("good", &first(&good));
    refused("12 bytes", &first(&good[..12]), "12 bytes instead of 13 in chunk IHDR at byte 8");
    refused("14 bytes", &first(&[&good[..], &[0]].concat()), "14 bytes instead of 13");
    for (at, value, reason) in [
        (3, 0, "no pixels at byte 16"),
        (7, 0, "no pixels"),
        (0, 0x80, "too_many_pixels: 2147483652 × 4"),
        (10, 1, "compression or filter"),
        (11, 1, "compression or filter"),
        (11, 64, "compression or filter"),
        (12, 2, "interlace"),
    ] {
        let mut data = good;
        data[at] = value;
        refused(&format!("byte {at} = {value}"), &first(&data), reason);
    }
    for (width, height, outcome) in [(8000, 1, true), (8001, 1, false), (1, 8000, true), (1, 8001, false)] {
        let bytes = file(&[ihdr(width, height, 8, 0, 0), idat(&rows(width as usize, height as usize)), iend()]);
        assert_eq!(verdict(&bytes).is_ok(), outcome, "{width} × {height}");
    }
    refused("missing", &file(&small()[1..]), "the first chunk is not IHDR at byte 8");
    refused("not first", &before(small(), 0, &[chunk(b"tEXt", b"a\0b")]), "the first chunk is not IHDR");
    refused("twice", &before(small(), 1, &small()[..1]), "a second header");
    refused("twice, late", &before(small(), 2, &small()[..1]), "a second header");
}

#[test]
fn chunks() {
    for kind in [b"tE\xC4t", b"tEX1", b"\0\0\0\0", b"te t"] {
        refused("name", &before(small(), 1, &[chunk(kind, b"")]), "not four letters at byte 37");
        refused("name after the data", &before(small(), 2, &[chunk(kind, b"")]), "not four letters");
    }
    for kind in [b"prVt", b"teXT", b"oFFs", b"zzZz", b"vpAg", b"text"] {
        sound("unknown and ancillary", &before(small(), 1, &[chunk(kind, b"whatever")]));
        sound("unknown and ancillary, late", &before(small(), 2, &[chunk(kind, b"whatever")]));
    }
    for kind in [b"CgBI", b"IDAX", b"PLTe"] {
        refused("unknown and critical", &before(small(), 1, &[chunk(kind, b"")]), "unknown critical chunk");
        refused("unknown and critical, late", &before(small(), 2, &[chunk(kind, b"")]), "unknown critical chunk");
    }
    for length in [0x8000_0000u32, u32::MAX] {
        let mut bad = chunk(b"tEXt", b"");
        bad[..4].copy_from_slice(&length.to_be_bytes());
        refused("length", &before(small(), 1, &[bad]), "exceeds the format's limit at byte 33");
    }
    let mut bad = chunk(b"tEXt", b"a\0b");
    bad[..4].copy_from_slice(&0x7FFF_FFFFu32.to_be_bytes());
    let bytes = before(small(), 1, &[bad]);
    refused("longer than the file", &bytes, &format!("truncated: the image breaks off at byte {}", bytes.len()));
}

#[test]
fn every_chunk_must_have_its_crc() {
    let plain = before(small(), 1, &[chunk(b"tEXt", b"a\0b"), chunk(b"gAMA", &[0, 0, 1, 0])]);
    for bytes in [plain, file(&animated())] {
        sound("before", &bytes);
        let mut at = 8;
        while at < bytes.len() {
            let length = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            let name = String::from_utf8(bytes[at + 4..at + 8].to_vec()).unwrap();
            for byte in at + 8..at + 12 + length {
                let mut bad = bytes.clone();
                bad[byte] ^= 1;
                refused(&name, &bad, &format!("bad CRC in chunk {name} at byte {at}"));
            }
            at += 12 + length;
        }
    }
}

#[test]
fn the_palette() {
    let indexed = |palette: &[Vec<u8>], late: &[Vec<u8>]| {
        file(&[&[ihdr(4, 4, 2, 3, 0)], palette, &[idat(&rows(1, 4))], late, &[iend()]].concat())
    };
    let plte = |bytes: usize| chunk(b"PLTE", &vec![9; bytes]);
    sound("4 colours", &indexed(&[plte(12)], &[]));
    sound("an index beyond it", &indexed(&[plte(3)], &[]));
    sound("256 colours", &indexed(&[plte(768)], &[]));
    refused("none", &indexed(&[], &[]), "no palette before the image data");
    refused("late", &indexed(&[], &[plte(12)]), "no palette before the image data");
    refused("late too", &indexed(&[plte(12)], &[plte(12)]), "a second palette");
    refused("twice", &indexed(&[plte(12), plte(12)], &[]), "a second palette");
    for bytes in [0, 1, 2, 4, 11, 13, 769, 771] {
        refused("length", &indexed(&[plte(bytes)], &[]), "wrong length in chunk PLTE at byte 33");
    }
    sound("a grey image's", &before(small(), 1, &[plte(12)]));
    refused("a grey image's, late", &before(small(), 2, &[plte(12)]), "a palette after the image data");
}

#[test]
fn lengths_of_ancillary_chunks() {
    for (kind, length) in
        [(b"gAMA", 4), (b"cHRM", 32), (b"sRGB", 1), (b"pHYs", 9), (b"cICP", 4), (b"mDCV", 24), (b"cLLI", 8)]
    {
        for wrong in [0, 1, length - 1, length, length + 1, 40] {
            for index in [1, 2] {
                let bytes = before(small(), index, &[chunk(kind, &vec![0; wrong])]);
                assert_eq!(verdict(&bytes).is_ok(), wrong == length, "{kind:?}, {wrong} bytes");
            }
        }
    }
    let cases: [(u8, &[usize], &[usize]); 5] = [
        (0, &[2], &[0, 1, 3, 6]),
        (2, &[6], &[0, 2, 5, 7]),
        (3, &[1, 2, 4, 200, 256], &[0, 257]),
        (4, &[0, 2, 6], &[]),
        (6, &[0, 2, 6], &[]),
    ];
    for (colour, good, bad) in cases {
        let samples = [1, 0, 3, 1, 2, 0, 4][usize::from(colour)];
        let make = |length: usize| {
            let chunks = [
                ihdr(4, 4, 8, colour, 0),
                chunk(b"PLTE", &[1; 768]),
                chunk(b"tRNS", &vec![0; length]),
                idat(&rows(4 * samples, 4)),
                iend(),
            ];
            file(&chunks)
        };
        for &length in good {
            sound("tRNS", &make(length));
        }
        for &length in bad {
            refused("tRNS", &make(length), "wrong length in chunk tRNS");
        }
    }
}

#[test]
fn colour_and_background_chunks() {
    for (code_points, good) in
        [([1, 13, 0, 1], true), ([9, 16, 0, 0], true), ([1, 13, 1, 1], false), ([1, 13, 0, 2], false)]
    {
        let bytes = before(small(), 1, &[chunk(b"cICP", &code_points)]);
        if good {
            sound("cICP", &bytes);
        } else {
            refused("cICP", &bytes, "impossible code points");
        }
    }
    let indexed = |order: [Vec<u8>; 2]| {
        let [first, second] = order;
        file(&[ihdr(4, 4, 8, 3, 0), first, second, idat(&rows(4, 4)), iend()])
    };
    let (palette, background) = (chunk(b"PLTE", &[7; 768]), chunk(b"bKGD", &[3]));
    sound("bKGD", &indexed([palette.clone(), background.clone()]));
    refused("bKGD too early", &indexed([background, palette]), "no palette before it in chunk bKGD");
}

#[test]
fn texts_and_profiles_are_looked_at_but_not_judged() {
    let at = |index, kind: &[u8; 4], data: &[u8]| before(small(), index, &[chunk(kind, data)]);
    for index in [1, 2] {
        for garbage in [&b"garbage"[..], b"", &zlib(b"text"), &zlib(b"text")[..6]] {
            sound("iCCP", &at(index, b"iCCP", &[b"name\0\0", garbage].concat()));
            sound("zTXt", &at(index, b"zTXt", &[b"name\0\0", garbage].concat()));
            sound("iTXt", &at(index, b"iTXt", &[b"name\0\x01\0en\0n\0", garbage].concat()));
            sound("eXIf", &at(index, b"eXIf", garbage));
        }
        refused("iCCP method", &at(index, b"iCCP", b"name\0\x01data"), "unknown compression method in chunk iCCP");
        refused("iCCP without NUL", &at(index, b"iCCP", b"name"), "no profile");
        refused("iCCP without method", &at(index, b"iCCP", b"name\0"), "no profile");
        refused("zTXt method", &at(index, b"zTXt", b"name\0\x09data"), "unknown compression method in chunk zTXt");
        sound("zTXt without NUL", &at(index, b"zTXt", b"name"));
        for text in [
            &b"name"[..],
            b"name\0",
            b"name\0\x01",
            b"name\0\x01\0",
            b"name\0\x01\0en\0",
            b"name\0\x01\x07a\0b\0c",
            b"\xFF\0\0\0\0\0\xFF\xFE",
        ] {
            sound("iTXt cut short or wrong", &at(index, b"iTXt", text));
        }
        sound("tEXt", &at(index, b"tEXt", b"\xFF\xFE"));
    }
}

#[test]
fn what_texts_inflate_to_is_bounded() {
    let mib = 1 << 20;
    for prefix in [(b"iCCP", &b"name\0\0"[..]), (b"zTXt", b"name\0\0"), (b"iTXt", b"name\0\x01\0\0\0")] {
        let text = |size: usize| chunk(prefix.0, &[prefix.1, &zlib(&vec![b' '; size])].concat());
        for index in [1, 2] {
            sound("just below 1 MiB", &before(small(), index, &[text(mib - 1)]));
            for size in [mib, mib + 1, 8 * mib] {
                refused("1 MiB", &before(small(), index, &[text(size)]), "too_costly: inflating chunk");
            }
        }
        sound("64 texts", &before(small(), 1, &vec![text(mib - 1); 64]));
        refused("65 texts", &before(small(), 1, &vec![text(mib - 1); 65]), "too_costly: inflating chunk");
    }
}

#[test]
fn image_data() {
    let raw = rows(4, 4);
    let stream = zlib(&raw);
    let data = |pieces: &[&[u8]]| {
        let pieces: Vec<_> = pieces.iter().map(|piece| chunk(b"IDAT", piece)).collect();
        with(small(), 1, &pieces)
    };
    sound("one chunk", &data(&[&stream]));
    sound("a byte each", &data(&stream.chunks(1).collect::<Vec<_>>()));
    sound("empty chunks between", &data(&[b"", &stream[..5], b"", b"", &stream[5..], b""]));
    sound("bytes behind the stream", &data(&[&stream, b"behind", b"more"]));
    refused("none", &data(&[]), "no image data");
    refused("empty", &data(&[b""]), "the compressed data end early");
    refused("not zlib", &data(&[b"\x1F\x8B\x08\0\0\0\0\0\0\x03"]), "broken compressed data");
    refused("raw deflate", &data(&[&stream[2..]]), "broken compressed data");
    refused("a dictionary", &data(&[&[&[0x78, 0xBB], &stream[2..]].concat()]), "broken compressed data");
    for end in 0..stream.len() {
        refused("stream cut short", &data(&[&stream[..end]]), "the compressed data end early");
    }
    for byte in stream.len() - 4..stream.len() {
        let mut bad = stream.clone();
        bad[byte] ^= 0x10;
        refused("Adler-32", &data(&[&bad]), "broken compressed data");
    }
    let pieces = [chunk(b"IDAT", &stream[..5]), chunk(b"tEXt", b"a\0b"), chunk(b"IDAT", &stream[5..])];
    refused("not consecutive", &with(small(), 1, &pieces), "the compressed data end early");
    let pieces = [chunk(b"IDAT", &stream), chunk(b"tEXt", b"a\0b"), chunk(b"IDAT", b"")];
    refused("not consecutive, complete", &with(small(), 1, &pieces), "image data that are not consecutive");
}

#[test]
fn rows_are_counted_and_filters_known() {
    let data = |raw: &[u8]| with(small(), 1, &[idat(raw)]);
    for missing in 1..=20 {
        refused("rows missing", &data(&rows(4, 4)[..20 - missing]), "fewer rows");
    }
    sound("one row more", &data(&rows(4, 5)));
    sound("64 KiB more", &data(&[rows(4, 4), vec![9; 65_536]].concat()));
    refused("64 KiB and 1 more", &data(&[rows(4, 4), vec![9; 65_537]].concat()), "more pixels");
    refused("a bomb", &data(&[rows(4, 4), vec![9; 8 << 20]].concat()), "more pixels");
    for filter in 0..=255 {
        for row in 0..4 {
            let mut raw = rows(4, 4);
            raw[row * 5] = filter;
            let verdict = verdict(&data(&raw));
            match verdict {
                Ok(_) => assert!(filter <= 4, "filter {filter} in row {row}"),
                Err(reason) => assert!(filter > 4 && reason.to_string().contains("unknown filter"), "{reason}"),
            }
        }
    }
}

#[test]
fn the_end() {
    refused("none", &file(&small()[..2]), "truncated");
    refused("4 bytes", &with(small(), 2, &[chunk(b"IEND", &[0; 4])]), "4 bytes instead of 0 in chunk IEND");
    refused("no data before it", &file(&[ihdr(4, 4, 8, 0, 0), iend()]), "no image data");
    for tail in [&b"\0"[..], b"\n", b"PK\x03\x04zip", b"<html>", SIGNATURE, &file(&small()), &chunk(b"IDAT", b"x")] {
        sound("something behind it", &[&file(&small()), tail].concat());
    }
}
