//! The key itself, and the hash that stands for it in the file.

use std::fmt;

use rand::TryRng;
use rand::rngs::SysRng;
use sha2::{Digest, Sha256};

use crate::encoding::hex;

const PREFIX: &str = "epk_";
const RANDOM_BYTES: usize = 32;

/// A key in plain text: `epk_` and 64 lower-case hex digits. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a key of 256 bits of the operating system's randomness.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn generate() -> std::io::Result<Self> {
        let mut random = [0; RANDOM_BYTES];
        SysRng.try_fill_bytes(&mut random).map_err(std::io::Error::other)?;
        Ok(Self(format!("{PREFIX}{}", hex(&random))))
    }

    /// Reads a key. `None` if it does not have the form of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        (digits.len() == 2 * RANDOM_BYTES && is_hex(digits)).then(|| Self(text.to_owned()))
    }

    /// The key, to be shown to its owner or sent to a service, and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the key file holds in its place.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The SHA-256 of a key. Looking a key up by it leaks nothing through timing, since nobody can
/// steer the hash of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Reads 64 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !is_hex(text) {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = nibble(digits[0]) << 4 | nibble(digits[1]);
        }
        Some(Self(hash))
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The value of a digit that [`is_hex`] allows.
const fn nibble(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form_and_no_debug() {
        let key = Secret::generate().expect("randomness");
        assert_eq!(key.expose().len(), 68);
        assert_eq!(Secret::parse(key.expose()), Some(key.clone()));
        assert_ne!(key, Secret::generate().expect("randomness"));
        assert_eq!(format!("{key:?}"), "Secret(…)");
        let zeros = "0".repeat(64);
        for bad in
            ["", "epk_", &zeros, &format!("epk_{zeros}0"), &format!("EPK_{zeros}"), &format!("epk_{}G", &zeros[1..])]
        {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_hash_is_sha_256_of_the_whole_key() {
        let key = Secret::parse(&format!("epk_{}", "0".repeat(64))).expect("well formed");
        let hash = "71672f4926ca3dd51a972e24fb3d6c27cbb9563e5a2834832acb2dae4ae27997";
        assert_eq!(KeyHash::parse(&key.hash().to_string()), Some(key.hash()));
        assert_eq!(key.hash().to_string(), hash);
        assert_eq!(KeyHash::parse(&hash.to_uppercase()), None);
        assert_eq!(KeyHash::parse(&hash[1..]), None);
    }
}
