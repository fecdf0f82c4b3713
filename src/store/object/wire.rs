//! What goes over the wire and `object_store` does not pass on.
//!
//! A [`Witness`] travels with a request in its extensions. The [`Tap`] sits between `object_store`
//! and the HTTP client and notes on it what the answer says. The entries of a listing are taken out
//! here: `object_store` fails a whole page for one key that it cannot express, and drops the closing
//! slash that tells a directory marker from an empty object.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_RANGE};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

use super::client::Client;
use super::listing_xml::{self, Listing};
use super::shortcut::{Answered, Lesson};
use crate::telemetry::trace;

/// The largest answer to a listing: a thousand entries of a few kilobytes.
const MAX_LISTING_BYTES: usize = 16 << 20;
/// The largest refusal that is read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// What an answer said beside what `object_store` passes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// The HTTP status.
    pub(super) status: Option<u16>,
    /// The store's own code of a refusal, such as `NoSuchKey`.
    pub(super) code: Option<String>,
    /// The object's whole size as a partial answer says it.
    pub(super) total: Option<u64>,
    /// Whether the object must be restored before it can be read.
    pub(super) archived: bool,
    /// The Content-Encoding that an object is stored under, where it may be sent under another.
    pub(super) stored_encoding: Option<String>,
}

/// Takes notes of the last answer to one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Witness(Arc<Mutex<(Notes, Option<Listing>)>>);

impl Witness {
    pub(super) fn notes(&self) -> Notes {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    pub(super) fn take_listing(&self) -> Option<Listing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }

    fn note(&self, notes: Notes, listing: Option<Listing>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (notes, listing);
    }
}

/// Marks a request's answer as a listing.
#[derive(Debug, Clone, Copy)]
pub(super) struct IsListing;

/// Connects by our own [`Client`], with a [`Tap`] in between.
#[derive(Debug)]
pub(super) struct Tapped {
    /// Whether to accept gzip, which keeps the store from unpacking what is stored packed.
    pub(super) as_stored: bool,
}

impl HttpConnector for Tapped {
    fn connect(&self, options: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Tap { client: Arc::new(Client::new(options)?), as_stored: self.as_stored }))
    }
}

#[derive(Debug)]
struct Tap {
    client: Arc<Client>,
    as_stored: bool,
}

#[async_trait]
impl HttpService for Tap {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Requests for credentials have no witness.
        let Some(witness) = request.extensions().get::<Witness>().cloned() else {
            return self.client.send(request).await;
        };
        let lesson = request.extensions().get::<Lesson>().map(|lesson| lesson.of(&self.client, &request));
        trace::pass_on(request.headers_mut());
        let is_listing = request.extensions().get::<IsListing>().is_some();
        if self.as_stored && !is_listing {
            request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let response = match request.extensions().get::<Answered>().and_then(Answered::take) {
            Some(answer) => answer,
            None => self.client.send(request).await?,
        };
        let (parts, body) = response.into_parts();
        let mut notes = Notes { status: Some(parts.status.as_u16()), ..notes_of(|name| text_of(&parts.headers, name)) };
        if !parts.status.is_success() {
            let body = collect(body, MAX_REFUSAL_BYTES).await.unwrap_or_default();
            notes.code = notes.code.or_else(|| listing_xml::refusal_code(&body));
            witness.note(notes, None);
            return Ok(HttpResponse::from_parts(parts, String::from_utf8_lossy(&body).into_owned().into()));
        }
        if let Some(learn) = lesson {
            learn(&parts.headers);
        }
        if !is_listing {
            witness.note(notes, None);
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let body = collect(body, MAX_LISTING_BYTES).await?;
        let listing = listing_xml::parse(&body).map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
        let emptied = listing.dialect.empty_answer();
        witness.note(notes, Some(listing));
        Ok(HttpResponse::from_parts(parts, Bytes::from_static(emptied.as_bytes()).into()))
    }
}

/// A header's first value, if it is text.
pub(super) fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The whole body, if it is not larger than `limit` bytes.
async fn collect(body: HttpResponseBody, limit: usize) -> Result<Bytes, HttpError> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(match error.downcast::<HttpError>() {
            // A connection that broke off may be tried again.
            Ok(error) => HttpError::new(HttpErrorKind::Interrupted, *error),
            Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
        }),
    }
}

/// What the headers of an answer say; `text` is the value of one.
pub(super) fn notes_of<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Notes {
    let cold = |name: &str, classes: &[&str]| text(name).is_some_and(|class| classes.contains(&class));
    let restored = text("x-amz-restore").is_some_and(|restore| restore.contains("ongoing-request=\"false\""));
    let archived = cold("x-amz-storage-class", &["GLACIER", "DEEP_ARCHIVE"]) && !restored
        || cold("x-amz-archive-status", &["ARCHIVE_ACCESS", "DEEP_ARCHIVE_ACCESS"])
        || cold("x-ms-access-tier", &["Archive"]);
    Notes {
        status: None,
        code: text("x-ms-error-code").map(str::to_owned),
        total: text(CONTENT_RANGE.as_str()).and_then(|range| range.rsplit_once('/')?.1.parse().ok()),
        archived,
        stored_encoding: text("x-goog-stored-content-encoding").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(headers: &[(&'static str, &'static str)]) -> Notes {
        notes_of(|name| headers.iter().find(|header| header.0 == name).map(|header| header.1))
    }

    #[test]
    fn cold_storage_is_seen_in_the_headers() {
        for (headers, archived) in [
            (&[][..], false),
            (&[("x-amz-storage-class", "STANDARD_IA")], false),
            (&[("x-amz-storage-class", "GLACIER_IR")], false),
            (&[("x-amz-storage-class", "GLACIER")], true),
            (&[("x-amz-storage-class", "DEEP_ARCHIVE"), ("x-amz-restore", "ongoing-request=\"true\"")], true),
            (
                &[
                    ("x-amz-storage-class", "GLACIER"),
                    ("x-amz-restore", "ongoing-request=\"false\", expiry-date=\"x\""),
                ],
                false,
            ),
            (&[("x-amz-archive-status", "ARCHIVE_ACCESS")], true),
            (&[("x-ms-access-tier", "Cool")], false),
            (&[("x-ms-access-tier", "Archive")], true),
        ] {
            assert_eq!(noted(headers).archived, archived, "{headers:?}");
        }
    }

    #[test]
    fn the_total_of_a_partial_answer() {
        assert_eq!(noted(&[("content-range", "bytes 0-9/100")]).total, Some(100));
        assert_eq!(noted(&[("content-range", "bytes */7")]).total, Some(7));
        assert_eq!(noted(&[("content-range", "bytes 0-9/*")]).total, None);
    }
}
