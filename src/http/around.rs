//! What stands around every front: the request's id, its line in the log, panics, and whether there
//! is room.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::HeaderValue;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::log::{self, Followed};
use super::problem::{self, Problem};
use super::{Front, direct};
use crate::error::{Error, Kind};
use crate::ledger::WarnAt;
use crate::request::forwarded::Network;
use crate::request::{REQUEST_ID, RequestId};
use crate::telemetry::otlp::Spans;
use crate::telemetry::request::Notes;
use crate::telemetry::trace::TraceContext;

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

impl Room {
    /// Why a request is not served; `None` if it is.
    fn refusal(&self) -> Option<Error> {
        match self {
            Self::UntilDraining(draining) if draining.is_cancelled() => {
                Some(Error::new(Kind::ShuttingDown, "The service is stopping; try another replica."))
            }
            Self::UntilDraining(_) => None,
            Self::None => Some(Error::new(
                Kind::Overloaded,
                "The service has as many connections as it can carry; try again shortly.",
            )),
        }
    }
}

/// The fronts, and what stands around them.
///
/// It is no layer of the router: those are boxed, and cloned with everything inside them for each
/// request.
pub struct Around {
    fronts: Router,
    front: Arc<Front>,
    room: Room,
    observers: Arc<Observers>,
}

impl Around {
    /// Stands around `fronts`, of which the one for people and scripts is `front`.
    #[must_use]
    pub const fn new(fronts: Router, front: Arc<Front>, room: Room, observers: Arc<Observers>) -> Self {
        Self { fronts, front, room, observers }
    }

    /// Answers a request that came from `peer`: names it, logs it, and turns what went wrong into an
    /// answer, a panic included.
    pub async fn answer(&self, request: Request, peer: Option<IpAddr>) -> http::Response<Followed> {
        let id = RequestId::of(request.headers());
        let trace =
            self.observers.spans.as_ref().map(|_| TraceContext::of(request.headers(), self.observers.sample_percent));
        let notes = Notes::begin(trace);
        let line = log::Line::begin(&request, &id, peer, &notes, &self.observers);
        let answered = AssertUnwindSafe(notes.scope(self.serve(request, &id))).catch_unwind();
        let response = match answered.await {
            Ok(response) => response,
            Err(panic) => Problem::from(Error::internal(log::panic_text(&*panic))).into_response(),
        };
        let mut response = problem::render(response, &id, self.observers.warn_at);
        if let Ok(value) = HeaderValue::from_str(id.as_str()) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        line.follow(response)
    }

    async fn serve(&self, request: Request, id: &RequestId) -> Response {
        if let Some(refusal) = self.room.refusal()
            && !matches!(request.uri().path(), "/healthz" | "/readyz" | "/metrics")
        {
            return Problem::from(refusal).into_response();
        }
        let (mut head, body) = request.into_parts();
        if let Some(names) = direct::names(&head) {
            return direct::answer(&self.front, id, names, &head).await;
        }
        head.extensions.insert(id.clone());
        let request = Request::from_parts(head, body);
        match self.fronts.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
