//! Reading an open file in chunks, and seeing to it that it stayed what it was.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use rustix::io::{Errno, ReadWriteFlags};

use super::super::StoreError;
use super::super::buffers::{Buffers, CHUNK, Chunk, Pace};
use super::off_thread;
use super::root::{OpenFile, Version};

/// A part of a file being read.
pub(super) struct Reader {
    file: Arc<File>,
    version: Version,
    left: Range<u64>,
    buffers: Arc<Buffers>,
    pace: Pace,
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
    let begun = (reader, Instant::now());
    Box::pin(stream::try_unfold(begun, |(mut reader, handed_out)| async move {
        let most = reader.pace.next(handed_out.elapsed());
        let next = reader.next(most).await?;
        Ok(next.map(|bytes| (bytes, (reader, Instant::now()))))
    }))
}

impl Reader {
    /// The bytes `left` of the file, which must lie within its size.
    pub(super) fn new(file: OpenFile, left: Range<u64>, buffers: Arc<Buffers>) -> Self {
        let OpenFile { file, version } = file;
        Self { file, version, left, buffers, pace: Pace::default(), tells: true, begun: false }
    }

    /// The next bytes, at most `most` of them.
    async fn next(&mut self, most: usize) -> Result<Option<Bytes>, StoreError> {
        let Range { start, end } = self.left.clone();
        if start >= end {
            return Ok(None);
        }
        let mut chunk = self.buffers.chunk(usize::try_from(end - start).unwrap_or(most).min(most));
        self.left.start += chunk.len() as u64;
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
            file.read_exact_at(chunk.space(), start).map_err(|error| match error.kind() {
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
        let target = &mut [IoSliceMut::new(chunk.space())];
        match rustix::io::preadv2(&self.file, target, from, ReadWriteFlags::NOWAIT) {
            Ok(read) => read == chunk.len(),
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
            let buffers = Buffers::new(4);
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
        let buffers = Buffers::new(4);
        let mut file = tempfile::tempfile().expect("a scratch file");
        file.write_all(&vec![1; LONG]).expect("written");
        let idle = |buffers: &Buffers| buffers.idle_and_lent().0;
        for _ in 0..3 {
            let chunks = stream(reader(&file, &buffers, true)).await.expect("begun");
            let held: Vec<_> = chunks.try_collect().await.expect("read");
            assert_eq!((held.len(), idle(&buffers)), (3, 0));
            drop(held);
            assert_eq!(idle(&buffers), 2);
        }
    }

    /// A stream goes on in small chunks, to the same bytes, while others hold all large ones.
    #[tokio::test]
    async fn without_large_buffers_the_same_is_read() {
        let content: Vec<u8> = (0..LONG).map(|i| i.to_le_bytes()[i % 2]).collect();
        let mut file = tempfile::tempfile().expect("a scratch file");
        file.write_all(&content).expect("written");
        for tells in [true, false] {
            let buffers = Buffers::new(4);
            let _held = buffers.borrow_all();
            assert!(read(reader(&file, &buffers, tells)).await.expect("read") == content, "{tells}");
        }
    }
}
