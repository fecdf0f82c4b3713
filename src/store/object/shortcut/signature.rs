//! The head of a request for an object, signed by AWS Signature Version 4
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>).

use std::fmt::Write as _;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use object_store::aws::AwsCredential;
use sha2::{Digest as _, Sha256};

use crate::encoding::hex;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// What is asked for, in the words of a request.
pub(super) struct Wanted<'a> {
    /// Percent-encoded.
    pub(super) path: &'a str,
    pub(super) host: &'a str,
    /// The precondition.
    pub(super) etag: &'a str,
    /// The value of `Range`, unless the whole is wanted.
    pub(super) range: Option<&'a str>,
}

impl Wanted<'_> {
    /// The first lines of the request, without a signature. Nothing if a value is not one of a header.
    pub(super) fn unsigned(&self) -> Option<String> {
        self.lines(&[("host", Some(self.host)), ("if-match", Some(self.etag)), ("range", self.range)])
    }

    fn lines(&self, headers: &[(&str, Option<&str>)]) -> Option<String> {
        let mut head = String::with_capacity(1024);
        write!(head, "GET {} HTTP/1.1\r\n", self.path).ok()?;
        for (name, value) in present(headers) {
            // Signatures are of values without needless blanks: these have none at all.
            if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                return None;
            }
            write!(head, "{name}: {value}\r\n").ok()?;
        }
        Some(head)
    }
}

fn present<'a>(headers: &'a [(&'a str, Option<&'a str>)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    headers.iter().filter_map(|(name, value)| Some((*name, (*value)?)))
}

/// Signs for one region. The key of a credential is derived once a day.
pub(super) struct Signer {
    region: String,
    /// The value of `x-amz-content-sha256`.
    content: String,
    key: ArcSwapOption<DayKey>,
}

struct DayKey {
    credential: Arc<AwsCredential>,
    /// Days since 1970.
    day: i64,
    /// As `20261130`.
    date: String,
    /// The date and what the key is for.
    scope: String,
    /// Keyed, to be cloned for each request.
    mac: Hmac<Sha256>,
}

impl Signer {
    pub(super) fn new(region: String, content: String) -> Self {
        Self { region, content, key: ArcSwapOption::empty() }
    }

    /// The first lines of the request, as `credential` signs it at `now`. Nothing if a value is not one of a
    /// header.
    pub(super) fn signed(
        &self,
        wanted: &Wanted<'_>,
        credential: &Arc<AwsCredential>,
        now: Timestamp,
    ) -> Option<String> {
        let (day, second) = (now.as_second().div_euclid(DAY_SECONDS), now.as_second().rem_euclid(DAY_SECONDS));
        let key = self.key(credential, day)?;
        let time = format!("{}T{:02}{:02}{:02}Z", key.date, second / 3600, second / 60 % 60, second % 60);
        // By their names.
        let headers = [
            ("host", Some(wanted.host)),
            ("if-match", Some(wanted.etag)),
            ("range", wanted.range),
            ("x-amz-content-sha256", Some(self.content.as_str())),
            ("x-amz-date", Some(time.as_str())),
            ("x-amz-security-token", credential.token.as_deref()),
        ];
        let mut head = wanted.lines(&headers)?;
        let mut names = String::with_capacity(128);
        let mut canonical = String::with_capacity(1024);
        write!(canonical, "GET\n{}\n\n", wanted.path).ok()?;
        for (name, value) in present(&headers) {
            writeln!(canonical, "{name}:{value}").ok()?;
            write!(names, "{}{name}", if names.is_empty() { "" } else { ";" }).ok()?;
        }
        write!(canonical, "\n{names}\n{}", self.content).ok()?;
        let mut mac = key.mac.clone();
        let canonical = hex(&Sha256::digest(canonical));
        mac.update(format!("AWS4-HMAC-SHA256\n{time}\n{}\n{canonical}", key.scope).as_bytes());
        let signature = hex(&mac.finalize().into_bytes());
        let (id, scope) = (&credential.key_id, &key.scope);
        write!(head, "authorization: AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, ").ok()?;
        write!(head, "Signature={signature}\r\n").ok()?;
        Some(head)
    }

    fn key(&self, credential: &Arc<AwsCredential>, day: i64) -> Option<Arc<DayKey>> {
        if let Some(key) = &*self.key.load()
            && key.day == day
            && Arc::ptr_eq(&key.credential, credential)
        {
            return Some(Arc::clone(key));
        }
        if !credential.key_id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let date = Timestamp::from_second(day * DAY_SECONDS).ok()?.strftime("%Y%m%d").to_string();
        let mut key = format!("AWS4{}", credential.secret_key).into_bytes();
        for part in [date.as_str(), &self.region, "s3", "aws4_request"] {
            key = keyed(&key).chain_update(part).finalize().into_bytes().to_vec();
        }
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let key = DayKey { credential: Arc::clone(credential), day, date, scope, mac: keyed(&key) };
        let key = Arc::new(key);
        self.key.store(Some(Arc::clone(&key)));
        Some(key)
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use jiff::tz::TimeZone;
    use object_store::aws::AwsAuthorizer;
    use object_store::client::HttpRequest;

    use super::*;

    fn credential(token: Option<&str>) -> Arc<AwsCredential> {
        let (key_id, secret_key) =
            ("AKIAIOSFODNN7EXAMPLE".to_owned(), "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned());
        Arc::new(AwsCredential { key_id, secret_key, token: token.map(str::to_owned) })
    }

    /// All headers of a head but `Host`, sorted.
    fn headers(head: &str) -> Vec<(String, String)> {
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut headers: Vec<_> = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        headers.retain(|(name, _)| name != "host");
        headers.sort();
        headers
    }

    #[test]
    fn a_request_is_the_same_as_object_store_signs_it() {
        for (path, range, token, region, sign_payload, content) in [
            (
                "/bucket/a",
                None,
                None,
                "us-east-1",
                true,
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            ("/bucket/a%20b/100%25", Some("bytes=2-4"), None, "eu-west-3", false, "UNSIGNED-PAYLOAD"),
            ("/caf%C3%A9/~x/%5B1%5D", None, Some("a/token+of=="), "auto", false, "UNSIGNED-PAYLOAD"),
        ] {
            let (host, etag) = ("store.example:9000", "\"v1-2\"");
            let credential = credential(token);
            let mut theirs: HttpRequest = Request::get(format!("http://{host}{path}"))
                .header("if-match", etag)
                .body(Bytes::new().into())
                .expect("a request");
            if let Some(range) = range {
                theirs.headers_mut().insert("range", range.parse().expect("a value"));
            }
            let authorizer = AwsAuthorizer::new(&credential, "s3", region).with_sign_payload(sign_payload);
            authorizer.try_authorize(&mut theirs, None).expect("signed");
            let time = theirs.headers()["x-amz-date"].to_str().expect("text");
            let now = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", time).expect("a time");
            let now = TimeZone::UTC.to_timestamp(now).expect("a time");
            let mut expected: Vec<_> = theirs
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
                .collect();
            expected.sort();

            let signer = Signer::new(region.to_owned(), content.to_owned());
            let wanted = Wanted { path, host, etag, range };
            // With a key of another day, none, and one that is there.
            signer.signed(&wanted, &credential, Timestamp::UNIX_EPOCH).expect("a head");
            for _ in 0..2 {
                let head = signer.signed(&wanted, &credential, now).expect("a head");
                assert_eq!(headers(&head), expected, "{path}");
                assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n")), "{head}");
            }
        }
    }

    #[test]
    fn another_credential_has_another_key() {
        let signer = Signer::new("us-east-1".into(), "UNSIGNED-PAYLOAD".into());
        let wanted = Wanted { path: "/a", host: "x", etag: "\"e\"", range: None };
        let sign = |credential: &Arc<AwsCredential>| signer.signed(&wanted, credential, Timestamp::UNIX_EPOCH);
        let one = credential(None);
        let other = Arc::new(AwsCredential { secret_key: "another".into(), key_id: one.key_id.clone(), token: None });
        let first = sign(&one).expect("a head");
        assert_ne!(sign(&other).expect("a head"), first);
        assert_eq!(sign(&one).expect("a head"), first);
    }

    #[test]
    fn a_value_that_no_header_has_makes_no_request() {
        let signer = Signer::new("us-east-1".into(), "UNSIGNED-PAYLOAD".into());
        let sign = |token, etag| {
            let wanted = Wanted { path: "/a", host: "x", etag, range: None };
            signer.signed(&wanted, &credential(token), Timestamp::UNIX_EPOCH).is_some()
        };
        assert!(sign(Some("token"), "\"e\""));
        assert!(!sign(Some("token\r\nx: y"), "\"e\"") && !sign(Some("to  ken"), "\"e\"") && !sign(None, "\"e\n\""));
    }
}
