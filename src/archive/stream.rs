//! The bytes of a planned archive. Small files are fetched ahead, some at a time, each whole; a
//! large one is opened when it is its turn, so that no idle body waits for a slow client.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio_util::task::AbortOnDropHandle;

use super::layout::Layout;
use super::{Member, Plan};
use crate::catalog::Opener;
use crate::store::StoreError;

/// A file of at most so many bytes is fetched ahead.
const SMALL: u64 = 256 << 10;
/// So many files are fetched at a time: at most 4 MiB wait for the client.
const AHEAD: usize = 16;
/// What comes in small pieces is handed out in chunks of about this size.
const CHUNK: usize = 64 << 10;

/// The bytes of the archive, exactly as many as the plan says, or an error.
pub(crate) fn bytes(plan: Plan, opener: Opener) -> BoxStream<'static, Result<Bytes, StoreError>> {
    let plan = Arc::new(plan);
    let writer = Writer {
        ahead: fetch_ahead(Arc::clone(&plan), opener.clone()),
        lines: Vec::with_capacity(plan.members.len()),
        layout: Layout::default(),
        crc: crc32fast::Hasher::new(),
        state: State::Entry(0),
        out: Vec::with_capacity(CHUNK),
        plan,
        opener,
    };
    Box::pin(stream::try_unfold(
        writer,
        |mut writer| async move { Ok(writer.next().await?.map(|chunk| (chunk, writer))) },
    ))
}

/// What is there when a file's turn comes: its content, or nothing yet if it is large.
type Ahead = Result<Option<Bytes>, StoreError>;

/// One item for each file, in order. Fetches run as tasks of their own: they get on while nobody
/// polls, and end with the stream.
fn fetch_ahead(plan: Arc<Plan>, opener: Opener) -> BoxStream<'static, Ahead> {
    let fetches = (0..plan.members.len()).map(move |index| {
        let size = plan.members[index].stat.size;
        let task = (1..=SMALL).contains(&size).then(|| {
            let (plan, opener) = (Arc::clone(&plan), opener.clone());
            AbortOnDropHandle::new(tokio::spawn(async move { fetch(&plan, &plan.members[index], &opener).await }))
        });
        async move {
            match task {
                Some(task) => task.await.map_err(StoreError::unavailable)?.map(Some),
                None => Ok((size == 0).then(Bytes::new)),
            }
        }
    });
    stream::iter(fetches).buffered(AHEAD).boxed()
}

async fn fetch(plan: &Plan, member: &Member, opener: &Opener) -> Result<Bytes, StoreError> {
    let mut body = opener.open(&plan.base, &member.name, &member.stat).await?.body;
    let mut content = BytesMut::new();
    while let Some(chunk) = body.next().await {
        content.extend_from_slice(&chunk?);
    }
    if content.len() as u64 == member.stat.size { Ok(content.freeze()) } else { Err(wrong_length()) }
}

struct Writer {
    plan: Arc<Plan>,
    opener: Opener,
    ahead: BoxStream<'static, Ahead>,
    layout: Layout,
    /// Where each finished entry began, and its checksum.
    lines: Vec<(u64, u32)>,
    /// The checksum of the entry that is being written.
    crc: crc32fast::Hasher,
    state: State,
    /// Small pieces, until they make a chunk.
    out: Vec<u8>,
}

enum State {
    /// The entry of this number comes next.
    Entry(usize),
    /// In the midst of the content of a large one.
    Content(usize, BoxStream<'static, Result<Bytes, StoreError>>, u64),
    /// The line of this number comes next.
    Directory(usize),
    Ended,
}

impl Writer {
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        while self.out.len() < CHUNK {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Entry(index) if index == self.plan.members.len() => self.state = State::Directory(0),
                State::Entry(index) => self.begin(index).await?,
                State::Content(index, mut body, left) => match body.next().await {
                    Some(chunk) => {
                        let chunk = chunk?;
                        self.crc.update(&chunk);
                        let left = left.checked_sub(chunk.len() as u64).ok_or_else(wrong_length)?;
                        self.state = State::Content(index, body, left);
                        return Ok(Some(chunk));
                    }
                    None if left == 0 => self.finish(index),
                    None => return Err(wrong_length()),
                },
                State::Directory(index) if index == self.plan.members.len() => self.layout.end(&mut self.out),
                State::Directory(index) => {
                    let (offset, crc) = self.lines[index];
                    self.plan.members[index].entry().directory_entry(crc, offset, &mut self.out);
                    self.state = State::Directory(index + 1);
                }
                State::Ended => break,
            }
            if matches!(self.state, State::Content(..)) {
                // The content follows as it comes, without being copied.
                break;
            }
        }
        let out = std::mem::replace(&mut self.out, Vec::with_capacity(CHUNK));
        Ok((!out.is_empty()).then(|| out.into()))
    }

    /// Writes an entry's header, and all of it if its content is there.
    async fn begin(&mut self, index: usize) -> Result<(), StoreError> {
        let content = self.ahead.next().await.ok_or_else(wrong_length)??;
        let member = &self.plan.members[index];
        let offset = self.layout.add(&member.entry()).ok_or_else(wrong_length)?;
        self.lines.push((offset, 0));
        self.crc.reset();
        member.entry().local_header(&mut self.out);
        match content {
            Some(content) => {
                self.crc.update(&content);
                self.out.extend_from_slice(&content);
                self.finish(index);
            }
            None => {
                let opened = self.opener.open(&self.plan.base, &member.name, &member.stat).await?;
                self.state = State::Content(index, opened.body, member.stat.size);
            }
        }
        Ok(())
    }

    fn finish(&mut self, index: usize) {
        let crc = self.crc.clone().finalize();
        self.lines[index].1 = crc;
        self.plan.members[index].entry().descriptor(crc, &mut self.out);
        self.state = State::Entry(index + 1);
    }
}

fn wrong_length() -> StoreError {
    StoreError::unavailable("the store sent another length than it said")
}
