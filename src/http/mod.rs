//! The HTTP front: people and scripts.
//!
//! ```text
//! request id ─► access log ─► panics ─► room? ─┬─► health, signed links
//!                                              ├─► authentication ─► trials, artifacts, links, quota, me
//!                                              └─► every other path: a JSON 404
//! ```
//!
//! [`router`] is the front, [`around`] the layers that stand around every front. Errors travel as
//! problems and get their body outermost, where the request's id is known.

mod archive;
mod artifacts;
mod body;
mod conditional;
mod content;
mod extract;
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
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::header::{HOST, WWW_AUTHENTICATE};
use http::{HeaderValue, Version};
use tokio_util::sync::CancellationToken;

use openapi::Routes;

use crate::access::{Authenticator, Crowd};
use crate::archive::Archives;
use crate::error::{Error, Kind};
use crate::ledger::WarnAt;
use crate::links::Links;
use crate::listing::Listing;
use crate::quota::Quota;
use crate::read::Reads;
use crate::request::forwarded::Network;
use crate::request::{REQUEST_ID, RequestId, credentials};
use crate::telemetry::health::Health;
use crate::telemetry::otlp::Spans;
use crate::telemetry::request::Notes;
use crate::telemetry::trace::TraceContext;

pub use health::metrics_routes;
pub use problem::Problem;

/// What the front's handlers use.
pub struct Front {
    /// Who asks.
    pub access: Arc<dyn Authenticator>,
    /// The requests that are under way, by key.
    pub crowd: Crowd,
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
    let keyed = keyed_routes().layered(|router| {
        router.route_layer(from_fn_with_state(Arc::clone(&front), authenticate)).route_layer(from_fn(one_host))
    });
    openapi::described(keyed.merge(open_routes()))
        .into_router()
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(front)
}

/// The routes that need a key.
fn keyed_routes() -> Routes {
    artifacts::routes().merge(archive::routes()).merge(links::routes()).merge(quota::routes()).merge(identity::routes())
}

/// The routes that need none.
fn open_routes() -> Routes {
    health::routes().merge(links::public_routes())
}

/// What is told of requests beside their lines in the log.
#[derive(Debug, Default)]
pub struct Observers {
    /// Takes the spans of traces, if anything does.
    pub spans: Option<Spans>,
    /// Of 100 requests that bring no trace so many begin one.
    pub sample_percent: u64,
    /// Proxies that are believed when they say from where a request comes.
    pub trusted_proxies: Vec<Network>,
    /// When people are warned that an allowance goes to its end.
    pub warn_at: WarnAt,
}

/// Which requests there is no room for. Those of probes and of whoever collects metrics always find some.
#[derive(Debug, Clone)]
pub enum Room {
    /// There is room until the service begins to stop.
    UntilDraining(CancellationToken),
    /// The connection is one too many.
    None,
}

/// The layers around every front, outermost first: request id, access log, panics, room.
pub fn around(fronts: Router, room: Room, observers: &Arc<Observers>) -> Router {
    fronts
        .layer(from_fn_with_state(room, refuse_without_room))
        .layer(from_fn_with_state(Arc::clone(observers), identify))
}

async fn not_found() -> Problem {
    Error::new(Kind::NotFound, "Nothing is here. The API begins at /v1.").into()
}

async fn method_not_allowed() -> Problem {
    Error::new(Kind::MethodNotAllowed, "The path does not have this method; the Allow header lists those it has.")
        .into()
}

/// RFC 9112 §3.2: a request of HTTP/1.1 with no Host, or with two, is answered 400. Proxies choose
/// among several in different ways.
async fn one_host(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Problem::from(Error::new(Kind::InvalidRequest, "Send the Host header, once.")).into_response();
    }
    next.run(request).await
}

async fn authenticate(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response {
    let credentials = credentials(request.headers());
    match front.access.authenticate(&credentials).await {
        Ok(principal) => {
            let Some(place) = front.crowd.enter(&principal.key_id) else {
                let most = front.crowd.most();
                let message =
                    format!("This key has {most} requests under way, which is the most it may; wait for one to end.");
                return Problem::from(Error::new(Kind::TooManyRequests, message)).into_response();
            };
            request.extensions_mut().insert(principal);
            next.run(request).await.map(|body| Body::new(body::Placed { body, _place: place }))
        }
        Err(error) => {
            let mut response = Problem::from(error).into_response();
            // RFC 6750 §3.1: say that a token was seen and is not good.
            if credentials.key.is_some() {
                let challenge = HeaderValue::from_static("Bearer realm=\"artifactd\", error=\"invalid_token\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            response
        }
    }
}

async fn refuse_without_room(State(room): State<Room>, request: Request, next: Next) -> Response {
    let refusal = match room {
        Room::UntilDraining(draining) if draining.is_cancelled() => {
            Some((Kind::ShuttingDown, "The service is stopping; try another replica."))
        }
        Room::UntilDraining(_) => None,
        Room::None => {
            Some((Kind::Overloaded, "The service has as many connections as it can carry; try again shortly."))
        }
    };
    match refusal {
        Some((kind, message)) if !matches!(request.uri().path(), "/healthz" | "/readyz" | "/metrics") => {
            Problem::from(Error::new(kind, message)).into_response()
        }
        _ => next.run(request).await,
    }
}

/// Names the request, logs it, and turns what went wrong into an answer, a panic included.
async fn identify(State(observers): State<Arc<Observers>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let trace = observers.spans.as_ref().map(|_| TraceContext::of(request.headers(), observers.sample_percent));
    let notes = Notes::begin(trace);
    let line = log::Line::begin(&request, &id, &notes, &observers);
    let answered = std::panic::AssertUnwindSafe(notes.scope(next.run(request)));
    let response = match futures_util::FutureExt::catch_unwind(answered).await {
        Ok(response) => response,
        Err(panic) => Problem::from(Error::internal(log::panic_text(&*panic))).into_response(),
    };
    let mut response = problem::render(response, &id, observers.warn_at);
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    line.follow(response)
}
