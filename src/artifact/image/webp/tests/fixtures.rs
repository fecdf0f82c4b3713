//! Files made for the tests: containers by hand, lossy frames with the boolean encoder, lossless ones
//! by `image` and bit by bit.

use crate::artifact::image::webp::vp8::writer::{BoolWriter, header_with_ends, header_without_updates};

/// A chunk, padded.
pub(super) fn chunk(name: &str, payload: &[u8]) -> Vec<u8> {
    let mut chunk = name.as_bytes().to_vec();
    chunk.extend(u32::try_from(payload.len()).expect("small").to_le_bytes());
    chunk.extend(payload);
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

/// A file of these chunks.
pub(super) fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    chunk("RIFF", &[b"WEBP".to_vec(), chunks.concat()].concat())
}

/// Three bytes, the lowest first.
fn three(n: u32) -> [u8; 3] {
    let [a, b, c, _] = n.to_le_bytes();
    [a, b, c]
}

/// A `VP8X` chunk.
pub(super) fn vp8x(flags: u8, width: u32, height: u32) -> Vec<u8> {
    chunk("VP8X", &[&[flags, 0, 0, 0][..], &three(width - 1), &three(height - 1)].concat())
}

/// An `ANIM` chunk.
pub(super) fn anim() -> Vec<u8> {
    chunk("ANIM", &[0; 6])
}

/// An `ANMF` chunk at even offsets.
pub(super) fn anmf(left: u32, top: u32, width: u32, height: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let head = [three(left / 2), three(top / 2), three(width - 1), three(height - 1), three(40)].concat();
    chunk("ANMF", &[head, vec![0], chunks.concat()].concat())
}

/// How a lossy frame is to be written.
#[derive(Clone, Copy)]
pub(super) struct Lossy {
    pub(super) width: u16,
    pub(super) height: u16,
    /// Whether macroblocks name segments.
    pub(super) segments: bool,
    /// Probability that a macroblock has coefficients.
    pub(super) skip: Option<u8>,
    /// Logarithm of the number of token partitions.
    pub(super) partitions: u32,
    /// Changes what the macroblocks say.
    pub(super) seed: u32,
}

impl Lossy {
    /// A frame of a given size, without any option.
    pub(super) const fn plain(width: u16, height: u16) -> Self {
        Self { width, height, segments: false, skip: None, partitions: 0, seed: 1 }
    }

    /// The frame: its macroblocks are what noise decodes to.
    pub(super) fn frame(self) -> Vec<u8> {
        let mut bools = BoolWriter::default();
        bools.number(0, 2);
        bools.number(self.segments.into(), 1);
        if self.segments {
            bools.number(0b11, 2); // a map, and data
            bools.number(1, 1);
            for (value, bits) in [(5, 7), (6, 7), (7, 7), (8, 7), (1, 6), (2, 6), (3, 6), (4, 6)] {
                bools.number(1, 1);
                bools.number(value, bits);
                bools.number(1, 1);
            }
            for prob in [100, 50, 200] {
                bools.number(1, 1);
                bools.number(prob, 8);
            }
        }
        bools.number(1 << 9 | 20 << 3 | 3, 10); // filter type, level, sharpness
        bools.number(0b11, 2); // adjustments of the filter
        (0..8).for_each(|i| bools.number(if i % 2 == 0 { 1 << 7 | 9 << 1 } else { 0 }, if i % 2 == 0 { 8 } else { 1 }));
        bools.number(self.partitions, 2);
        bools.number(60, 7);
        (0..5).for_each(|i| bools.number(if i == 2 { 1 << 5 | 3 << 1 } else { 0 }, if i == 2 { 6 } else { 1 }));
        bools.number(1, 1);
        header_without_updates(&mut bools);
        bools.number(self.skip.is_some().into(), 1);
        if let Some(prob) = self.skip {
            bools.number(prob.into(), 8);
        }
        let macroblocks = usize::from(self.width.div_ceil(16)) * usize::from(self.height.div_ceil(16));
        noise(self.seed, macroblocks * 16).iter().for_each(|byte| bools.number((*byte).into(), 8));
        let first = bools.finish();
        let count = 1_usize << self.partitions;
        let parts: Vec<Vec<u8>> = (0..count)
            .map(|i| {
                let mut part = noise(self.seed + 7 + u32::try_from(i).expect("few"), macroblocks * 900 / count + 900);
                part[0] &= 0x7f;
                part
            })
            .collect();
        let tag = u32::try_from(first.len()).expect("small") << 5 | 0x10;
        let mut frame = three(tag).to_vec();
        frame.extend([0x9d, 0x01, 0x2a]);
        frame.extend(self.width.to_le_bytes());
        frame.extend(self.height.to_le_bytes());
        frame.extend(first);
        parts[..count - 1].iter().for_each(|part| frame.extend(three(u32::try_from(part.len()).expect("small"))));
        parts.iter().for_each(|part| frame.extend(part));
        frame
    }

    /// A frame whose macroblocks all have the same modes and no coefficients, but say so block by block.
    pub(super) fn flat_frame(self) -> Vec<u8> {
        let mut bools = BoolWriter::default();
        bools.number(0, 14); // no options
        bools.number(0, 15); // one partition, quantizers, and whether probabilities last
        header_with_ends(&mut bools, 255);
        bools.number(0, 1);
        let mut tokens = BoolWriter::default();
        let macroblocks = u32::from(self.width.div_ceil(16)) * u32::from(self.height.div_ceil(16));
        for _ in 0..macroblocks {
            // DC_PRED for luma, then for chroma.
            for (bit, prob) in [(true, 145), (false, 156), (false, 163), (false, 142)] {
                bools.write(bit, prob);
            }
            (0..25).for_each(|_| tokens.write(false, 255));
        }
        let first = bools.finish();
        let tag = u32::try_from(first.len()).expect("small") << 5 | 0x10;
        let mut frame = three(tag).to_vec();
        frame.extend([0x9d, 0x01, 0x2a]);
        frame.extend(self.width.to_le_bytes());
        frame.extend(self.height.to_le_bytes());
        frame.extend(first);
        frame.extend(tokens.finish());
        frame
    }

    /// The frame as a file.
    pub(super) fn file(self) -> Vec<u8> {
        riff(&[chunk("VP8 ", &self.frame())])
    }
}

/// Bytes without a pattern.
pub(super) fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()[1]
        })
        .collect()
}

/// A lossless file, as `image` writes it: a gradient, some noise, and repeats.
pub(super) fn encoded(width: u32, height: u32) -> Vec<u8> {
    let pixels: Vec<u8> = (0..width * height)
        .flat_map(|i| {
            let (x, y) = (i % width, i / width);
            let noise = if y % 3 == 0 { (i.wrapping_mul(0x9e37_79b9) >> 27).to_le_bytes()[0] } else { 0 };
            let [x, y] = [x.to_le_bytes()[0], y.to_le_bytes()[0]];
            [x.wrapping_mul(5), y.wrapping_mul(9), noise, if x % 4 == 0 { 0 } else { 255 }]
        })
        .collect();
    let mut file = Vec::new();
    image::codecs::webp::WebPEncoder::new_lossless(&mut file)
        .encode(&pixels, width, height, image::ExtendedColorType::Rgba8)
        .expect("encoded");
    file
}

/// The payload of the only chunk of a file.
pub(super) fn payload(file: &[u8]) -> Vec<u8> {
    let size = u32::from_le_bytes(file[16..20].try_into().expect("four")) as usize;
    file[20..20 + size].to_vec()
}

/// Writes bits, the lowest first.
#[derive(Default, Clone)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    /// A lossless image's header.
    pub(super) fn header(width: u32, height: u32) -> Self {
        Self::default().put(0x2f, 8).put(width - 1, 14).put(height - 1, 14).put(0, 4)
    }

    pub(super) fn put(mut self, value: u32, bits: u32) -> Self {
        for bit in 0..bits {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if value >> bit & 1 == 1 {
                *self.bytes.last_mut().expect("one") |= 1 << (self.used % 8);
            }
            self.used += 1;
        }
        self
    }

    /// A code of one symbol, which takes no bits.
    pub(super) fn one(self, symbol: u32) -> Self {
        self.put(0b101, 3).put(symbol, 8)
    }

    /// A code of two symbols of a bit each.
    pub(super) fn two(self, first: u32, second: u32) -> Self {
        self.put(0b111, 3).put(first, 8).put(second, 8)
    }

    /// A code with these lengths, up to 15, each written in four bits.
    pub(super) fn lengths(self, lengths: &[u32]) -> Self {
        let mut bits = self.put(0, 1).put(15, 4);
        // The order of code length codes; the first three are the repeats, unused.
        for symbol in [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
            bits = bits.put(if symbol < 16 { 4 } else { 0 }, 3);
        }
        bits = bits.put(1, 1).put(3, 3).put(u32::try_from(lengths.len()).expect("few") - 2, 8);
        lengths.iter().fold(bits, |bits, length| bits.put(length.reverse_bits() >> 28, 4))
    }

    /// The codes of an image of one colour.
    pub(super) fn flat(self) -> Self {
        self.one(1).one(2).one(3).one(255).one(0)
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bits as a lossless file.
    pub(super) fn file(self) -> Vec<u8> {
        riff(&[chunk("VP8L", &self.bytes)])
    }
}

/// One colour everywhere: twenty-odd bytes, whatever the size.
pub(super) fn flat(width: u32, height: u32) -> Vec<u8> {
    Bits::header(width, height).put(0, 3).flat().put(0, 8).bytes()
}

/// A lossy image with a lossless alpha plane.
pub(super) fn with_alpha() -> Vec<u8> {
    let plane = [vec![1], Bits::default().put(0, 3).flat().put(0, 8).bytes()].concat();
    riff(&[vp8x(0x10, 20, 18), chunk("ALPH", &plane), chunk("VP8 ", &Lossy::plain(20, 18).frame())])
}

/// Three frames, lossless, lossy and lossy with alpha.
pub(super) fn animated() -> Vec<u8> {
    let alpha = [vec![0], vec![77; 256]].concat();
    let lossy = Lossy::plain(16, 16).frame();
    riff(&[
        vp8x(0x12, 24, 20),
        anim(),
        anmf(0, 0, 24, 20, &[chunk("VP8L", &payload(&encoded(24, 20)))]),
        anmf(8, 4, 16, 16, &[chunk("VP8 ", &lossy)]),
        anmf(2, 0, 16, 16, &[chunk("ALPH", &alpha), chunk("VP8 ", &lossy)]),
    ])
}

/// A sound file.
pub(super) struct Fixture {
    pub(super) what: &'static str,
    pub(super) file: Vec<u8>,
    pub(super) size: (u32, u32),
    pub(super) frames: u32,
}

/// One of each kind.
pub(super) fn all() -> [Fixture; 7] {
    let lossy = Lossy { segments: true, skip: Some(120), partitions: 1, ..Lossy::plain(33, 20) };
    let extended = riff(&[vp8x(0, 19, 17), chunk("VP8L", &payload(&encoded(19, 17)))]);
    let still = |what, file, width, height| Fixture { what, file, size: (width, height), frames: 1 };
    [
        still("lossy", Lossy::plain(16, 16).file(), 16, 16),
        still("lossy with options", lossy.file(), 33, 20),
        still("lossless", encoded(19, 17), 19, 17),
        still("flat", riff(&[chunk("VP8L", &flat(30, 30))]), 30, 30),
        still("alpha", with_alpha(), 20, 18),
        still("extended", extended, 19, 17),
        Fixture { frames: 3, ..still("animated", animated(), 24, 20) },
    ]
}
