//! A whole day of the audit as one stream, in the memory of a page. If the ledger fails midway the
//! connection is cut: what ends cleanly is whole.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};

use super::{audit, csv};
use crate::artifact::ProjectId;
use crate::error::Error;
use crate::http::headers::attachment;
use crate::ledger::Entry;
use crate::quota::Pages;

/// How a client wants the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// By pages.
    Json,
    /// A stream, one JSON object a line.
    Ndjson,
    /// A stream for spreadsheets.
    Csv,
}

impl Format {
    /// The format that `Accept` likes best (RFC 9110 §12.5.1), of equals the one named first. A client
    /// gets a stream only if it names one, and JSON if it accepts nothing that there is.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let mut best = (0.0, Self::Json);
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/json" | "application/*" | "*/*" => Self::Json,
                "application/x-ndjson" => Self::Ndjson,
                "text/csv" => Self::Csv,
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

/// Streams `pages`, whose first is there already.
pub(super) fn stream(pages: Pages, format: Format, project: &ProjectId) -> Response {
    let (media_type, extension, head, render): (_, _, &[u8], fn(&[Entry]) -> String) = match format {
        Format::Csv => ("text/csv; charset=utf-8; header=present", "csv", csv::HEAD.as_bytes(), csv::rows),
        Format::Json | Format::Ndjson => ("application/x-ndjson", "ndjson", b"", ndjson),
    };
    let file_name = format!("audit-{project}-{}.{extension}", pages.day());
    let head = (!head.is_empty()).then(|| Ok(Bytes::from_static(head)));
    let rest = stream::try_unfold(pages, move |mut pages| async move {
        let entries = pages.next().await.inspect_err(|error| tracing::error!(?error, "an export was cut"))?;
        Ok::<_, Error>(entries.map(|entries| (Bytes::from(render(&entries)), pages)))
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

fn ndjson(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{}\n", audit::entry(entry))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_for_who_names_it() {
        for (accept, want) in [
            (&[][..], Format::Json),
            (&["*/*"], Format::Json),
            (&["text/*"], Format::Json),
            (&["image/png"], Format::Json),
            (&["application/x-ndjson"], Format::Ndjson),
            (&["text/csv"], Format::Csv),
            (&["TEXT/CSV; charset=utf-8"], Format::Csv),
            (&["text/csv, */*;q=0.1"], Format::Csv),
            (&["text/csv;q=0.5, application/x-ndjson"], Format::Ndjson),
            (&["application/json, text/csv"], Format::Json),
            (&["application/json;q=0.9", "text/csv"], Format::Csv),
            (&["text/csv;q=0"], Format::Json),
            (&["text/csv;q=x"], Format::Json),
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
