//! A counted stream as a response body of known length.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream as _;
use http_body::{Body, Frame, SizeHint};

use crate::error::Error;
use crate::read::ByteStream;

/// A response body. An error cuts the connection: the client never sees a clean end of less than
/// `Content-Length`.
pub(super) struct StreamBody(pub(super) ByteStream);

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll_next(cx)).map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.left())
    }
}
