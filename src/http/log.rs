//! One line a request, written when its answer has gone out or its client has.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use bytes::Bytes;
use http::Method;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::request::RequestId;

/// What the log says of an answer that its client did not stay for (nginx's number).
const CLIENT_CLOSED: u16 = 499;

/// The line of one request, written when it is dropped.
pub(super) struct Line {
    id: RequestId,
    method: Method,
    /// The route's pattern and never the path: paths carry names and tokens.
    route: String,
    begun: Instant,
    status: u16,
    bytes: u64,
    whole: bool,
}

impl Line {
    pub(super) fn begin(request: &Request, id: &RequestId) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
        Self {
            id: id.clone(),
            method: request.method().clone(),
            route: route.to_owned(),
            begun: Instant::now(),
            status: CLIENT_CLOSED,
            bytes: 0,
            whole: false,
        }
    }

    /// Rides along with the answer's body.
    pub(super) fn follow(mut self, response: Response) -> Response {
        self.status = response.status().as_u16();
        let head = self.method == Method::HEAD;
        response.map(|body| {
            // Nobody polls a body that has nothing to give.
            self.whole = head || body.is_end_stream();
            Body::new(Followed { body, line: self })
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let status = if self.whole { self.status } else { CLIENT_CLOSED };
        tracing::info!(
            target: "artifactd::access",
            request_id = %self.id,
            method = %self.method,
            route = self.route,
            status,
            bytes = self.bytes,
            ms = self.begun.elapsed().as_millis(),
        );
    }
}

struct Followed {
    body: Body,
    line: Line,
}

impl HttpBody for Followed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.line.bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) => {}
            None => self.line.whole = true,
        }
        self.line.whole |= self.body.is_end_stream() && !matches!(frame, Some(Err(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The message that a panic carried, if it carried text.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without a message"))
}
