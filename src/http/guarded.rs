//! What a request passes on its way from the router to its handler.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::{HOST, WWW_AUTHENTICATE};
use http::{HeaderValue, Version};

use super::Front;
use super::body::Placed;
use super::problem::Problem;
use crate::access::crowd::Place;
use crate::error::{Error, Kind};
use crate::request::credentials;
use crate::telemetry::metrics::Route;
use crate::telemetry::request::leads_to;

/// A handler, and what its operation says of the way to it.
#[derive(Clone)]
pub(super) struct Guarded<H> {
    pub(super) handler: H,
    pub(super) route: &'static Route,
    /// Whether a key is needed.
    pub(super) keyed: bool,
}

impl<H, T> Handler<T, Arc<Front>> for Guarded<H>
where
    H: Handler<T, Arc<Front>>,
    T: 'static,
{
    type Future = BoxFuture<'static, Response>;

    fn call(self, mut request: Request, front: Arc<Front>) -> Self::Future {
        async move {
            leads_to(self.route);
            if !self.keyed {
                return self.handler.call(request, front).await;
            }
            match admit(&front, &mut request).await {
                Ok(place) => {
                    let response = self.handler.call(request, front).await;
                    response.map(|body| Body::new(Placed { body, _place: place }))
                }
                Err(refused) => refused,
            }
        }
        .boxed()
    }
}

/// Finds out who asks, notes it with the request, and finds room for it.
async fn admit(front: &Front, request: &mut Request) -> Result<Place, Response> {
    one_host(request).map_err(IntoResponse::into_response)?;
    let credentials = credentials(request.headers());
    match front.access.authenticate(&credentials).await {
        Ok(principal) => {
            let Some(place) = front.crowd.enter(&principal.key_id) else {
                let most = front.crowd.most();
                let message =
                    format!("This key has {most} requests under way, which is the most it may; wait for one to end.");
                return Err(Problem::from(Error::new(Kind::TooManyRequests, message)).into_response());
            };
            request.extensions_mut().insert(principal);
            Ok(place)
        }
        Err(error) => {
            let mut response = Problem::from(error).into_response();
            // RFC 6750 §3.1: say that a token was seen and is not good.
            if credentials.key.is_some() {
                let challenge = HeaderValue::from_static("Bearer realm=\"artifactd\", error=\"invalid_token\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            Err(response)
        }
    }
}

/// RFC 9112 §3.2: a request of HTTP/1.1 with no Host, or with two, is answered 400. Proxies choose
/// among several in different ways.
fn one_host(request: &Request) -> Result<(), Problem> {
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Err(Error::new(Kind::InvalidRequest, "Send the Host header, once.").into());
    }
    Ok(())
}
