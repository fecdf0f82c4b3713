//! Who asks, and what they may do.

use async_trait::async_trait;

pub mod crowd;
pub mod keys;
pub mod me;
pub mod principal;
pub mod upstream;

pub use crowd::Crowd;
pub use keys::{KeyRing, WatchedKeys};
pub use me::Me;
pub use principal::{
    Capabilities, Capability, Credentials, Downloader, KeyKind, Preset, Principal, QuotaManager, QuotaReader, Viewer,
};
pub use upstream::Upstream;

/// Finds out who asks. Every front holds one; it may have to ask elsewhere, so it is asynchronous.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The principal of a request.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `PROJECT_ACCESS_DENIED`, `INVALID_REQUEST`; `ACCESS_UNAVAILABLE` while who
    /// knows the keys does not answer; `INTERNAL_ERROR` while keys cannot be checked at all.
    async fn authenticate(&self, credentials: &Credentials) -> crate::error::Result<Principal>;

    /// The principal that the key of this id is in `project` now, without the key itself: what a
    /// link may do is what the key that issued it may still do.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if there is no such key, or it is disabled or expired;
    /// `PROJECT_ACCESS_DENIED` if it does not speak for the project; otherwise as
    /// [`authenticate`](Self::authenticate).
    async fn still(&self, key_id: &str, project: &crate::artifact::Project) -> crate::error::Result<Principal>;

    /// How long a link may live at most, s: as long as [`still`](Self::still) can be relied on.
    fn link_life_seconds(&self) -> u64;
}
