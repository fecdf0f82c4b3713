//! From where a browser may call: the Host and Origin of a request against what is configured.
//!
//! A page of another site that a rebound DNS name leads here, or that calls here from a browser,
//! shows itself by one of these headers (MCP, Streamable HTTP, security warning).

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};
use url::Url;

/// Names by which a service on this machine is called.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The hosts and origins that are let in.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// The Host is missing, doubled or not allowed.
    Host,
    /// The Origin is doubled or not allowed.
    Origin,
}

impl Gate {
    /// Lets in loopback, the host and origin of `public_url`, `hosts` (`name` for any port, or
    /// `name:port`) and `origins` (`scheme://host[:port]`).
    #[must_use]
    pub(super) fn new(public_url: Option<&Url>, hosts: &[String], origins: &[String]) -> Self {
        let public_host = public_url.and_then(Url::host_str).map(str::to_owned);
        let lower = |text: &String| text.to_ascii_lowercase();
        let parsed = origins.iter().filter_map(|origin| Url::parse(origin).ok());
        Self {
            hosts: hosts.iter().map(lower).chain(public_host).chain(LOOPBACK.map(str::to_owned)).collect(),
            origins: parsed.chain(public_url.cloned()).map(|url| url.origin().ascii_serialization()).collect(),
        }
    }

    /// Judges a request's head. The answer is the Origin, if it has one: it may read the reply.
    ///
    /// # Errors
    /// [`Denied`] says which header is wrong.
    pub(super) fn check<'a>(&self, uri: &Uri, headers: &'a HeaderMap) -> Result<Option<&'a HeaderValue>, Denied> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().map(|host| host.to_str().unwrap_or_default());
        // A request for `http://host/…` names its host twice, and means the one in the target
        // (RFC 9112 §3.2.2); neither may be a stranger.
        let authority = uri.authority().map(|authority| authority.as_str());
        let named = [authority, host];
        let mut named = named.iter().flatten().peekable();
        if named.peek().is_none() || hosts.next().is_some() || !named.all(|host| self.admits_host(host)) {
            return Err(Denied::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(None),
            (Some(origin), None) if self.admits_origin(origin) => Ok(Some(origin)),
            _ => Err(Denied::Origin),
        }
    }

    fn admits_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => &host,
        };
        self.hosts.iter().any(|allowed| *allowed == host || allowed == name)
    }

    fn admits_origin(&self, origin: &HeaderValue) -> bool {
        let Some(url) = origin.to_str().ok().and_then(|text| Url::parse(text).ok()) else { return false };
        let loopback = url.host_str().is_some_and(|host| LOOPBACK.contains(&host));
        loopback || self.origins.contains(&url.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&'static str, &str)]) -> Result<bool, Denied> {
        let public = Url::parse("https://files.example.com/").expect("valid");
        let gate = Gate::new(
            Some(&public),
            &["Proxy.internal".into(), "pinned.internal:8443".into()],
            &["https://app.example.com".into(), "http://dev.example.com:3000".into()],
        );
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("value"));
        }
        gate.check(&Uri::from_static("/v1/mcp"), &headers).map(|origin| origin.is_some())
    }

    #[test]
    fn hosts() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8080",
            "files.example.com",
            "files.example.com:443",
            "proxy.internal:9",
            "pinned.internal:8443",
        ] {
            assert_eq!(check(&[("host", host)]), Ok(false), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "pinned.internal",
            "::1",
        ] {
            assert_eq!(check(&[("host", host)]), Err(Denied::Host), "{host:?}");
        }
        assert_eq!(check(&[]), Err(Denied::Host));
        assert_eq!(check(&[("host", "localhost"), ("host", "localhost")]), Err(Denied::Host));
    }

    #[test]
    fn the_host_of_the_target_counts_too() {
        let gate = Gate::new(None, &[], &[]);
        let local = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        for (uri, headers, admitted) in [
            ("http://localhost/v1/mcp", &local, true),
            ("http://localhost/v1/mcp", &HeaderMap::new(), true),
            ("http://evil.example/v1/mcp", &local, false),
            ("http://evil.example/v1/mcp", &HeaderMap::new(), false),
        ] {
            assert_eq!(gate.check(&uri.parse().expect("a URI"), headers).is_ok(), admitted, "{uri}");
        }
    }

    #[test]
    fn origins() {
        for origin in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:1",
            "https://files.example.com",
            "https://app.example.com",
            "https://app.example.com:443",
            "http://dev.example.com:3000",
        ] {
            assert_eq!(check(&[("host", "localhost"), ("origin", origin)]), Ok(true), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://app.example.com",
            "https://app.example.com:8443",
            "http://dev.example.com",
            "https://localhost.evil.example",
        ] {
            assert_eq!(check(&[("host", "localhost"), ("origin", origin)]), Err(Denied::Origin), "{origin:?}");
        }
        let twice = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(check(&twice), Err(Denied::Origin));
    }
}
