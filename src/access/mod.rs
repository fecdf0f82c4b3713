//! Who asks, and what they may do.

pub mod principal;

pub use principal::{Capability, Credentials, Downloader, KeyKind, Preset, Principal, QuotaReader, Viewer};
