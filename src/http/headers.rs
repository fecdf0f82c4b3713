//! The headers of content: what it is called, what a browser may do with it.

use std::sync::LazyLock;
use std::time::SystemTime;

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::artifact::{ArtifactName, media};
use crate::request::REQUEST_ID;
use crate::store::{ETag, Stat};

/// Whether a browser shows the content or saves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disposition {
    /// Save it: the default.
    Attachment,
    /// Show it, if it is of a kind that cannot run.
    Inline,
}

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

const CACHING: HeaderValue = HeaderValue::from_static("private, no-cache, no-transform");

/// An answer with these headers and no others, which are not copied one by one.
pub(super) fn answer(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The headers that every answer about a version of an artifact has, 304 included.
pub(super) fn of_version(stat: &Stat) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CACHE_CONTROL, CACHING);
    add_version(&mut headers, stat);
    headers
}

fn add_version(headers: &mut HeaderMap, stat: &Stat) {
    headers.insert(ETAG, etag(&stat.etag));
    if stat.modified >= SystemTime::UNIX_EPOCH {
        headers.insert(LAST_MODIFIED, value(httpdate::fmt_http_date(stat.modified)));
    } else {
        headers.remove(LAST_MODIFIED);
    }
}

/// The headers of `length` bytes of the content itself: inert by type and by policy, whatever the run wrote.
pub(super) fn of_content(name: &ArtifactName, stat: &Stat, disposition: Disposition, length: u64) -> HeaderMap {
    /// What all such answers say, and a place for what each says in its own words, up to the request's id: filling
    /// one in is cheaper than making one.
    static FORM: LazyLock<HeaderMap> = LazyLock::new(|| {
        let own = [ETAG, LAST_MODIFIED, CONTENT_TYPE, CONTENT_DISPOSITION, CONTENT_LENGTH, REQUEST_ID];
        let mut headers: HeaderMap = own.into_iter().map(|name| (name, HeaderValue::from_static(""))).collect();
        headers.insert(CACHE_CONTROL, CACHING);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        add_policies(&mut headers);
        headers
    });
    let mut headers = FORM.clone();
    add_version(&mut headers, stat);
    headers.insert(CONTENT_LENGTH, length.into());
    let media_type = media::media_type_by_name(name.as_str());
    let inline = disposition == Disposition::Inline && media::may_be_inline(media_type);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CONTENT_DISPOSITION, value(content_disposition(name.file_name(), inline)));
    headers
}

/// `Content-Disposition` of a file to be saved under this name.
pub(super) fn attachment(file_name: &str) -> HeaderValue {
    value(content_disposition(file_name, false))
}

/// What a browser may do with bytes that an evaluated run wrote: nothing.
pub(super) fn add_policies(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// What RFC 8187 §3.2.1 lets stand as it is (`attr-char`).
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// RFC 6266: an ASCII `filename` for old clients and, where it says less than the name, an RFC 8187
/// `filename*`.
fn content_disposition(file_name: &str, inline: bool) -> String {
    let kind = if inline { "inline" } else { "attachment" };
    // Quotes end the string early in careless parsers, and a percent sign is decoded by some.
    let plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%');
    if file_name.chars().all(plain) {
        return [kind, "; filename=\"", file_name, "\""].concat();
    }
    let ascii: String = file_name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{kind}; filename=\"{ascii}\"; filename*=UTF-8''{}", utf8_percent_encode(file_name, ATTR_CHAR))
}

/// The value of an `ETag` field.
pub(super) fn etag(etag: &ETag) -> HeaderValue {
    let mut text = String::with_capacity("W/\"\"".len() + etag.opaque().len());
    text.push_str(if etag.is_weak() { "W/\"" } else { "\"" });
    text.push_str(etag.opaque());
    text.push('"');
    value(text)
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("built from visible ASCII alone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Kept;

    #[test]
    fn file_names_of_every_kind() {
        for (name, want) in [
            ("a.txt", "attachment; filename=\"a.txt\""),
            ("a b;c.txt", "attachment; filename=\"a b;c.txt\""),
            ("報告.txt", "attachment; filename=\"__.txt\"; filename*=UTF-8''%E5%A0%B1%E5%91%8A.txt"),
            ("a\"b.txt", "attachment; filename=\"a_b.txt\"; filename*=UTF-8''a%22b.txt"),
            ("100%.txt", "attachment; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"),
            ("it's (1)*.txt", "attachment; filename=\"it's (1)*.txt\""),
            ("é'.txt", "attachment; filename=\"_'.txt\"; filename*=UTF-8''%C3%A9%27.txt"),
        ] {
            assert_eq!(content_disposition(name, false), want);
        }
        assert!(content_disposition(&"長".repeat(300), true).starts_with("inline; filename=\"___"));
    }

    #[test]
    fn what_could_run_in_a_browser_does_not() {
        let stat = Stat { size: 1, etag: ETag::weak("v"), modified: SystemTime::UNIX_EPOCH, kept: Kept::default() };
        for (name, media_type, disposition) in [
            ("x.html", "text/plain; charset=utf-8", "inline; filename=\"x.html\""),
            ("x.svg", "text/plain; charset=utf-8", "inline; filename=\"x.svg\""),
            ("x.png", "image/png", "inline; filename=\"x.png\""),
            ("x.pdf", "application/pdf", "attachment; filename=\"x.pdf\""),
            ("x", "application/octet-stream", "attachment; filename=\"x\""),
        ] {
            let name = ArtifactName::parse(name).expect("valid");
            let headers = of_content(&name, &stat, Disposition::Inline, 1);
            assert_eq!(headers[CONTENT_TYPE], media_type);
            assert_eq!(headers[CONTENT_DISPOSITION], disposition);
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[CONTENT_SECURITY_POLICY], "default-src 'none'; sandbox");
            assert_eq!(headers[ETAG], "W/\"v\"");
        }
    }
}
