//! A request by hand, for an answer of the plainest kind.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use hyper::rt::Write as _;
use object_store::client::{HttpResponse, HttpResponseBody};

use super::super::super::buffers::CHUNK;
use super::Client;
use super::body::{Body, Counted, Patient, poll_into};
use super::connect::Stream;
use super::exchange::{Home, says_close};
use super::idle::Host;

/// The room for a head beside its body. A longer one comes in parts.
const HEAD_BYTES: usize = 4 << 10;
/// The most headers of an answer.
const MAX_HEADERS: usize = 64;

/// The head of an answer.
pub(in super::super) struct Head<'a> {
    status: u16,
    headers: &'a [httparse::Header<'a>],
}

impl<'a> Head<'a> {
    pub(in super::super) const fn status(&self) -> u16 {
        self.status
    }

    /// The first of a header's values, if it is text.
    pub(in super::super) fn get(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let headers = self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        headers.filter_map(|header| std::str::from_utf8(header.value).ok())
    }

    /// As others take it.
    fn parts(&self) -> Option<Parts> {
        let headers = self.headers.iter();
        let answer = headers
            .fold(Response::builder().status(self.status), |answer, header| answer.header(header.name, header.value));
        Some(answer.body(()).ok()?.into_parts().0)
    }

    /// The length of the body, if that alone tells its end (RFC 9112 §6.3).
    fn length(&self) -> Option<u64> {
        let count = |name: &str| self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
        let length = self.get("content-length").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        let alone = count("content-length") == 1 && count("transfer-encoding") == 0;
        alone.then(|| length.parse().ok())?
    }
}

/// The body of an answer: what has come of it with the head, and what is still to come.
pub(in super::super) enum Arrived {
    Whole(Bytes),
    Part(Box<Patient>),
}

/// An answer.
pub(in super::super) enum Asked<T> {
    /// With what was made of its head.
    AsHoped(T, Arrived),
    /// As any other client would have it.
    Otherwise(HttpResponse),
}

/// What a head says, once it is judged.
struct Judged<T> {
    /// The head of an answer that was not hoped for, as others take it.
    verdict: Result<T, Parts>,
    length: u64,
    head_bytes: usize,
    reusable: bool,
}

impl Client {
    /// Sends a whole request without a body by a connection that waits for one. An answer of `length` bytes is
    /// as hoped if `judge` makes something of its head. Without an answer whose length is said nothing is given,
    /// and the connection is given up. How long is waited for the head is for the caller to say.
    pub(in super::super) async fn ask<T>(
        &self,
        host: &Host,
        request: &[u8],
        length: u64,
        judge: impl Fn(&Head<'_>) -> Option<T>,
    ) -> Option<Asked<T>> {
        let mut stream = self.idle.take(host)?;
        send(&mut stream, request).await.ok()?;
        let most = usize::try_from(length).unwrap_or(CHUNK).saturating_add(HEAD_BYTES).min(CHUNK);
        let mut held = None;
        let (judged, chunk) = poll_fn(|cx| {
            loop {
                // No buffer is held while there is nothing.
                let (mut chunk, mut filled) = held.take().unwrap_or_else(|| (self.buffers.chunk(most), 0));
                let room = &mut chunk.space()[filled..];
                match poll_into(&mut stream, cx, room) {
                    Poll::Ready(Ok(more @ 1..)) => filled += more,
                    Poll::Pending => {
                        held = (filled > 0).then_some((chunk, filled));
                        return Poll::Pending;
                    }
                    Poll::Ready(_) => return Poll::Ready(None),
                }
                match judged(&chunk.space()[..filled], length, &judge) {
                    Ok(Some(judged)) => {
                        chunk.truncate(filled);
                        return Poll::Ready(Some((judged, chunk)));
                    }
                    Ok(None) if filled < chunk.len() => held = Some((chunk, filled)),
                    _ => return Poll::Ready(None),
                }
            }
        })
        .await?;
        let early = chunk.into_bytes().slice(judged.head_bytes..);
        let (idle, buffers) = (Arc::clone(&self.idle), Arc::clone(&self.buffers));
        let home = Home { host: host.clone(), idle, buffers, reusable: judged.reusable };
        if judged.verdict.is_ok() && early.len() as u64 == length {
            home.take_in(stream);
            return judged.verdict.ok().map(|verdict| Asked::AsHoped(verdict, Arrived::Whole(early)));
        }
        let early = VecDeque::from_iter((!early.is_empty()).then_some(early));
        let body = Patient::new(Body::Counted(Counted::new(judged.length, early, stream, home)), self.patience);
        Some(match judged.verdict {
            Ok(verdict) => Asked::AsHoped(verdict, Arrived::Part(Box::new(body))),
            Err(parts) => Asked::Otherwise(HttpResponse::from_parts(parts, HttpResponseBody::new(body))),
        })
    }
}

async fn send(stream: &mut Stream, request: &[u8]) -> io::Result<()> {
    let mut left = request;
    poll_fn(|cx| {
        while !left.is_empty() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => left = &left[sent..],
            }
        }
        Pin::new(&mut *stream).poll_flush(cx)
    })
    .await
}

/// What is said of the head at the beginning of `bytes`: nothing yet if it is not whole, an error if it is not
/// good.
fn judged<T>(bytes: &[u8], length: u64, judge: impl Fn(&Head<'_>) -> Option<T>) -> Result<Option<Judged<T>>, ()> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut answer, bytes, &mut headers);
    let httparse::Status::Complete(head_bytes) = parsed.map_err(drop)? else { return Ok(None) };
    let head = Head { status: answer.code.unwrap_or_default(), headers: answer.headers };
    // Others than these have no body, or are not the answer yet.
    if answer.version != Some(1) || head.status < 200 || matches!(head.status, 204 | 304) {
        return Err(());
    }
    let (said, reusable) = (head.length().ok_or(())?, !says_close(head.all("connection")));
    let verdict = match judge(&head).filter(|_| said == length) {
        Some(verdict) => Ok(verdict),
        None => Err(head.parts().ok_or(())?),
    };
    Ok(Some(Judged { verdict, length: said, head_bytes, reusable }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is made of a head when any is hoped for: the length of its body, its own, and whether the connection
    /// can be used again.
    fn read(bytes: &[u8]) -> Result<Option<(u64, usize, bool)>, ()> {
        Ok(judged(bytes, 3, |_| Some(()))?.map(|it| (it.length, it.head_bytes, it.reusable)))
    }

    /// Lines of heads, good and bad.
    fn line() -> impl Strategy<Value = String> {
        let known = proptest::sample::select(vec![
            "Content-Length: 3",
            "content-length:3",
            "Content-Length: 03",
            "Content-Length: +3",
            "Content-Length: 3, 3",
            "Content-Length: ",
            "Content-Length: 18446744073709551616",
            "Content-Length: 3\u{b}",
            "Content-Length : 3",
            "Transfer-Encoding: chunked",
            "transfer-encoding: identity",
            "Connection: close",
            "connection: Keep-Alive, CLOSE",
            "ETag: \"v\"",
            "X: é",
            " folded",
            ": nameless",
            "no colon",
            "X:\r",
            "X: a\nb",
            "",
        ]);
        let harmless =
            proptest::sample::select(vec!["ETag: \"v\"", "Connection: keep-alive", "X:", "Accept-Ranges: bytes"]);
        prop_oneof![4 => known.prop_map(str::to_owned), 4 => harmless.prop_map(str::to_owned), 1 => "\\PC{0,20}"]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// A length is taken only where a careful reader of the lines finds that one alone tells the end, and a
        /// connection is used again only where nothing speaks against it.
        #[test]
        fn only_a_head_that_says_one_length_is_taken(
            start in proptest::sample::select(vec![
                "HTTP/1.1 200 OK", "HTTP/1.1 206 Partial Content", "HTTP/1.1 204 None", "HTTP/1.1 304 Same",
                "HTTP/1.1 100 Continue", "HTTP/1.0 200 OK", "HTTP/1.1 200", "HTTP/2 200 OK", "HTTP/1.1 999 What", "",
            ]),
            mut lines in proptest::collection::vec(line(), 0..6),
            length in any::<bool>(),
        ) {
            if length {
                lines.push("Content-Length: 3".to_owned());
            }
            let head = [&[start.to_owned()], &*lines, &[String::new(), String::new()]].concat().join("\r\n");
            let Ok(Some((said, head_bytes, reusable))) = read(head.as_bytes()) else { return Ok(()) };
            let head = std::str::from_utf8(&head.as_bytes()[..head_bytes]).expect("cut behind a line");
            let fields: Vec<_> = head.lines().skip(1).filter_map(|line| line.split_once(':')).collect();
            let values = |name: &str| -> Vec<_> {
                fields.iter().filter(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
            };
            prop_assert!(head.starts_with("HTTP/1.1 2") || head.starts_with("HTTP/1.1 9"), "{head:?}");
            let [length] = values("content-length")[..] else { panic!("not one length: {head:?}") };
            prop_assert!(length.bytes().all(|byte| byte.is_ascii_digit()), "{:?}", head);
            prop_assert_eq!(length.parse::<u64>().ok(), Some(said));
            prop_assert!(values("transfer-encoding").is_empty(), "{:?}", head);
            let closes = values("connection").iter().any(|value| value.to_ascii_lowercase().contains("close"));
            prop_assert_eq!(reusable, !closes);
        }

        /// A head is the same wherever its bytes are cut, and whatever comes behind it.
        #[test]
        fn a_head_that_comes_in_parts_is_the_same(body in proptest::collection::vec(any::<u8>(), 0..9)) {
            let head = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\nETag: \"v\"\r\n\r\n";
            for cut in 0..head.len() {
                prop_assert_eq!(read(&head[..cut]), Ok(None));
            }
            prop_assert_eq!(read(&[head, &*body].concat()), Ok(Some((3, head.len(), true))));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = read(&[b"HTTP/1.1 200 OK\r\n", &*bytes].concat());
        }
    }
}
