//! A body of exactly the promised length.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::time::{Duration, Instant};

use super::super::{Limits, StoreError};
use super::refusal;

struct Body {
    chunks: BoxStream<'static, object_store::Result<Bytes>>,
    left: u64,
    received: u64,
    /// Time spent waiting for the store, not for the reader.
    waited: Duration,
    limits: Limits,
}

/// The `length` bytes of `chunks`, without empty ones. Ends in an error where there are fewer or
/// more, or where they come too slowly. The last chunk is held back until the end is seen, so that
/// what runs over is never delivered whole.
pub(super) fn exactly(
    chunks: BoxStream<'static, object_store::Result<Bytes>>,
    length: u64,
    limits: Limits,
) -> BoxStream<'static, Result<Bytes, StoreError>> {
    let body = Body { chunks, left: length, received: 0, waited: Duration::ZERO, limits };
    Box::pin(stream::try_unfold(body, |mut body| async move {
        if body.left == 0 {
            return Ok(None);
        }
        let Some(chunk) = body.next().await? else {
            return Err(StoreError::unavailable("the store sent less than it promised"));
        };
        body.left = match body.left.checked_sub(chunk.len() as u64) {
            Some(0) if body.next().await?.is_none() => 0,
            Some(left @ 1..) => left,
            _ => return Err(StoreError::unavailable("the store sent more than it promised")),
        };
        Ok(Some((chunk, body)))
    }))
}

impl Body {
    /// The next chunk that is not empty.
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        let start = Instant::now();
        let deadline = start + self.limits.stall;
        loop {
            match tokio::time::timeout_at(deadline, self.chunks.next()).await {
                Err(_) => return Err(StoreError::unavailable("the store makes no progress")),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(refusal::of_error(error, &super::Notes::default())),
                Ok(Some(Ok(chunk))) if chunk.is_empty() => {}
                Ok(Some(Ok(chunk))) => {
                    self.received += chunk.len() as u64;
                    self.waited += start.elapsed();
                    let slow = self.received < self.limits.min_bytes_per_second * self.waited.as_secs();
                    if self.waited > self.limits.stall && slow {
                        return Err(StoreError::unavailable("the store sends too slowly"));
                    }
                    return Ok(Some(chunk));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { stall: Duration::from_secs(60), min_bytes_per_second: 10, ..Limits::default() }
    }

    async fn read(chunks: &[&'static str], length: u64) -> Result<Vec<Bytes>, String> {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        let mut body = exactly(stream::iter(chunks).boxed(), length, limits());
        let mut read = Vec::new();
        while let Some(chunk) = body.next().await {
            read.push(chunk.map_err(|error| error.to_string())?);
        }
        Ok(read)
    }

    #[tokio::test]
    async fn exactly_the_promised_bytes_or_an_error() {
        assert_eq!(read(&["ab", "", "c", ""], 3).await, Ok(vec![Bytes::from("ab"), Bytes::from("c")]));
        assert!(read(&["ab"], 3).await.is_err_and(|e| e.contains("less")));
        assert!(read(&[], 1).await.is_err_and(|e| e.contains("less")));
        assert!(read(&["ab", "cd"], 3).await.is_err_and(|e| e.contains("more")));
        assert!(read(&["abc", "d"], 3).await.is_err_and(|e| e.contains("more")));
    }

    #[tokio::test]
    async fn nothing_of_the_last_chunk_is_delivered_when_the_body_runs_over() {
        let chunks = [Ok(Bytes::from("ab")), Ok(Bytes::from("c")), Ok(Bytes::from("d"))];
        let mut body = exactly(stream::iter(chunks).boxed(), 3, limits());
        assert_eq!(body.next().await.expect("a chunk").expect("sound"), "ab");
        assert!(body.next().await.expect("an end").is_err());
        assert!(body.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_store_is_cut_after_the_stall_limit() {
        let start = Instant::now();
        let mut body = exactly(stream::pending().boxed(), 3, limits());
        assert!(body.next().await.expect("an end").is_err());
        assert_eq!(start.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dripping_store_is_cut_and_a_slow_reader_is_not() {
        let drip = |every: u64| {
            stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_secs(every)).await;
                Some((Ok(Bytes::from_static(b"0123456789")), ()))
            })
        };
        let mut body = exactly(drip(2).boxed(), 10_000, limits());
        let mut got = 0;
        while let Some(Ok(chunk)) = body.next().await {
            got += chunk.len();
        }
        assert!((300..400).contains(&got), "{got} bytes at half the least rate");

        let mut body = exactly(drip(0).boxed(), 100, limits());
        for _ in 0..9 {
            assert!(body.next().await.expect("a chunk").is_ok());
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
    }
}
