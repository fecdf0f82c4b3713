//! The stream that HTTP bodies are made of: every byte it hands out was counted first.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};

use super::{Reservation, wrong_length};
use crate::catalog::refuse;
use crate::error::Result;
use crate::ledger::Outcome;
use crate::store::StoreError;

/// Bytes of one reserved artifact. It ends after exactly the bytes that were asked for, or in an
/// error; whoever serves it must then cut the answer, never end it cleanly. Dropping it settles.
pub struct ByteStream {
    held: Reservation,
    body: BoxStream<'static, Result<Bytes, StoreError>>,
    /// Read from the store, not yet handed out.
    pending: Bytes,
    /// Bytes still to be handed out.
    left: u64,
}

impl ByteStream {
    pub(super) fn new(held: Reservation, body: BoxStream<'static, Result<Bytes, StoreError>>, length: u64) -> Self {
        Self { held, body, pending: Bytes::new(), left: length }
    }

    pub(super) fn empty(held: Reservation) -> Self {
        held.end(Outcome::Completed);
        Self::new(held, futures_util::stream::empty().boxed(), 0)
    }

    /// Bytes still to be handed out.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes>> {
        if self.pending.is_empty() {
            self.pending = match ready!(self.body.poll_next_unpin(cx)) {
                Some(Ok(chunk)) if !chunk.is_empty() && chunk.len() as u64 <= self.left => chunk,
                Some(Err(error)) => return Poll::Ready(Err(refuse(error))),
                Some(Ok(_)) | None => return Poll::Ready(Err(wrong_length())),
            };
        }
        let taken = ready!(self.held.poll_take(cx, self.pending.len() as u64))?;
        self.left -= taken;
        Poll::Ready(Ok(self.pending.split_to(usize::try_from(taken).unwrap_or(self.pending.len()))))
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let chunk = ready!(self.poll_chunk(cx));
        match &chunk {
            Ok(_) if self.left == 0 => self.held.end(Outcome::Completed),
            Ok(_) => {}
            Err(_) => {
                self.held.end(Outcome::Failed);
                self.left = 0;
            }
        }
        Poll::Ready(Some(chunk))
    }
}
