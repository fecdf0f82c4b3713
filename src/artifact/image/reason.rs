//! Why a file is not shown as an image: a closed list, in plain words, each with its place.

use std::fmt;

/// Why a file is not shown. Positions are byte offsets in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Larger than [`MAX_BYTES`](super::MAX_BYTES).
    TooLarge {
        /// The file's size.
        bytes: u64,
    },
    /// A side is longer than [`MAX_SIDE`](super::MAX_SIDE).
    TooManyPixels {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// The file, or the part that must hold it, ends before the image does.
    Truncated {
        /// Where it ends.
        at: u64,
    },
    /// Something in the file is wrong.
    Corrupt {
        /// What, as a phrase: `bad CRC in chunk tEXt`.
        what: String,
        /// Where.
        at: u64,
    },
    /// Sound perhaps, but reading it takes more than an image may cost.
    TooCostly {
        /// What there is too much of, as a phrase: `68384 frames`.
        what: String,
    },
    /// A variant of the format that interfaces do not take: `arithmetic-coded JPEG`.
    Unsupported {
        /// Which, as a phrase.
        what: &'static str,
    },
}

impl Reason {
    /// [`Reason::Corrupt`] at an offset.
    pub(super) fn corrupt(what: impl Into<String>, at: usize) -> Self {
        Self::Corrupt { what: what.into(), at: at as u64 }
    }

    /// [`Reason::Truncated`] at an offset.
    pub(super) const fn truncated(at: usize) -> Self {
        Self::Truncated { at: at as u64 }
    }

    /// The reason's short name, which programs may go by.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::TooManyPixels { .. } => "too_many_pixels",
            Self::Truncated { .. } => "truncated",
            Self::Corrupt { .. } => "corrupt",
            Self::TooCostly { .. } => "too_costly",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// What is behind it, in plain words, as a phrase.
    #[must_use]
    pub fn explanation(&self) -> String {
        match self {
            Self::TooLarge { bytes } => {
                let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
                format!("{}.{} MiB, and images of up to 3 MiB are shown", tenths / 10, tenths % 10)
            }
            Self::TooManyPixels { width, height } => format!("{width} × {height} px, and up to 8000 a side are shown"),
            Self::Truncated { at } => format!("the image breaks off at byte {at}"),
            Self::Corrupt { what, at } => format!("{what} at byte {at}"),
            Self::TooCostly { what } => what.clone(),
            Self::Unsupported { what } => (*what).to_owned(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.explanation())
    }
}
