//! Connections that wait for their next request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use http::HeaderValue;
use http::uri::{Authority, Scheme, Uri};
use hyper::rt::{Read as _, ReadBuf};
use tokio::time::Instant;

use super::connect::Stream;

/// How long a connection waits unless told otherwise.
const IDLE: Duration = Duration::from_secs(90);

/// Where a connection leads, or is meant to lead by way of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Host {
    scheme: Scheme,
    authority: Authority,
}

impl Host {
    /// The host of an absolute URL.
    pub(in super::super) fn of(uri: &Uri) -> Option<Self> {
        Some(Self { scheme: uri.scheme()?.clone(), authority: uri.authority()?.clone() })
    }

    pub(super) fn is_secure(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// As a request names it (RFC 9110 §7.2): without a user, and without the scheme's own port.
    pub(in super::super) fn header(&self) -> HeaderValue {
        let usual = if self.is_secure() { 443 } else { 80 };
        let text = match self.authority.port_u16().filter(|port| *port != usual) {
            Some(port) => format!("{}:{port}", self.authority.host()),
            None => self.authority.host().to_owned(),
        };
        text.parse().expect("the host of a URL has no odd characters")
    }
}

/// The connections, the last used first.
#[derive(Debug)]
pub(super) struct Idle {
    /// How long one waits.
    timeout: Duration,
    /// How many wait for one host.
    most: usize,
    streams: Mutex<HashMap<Host, Vec<(Instant, Stream)>>>,
}

impl Idle {
    pub(super) fn new(timeout: Option<Duration>, most: Option<usize>) -> Arc<Self> {
        let (timeout, most) = (timeout.unwrap_or(IDLE), most.unwrap_or(usize::MAX));
        Arc::new(Self { timeout, most, streams: Mutex::default() })
    }

    /// One that is still open, as far as can be seen.
    pub(super) fn take(&self, host: &Host) -> Option<Stream> {
        let mut all = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = all.get_mut(host)?;
        while let Some((since, mut stream)) = streams.pop() {
            if since.elapsed() >= self.timeout {
                // The others have waited longer.
                streams.clear();
            } else if is_open(&mut stream) {
                return Some(stream);
            }
        }
        None
    }

    /// Keeps a connection on which nothing more is to come.
    pub(super) fn put(self: &Arc<Self>, host: Host, stream: Stream) {
        let mut all = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = match all.entry(host) {
            Entry::Occupied(streams) => streams.into_mut(),
            Entry::Vacant(place) => {
                // Once for a host, and it ends with the last of its connections.
                tokio::spawn(close_in_time(Arc::downgrade(self), place.key().clone(), self.timeout));
                place.insert(Vec::new())
            }
        };
        if streams.len() < self.most {
            streams.push((Instant::now(), stream));
        }
    }

    /// Closes those that have waited too long; whether there are any left.
    fn close_old(&self, host: &Host) -> bool {
        let mut all = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(streams) = all.get_mut(host) else { return false };
        streams.retain(|(since, _)| since.elapsed() < self.timeout);
        if streams.is_empty() {
            all.remove(host);
            return false;
        }
        true
    }
}

async fn close_in_time(idle: Weak<Idle>, host: Host, timeout: Duration) {
    loop {
        tokio::time::sleep(timeout).await;
        if !idle.upgrade().is_some_and(|idle| idle.close_old(&host)) {
            return;
        }
    }
}

/// Whether the other side has neither closed nor said anything that it was not asked for.
fn is_open(stream: &mut Stream) -> bool {
    let (mut byte, mut context) = ([0], Context::from_waker(Waker::noop()));
    Pin::new(stream).poll_read(&mut context, ReadBuf::new(&mut byte).unfilled()).is_pending()
}

#[cfg(test)]
impl Idle {
    /// How many connections wait.
    pub(super) fn waiting(&self) -> usize {
        self.streams.lock().expect("unpoisoned").values().map(Vec::len).sum()
    }
}
