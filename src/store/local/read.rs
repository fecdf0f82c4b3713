//! Reading an open file in chunks, and seeing to it that it stayed what it was.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use rustix::io::{Errno, ReadWriteFlags};

use super::super::StoreError;
use super::off_thread;
use super::root::{OpenFile, Version};

/// The size of a chunk: larger ones gain nothing, smaller ones cost a third more processor time.
const CHUNK: usize = 256 * 1024;
/// The size of a chunk for a client that does not keep up, or when there are many of them. Chunks up
/// to this are allocated as they are: a small file must not hold a large buffer.
const SMALL: usize = 16 * 1024;
/// How many idle buffers are kept (16 MiB in all).
const MAX_IDLE: usize = 64;
/// How many buffers are lent at a time (32 MiB in all): a thousand clients that stop reading hold as
/// many chunks. Two for each of 64 connections, as many as are worth their while.
const MAX_LENT: usize = 128;
/// A client that leaves a chunk lying for so long does not keep up.
const SLOW: Duration = Duration::from_millis(100);
/// How many small chunks in a row it then has to take sooner: as much as a large one holds, which is
/// more than a connection takes on ahead of its client.
const PROBATION: usize = CHUNK / SMALL;

/// Buffers to be used again: allocating a large one for every chunk costs more than filling it.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Pool>);

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Box<[u8]>>,
    lent: usize,
}

/// A chunk in a borrowed buffer, which goes back when the last holder of the bytes lets go.
struct Chunk {
    buffer: Box<[u8]>,
    len: usize,
    home: Arc<Buffers>,
}

impl Chunk {
    fn into_bytes(mut self) -> Bytes {
        if self.buffer.len() == CHUNK { Bytes::from_owner(self) } else { std::mem::take(&mut self.buffer).into() }
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
            let mut pool = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
            pool.lent -= 1;
            if pool.idle.len() < MAX_IDLE {
                pool.idle.push(std::mem::take(&mut self.buffer));
            }
        }
    }
}

impl Buffers {
    /// A buffer of `most` usable bytes, 1 to [`CHUNK`]; a small one where no large one is to be had.
    fn chunk(self: &Arc<Self>, most: usize) -> Chunk {
        let (buffer, len) = match (most > SMALL).then(|| self.lend()).flatten() {
            Some(buffer) => (buffer, most),
            None => (vec![0; most.min(SMALL)].into_boxed_slice(), most.min(SMALL)),
        };
        Chunk { buffer, len, home: Arc::clone(self) }
    }

    fn lend(&self) -> Option<Box<[u8]>> {
        let idle = {
            let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if pool.lent == MAX_LENT {
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
struct Pace {
    /// Small chunks that it has yet to take in time.
    probation: usize,
}

impl Pace {
    /// The size of the next chunk, which is asked for so long after the one before.
    fn next(&mut self, after: Duration) -> usize {
        self.probation = if after < SLOW { self.probation.saturating_sub(1) } else { PROBATION };
        if self.probation == 0 { CHUNK } else { SMALL }
    }
}

/// A part of a file being read.
pub(super) struct Reader {
    file: Arc<File>,
    version: Version,
    left: Range<u64>,
    buffers: Arc<Buffers>,
    pace: Pace,
    /// When the last chunk was handed out.
    handed_out: Instant,
    /// Whether the file system can tell that a read would block.
    tells: bool,
    /// Whether the file is known to have been what it was when the first chunk had been read.
    begun: bool,
}

/// The bytes of the part. The first chunk is read at once: a file that changed by then is told before
/// anything is answered.
pub(super) async fn stream(mut reader: Reader) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
    let first = stream::iter(reader.next(CHUNK).await?.map(Ok));
    Ok(if reader.left.is_empty() { first.boxed() } else { first.chain(chunks(reader)).boxed() })
}

fn chunks(reader: Reader) -> BoxStream<'static, Result<Bytes, StoreError>> {
    Box::pin(stream::try_unfold(reader, |mut reader| async move {
        let most = reader.pace.next(reader.handed_out.elapsed());
        let next = reader.next(most).await?;
        reader.handed_out = Instant::now();
        Ok(next.map(|bytes| (bytes, reader)))
    }))
}

impl Reader {
    /// The bytes `left` of the file, which must lie within its size.
    pub(super) fn new(file: OpenFile, left: Range<u64>, buffers: Arc<Buffers>) -> Self {
        let OpenFile { file, version } = file;
        let (pace, handed_out) = (Pace::default(), Instant::now());
        Self { file, version, left, buffers, pace, handed_out, tells: true, begun: false }
    }

    /// The next bytes, at most `most` of them.
    async fn next(&mut self, most: usize) -> Result<Option<Bytes>, StoreError> {
        let Range { start, end } = self.left.clone();
        if start >= end {
            return Ok(None);
        }
        let mut chunk = self.buffers.chunk(usize::try_from(end - start).unwrap_or(most).min(most));
        self.left.start += chunk.len as u64;
        let check = self.left.is_empty() || !self.begun;
        self.begun = true;

        if self.tells && self.read_cached(&mut chunk, start) {
            if check {
                check_unchanged(&self.file, &self.version)?;
            }
            return Ok(Some(chunk.into_bytes()));
        }
        let (file, version) = (Arc::clone(&self.file), self.version);
        off_thread(move || {
            file.read_exact_at(&mut chunk.buffer[..chunk.len], start).map_err(|error| match error.kind() {
                // The file ends before the size that it had.
                io::ErrorKind::UnexpectedEof => StoreError::Changed,
                _ => StoreError::unavailable(error),
            })?;
            if check {
                check_unchanged(&file, &version)?;
            }
            Ok(Some(chunk.into_bytes()))
        })
        .await?
    }

    /// Fills the chunk from the page cache, without waiting for a disk: what a thread would have to
    /// be woken for is then done at once. Whether it did.
    fn read_cached(&mut self, chunk: &mut Chunk, from: u64) -> bool {
        let target = &mut [IoSliceMut::new(&mut chunk.buffer[..chunk.len])];
        match rustix::io::preadv2(&self.file, target, from, ReadWriteFlags::NOWAIT) {
            Ok(read) => read == chunk.len,
            Err(errno) => {
                self.tells = matches!(errno, Errno::AGAIN | Errno::INTR);
                false
            }
        }
    }
}

/// Comes before the first chunk and before the last one is handed out, so that a file that changed is
/// never delivered whole.
fn check_unchanged(file: &File, version: &Version) -> Result<(), StoreError> {
    match Version::of(file) {
        Ok(now) if now == *version => Ok(()),
        Ok(_) => Err(StoreError::Changed),
        Err(error) => Err(StoreError::unavailable(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures_util::TryStreamExt as _;

    use super::*;

    const LONG: usize = 2 * CHUNK + 1000;

    fn reader(file: &File, buffers: &Arc<Buffers>, tells: bool) -> Reader {
        let version = Version::of(file).expect("a version");
        let file = Arc::new(file.try_clone().expect("a file"));
        Reader { tells, ..Reader::new(OpenFile { file, version }, 0..version.size, Arc::clone(buffers)) }
    }

    async fn read(reader: Reader) -> Result<Vec<u8>, StoreError> {
        let chunks = stream(reader).await?;
        chunks.try_fold(Vec::new(), |all, chunk| async move { Ok([all, chunk.to_vec()].concat()) }).await
    }

    /// Both ways of reading: at once from what is cached, and on a thread that may wait.
    #[tokio::test]
    async fn both_ways_read_the_same_and_notice_the_same() {
        let content: Vec<u8> = (0..LONG).map(|i| i.to_le_bytes()[i % 2]).collect();
        for tells in [true, false] {
            let buffers = Arc::default();
            let mut file = tempfile::tempfile().expect("a scratch file");
            file.write_all(&content).expect("written");
            assert!(read(reader(&file, &buffers, tells)).await.expect("read") == content);

            let shrunk = reader(&file, &buffers, tells);
            file.set_len(CHUNK as u64 + 1).expect("cut");
            assert!(matches!(read(shrunk).await, Err(StoreError::Changed)), "{tells}");
            let grown = reader(&file, &buffers, tells);
            file.set_len(CHUNK as u64 + 2).expect("grown");
            assert!(matches!(read(grown).await, Err(StoreError::Changed)), "{tells}");
        }
    }

    #[tokio::test]
    async fn large_buffers_are_used_again_and_small_chunks_hold_none() {
        let buffers = Arc::default();
        let mut file = tempfile::tempfile().expect("a scratch file");
        file.write_all(&vec![1; LONG]).expect("written");
        let idle = |buffers: &Buffers| buffers.0.lock().expect("unpoisoned").idle.len();
        for _ in 0..3 {
            let chunks = stream(reader(&file, &buffers, true)).await.expect("begun");
            let held: Vec<_> = chunks.try_collect().await.expect("read");
            assert_eq!((held.len(), idle(&buffers)), (3, 0));
            drop(held);
            assert_eq!(idle(&buffers), 2);
        }
    }

    #[test]
    fn large_buffers_are_bounded_lent_and_idle() {
        let buffers: Arc<Buffers> = Arc::default();
        let held: Vec<_> = (0..2 * MAX_LENT).map(|_| buffers.chunk(CHUNK)).collect();
        let lens: Vec<_> = held.iter().map(|chunk| (chunk.len, chunk.buffer.len())).collect();
        assert!(lens[..MAX_LENT].iter().all(|lens| *lens == (CHUNK, CHUNK)), "{lens:?}");
        assert!(lens[MAX_LENT..].iter().all(|lens| *lens == (SMALL, SMALL)), "the rest is served, in small ones");
        drop(held);
        let pool = buffers.0.lock().expect("unpoisoned");
        assert_eq!((pool.idle.len(), pool.lent), (MAX_IDLE, 0));
    }

    /// A stream goes on in small chunks, to the same bytes, while others hold all large ones.
    #[tokio::test]
    async fn without_large_buffers_the_same_is_read() {
        let content: Vec<u8> = (0..LONG).map(|i| i.to_le_bytes()[i % 2]).collect();
        let mut file = tempfile::tempfile().expect("a scratch file");
        file.write_all(&content).expect("written");
        for tells in [true, false] {
            let buffers: Arc<Buffers> = Arc::default();
            let _held: Vec<_> = (0..MAX_LENT).map(|_| buffers.chunk(CHUNK)).collect();
            assert!(read(reader(&file, &buffers, tells)).await.expect("read") == content, "{tells}");
        }
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
