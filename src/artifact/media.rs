//! What kind of file it is.

/// The media type of a name's extension.
#[must_use]
pub fn media_type_by_name(_name: &str) -> &'static str {
    "application/octet-stream"
}
