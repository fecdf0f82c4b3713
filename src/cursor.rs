//! Opaque cursors: where the next page of a listing begins.
//!
//! A cursor carries the position and a check over the listing that it belongs to, so that one used
//! elsewhere is an error and not a wrong page. It is no secret and grants nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::error::{Error, Kind, Result};

const CHECK_BYTES: usize = 8;

/// A cursor of `listing` (a text that tells it from all others) at `position`.
#[must_use]
pub fn write(listing: &str, position: &str) -> String {
    let mut bytes = check(listing, position).to_vec();
    bytes.extend_from_slice(position.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position that [`write`](write()) put into a cursor of the same listing.
///
/// # Errors
/// `INVALID_CURSOR`.
pub fn read(listing: &str, cursor: &str) -> Result<String> {
    let position = || {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (sum, position) = bytes.split_at_checked(CHECK_BYTES)?;
        let position = std::str::from_utf8(position).ok()?;
        (sum == check(listing, position)).then(|| position.to_owned())
    };
    position().ok_or_else(|| {
        Error::new(
            Kind::InvalidCursor,
            "cursor is the next_cursor of a page of this same listing, asked with the same filters.",
        )
    })
}

fn check(listing: &str, position: &str) -> [u8; CHECK_BYTES] {
    let sum = Sha256::new().chain_update(listing).chain_update([0]).chain_update(position).finalize();
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&sum[..CHECK_BYTES]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_listing() {
        let cursor = write("p/t/", "p/t/日");
        assert_eq!(read("p/t/", &cursor).expect("own"), "p/t/日");
        for (listing, cursor) in [("p/u/", cursor.as_str()), ("p/t/", "AAAA"), ("p/t/", ""), ("p/t/", "not base64!")] {
            assert_eq!(read(listing, cursor).expect_err("refused").kind(), &Kind::InvalidCursor);
        }
    }
}
