//! The body of an answer.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::{Read as _, ReadBuf};
use object_store::client::{HttpError, HttpErrorKind};
use tokio::time::Sleep;

use super::super::super::buffers::{Buffers, Chunk, Pace};
use super::connect::Stream;
use super::exchange::{Connection, Home};
use super::failure::{self, Failure};

/// How it comes.
pub(super) enum Body {
    /// From the connection itself.
    Counted(Counted),
    /// From hyper, which knows its end.
    Framed(Box<Framed>),
}

/// So many bytes, read when they are asked for and as large as the reader is quick.
pub(super) struct Counted {
    left: u64,
    /// What hyper had read of it.
    early: VecDeque<Bytes>,
    /// The connection and what becomes of it, until the body is whole or cannot be.
    source: Option<(Stream, Home)>,
    buffers: Arc<Buffers>,
    pace: Pace,
    /// When the last part was handed out; none while the next is waited for.
    handed_out: Option<Instant>,
    /// The size of the next part.
    most: usize,
}

impl Counted {
    pub(super) fn new(left: u64, early: VecDeque<Bytes>, stream: Stream, home: Home) -> Self {
        let buffers = Arc::clone(&home.buffers);
        let (pace, handed_out) = (Pace::default(), Some(Instant::now()));
        let mut body = Self { left, early, source: Some((stream, home)), buffers, pace, handed_out, most: 0 };
        body.finish();
        body
    }

    /// Lets the connection go once nothing of it is left to come.
    fn finish(&mut self) {
        let early: u64 = self.early.iter().map(|bytes| bytes.len() as u64).sum();
        if early < self.left {
            return;
        }
        let Some((stream, home)) = self.source.take() else { return };
        // What runs over would be taken for the next answer.
        if early == self.left {
            home.take_in(stream);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let bytes = match self.early.pop_front() {
            Some(mut bytes) => {
                bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                bytes
            }
            None => match ready!(self.poll_chunk(cx)) {
                Ok(chunk) => chunk.into_bytes(),
                Err(error) => {
                    self.source = None;
                    return Poll::Ready(Some(Err(failure::of(error))));
                }
            },
        };
        self.left -= bytes.len() as u64;
        self.finish();
        self.handed_out = Some(Instant::now());
        Poll::Ready(Some(Ok(bytes)))
    }

    /// All that is there, as far as it is wanted. No buffer is held while there is nothing.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
        if let Some(since) = self.handed_out.take() {
            self.most = self.pace.next(since.elapsed());
        }
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer ended early");
        let Some((stream, _)) = &mut self.source else { return Poll::Ready(Err(cut())) };
        let mut chunk = self.buffers.chunk(usize::try_from(self.left).unwrap_or(self.most).min(self.most));
        match ready!(poll_into(stream, cx, chunk.space()))? {
            0 => Poll::Ready(Err(cut())),
            filled => {
                chunk.truncate(filled);
                Poll::Ready(Ok(chunk))
            }
        }
    }
}

/// Reads all that is there into `space`, as far as it fits; 0 bytes at the end.
pub(super) fn poll_into(stream: &mut Stream, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut filled = 0;
    while filled < space.len() {
        let mut rest = ReadBuf::new(&mut space[filled..]);
        let end = match Pin::new(&mut *stream).poll_read(cx, rest.unfilled()) {
            Poll::Ready(Ok(())) if !rest.filled().is_empty() => {
                filled += rest.filled().len();
                continue;
            }
            Poll::Ready(Ok(())) => Poll::Ready(Ok(0)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        if filled == 0 {
            return end;
        }
        // How it ends after this shows when the next is asked for.
        break;
    }
    Poll::Ready(Ok(filled))
}

/// A body that hyper takes out of its frames.
pub(super) struct Framed {
    /// The connection and where it goes, until the body is over.
    pub(super) source: Option<(Connection, Home)>,
    pub(super) incoming: Incoming,
}

impl Framed {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Some((connection, _)) = &mut self.source {
            // How it fails is told to the body, too.
            let _ = connection.poll_without_shutdown(cx);
        }
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if frame.is_none()
            && let Some((connection, home)) = self.source.take()
        {
            let parts = connection.into_parts();
            if parts.read_buf.is_empty() {
                home.take_in(parts.io);
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(failure::of)))
    }
}

/// A body that fails once it was waited for too long. The time in which nobody asks for more does not count.
pub(in super::super) struct Patient {
    body: Body,
    patience: Option<Duration>,
    /// When that is, while it is waited for; kept to be set anew.
    deadline: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Patient {
    pub(super) const fn new(body: Body, patience: Option<Duration>) -> Self {
        Self { body, patience, deadline: None, waiting: false }
    }

    /// Ready once the deadline has passed.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(patience) = self.patience else { return Poll::Pending };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if !std::mem::replace(&mut self.waiting, true) {
            deadline.as_mut().reset(tokio::time::Instant::now() + patience);
        }
        deadline.as_mut().poll(cx)
    }
}

impl http_body::Body for Patient {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let next = match &mut self.body {
            Body::Counted(body) => body.poll_next(cx).map(|next| next.map(|bytes| bytes.map(Frame::data))),
            Body::Framed(body) => body.poll_next(cx),
        };
        if next.is_ready() {
            self.waiting = false;
            return next;
        }
        ready!(self.poll_deadline(cx));
        self.waiting = false;
        Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, Failure::Silence))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Body::Counted(body) => body.left == 0,
            // Whoever asks no more at the end would lose the connection.
            Body::Framed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Body::Counted(body) => SizeHint::with_exact(body.left),
            Body::Framed(body) => body.incoming.size_hint(),
        }
    }
}
