//! A whole day of the audit as one stream, in the memory of a page. If the ledger fails midway the
//! connection is cut: what ends cleanly is whole.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};

use super::answers::AuditEntry;
use super::csv;
use crate::artifact::ProjectId;
use crate::error::Error;
use crate::http::headers::attachment;
use crate::ledger::Entry;
use crate::quota::Pages;

/// What a stream is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// One JSON object a line.
    Ndjson,
    /// Rows for spreadsheets.
    Csv,
}

impl Format {
    /// The format that `Accept` likes best (RFC 9110 §12.5.1), of equals the one named first; `None`:
    /// JSON by pages. A client gets a stream only if it names one, and JSON if it accepts nothing that
    /// there is.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let mut best = (0.0, None);
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/json" | "application/*" | "*/*" => None,
                "application/x-ndjson" => Some(Self::Ndjson),
                "text/csv" => Some(Self::Csv),
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            let weight = weight.map_or(1.0, |weight| weight.parse::<f32>().unwrap_or(0.0));
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }
}

/// An entry as one line of JSON.
fn line(entry: &Entry) -> String {
    serde_json::to_string(&AuditEntry::from(entry)).expect("an entry is JSON") + "\n"
}

/// Streams `pages`, whose first is there already.
pub(super) fn stream(pages: Pages, format: Format, project: &ProjectId) -> Response {
    let (media_type, extension) = match format {
        Format::Csv => ("text/csv; charset=utf-8; header=present", "csv"),
        Format::Ndjson => ("application/x-ndjson", "ndjson"),
    };
    let file_name = format!("audit-{project}-{}.{extension}", pages.day());
    let head = (format == Format::Csv).then(|| Ok(Bytes::from_static(csv::HEAD.as_bytes())));
    let rest = stream::try_unfold(pages, move |mut pages| async move {
        let entries = pages.next().await.inspect_err(|error| tracing::error!(?error, "an export was cut"))?;
        let part = entries.map(|entries| match format {
            Format::Csv => csv::rows(&entries),
            Format::Ndjson => entries.iter().map(line).collect(),
        });
        Ok::<_, Error>(part.map(|part| (Bytes::from(part), pages)))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(stream::iter(head), rest));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CONTENT_DISPOSITION, attachment(&file_name)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_for_who_names_it() {
        for (accept, want) in [
            (&[][..], None),
            (&["*/*"], None),
            (&["text/*"], None),
            (&["image/png"], None),
            (&["application/x-ndjson"], Some(Format::Ndjson)),
            (&["text/csv"], Some(Format::Csv)),
            (&["TEXT/CSV; charset=utf-8"], Some(Format::Csv)),
            (&["text/csv, */*;q=0.1"], Some(Format::Csv)),
            (&["text/csv;q=0.5, application/x-ndjson"], Some(Format::Ndjson)),
            (&["application/json, text/csv"], None),
            (&["application/json;q=0.9", "text/csv"], Some(Format::Csv)),
            (&["text/csv;q=0"], None),
            (&["text/csv;q=x"], None),
        ] {
            let headers = accept.iter().map(|line| (ACCEPT, HeaderValue::from_static(line)));
            let headers = headers.fold(HeaderMap::new(), |mut all, (name, value)| {
                all.append(name, value);
                all
            });
            assert_eq!(Format::of(&headers), want, "{accept:?}");
        }
    }
}
