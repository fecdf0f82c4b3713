//! Buffers for bodies: large ones that are lent, and small ones for clients that do not keep up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

/// The size of a chunk: larger ones gain nothing, smaller ones cost a third more processor time.
pub(super) const CHUNK: usize = 256 * 1024;
/// The size of a chunk for a client that does not keep up, or when there are many of them. Chunks up
/// to this are allocated as they are: a small file must not hold a large buffer.
const SMALL: usize = 16 * 1024;
/// How many idle buffers are kept (16 MiB in all).
const MAX_IDLE: usize = 64;
/// A client that leaves a chunk lying for so long does not keep up.
const SLOW: Duration = Duration::from_millis(100);
/// How many small chunks in a row it then has to take sooner: as much as a large one holds, which is
/// more than a connection takes on ahead of its client.
const PROBATION: usize = CHUNK / SMALL;

/// Buffers to be used again: allocating a large one for every chunk costs more than filling it.
#[derive(Debug)]
pub(super) struct Buffers {
    most_lent: usize,
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Box<[u8]>>,
    lent: usize,
}

/// A chunk in a borrowed buffer, which goes back when the last holder of the bytes lets go.
pub(super) struct Chunk {
    buffer: Box<[u8]>,
    len: usize,
    home: Arc<Buffers>,
}

impl Chunk {
    /// How many bytes are asked of it, or in it.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Where they go.
    pub(super) fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    /// Says that it holds no more than the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The bytes in it. Few are copied rather than that they hold a large buffer.
    pub(super) fn into_bytes(mut self) -> Bytes {
        match (self.buffer.len(), self.len) {
            (CHUNK, len) if len <= SMALL => Bytes::copy_from_slice(self.as_ref()),
            (CHUNK, _) => Bytes::from_owner(self),
            (_, len) => Bytes::from(std::mem::take(&mut self.buffer)).slice(..len),
        }
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.buffer.len() == CHUNK {
            let mut pool = self.home.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.lent -= 1;
            if pool.idle.len() < MAX_IDLE {
                pool.idle.push(std::mem::take(&mut self.buffer));
            }
        }
    }
}

impl Buffers {
    /// As many large buffers as `most_lent` are lent at a time: a thousand clients that stop reading hold as
    /// many, and the rest is served in small ones.
    pub(super) fn new(most_lent: usize) -> Arc<Self> {
        Arc::new(Self { most_lent, pool: Mutex::default() })
    }

    /// A buffer of `most` usable bytes, 1 to [`CHUNK`]; a small one where no large one is to be had.
    pub(super) fn chunk(self: &Arc<Self>, most: usize) -> Chunk {
        let (buffer, len) = match (most > SMALL).then(|| self.lend()).flatten() {
            Some(buffer) => (buffer, most),
            None => (vec![0; most.min(SMALL)].into_boxed_slice(), most.min(SMALL)),
        };
        Chunk { buffer, len, home: Arc::clone(self) }
    }

    fn lend(&self) -> Option<Box<[u8]>> {
        let idle = {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            if pool.lent == self.most_lent {
                return None;
            }
            pool.lent += 1;
            pool.idle.pop()
        };
        Some(idle.unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice()))
    }
}

/// How well the client of a stream keeps up.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Small chunks that it has yet to take in time.
    probation: usize,
}

impl Pace {
    /// The size of the next chunk, which is asked for so long after the one before.
    pub(super) fn next(&mut self, after: Duration) -> usize {
        self.probation = if after < SLOW { self.probation.saturating_sub(1) } else { PROBATION };
        if self.probation == 0 { CHUNK } else { SMALL }
    }
}

#[cfg(test)]
impl Buffers {
    /// How many large buffers are idle, and how many are lent.
    pub(super) fn idle_and_lent(&self) -> (usize, usize) {
        let pool = self.pool.lock().expect("unpoisoned");
        (pool.idle.len(), pool.lent)
    }

    /// All large buffers that there are.
    pub(super) fn borrow_all(self: &Arc<Self>) -> Vec<Chunk> {
        (0..self.most_lent).map(|_| self.chunk(CHUNK)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_bounded_lent_and_idle() {
        const MOST: usize = 2 * MAX_IDLE;
        let buffers = Buffers::new(MOST);
        let held: Vec<_> = (0..2 * MOST).map(|_| buffers.chunk(CHUNK)).collect();
        let lens: Vec<_> = held.iter().map(|chunk| (chunk.len, chunk.buffer.len())).collect();
        assert!(lens[..MOST].iter().all(|lens| *lens == (CHUNK, CHUNK)), "{lens:?}");
        assert!(lens[MOST..].iter().all(|lens| *lens == (SMALL, SMALL)), "the rest is served, in small ones");
        drop(held);
        assert_eq!(buffers.idle_and_lent(), (MAX_IDLE, 0));
    }

    #[test]
    fn few_bytes_hold_no_large_buffer() {
        let buffers = Buffers::new(1);
        for (len, lent) in [(1, 0), (SMALL, 0), (SMALL + 1, 1), (CHUNK, 1)] {
            let mut chunk = buffers.chunk(CHUNK);
            chunk.space().fill(7);
            chunk.truncate(len);
            let bytes = chunk.into_bytes();
            assert!(bytes == vec![7; len], "{len}");
            assert_eq!(buffers.idle_and_lent().1, lent, "{len}");
        }
        let mut small = buffers.chunk(SMALL);
        small.truncate(3);
        assert_eq!(small.into_bytes(), [0; 3].as_slice());
    }

    #[test]
    fn a_client_that_does_not_keep_up_gets_small_chunks_until_it_does() {
        let (mut pace, soon) = (Pace::default(), SLOW / 2);
        assert_eq!([pace.next(soon), pace.next(soon)], [CHUNK; 2]);
        assert_eq!(pace.next(SLOW), SMALL);
        for _ in 1..PROBATION {
            assert_eq!(pace.next(soon), SMALL);
        }
        assert_eq!(pace.next(soon), CHUNK, "it has shown that it does");
        // What a connection takes on ahead of its client shows nothing.
        for _ in 0..100 {
            assert_eq!([pace.next(SLOW), pace.next(soon), pace.next(soon)], [SMALL; 3]);
        }
    }
}
