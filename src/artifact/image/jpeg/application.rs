//! The few things in application segments (T.81 B.2.4.6) that make readers give up. Whatever else is
//! in them is no condition for decoding the image.

/// Whether the parameters of APPn, whose code is `marker`, end inside a field that readers take for
/// granted, or name a colour transform that is none.
pub(super) fn is_bad(marker: u8, parameters: &[u8]) -> bool {
    match marker & 15 {
        // The version behind the name: JFIF 1.02.
        0 if parameters.starts_with(b"JFIF") => parameters.len() < 7,
        // The transform at its end: none, YCbCr or YCCK (Adobe Technical Note 5116).
        14 if parameters.starts_with(b"Adobe") => parameters.get(11).is_none_or(|&transform| transform > 2),
        // The chunk's number and how many there are: ICC.1 B.4.
        2 if parameters.starts_with(b"ICC_PROFILE\0") => parameters.len() < 14,
        // The last image resource ends behind its identifier, before its name.
        13 if parameters.starts_with(b"Photoshop 3.0\0") => {
            parameters[14..].last_chunk::<6>().is_some_and(|last| last.starts_with(b"8BIM"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_bad;

    #[test]
    fn only_known_names_have_conditions() {
        let cases: [(u8, &[u8], bool); 16] = [
            (0xE0, b"JFIF\0\x01", true),
            (0xE0, b"JFIF\0\x01\x02", false),
            (0xE0, b"JFXX\0", false),
            (0xE0, b"", false),
            (0xE1, b"JFIF\0", false),
            (0xEE, b"Adobe\0", true),
            (0xEE, b"Adobe\0\x64\0\0\0\0", true),
            (0xEE, b"Adobe\0\x64\0\0\0\0\x02", false),
            (0xEE, b"Adobe\0\x64\0\0\0\0\x03", true),
            (0xE2, b"ICC_PROFILE\0\x01", true),
            (0xE2, b"ICC_PROFILE\0\x01\x01", false),
            (0xE2, b"ICC_PROFILE", false),
            (0xED, b"Photoshop 3.0\08BIM\x03\xED", true),
            (0xED, b"Photoshop 3.0\08BIM\x03\xED\0", false),
            (0xED, b"Photoshop 3.0\08BIM", false),
            (0xED, b"Photoshop 3.0\0", false),
        ];
        for (marker, parameters, bad) in cases {
            assert_eq!(is_bad(marker, parameters), bad, "{marker:#x} {}", parameters.escape_ascii());
        }
    }
}
