//! A body that came by the short way, and is taken up by `object_store` where it breaks off.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::BodyExt as _;
use object_store::path::Path;
use object_store::{Extensions, GetOptions, GetRange, ObjectStore};

use super::super::super::ETag;
use super::super::client::Patient;
use super::super::wire::Witness;

/// What is still to come of an object's bytes.
pub(in super::super) struct Rest {
    pub(in super::super) body: Box<Patient>,
    /// Whom to ask for what did not come.
    pub(in super::super) store: Arc<dyn ObjectStore>,
    pub(in super::super) key: Path,
    /// The version.
    pub(in super::super) etag: ETag,
    /// The bytes.
    pub(in super::super) range: Range<u64>,
}

enum Source {
    Short(Rest),
    Long(BoxStream<'static, object_store::Result<Bytes>>),
}

impl Rest {
    /// The bytes, until they end or fail for good.
    pub(in super::super) fn chunks(self) -> BoxStream<'static, object_store::Result<Bytes>> {
        let chunks = stream::try_unfold(Source::Short(self), async |source| match source {
            Source::Short(rest) => rest.next().await,
            Source::Long(mut chunks) => Ok(chunks.next().await.transpose()?.map(|bytes| (bytes, Source::Long(chunks)))),
        });
        chunks.boxed()
    }

    async fn next(mut self) -> object_store::Result<Option<(Bytes, Source)>> {
        match self.body.frame().await {
            None => Ok(None),
            Some(Ok(frame)) => {
                let bytes = frame.into_data().unwrap_or_default();
                self.range.start += bytes.len() as u64;
                Ok(Some((bytes, Source::Short(self))))
            }
            Some(Err(error)) => {
                tracing::info!(%error, "a store's answer broke off: the rest of it is asked for");
                let mut chunks = self.ask_anew(error).await?;
                Ok(chunks.next().await.transpose()?.map(|bytes| (bytes, Source::Long(chunks))))
            }
        }
    }

    /// The rest of the same version.
    async fn ask_anew(
        self,
        error: impl Error + Send + Sync + 'static,
    ) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        let mut extensions = Extensions::new();
        extensions.insert(Witness::default());
        let options = GetOptions {
            if_match: Some(self.etag.to_string()),
            range: Some(GetRange::Bounded(self.range.clone())),
            extensions,
            ..GetOptions::default()
        };
        let answer = self.store.get_opts(&self.key, options).await.map_err(failed)?;
        let etag = answer.meta.e_tag.as_deref().and_then(ETag::parse);
        if !etag.is_some_and(|etag| etag.strong_eq(&self.etag)) {
            return Err(failed(error));
        }
        Ok(answer.into_stream())
    }
}

/// The answer to a request for a body that goes on says nothing of the object to whoever reads it.
fn failed(source: impl Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: Box::new(source) }
}
