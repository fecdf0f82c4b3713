//! PURE: the XML of a listing, as S3 and Google Cloud Storage (`ListBucketResult`) and Azure
//! (`EnumerationResults`) write it. Keys come out exactly as they are, blanks at their ends included.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use super::stat_from;
use crate::store::Stat;

/// Which of the two documents a store writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    S3,
    Azure,
}

impl Dialect {
    /// The document with nothing in it.
    pub(super) const fn empty_answer(self) -> &'static str {
        match self {
            Self::S3 => "<ListBucketResult></ListBucketResult>",
            Self::Azure => "<EnumerationResults><Blobs></Blobs></EnumerationResults>",
        }
    }
}

/// One answer of a store to a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) dialect: Dialect,
    pub(super) objects: Vec<Object>,
    /// Common prefixes, each with its closing slash.
    pub(super) folders: Vec<String>,
    /// What to ask for the next part with, if there is one.
    pub(super) token: Option<String>,
}

/// One object, with whatever key it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) stat: Stat,
}

/// Why an answer is not a listing.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoListing {
    #[error("the listing is not XML: {0}")]
    Xml(#[from] quick_xml::Error),
    #[error("the listing is cut or of an unknown kind")]
    Unknown,
}

#[derive(Default)]
struct Draft {
    key: String,
    size: u64,
    modified: i64,
    etag: Option<String>,
    directory: bool,
}

/// Reads an answer.
pub(super) fn parse(xml: &[u8]) -> Result<Listing, NoListing> {
    let mut listing = Listing { dialect: Dialect::S3, objects: Vec::new(), folders: Vec::new(), token: None };
    let mut draft = Draft::default();
    let mut complete = false;
    each_element(xml, |parent, name, text| match (parent, name) {
        ("Contents", "Key") | ("Blob", "Name") => draft.key = text,
        ("Contents", "Size") | ("Properties", "Content-Length") => draft.size = text.parse().unwrap_or(0),
        ("Contents", "LastModified") | ("Properties", "Last-Modified") => draft.modified = seconds(&text),
        ("Contents", "ETag") | ("Properties", "Etag") => draft.etag = Some(text),
        ("Properties", "ResourceType") => draft.directory = text == "directory",
        ("ListBucketResult", "Contents") | ("Blobs", "Blob") => {
            let draft = std::mem::take(&mut draft);
            if !draft.directory {
                let stat = stat_from(draft.size, draft.modified, draft.etag.as_deref());
                listing.objects.push(Object { key: draft.key, stat });
            }
        }
        ("CommonPrefixes", "Prefix") | ("BlobPrefix", "Name") => listing.folders.push(text),
        ("ListBucketResult", "NextContinuationToken") | ("EnumerationResults", "NextMarker") => {
            listing.token = Some(text).filter(|token| !token.is_empty());
        }
        ("", "ListBucketResult") => complete = true,
        ("", "EnumerationResults") => {
            listing.dialect = Dialect::Azure;
            complete = true;
        }
        _ => {}
    })?;
    if complete { Ok(listing) } else { Err(NoListing::Unknown) }
}

/// The code of a refusal: the text of the `Code` element, if the answer has one.
pub(super) fn refusal_code(xml: &[u8]) -> Option<String> {
    let mut code = None;
    let _ = each_element(xml, |parent, name, text| {
        if (parent, name) == ("Error", "Code") {
            code = Some(text);
        }
    });
    code
}

/// Calls `f` with parent, name and text of each element when it ends.
fn each_element(xml: &[u8], mut f: impl FnMut(&str, &str, String)) -> Result<(), quick_xml::Error> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<String> = Vec::new();
    let mut text = Vec::new();
    loop {
        match reader.read_event()? {
            Event::Start(element) => {
                open.push(String::from_utf8_lossy(element.local_name().as_ref()).into_owned());
                text.clear();
            }
            Event::Text(part) => text.extend_from_slice(&part),
            Event::CData(part) => text.extend_from_slice(&part),
            Event::GeneralRef(reference) => {
                let mut utf8 = [0; 4];
                text.extend_from_slice(referred(&reference).encode_utf8(&mut utf8).as_bytes());
            }
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                let parent = open.last().map_or("", String::as_str);
                f(parent, &name, String::from_utf8_lossy(&text).into_owned());
                text.clear();
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The character that a reference stands for. One that stands for none makes the key unsound, which
/// is what NUL does.
fn referred(reference: &BytesRef<'_>) -> char {
    let name: &[u8] = reference.as_ref();
    match name {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"apos" => '\'',
        b"quot" => '"',
        _ => reference.resolve_char_ref().ok().flatten().unwrap_or('\0'),
    }
}

/// The seconds since 1970 of an RFC 3339 or RFC 1123 time; 0 for what is neither.
fn seconds(text: &str) -> i64 {
    let iso = text.parse::<jiff::Timestamp>().ok();
    let http = || jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
    iso.or_else(http).map_or(0, |time| time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_of_s3() {
        let listing = parse(
            b"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">
            <Name>b</Name><Prefix>t/</Prefix><KeyCount>3</KeyCount>
            <Contents><Key> a&amp;b&lt;&#x65E5;&#10; </Key><LastModified>2026-11-29T10:00:01.500Z</LastModified>
              <ETag>&quot;x-1&quot;</ETag><Size>7</Size><Owner><ID>Key</ID></Owner></Contents>
            <Contents><Key>a//b</Key><Size>1</Size></Contents>
            <Contents><Key/><Size>1</Size></Contents>
            <CommonPrefixes><Prefix>t/d/</Prefix></CommonPrefixes>
            <NextContinuationToken>tok</NextContinuationToken></ListBucketResult>",
        )
        .expect("a listing");
        assert_eq!(listing.dialect, Dialect::S3);
        assert_eq!(listing.objects.iter().map(|o| o.key.as_str()).collect::<Vec<_>>(), [" a&b<日\n ", "a//b", ""]);
        assert_eq!(listing.objects[0].stat, stat_from(7, 1_795_946_401, Some("\"x-1\"")));
        assert!(listing.objects[1].stat.etag.is_weak());
        assert_eq!(listing.folders, ["t/d/"]);
        assert_eq!(listing.token.as_deref(), Some("tok"));
    }

    #[test]
    fn a_listing_of_azure() {
        let listing = parse(
            b"\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Prefix>t/</Prefix><Blobs>
            <Blob><Name>t/a</Name><Properties><Last-Modified>Sun, 29 Nov 2026 10:00:01 GMT</Last-Modified>
              <Etag>0x8D</Etag><Content-Length>7</Content-Length></Properties></Blob>
            <Blob><Name>t/d</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>
            <BlobPrefix><Name>t/d/</Name></BlobPrefix></Blobs><NextMarker/></EnumerationResults>",
        )
        .expect("a listing");
        assert_eq!(listing.dialect, Dialect::Azure);
        assert_eq!(listing.objects, [Object { key: "t/a".into(), stat: stat_from(7, 1_795_946_401, Some("0x8D")) }]);
        assert_eq!(listing.folders, ["t/d/"]);
        assert_eq!(listing.token, None);
    }

    #[test]
    fn what_is_no_listing() {
        for xml in ["", "<html></html>", "<ListBucketResult><Contents>", "<a></b>", "{}"] {
            assert!(parse(xml.as_bytes()).is_err(), "{xml}");
        }
        let cut = b"<ListBucketResult><Contents><Key>a</Key></Contents>";
        assert!(parse(cut).is_err());
    }

    #[test]
    fn a_character_that_xml_cannot_have_is_an_unsound_key() {
        let xml = b"<ListBucketResult><Contents><Key>a&#1;&#0;&nope;</Key></Contents></ListBucketResult>";
        assert_eq!(parse(xml).expect("a listing").objects[0].key, "a\u{1}\0\0");
    }

    #[test]
    fn the_code_of_a_refusal() {
        let code = |xml: &str| refusal_code(xml.as_bytes());
        assert_eq!(code("<Error><Code>NoSuchKey</Code><Key>Code</Key></Error>").as_deref(), Some("NoSuchKey"));
        assert_eq!(code("not found"), None);
    }
}
