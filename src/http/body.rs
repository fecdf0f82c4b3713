//! Bodies: a counted stream as an answer of known length, and what a request brings.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream as _;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::guarded::Places;
use crate::error::{Error, Kind};
use crate::read::ByteStream;

/// The longest body of a request, bytes.
const MAX_BYTES: usize = 4 << 10;

/// Reads the body of a request.
///
/// # Errors
/// `REQUEST_TOO_LARGE`, `INVALID_REQUEST`.
pub(super) async fn read(body: axum::body::Body) -> Result<Bytes, Error> {
    let whole = Limited::new(body, MAX_BYTES).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Error::new(Kind::RequestTooLarge, format!("The body has at most {MAX_BYTES} bytes."))
        } else {
            Error::new(Kind::InvalidRequest, "The body did not arrive whole.").with_source(error)
        }
    })?;
    Ok(whole.to_bytes())
}

/// Reads the body of a request as JSON such as `example`.
///
/// # Errors
/// As [`read`]; `INVALID_REQUEST` also says what is wrong with it.
pub(super) async fn read_json<T: DeserializeOwned>(body: axum::body::Body, example: &str) -> Result<T, Error> {
    let bytes = read(body).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::new(Kind::InvalidRequest, format!("The body is JSON such as {example}: {error}.")))
}

/// A response body. An error cuts the connection: the client never sees a clean end of less than
/// `Content-Length`.
pub(super) struct StreamBody {
    stream: ByteStream,
    /// Why it is cut, once what went before had its turn to go out.
    cut: Option<Error>,
}

impl StreamBody {
    pub(super) const fn new(stream: ByteStream) -> Self {
        Self { stream, cut: None }
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(error) = self.cut.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
            // A connection drops what it has not sent when its body fails. It sends while a body has nothing
            // to say, and what was handed out is charged.
            Some(Err(error)) => {
                self.cut = Some(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            chunk => Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.left() == 0 && self.cut.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.stream.left())
    }
}

/// A body, and the places that its request has until the last of it went out.
pub(super) struct Placed {
    pub(super) body: axum::body::Body,
    pub(super) _places: Places,
}

impl Body for Placed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
