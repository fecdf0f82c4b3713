//! From where a request comes: the address of the connection or, behind proxies that are trusted, what
//! they say of it. Pure.
//!
//! Each proxy adds, at the end, the address that it was connected from: `X-Forwarded-For`, or
//! `Forwarded` (RFC 7239). The lists are read from that end and only as far as they were written by
//! trusted proxies; what stands before came from the client, who may have made it up. Where both fields
//! are there and do not agree, one was passed through unread: neither is believed.

use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderMap;
use http::header::FORWARDED;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// A network: an address and how many of its leading bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    prefix: u32,
}

/// A text that names no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address or a network, such as 10.0.0.7, 10.0.0.0/8 or fd00::/8")]
pub struct InvalidNetwork;

/// IPv4 lies at `::ffff:0:0/96` in IPv6 (RFC 4291 §2.5.5.2).
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const fn mask(prefix: u32) -> u128 {
    if prefix == 0 { 0 } else { u128::MAX << (128 - prefix) }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let (most, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
        let length = match length {
            None => most,
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().map_err(|_| InvalidNetwork)?,
            Some(_) => return Err(InvalidNetwork),
        };
        let prefix = before + length;
        // A host's bits behind the prefix are a slip of the pen that would trust a whole network.
        if length > most || bits(address) & !mask(prefix) != 0 {
            return Err(InvalidNetwork);
        }
        Ok(Self { bits: bits(address), prefix })
    }
}

impl Network {
    fn holds(self, address: IpAddr) -> bool {
        bits(address) & mask(self.prefix) == self.bits
    }
}

/// The address of the client whose request came from `peer`, through `trusted` proxies if any.
#[must_use]
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.holds(address));
    if !is_trusted(peer) {
        return peer;
    }
    let walk = |hops: Vec<Option<IpAddr>>| {
        let mut client = peer;
        for hop in hops.into_iter().rev() {
            // A proxy that hides or garbles an address hides all before it, too.
            let Some(address) = hop else { break };
            client = address;
            if !is_trusted(address) {
                break;
            }
        }
        client
    };
    let fields = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect()
    };
    let (plain, standard) = (fields(X_FORWARDED_FOR), fields(FORWARDED.as_str()));
    let plain = (!plain.is_empty()).then(|| walk(plain.join(",").split(',').map(address).collect()));
    let standard = (!standard.is_empty()).then(|| walk(elements(&standard.join(","))));
    match (plain, standard) {
        (Some(one), Some(other)) if one != other => peer,
        (one, other) => one.or(other).unwrap_or(peer),
    }
}

/// An address, also with a port or in brackets, as proxies write it.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        // One colon stands before a port, more are IPv6.
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The `for` of each element of `Forwarded` (RFC 7239 §4).
fn elements(text: &str) -> Vec<Option<IpAddr>> {
    split(text, ',')
        .into_iter()
        .map(|element| {
            split(element, ';').into_iter().find_map(|pair| {
                let (name, value) = pair.trim().split_once('=')?;
                name.eq_ignore_ascii_case("for").then(|| address(value.trim_matches('"')))?
            })
        })
        .collect()
}

/// Splits at `separator` outside quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().expect("a network")).collect()
    }

    fn of(peer: &str, pairs: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        let trusted = networks(&["10.0.0.0/8", "192.0.2.1", "fd00::/8"]);
        client(peer.parse().expect("an address"), &headers, &trusted).to_string()
    }

    const XFF: &str = X_FORWARDED_FOR;

    #[test]
    fn only_what_trusted_proxies_wrote_is_believed() {
        for (peer, pairs, client) in [
            // Nobody's word is taken from the street.
            ("203.0.113.9", vec![(XFF, "198.51.100.1")], "203.0.113.9"),
            ("203.0.113.9", vec![("forwarded", "for=198.51.100.1")], "203.0.113.9"),
            ("192.0.2.2", vec![(XFF, "198.51.100.1")], "192.0.2.2"),
            // One proxy; what the client wrote before it is passed over.
            ("10.1.2.3", vec![], "10.1.2.3"),
            ("10.1.2.3", vec![(XFF, "198.51.100.1")], "198.51.100.1"),
            ("::ffff:10.1.2.3", vec![(XFF, "198.51.100.1")], "198.51.100.1"),
            ("10.1.2.3", vec![(XFF, "6.6.6.6, 198.51.100.1")], "198.51.100.1"),
            ("10.1.2.3", vec![(XFF, "6.6.6.6"), (XFF, "198.51.100.1")], "198.51.100.1"),
            // Two, and a client inside.
            ("10.1.2.3", vec![(XFF, "6.6.6.6, 198.51.100.1, 192.0.2.1")], "198.51.100.1"),
            ("10.1.2.3", vec![(XFF, "10.9.9.9, 10.8.8.8")], "10.9.9.9"),
            // With ports, in brackets, mapped.
            ("10.1.2.3", vec![(XFF, "198.51.100.1:4711")], "198.51.100.1"),
            ("10.1.2.3", vec![(XFF, "[2001:db8::1]:4711")], "2001:db8::1"),
            ("10.1.2.3", vec![(XFF, "2001:db8::1")], "2001:db8::1"),
            ("10.1.2.3", vec![(XFF, "::ffff:198.51.100.1")], "198.51.100.1"),
            // Garbage hides what is before it.
            ("10.1.2.3", vec![(XFF, "198.51.100.1, unknown")], "10.1.2.3"),
            ("10.1.2.3", vec![(XFF, "198.51.100.1, , 10.4.4.4")], "10.4.4.4"),
            ("10.1.2.3", vec![(XFF, "")], "10.1.2.3"),
            // RFC 7239.
            ("10.1.2.3", vec![("forwarded", "for=198.51.100.1;proto=https;by=10.1.2.3")], "198.51.100.1"),
            ("10.1.2.3", vec![("forwarded", "for=6.6.6.6, For=\"[2001:db8::1]:4711\"")], "2001:db8::1"),
            ("10.1.2.3", vec![("forwarded", "for=\"a,b\";x=\"for=6.6.6.6\"")], "10.1.2.3"),
            ("10.1.2.3", vec![("forwarded", "for=_hidden, for=192.0.2.1")], "192.0.2.1"),
            ("10.1.2.3", vec![("forwarded", "proto=https")], "10.1.2.3"),
            // Both: only if they agree.
            ("10.1.2.3", vec![(XFF, "198.51.100.1"), ("forwarded", "for=198.51.100.1")], "198.51.100.1"),
            ("10.1.2.3", vec![(XFF, "198.51.100.1"), ("forwarded", "for=6.6.6.6")], "10.1.2.3"),
            ("fd00::1", vec![(XFF, "198.51.100.1")], "198.51.100.1"),
        ] {
            assert_eq!(of(peer, &pairs), client, "{peer} {pairs:?}");
        }
    }

    #[test]
    fn networks_are_written_with_care() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "::1", "127.0.0.1/32", "fd00::/8"] {
            assert!(text.parse::<Network>().is_ok(), "{text}");
        }
        for text in
            ["", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/", "::/129", "host", "10.0.0", "1.2.3.4/0"]
        {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text}");
        }
        let all: Network = "0.0.0.0/0".parse().expect("a network");
        assert!(all.holds("8.8.8.8".parse().expect("an address")));
        assert!(!all.holds("2001:db8::1".parse().expect("an address")), "IPv4 alone");
    }
}
