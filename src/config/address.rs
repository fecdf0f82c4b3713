//! Where to listen, or whom to ask: a host and a port.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::{Deserialize, de};

/// `host:port`. The host is an IP address (IPv6 in brackets) or a name, which is resolved when it is
/// used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address; one is host:port, such as 127.0.0.1:8080, localhost:8080 or [::1]:8080")]
pub struct InvalidAddress(String);

impl Address {
    /// The address, without its port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Everything that the name stands for. Blocks while the name is looked up.
    ///
    /// # Errors
    /// The name is not known.
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = (self.host(), self.port).to_socket_addrs()?.collect();
        if found.is_empty() { Err(std::io::Error::other("the name has no address")) } else { Ok(found) }
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| digits).ok_or_else(invalid)?;
        let legal = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
            None => {
                let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
                !host.is_empty() && host.bytes().all(name)
            }
        };
        if legal { Ok(Self { host: host.to_owned(), port }) } else { Err(invalid()) }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let host = if address.is_ipv6() { format!("[{}]", address.ip()) } else { address.ip().to_string() };
        Self { host, port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for (text, host) in [
            ("127.0.0.1:8080", "127.0.0.1"),
            ("localhost:0", "localhost"),
            ("0.0.0.0:65535", "0.0.0.0"),
            ("[::1]:80", "::1"),
            ("a-b.example_c:1", "a-b.example_c"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!((address.to_string().as_str(), address.host()), (text, host));
        }
        for text in [
            "",
            "8080",
            ":8080",
            "localhost",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "h:65536",
            "::1:80",
            "[::1]",
            "[x]:1",
            "http://h:1",
            "a b:1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_are_looked_up() {
        let found = "localhost:7".parse::<Address>().expect("valid").resolve().expect("every machine knows it");
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 7), "{found:?}");
        let address: SocketAddr = "[::1]:9".parse().expect("valid");
        assert_eq!(Address::from(address).resolve().ok(), Some(vec![address]));
    }
}
