//! The HTTP front: people and scripts.
//!
//! ```text
//! request id ─► access log ─► panics ─► room? ─┬─► health, signed links
//!                                              ├─► authentication ─► trials, artifacts, links, quota, me
//!                                              ├─► an artifact's content, past the router
//!                                              └─► every other path: a JSON 404
//! ```
//!
//! [`router`] is the front, [`Around`] what stands around every front. Whether a route needs a key, the
//! description of its operation says. Errors travel as problems and get their body outermost, where the
//! request's id is known.

mod archive;
mod around;
mod artifacts;
mod body;
mod conditional;
mod content;
mod direct;
mod extract;
mod guarded;
mod headers;
mod health;
mod identity;
mod links;
mod log;
mod openapi;
mod problem;
mod quota;
mod ratelimit;

use std::sync::Arc;

use axum::Router;
use axum::extract::MatchedPath;
use tokio_util::sync::CancellationToken;

use openapi::Routes;

use crate::access::{Authenticator, Crowd};
use crate::archive::Archives;
use crate::error::{Error, Kind};
use crate::links::Links;
use crate::listing::Listing;
use crate::quota::Quota;
use crate::read::Reads;
use crate::telemetry::health::Health;
use crate::telemetry::metrics::Route;
use crate::telemetry::request::leads_to;

pub use around::{Around, Observers, Room};
pub use health::metrics_routes;
pub use problem::Problem;

/// What the front's handlers use.
pub struct Front {
    /// Who asks.
    pub access: Arc<dyn Authenticator>,
    /// The requests that are under way, by key.
    pub of_key: Crowd,
    /// And by project.
    pub of_project: Crowd,
    /// What there is.
    pub listing: Arc<Listing>,
    /// The bytes of it.
    pub reads: Arc<Reads>,
    /// Many of them as one file.
    pub archives: Arc<Archives>,
    /// Links to them.
    pub links: Arc<Links>,
    /// What they cost.
    pub quota: Arc<Quota>,
    /// How store, ledger and keys are doing.
    pub health: Health,
    /// Cancelled when the service begins to stop.
    pub draining: CancellationToken,
}

/// The front's routes.
pub fn router(front: Arc<Front>) -> Router {
    openapi::described(routes())
        .into_router()
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(front)
}

fn routes() -> Routes {
    artifacts::routes()
        .merge(archive::routes())
        .merge(links::routes())
        .merge(quota::routes())
        .merge(identity::routes())
        .merge(health::routes())
}

async fn not_found() -> Problem {
    Error::new(Kind::NotFound, "Nothing is here. The API begins at /v1.").into()
}

async fn method_not_allowed(path: MatchedPath) -> Problem {
    leads_to(Route::of(path.as_str()));
    Error::new(Kind::MethodNotAllowed, "The path does not have this method; the Allow header lists those it has.")
        .into()
}
