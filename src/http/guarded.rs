//! What a request passes on its way from the router to its handler.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::{HOST, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Version};

use super::Front;
use super::body::Placed;
use super::problem::Problem;
use crate::access::crowd::Place;
use crate::access::{Crowd, Principal};
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

    fn call(self, request: Request, front: Arc<Front>) -> Self::Future {
        async move {
            leads_to(self.route);
            if !self.keyed {
                return self.handler.call(request, front).await;
            }
            let (mut head, body) = request.into_parts();
            match admit(&front, &head).await {
                Ok((who, places)) => {
                    head.extensions.insert(who);
                    places.held_by(self.handler.call(Request::from_parts(head, body), front).await)
                }
                Err(refused) => refused,
            }
        }
        .boxed()
    }
}

/// The places that a request has among those of its key, and of its project.
pub(super) struct Places {
    _of_key: Place,
    _of_project: Option<Place>,
}

impl Places {
    fn take(front: &Front, who: &Principal) -> Result<Self, Error> {
        let room = |crowd: &Crowd, name: &str, whose: &str| {
            crowd.enter(name).ok_or_else(|| {
                let most = crowd.most();
                let message =
                    format!("{whose} has {most} requests under way, which is the most it may; wait for one to end.");
                Error::new(Kind::TooManyRequests, message)
            })
        };
        let of_key = room(&front.of_key, &who.key_id, "This key")?;
        let project = who.project.as_ref().map(|project| room(&front.of_project, project.id.as_str(), "This project"));
        Ok(Self { _of_key: of_key, _of_project: project.transpose()? })
    }

    /// Holds the places until the last of the answer went out.
    pub(super) fn held_by(self, response: Response) -> Response {
        response.map(|body| Body::new(Placed { body, _places: self }))
    }
}

/// Finds out who asks, and finds room for it.
pub(super) async fn admit(front: &Front, request: &Parts) -> Result<(Principal, Places), Response> {
    one_host(request).map_err(IntoResponse::into_response)?;
    let credentials = credentials(&request.headers);
    match front.access.authenticate(&credentials).await {
        Ok(principal) => {
            let places = Places::take(front, &principal).map_err(|full| Problem::from(full).into_response())?;
            Ok((principal, places))
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
fn one_host(request: &Parts) -> Result<(), Problem> {
    let hosts = request.headers.get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version == Version::HTTP_11) {
        return Err(Error::new(Kind::InvalidRequest, "Send the Host header, once.").into());
    }
    Ok(())
}
