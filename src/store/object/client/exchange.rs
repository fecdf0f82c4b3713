//! One request, and the head of its answer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::CONNECTION;
use http::response::Parts;
use http::{Response, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use object_store::client::{HttpError, HttpRequest, HttpRequestBody};

use super::super::super::buffers::Buffers;
use super::body::{Body, Counted, Framed};
use super::connect::Stream;
use super::failure;
use super::idle::{Host, Idle};

/// The longest head of an answer, and what hyper reads ahead at most.
const MAX_HEAD_BYTES: usize = 64 << 10;

pub(super) type Connection = http1::Connection<Stream, HttpRequestBody>;

/// Where a connection goes when its answer has come, and what it is read into until then.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) host: Host,
    pub(super) idle: Arc<Idle>,
    pub(super) buffers: Arc<Buffers>,
    /// Whether it is good for another request.
    pub(super) reusable: bool,
}

impl Home {
    /// Takes a connection on which nothing more is to come.
    pub(super) fn take_in(self, stream: Stream) {
        if self.reusable {
            self.idle.put(self.host, stream);
        }
    }
}

/// Sends a request by a connection that has no other.
///
/// # Errors
/// There is no answer, or its head is not sound.
pub(super) async fn send(stream: Stream, request: HttpRequest, mut home: Home) -> Result<Response<Body>, HttpError> {
    // What of a body is yet to be sent when the answer comes would be lost with hyper's part of the connection.
    let whole = request.body().is_end_stream();
    let mut http1 = http1::Builder::new();
    let (mut sender, mut connection) =
        http1.max_buf_size(MAX_HEAD_BYTES).handshake::<_, HttpRequestBody>(stream).await.map_err(failure::of)?;
    let mut answer = pin!(sender.send_request(request));
    let answer = poll_fn(|cx| {
        // How it fails is told to the answer, too.
        let _ = connection.poll_without_shutdown(cx);
        answer.as_mut().poll(cx)
    });
    let (parts, incoming) = answer.await.map_err(failure::of)?.into_parts();
    home.reusable = whole && stays_open(&parts);
    let body = match incoming.size_hint().exact() {
        Some(length) if whole => counted(length, incoming, connection, home)?,
        _ => Body::Framed(Box::new(Framed { source: Some((connection, home)), incoming })),
    };
    Ok(Response::from_parts(parts, body))
}

/// Whether the connection is good for another request (RFC 9112 §9.3).
fn stays_open(parts: &Parts) -> bool {
    let options = parts.headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    parts.version == Version::HTTP_11 && !says_close(options)
}

/// Whether one of the values of `Connection` does.
pub(super) fn says_close<'a>(values: impl Iterator<Item = &'a str>) -> bool {
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// The connection itself, once hyper has given back what it has read of the body.
fn counted(length: u64, mut incoming: Incoming, connection: Connection, home: Home) -> Result<Body, HttpError> {
    let mut early = VecDeque::new();
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(frame)) = Pin::new(&mut incoming).poll_frame(&mut context) {
        early.extend(frame.map_err(failure::of)?.into_data().ok());
    }
    let http1::Parts { io, read_buf, .. } = connection.into_parts();
    early.push_back(read_buf);
    early.retain(|bytes: &Bytes| !bytes.is_empty());
    Ok(Body::Counted(Counted::new(length, early, io, home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_stays_open_unless_its_end_is_said() {
        for (version, connection, open) in [
            (Version::HTTP_11, &[][..], true),
            (Version::HTTP_11, &["keep-alive"], true),
            (Version::HTTP_11, &["x-close, upgrade"], true),
            (Version::HTTP_11, &["close"], false),
            (Version::HTTP_11, &["x, CLOSE"], false),
            (Version::HTTP_11, &["x", "Close "], false),
            (Version::HTTP_10, &[], false),
            (Version::HTTP_10, &["keep-alive"], false),
        ] {
            let answer = connection
                .iter()
                .fold(Response::builder().version(version), |answer, value| answer.header(CONNECTION, *value));
            let (parts, ()) = answer.body(()).expect("a response").into_parts();
            assert_eq!(stays_open(&parts), open, "{version:?} {connection:?}");
        }
    }
}
