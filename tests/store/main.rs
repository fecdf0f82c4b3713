//! The stores: one contract that each of them keeps, and what is particular to directories and to
//! object stores that misbehave.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests look at the real clock and at their own environment")]

mod contract;
mod environment;
mod faulty;
mod fixture;
mod local;
mod object;
#[path = "../support/mod.rs"]
mod support;

use artifactd::store::{Store, StoreError};
use bytes::Bytes;
use futures_util::StreamExt as _;

/// Reads a whole object in the version that it has now.
async fn read(store: &dyn Store, key: &str) -> Result<Vec<u8>, StoreError> {
    let stat = store.stat(key).await?;
    let opened = store.open(key, &stat, 0..stat.size).await?;
    drain(opened.body).await
}

/// All chunks of a body, none of which may be empty.
async fn drain(
    mut body: futures_util::stream::BoxStream<'static, Result<Bytes, StoreError>>,
) -> Result<Vec<u8>, StoreError> {
    let mut read = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        assert!(!chunk.is_empty(), "an empty chunk");
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}
