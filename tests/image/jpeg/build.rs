//! Hand-built JPEG files: segments as bytes, entropy-coded data bit by bit.

pub const SOI: [u8; 2] = [0xFF, 0xD8];
pub const EOI: [u8; 2] = [0xFF, 0xD9];

/// A marker segment.
pub fn segment(marker: u8, parameters: &[u8]) -> Vec<u8> {
    let length = u16::try_from(parameters.len() + 2).expect("short parameters");
    [&[0xFF, marker], &length.to_be_bytes()[..], parameters].concat()
}

/// An 8-bit quantisation table of ones.
pub fn dqt(id: u8) -> Vec<u8> {
    segment(0xDB, &[&[id], &[1; 64][..]].concat())
}

/// A Huffman table whose codes all have 4 bits: the code of a symbol is its index.
pub fn dht(class_and_id: u8, symbols: &[u8]) -> Vec<u8> {
    let mut counts = [0; 16];
    counts[3] = u8::try_from(symbols.len()).expect("few symbols");
    segment(0xC4, &[&[class_and_id], &counts[..], symbols].concat())
}

/// The DC sizes that [`Bits::dc`] can write.
pub const DC: [u8; 5] = [0, 1, 2, 11, 15];
/// The AC symbols that [`Bits::ac`] can write.
pub const AC: [u8; 15] = [0x00, 0x01, 0xF0, 0x11, 0x10, 0x20, 0x30, 0xE0, 0x02, 0xE1, 0xF1, 0x0A, 0xFA, 0x71, 0x50];

/// The tables that most files use: quantisation 0, DC 0, AC 0.
pub fn tables() -> Vec<u8> {
    [dqt(0), dht(0x00, &DC), dht(0x10, &AC)].concat()
}

/// A frame header; a component is its id and `h << 4 | v`, and uses quantisation table 0.
pub fn sof(marker: u8, width: u16, height: u16, components: &[(u8, u8)]) -> Vec<u8> {
    let mut parameters = vec![8];
    parameters.extend(height.to_be_bytes());
    parameters.extend(width.to_be_bytes());
    parameters.push(u8::try_from(components.len()).expect("few components"));
    parameters.extend(components.iter().flat_map(|&(id, sampling)| [id, sampling, 0]));
    segment(marker, &parameters)
}

/// A scan header whose components all use the tables 0.
pub fn sos(ids: &[u8], start: u8, end: u8, high: u8, low: u8) -> Vec<u8> {
    let mut parameters = vec![u8::try_from(ids.len()).expect("few components")];
    parameters.extend(ids.iter().flat_map(|&id| [id, 0]));
    parameters.extend([start, end, high << 4 | low]);
    segment(0xDA, &parameters)
}

/// A scan header of a sequential file.
pub fn sos_all(ids: &[u8]) -> Vec<u8> {
    sos(ids, 0, 63, 0, 0)
}

pub fn dri(interval: u16) -> Vec<u8> {
    segment(0xDD, &interval.to_be_bytes())
}

/// Entropy-coded data in the making.
#[derive(Default, Clone)]
pub struct Bits {
    bits: Vec<bool>,
}

impl Bits {
    pub fn new() -> Self {
        Self::default()
    }

    /// The lowest `count` bits of `value`.
    pub fn raw(mut self, value: u32, count: u32) -> Self {
        self.bits.extend((0..count).rev().map(|bit| value.checked_shr(bit).is_some_and(|bits| bits & 1 == 1)));
        self
    }

    fn symbol(self, symbols: &[u8], symbol: u8) -> Self {
        let code = symbols.iter().position(|&other| other == symbol).expect("a symbol of the table");
        self.raw(u32::try_from(code).expect("4 bits"), 4)
    }

    /// A DC size and that many zero bits.
    pub fn dc(self, size: u8) -> Self {
        self.symbol(&DC, size).raw(0, u32::from(size))
    }

    /// An AC symbol and the zero bits that belong to it: of a value, or of an end-of-band run.
    pub fn ac(self, symbol: u8) -> Self {
        let extra = match (symbol >> 4, symbol & 15) {
            (15, 0) => 0,
            (run, 0) => run,
            (_, size) => size,
        };
        self.symbol(&AC, symbol).raw(0, u32::from(extra))
    }

    /// Blocks without any coefficient, of a sequential scan.
    pub fn flat(self, blocks: usize) -> Self {
        (0..blocks).fold(self, |bits, _| bits.dc(0).ac(0))
    }

    pub fn repeat(self, times: usize, f: impl Fn(Self) -> Self) -> Self {
        (0..times).fold(self, |bits, _| f(bits))
    }

    /// Padded with ones and stuffed.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for eight in self.bits.chunks(8) {
            let padded = eight.iter().copied().chain(std::iter::repeat(true)).take(8);
            let byte = padded.fold(0u8, |byte, bit| byte << 1 | u8::from(bit));
            bytes.push(byte);
            if byte == 0xFF {
                bytes.push(0);
            }
        }
        bytes
    }
}

/// A sequential grey file around a scan's data.
pub fn grey(width: u16, height: u16, data: &[u8]) -> Vec<u8> {
    [&SOI[..], &tables(), &sof(0xC0, width, height, &[(1, 0x11)]), &sos_all(&[1]), data, &EOI].concat()
}

/// A progressive grey file of `blocks` blocks in a row around what follows the first DC scan.
pub fn progressive(blocks: u16, scans: &[Vec<u8>]) -> Vec<u8> {
    let dc = Bits::new().repeat(usize::from(blocks), |bits| bits.dc(0));
    let frame = sof(0xC2, 8 * blocks, 8, &[(1, 0x11)]);
    [&SOI[..], &tables(), &frame, &sos(&[1], 0, 0, 0, 1), &dc.bytes(), &scans.concat(), &EOI].concat()
}

/// Files that cover every kind of scan, each a few hundred bytes, with a name.
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let rich = Bits::new().dc(2).ac(0x11).ac(0xF0).ac(0x02).ac(0).dc(11).ac(0xFA).ac(0xE1).ac(0xE1).ac(0x01).ac(0);
    let colour = [(1, 0x22), (2, 0x11), (3, 0x11)];
    let restarts = [
        &SOI[..],
        &tables(),
        &dri(1),
        &sof(0xC0, 16, 16, &[(1, 0x11)]),
        &sos_all(&[1]),
        &Bits::new().flat(1).bytes(),
        &[0xFF, 0xD0],
        &Bits::new().dc(2).ac(0x11).ac(0).bytes(),
        &[0xFF, 0xD1],
        &Bits::new().flat(1).bytes(),
        &[0xFF, 0xD2],
        &Bits::new().flat(1).bytes(),
        &EOI,
    ];
    let interleaved = [
        &SOI[..],
        &tables(),
        &sof(0xC1, 17, 16, &colour),
        &sos_all(&[1, 2, 3]),
        &Bits::new().flat(4).dc(1).ac(0x01).ac(0).flat(7).bytes(),
        &EOI,
    ];
    let apart = [
        &SOI[..],
        &tables(),
        &sof(0xC0, 16, 16, &colour),
        &sos_all(&[1]),
        &Bits::new().flat(4).bytes(),
        &sos_all(&[2]),
        &Bits::new().flat(1).bytes(),
        &sos_all(&[3]),
        &Bits::new().flat(1).bytes(),
        &EOI,
    ];
    let first = Bits::new().ac(0x01).ac(0x11).ac(0).ac(0x01).ac(0x10);
    // Block 0 has coefficients 1 and 3, block 1 has 1: a new 2 in block 0 and its two corrections.
    let refine = Bits::new().ac(0x01).raw(0, 1).ac(0x10).raw(1, 1).raw(0, 1).ac(0);
    let bands = [
        sos(&[1], 1, 63, 0, 1),
        first.bytes(),
        sos(&[1], 0, 0, 1, 0),
        Bits::new().raw(0, 3).bytes(),
        sos(&[1], 1, 63, 1, 0),
        refine.bytes(),
    ];
    vec![
        ("sequential", grey(16, 8, &rich.bytes())),
        ("restarts", restarts.concat()),
        ("interleaved", interleaved.concat()),
        ("apart", apart.concat()),
        ("progressive", progressive(3, &bands)),
        ("encoded", encoded(24, 17, 60)),
    ]
}

/// A colourful image as the `image` crate encodes it.
pub fn encoded(width: u32, height: u32, quality: u8) -> Vec<u8> {
    let byte = |value: u32| u8::try_from(value % 256).expect("below 256");
    let picture = image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([byte(x * 7 + y), byte(x * y), byte(255 - 3 * y + x * x)])
    });
    let mut bytes = Vec::new();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, quality);
    picture.write_with_encoder(encoder).expect("encodes");
    bytes
}
