//! One line a request, written when its answer has gone out or its client has.

use std::error::Error as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::Method;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::Observers;
use crate::error::Error;
use crate::ledger::{Clock as _, SystemClock};
use crate::request::RequestId;
use crate::request::forwarded;
use crate::telemetry::logs::ACCESS;
use crate::telemetry::metrics;
use crate::telemetry::otlp::Served;
use crate::telemetry::request::{Notes, Phase};

/// What the log says of an answer that its client did not stay for (nginx's number).
const CLIENT_CLOSED: u16 = 499;

/// The line of one request, written when it is dropped; its metrics and its trace, too.
pub(super) struct Line {
    id: RequestId,
    method: Method,
    notes: Arc<Notes>,
    observers: Arc<Observers>,
    status: u16,
    bytes: u64,
    /// Whether the client stayed for all that there was to send.
    stayed: bool,
    /// From where the request comes, if that is known.
    client: Option<IpAddr>,
}

impl Line {
    pub(super) fn begin(
        request: &Request,
        id: &RequestId,
        peer: Option<IpAddr>,
        notes: &Arc<Notes>,
        observers: &Arc<Observers>,
    ) -> Self {
        Self {
            id: id.clone(),
            method: request.method().clone(),
            notes: Arc::clone(notes),
            observers: Arc::clone(observers),
            status: CLIENT_CLOSED,
            bytes: 0,
            stayed: false,
            client: peer.map(|peer| forwarded::client(peer, request.headers(), &observers.trusted_proxies)),
        }
    }

    /// Rides along with the answer's body.
    pub(super) fn follow(mut self, response: Response) -> http::Response<Followed> {
        self.status = response.status().as_u16();
        let head = self.method == Method::HEAD;
        response.map(|body| {
            // Nobody polls a body that has nothing to give.
            self.stayed = head || body.is_end_stream();
            Followed { body, line: self }
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let status = if self.stayed { self.status } else { CLIENT_CLOSED };
        let (notes, method) = (&*self.notes, metrics::method(&self.method));
        // The pattern and never the path: paths carry names and tokens.
        let route = notes.route().pattern();
        let took = notes.elapsed();
        tracing::info!(
            target: ACCESS,
            request_id = %self.id,
            client = self.client.map(tracing::field::display),
            key_id = notes.key_id(),
            method,
            route,
            status,
            bytes = self.bytes,
            charge = notes.charged(),
            ms = (took.as_secs_f64() * 1e6).round() / 1e3,
            auth_ms = notes.ms(Phase::Auth),
            stat_ms = notes.ms(Phase::Stat),
            reserve_ms = notes.ms(Phase::Reserve),
            store_ms = notes.ms(Phase::Store),
            verdict_ms = notes.ms(Phase::Verdict),
            trace_id = notes.trace.map(|trace| format!("{:032x}", trace.trace_id)),
        );
        notes.route().answered(method, status, self.bytes, took);
        if let Some(spans) = &self.observers.spans {
            let now_ns = SystemClock.now_ms().saturating_mul(1_000_000);
            spans.take(&Served { notes, route, method, status, request_id: self.id.as_str(), now_ns });
        }
    }
}

/// The body of an answer, and the line that is written when it has gone out.
pub struct Followed {
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
            // The service cuts it, and not the client: the status that went out stands.
            Some(Err(error)) => {
                let request_id = &self.line.id;
                if is_fault(error) {
                    tracing::error!(%request_id, ?error, "the answer was cut");
                } else {
                    tracing::warn!(%request_id, ?error, "the answer was cut");
                }
                self.line.stayed = true;
            }
            None => self.line.stayed = true,
        }
        self.line.stayed |= self.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether an operator should see to it: not to a file that its run went on writing.
fn is_fault(error: &axum::Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let known = causes.find_map(|cause| cause.downcast_ref::<Error>());
    known.is_none_or(|error| error.kind().status() >= 500)
}

/// The message that a panic carried, if it carried text.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without a message"))
}
