//! What independent decoders say of a file that is called sound.

use artifactd::artifact::image::Sound;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Decodes the whole file, once with the `image` crate, which is lenient, and once strictly, so that
/// missing data are an error. Failures that are the decoders' own are let pass.
pub fn decodes(bytes: &[u8], sound: Sound) -> Result<(), String> {
    match image::load_from_memory_with_format(bytes, image::ImageFormat::Jpeg) {
        Ok(picture) if (picture.width(), picture.height()) == (sound.width, sound.height) => {}
        Ok(picture) => return Err(format!("{} × {}, not {sound:?}", picture.width(), picture.height())),
        Err(error) if fault_of_decoder(bytes, &error.to_string()).is_some() => {}
        Err(error) => return Err(format!("image: {error}")),
    }
    let strict = DecoderOptions::default().set_strict_mode(true);
    match JpegDecoder::new_with_options(ZCursor::new(bytes), strict).decode() {
        Err(error) if fault_of_decoder(bytes, &format!("{error:?}")).is_none() => Err(format!("strict: {error:?}")),
        _ => Ok(()),
    }
}

/// Sound files that the two do not decode, though others do: why, by what they say.
fn fault_of_decoder(bytes: &[u8], error: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 9] = [
        ("Marker missing where expected", "bytes left over after the first progressive scan"),
        ("table for component", "the tables of T.81 K.3, or none for a component that no scan sends"),
        ("not initialized", "a table that a scan names but does not use"),
        ("Duplicate ID", "component ids that repeat, although the scan's order tells them apart"),
        ("Invalid slice , would panic", "chrominance sampled more finely than luminance"),
        ("is not a power of two", "a sampling factor of 3"),
        ("`DNL` is not supported", "the number of lines given again between scans"),
        ("Extra bytes between headers", "garbage or many fill bytes between segments, strictly"),
        ("Unknown marker in bit stream", "bytes left over that look like a marker, strictly"),
    ];
    let known = KNOWN.iter().find(|(text, _)| error.contains(text)).map(|(_, why)| *why);
    if error.contains("Exhausted data") && bytes.windows(3).any(|three| three == [0xFF, 0xFF, 0xD9]) {
        return Some("fill bytes before EOI, which T.81 B.1.1.2 allows");
    }
    known.or_else(|| {
        restart_marker_before_scan(bytes).then_some("a restart marker between segments, taken for a segment")
    })
}

/// Whether a tolerant decoder passes a restart marker on its way to the first scan.
fn restart_marker_before_scan(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let [first, second, ..] = bytes[at.min(bytes.len())..] {
        match (first, second) {
            (0xFF, 0xDA) => return false,
            (0xFF, 0xD0..=0xD7) => return true,
            (0xFF, 1..=0xFE) => {
                at += 2 + bytes.get(at + 2..at + 4).map_or(2, |b| usize::from(b[0]) << 8 | usize::from(b[1]));
            }
            _ => at += 1,
        }
    }
    false
}
