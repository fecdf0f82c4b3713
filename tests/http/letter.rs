//! HTTP to the letter (RFC 9110): methods × ranges × conditionals × files, every header looked at.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use artifactd::ledger::Allowance;

use self::Answer::{Changed, Failed, NotModified, Part, Unsatisfiable, Whole};
use super::raw;
use super::servers::Server;
use super::service::{Options, Place, Service};

const DIGITS: &[u8] = b"0123456789";

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// 200.
    Whole,
    /// 206 with the bytes from the first to the last.
    Part(usize, usize),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Unsatisfiable,
    /// 200, since If-Range names another version: as [`Whole`].
    Changed,
}

impl Answer {
    const fn status(self) -> u16 {
        match self {
            Whole | Changed => 200,
            Part(..) => 206,
            NotModified => 304,
            Failed => 412,
            Unsatisfiable => 416,
        }
    }
}

/// Request fields, and what they get: GET and HEAD of ten digits, then of an empty file. In the
/// values, `{E}` is the entity tag, `{W}` the same as a weak one, `{M}` the Last-Modified, `{B}` a
/// second before, `{A}` a second after.
type Row = (&'static [(&'static str, &'static str)], [Answer; 4]);

const fn range(value: &'static str, digits: Answer, empty: Answer) -> (&'static str, [Answer; 4]) {
    (value, [digits, Whole, empty, Whole])
}

/// One range in every form, and what is none. HEAD knows no ranges (§14.2).
const RANGES: &[(&str, [Answer; 4])] = &[
    range("bytes=0-0", Part(0, 0), Unsatisfiable),
    range("bytes=0-9", Part(0, 9), Unsatisfiable),
    range("bytes=0-", Part(0, 9), Unsatisfiable),
    range("bytes=3-5", Part(3, 5), Unsatisfiable),
    range("bytes=4-", Part(4, 9), Unsatisfiable),
    range("bytes=9-9", Part(9, 9), Unsatisfiable),
    range("bytes=9-99", Part(9, 9), Unsatisfiable),
    range("bytes=0-18446744073709551615", Part(0, 9), Unsatisfiable),
    range("bytes=0-99999999999999999999999999", Part(0, 9), Unsatisfiable),
    range("bytes=-1", Part(9, 9), Unsatisfiable),
    range("bytes=-10", Part(0, 9), Unsatisfiable),
    range("bytes=-11", Part(0, 9), Unsatisfiable),
    range("bytes=-99999999999999999999999999", Part(0, 9), Unsatisfiable),
    range("bytes=-0", Unsatisfiable, Unsatisfiable),
    range("bytes=10-", Unsatisfiable, Unsatisfiable),
    range("bytes=10-10", Unsatisfiable, Unsatisfiable),
    range("bytes=18446744073709551615-", Unsatisfiable, Unsatisfiable),
    range("bytes=99999999999999999999999999-", Unsatisfiable, Unsatisfiable),
    range("BYTES=1-2", Part(1, 2), Unsatisfiable),
    range("bytes= 1-2", Part(1, 2), Unsatisfiable),
    range("bytes=1-2,", Part(1, 2), Unsatisfiable),
    range("bytes=0-1,4-5", Whole, Whole),
    range("bytes=0-1,99-", Whole, Whole),
    range("bytes=abc", Whole, Whole),
    range("bytes=", Whole, Whole),
    range("bytes=-", Whole, Whole),
    range("bytes=--1", Whole, Whole),
    range("bytes=5-2", Whole, Whole),
    range("bytes=1-2-3", Whole, Whole),
    range("bytes=+1-2", Whole, Whole),
    range("bytes=0x1-2", Whole, Whole),
    range("bytes 0-1", Whole, Whole),
    range("lines=0-1", Whole, Whole),
    range("0-1", Whole, Whole),
];

/// The conditionals, alone, together (§13.2.2) and with a range.
const CONDITIONS: &[Row] = &[
    (&[], [Whole; 4]),
    (&[("If-Match", "{E}")], [Whole; 4]),
    (&[("If-Match", "*")], [Whole; 4]),
    (&[("If-Match", "\"x\", {E}")], [Whole; 4]),
    (&[("If-Match", "\"x\"")], [Failed; 4]),
    (&[("If-Match", "{W}")], [Failed; 4]),
    (&[("If-Match", "nonsense")], [Failed; 4]),
    (&[("If-Match", "{E}"), ("If-Unmodified-Since", "{B}")], [Whole; 4]),
    (&[("If-Match", "\"x\""), ("If-None-Match", "{E}")], [Failed; 4]),
    (&[("If-Unmodified-Since", "{M}")], [Whole; 4]),
    (&[("If-Unmodified-Since", "{A}")], [Whole; 4]),
    (&[("If-Unmodified-Since", "{B}")], [Failed; 4]),
    (&[("If-Unmodified-Since", "nonsense")], [Whole; 4]),
    (&[("If-None-Match", "{E}")], [NotModified; 4]),
    (&[("If-None-Match", "{W}")], [NotModified; 4]),
    (&[("If-None-Match", "*")], [NotModified; 4]),
    (&[("If-None-Match", "\"x\", {W}")], [NotModified; 4]),
    (&[("If-None-Match", "\"x\""), ("If-None-Match", "{E}")], [NotModified; 4]),
    (&[("If-None-Match", "\"x\"")], [Whole; 4]),
    (&[("If-None-Match", "\"x\""), ("If-Modified-Since", "{A}")], [Whole; 4]),
    (&[("If-None-Match", "{E}"), ("If-Modified-Since", "{B}")], [NotModified; 4]),
    (&[("If-Modified-Since", "{M}")], [NotModified; 4]),
    (&[("If-Modified-Since", "{A}")], [NotModified; 4]),
    (&[("If-Modified-Since", "{B}")], [Whole; 4]),
    (&[("If-Modified-Since", "nonsense")], [Whole; 4]),
    (&[("If-Match", "{E}"), ("If-None-Match", "{E}")], [NotModified; 4]),
    (&[("Range", "bytes=1-2"), ("Range", "bytes=1-2")], [Whole; 4]),
    (&[("Range", "bytes=1-2"), ("If-Range", "{E}")], [Part(1, 2), Whole, Unsatisfiable, Whole]),
    (&[("Range", "bytes=1-2"), ("If-Range", "{M}")], [Part(1, 2), Whole, Unsatisfiable, Whole]),
    (&[("Range", "bytes=1-2"), ("If-Range", "{W}")], [Changed, Whole, Changed, Whole]),
    (&[("Range", "bytes=1-2"), ("If-Range", "\"x\"")], [Changed, Whole, Changed, Whole]),
    (&[("Range", "bytes=1-2"), ("If-Range", "{B}")], [Changed, Whole, Changed, Whole]),
    (&[("Range", "bytes=1-2"), ("If-Range", "{A}")], [Changed, Whole, Changed, Whole]),
    (&[("Range", "bytes=1-2"), ("If-Range", "nonsense")], [Changed, Whole, Changed, Whole]),
    (&[("Range", "bytes=99-"), ("If-Range", "\"x\"")], [Changed, Whole, Changed, Whole]),
    (&[("Range", "bytes=99-"), ("If-Range", "{E}")], [Unsatisfiable, Whole, Unsatisfiable, Whole]),
    (&[("Range", "bytes=1-2"), ("If-None-Match", "{E}")], [NotModified; 4]),
    (&[("Range", "bytes=99-"), ("If-None-Match", "{E}")], [NotModified; 4]),
    (&[("Range", "bytes=1-2"), ("If-Match", "\"x\"")], [Failed; 4]),
    (&[("Range", "bytes=1-2"), ("If-Match", "{E}")], [Part(1, 2), Whole, Unsatisfiable, Whole]),
    (&[("If-Range", "\"x\"")], [Whole; 4]),
    (&[("Accept-Encoding", "gzip, br, zstd")], [Whole; 4]),
    (&[("Accept", "image/png")], [Whole; 4]),
];

/// The fields that every answer has, and those that go with its kind; nothing else.
fn fields(answer: Answer, head: bool) -> BTreeSet<&'static str> {
    const ALWAYS: &[&str] = &["connection", "date", "x-request-id", "cache-control"];
    const VERSION: &[&str] = &["etag", "last-modified"];
    const CONTENT: &[&str] = &[
        "accept-ranges",
        "content-disposition",
        "content-length",
        "content-security-policy",
        "content-type",
        "cross-origin-resource-policy",
        "referrer-policy",
        "x-content-type-options",
    ];
    let metered: &[&str] = if head { &[] } else { &["ratelimit", "ratelimit-policy"] };
    let more: &[&[&str]] = match answer {
        Whole | Changed => &[VERSION, CONTENT, metered],
        Part(..) => &[VERSION, CONTENT, metered, &["content-range"]],
        NotModified if head => &[VERSION, &["content-length"]],
        NotModified => &[VERSION],
        Failed => &[&["content-type", "content-length"]],
        Unsatisfiable => &[&["content-type", "content-length", "content-range"]],
    };
    ALWAYS.iter().chain(more.iter().copied().flatten()).copied().collect()
}

/// One file and its validators.
struct File {
    path: &'static str,
    body: &'static [u8],
    etag: String,
    modified: String,
}

impl File {
    /// Waits until the validator is a strong one: files on disk are weak while they are young.
    async fn settled(service: &Service, path: &'static str, body: &'static [u8]) -> Self {
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            let head = raw::send(service.address, &raw::request("HEAD", path, &service.keys.read_only, "")).await;
            let field = |name: &str| head.header(name).expect(name).to_owned();
            let (etag, modified) = (field("etag"), field("last-modified"));
            if !etag.starts_with("W/") {
                return Self { path, body, etag, modified };
            }
            assert!(Instant::now() < give_up, "the validator stays weak");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn fill(&self, value: &str) -> String {
        let modified = httpdate::parse_http_date(&self.modified).expect("an HTTP date");
        let second = Duration::from_secs(1);
        value
            .replace("{E}", &self.etag)
            .replace("{W}", &format!("W/{}", self.etag))
            .replace("{M}", &self.modified)
            .replace("{B}", &httpdate::fmt_http_date(modified - second))
            .replace("{A}", &httpdate::fmt_http_date(modified + second))
    }

    /// Asks, and holds the answer against what is wanted; answers the bytes that it cost.
    async fn check(&self, service: &Service, method: &str, sent: &[(&str, &str)], want: Answer) -> u64 {
        let extra: String = sent.iter().map(|(name, value)| format!("{name}: {}\r\n", self.fill(value))).collect();
        let request = raw::request(method, self.path, &service.keys.read_only, &extra);
        let answer = raw::send(service.address, &request).await;
        let (head, size) = (method == "HEAD", self.body.len());
        let told = format!("{method} {} {extra:?}: {}", self.path, answer.head);
        assert_eq!(answer.status, want.status(), "{told}");
        let names: BTreeSet<_> = answer.head.lines().skip(1).filter_map(|line| line.split_once(':')).collect();
        let names: BTreeSet<_> = names.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        assert_eq!(names, fields(want, head).into_iter().map(str::to_owned).collect(), "{told}");
        let field = |name: &str| answer.header(name).unwrap_or_default();

        let content = match want {
            Whole | Changed => self.body,
            Part(first, last) => &self.body[first..=last],
            NotModified | Failed | Unsatisfiable => &[],
        };
        match want {
            Whole | Changed | Part(..) => {
                assert_eq!(answer.body, if head { &[] } else { content }, "{told}");
                assert_eq!(field("content-length"), content.len().to_string(), "{told}");
                assert_eq!((field("etag"), field("last-modified")), (&*self.etag, &*self.modified), "{told}");
                assert_eq!((field("accept-ranges"), field("content-type")), ("bytes", "text/plain; charset=utf-8"));
                assert_eq!(field("cache-control"), "private, no-cache, no-transform", "{told}");
            }
            NotModified => {
                assert_eq!((field("etag"), field("last-modified")), (&*self.etag, &*self.modified), "{told}");
                assert!(answer.body.is_empty(), "{told}");
                assert!(!head || field("content-length") == size.to_string(), "{told}");
            }
            Failed | Unsatisfiable => {
                assert_eq!(field("content-type"), "application/problem+json", "{told}");
                assert_eq!(field("cache-control"), "no-store", "{told}");
                let code = if want == Failed { "PRECONDITION_FAILED" } else { "RANGE_NOT_SATISFIABLE" };
                assert!(head || answer.json()["code"] == code, "{told}");
            }
        }
        match want {
            Part(first, last) => assert_eq!(field("content-range"), format!("bytes {first}-{last}/{size}"), "{told}"),
            Unsatisfiable => assert_eq!(field("content-range"), format!("bytes */{size}"), "{told}"),
            _ => {}
        }
        if head { 0 } else { content.len() as u64 }
    }
}

async fn table(place: Place) {
    let options = Options { place, daily: Allowance::Bytes(1 << 20), ..Options::default() };
    let service = Service::with(&[("t1", "digits.txt", DIGITS), ("t1", "empty.txt", b"")], options).await;
    let digits = File::settled(&service, "/v1/trials/t1/artifacts/digits.txt/content", DIGITS).await;
    let empty = File::settled(&service, "/v1/trials/t1/artifacts/empty.txt/content", b"").await;
    let ranges = RANGES.iter().map(|(value, want)| (vec![("Range", *value)], *want));
    let rows: Vec<_> = CONDITIONS.iter().map(|(sent, want)| (sent.to_vec(), *want)).chain(ranges).collect();
    assert!(rows.len() * 4 >= 200, "{} pairs", rows.len() * 4);
    let mut cost = 0;
    for (sent, want) in rows {
        for (file, methods) in [(&digits, &want[..2]), (&empty, &want[2..])] {
            cost += file.check(&service, "GET", &sent, methods[0]).await;
            cost += file.check(&service, "HEAD", &sent, methods[1]).await;
        }
    }
    assert_eq!(service.settled().await, cost, "the charge is what the bodies held");
}

#[tokio::test]
async fn on_a_directory() {
    table(Place::Directory).await;
}

#[tokio::test]
async fn in_memory() {
    table(Place::Memory).await;
}

#[tokio::test]
async fn on_s3() {
    table(Place::S3(Server::moto())).await;
}

#[tokio::test]
async fn on_azure() {
    table(Place::Azure(Server::azurite())).await;
}

#[tokio::test]
async fn a_young_file_serves_ranges_and_no_strong_comparison() {
    let service = Service::start(&[("t1", "a.txt", DIGITS)]).await;
    let path = "/v1/trials/t1/artifacts/a.txt/content";
    let ask = async |extra: &str| {
        // Written anew, so that it is young whatever the machine does.
        service.put("t1", "a.txt", DIGITS);
        raw::send(service.address, &raw::request("GET", path, &service.keys.read_only, extra)).await
    };
    let first = ask("").await;
    let etag = first.header("etag").expect("one").to_owned();
    assert!(etag.starts_with("W/\""), "{etag}");
    assert_eq!(ask("Range: bytes=2-3\r\n").await.body, b"23");
    assert_eq!(ask(&format!("If-Match: {etag}\r\n")).await.status, 412);
    let modified = first.header("last-modified").expect("one");
    for validator in [&*etag, modified] {
        let answer = ask(&format!("Range: bytes=2-3\r\nIf-Range: {validator}\r\n")).await;
        assert_eq!((answer.status, &answer.body[..]), (200, DIGITS), "{validator}");
    }
}
