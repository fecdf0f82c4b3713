//! Who asks, and what they may do.

use async_trait::async_trait;

pub mod keys;
pub mod me;
pub mod principal;

pub use keys::{KeyRing, WatchedKeys};
pub use me::Me;
pub use principal::{Capability, Credentials, Downloader, KeyKind, Preset, Principal, QuotaReader, Viewer};

/// Finds out who asks. Every front holds one; it may have to ask elsewhere, so it is asynchronous.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The principal of a request.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `PROJECT_ACCESS_DENIED`, `INVALID_REQUEST`; `INTERNAL_ERROR` while keys
    /// cannot be checked at all.
    async fn authenticate(&self, credentials: &Credentials) -> crate::error::Result<Principal>;
}
