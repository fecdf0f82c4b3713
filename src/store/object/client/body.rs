//! The body of an answer, which must not fall silent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use object_store::client::{HttpError, HttpErrorKind};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};

use super::failure::{self, Failure};

/// A body that fails once it was waited for too long. The time in which nobody asks for more does not count.
pub(super) struct Body {
    incoming: Incoming,
    patience: Option<Duration>,
    /// When that is, while it is waited for; kept to be set anew.
    deadline: Option<Pin<Box<Sleep>>>,
    waiting: bool,
    /// The place that large buffers have, if it has one.
    _room: Option<OwnedSemaphorePermit>,
}

impl Body {
    pub(super) const fn new(
        incoming: Incoming,
        patience: Option<Duration>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { incoming, patience, deadline: None, waiting: false, _room: room }
    }

    /// Ready once the deadline has passed.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(patience) = self.patience else { return Poll::Pending };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !std::mem::replace(&mut self.waiting, true) {
            deadline.as_mut().reset(Instant::now() + patience);
        }
        deadline.as_mut().poll(cx)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
            self.waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(failure::of)));
        }
        ready!(self.poll_deadline(cx));
        self.waiting = false;
        Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, Failure::Silence))))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
