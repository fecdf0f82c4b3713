//! Who asks, noted with the request.

use std::sync::Arc;

use async_trait::async_trait;

use crate::access::{Authenticator, Credentials, Principal};
use crate::artifact::Project;
use crate::error::Result;
use crate::telemetry::request::{Phase, asks, timing};

/// Another authenticator, observed.
pub struct ObservedAccess(Arc<dyn Authenticator>);

impl ObservedAccess {
    /// Observes `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Authenticator>) -> Self {
        Self(inner)
    }
}

fn noted(principal: Result<Principal>) -> Result<Principal> {
    principal.inspect(|principal| asks(&principal.key_id))
}

#[async_trait]
impl Authenticator for ObservedAccess {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        let _timing = timing(Phase::Auth);
        noted(self.0.authenticate(credentials).await)
    }

    async fn still(&self, key_id: &str, project: &Project) -> Result<Principal> {
        let _timing = timing(Phase::Auth);
        noted(self.0.still(key_id, project).await)
    }

    fn link_life_seconds(&self) -> u64 {
        self.0.link_life_seconds()
    }
}
