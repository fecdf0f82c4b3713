//! Where Redis is: the URL of a ledger.
//!
//! ```text
//! redis://[[user]:password@]host[:port][/db]
//! redis+sentinel://[[user]:password@]host[:port],host[:port]…/master-name[/db]
//! redis-cluster://[[user]:password@]host[:port],host[:port]…
//! ```
//!
//! `rediss` in place of `redis` is TLS. User and password are percent-encoded. Sentinels are asked
//! without user and password.

use std::fmt;

use percent_encoding::percent_decode_str;

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// How the servers belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// One server.
    Single,
    /// A master that Sentinels watch under this name; the hosts are the Sentinels.
    Sentinel(String),
    /// A cluster; the hosts are some of its nodes.
    Cluster,
}

/// A parsed URL.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) hosts: Vec<Host>,
    pub(super) db: i64,
}

/// Never shows the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("kind", &self.kind).field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Target {
    /// Reads the URL.
    ///
    /// # Errors
    /// The sentence says what is wrong and shows nothing of the URL, which may hold a password.
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("it has no scheme")?;
        let (tls, plain) = match scheme.strip_prefix("rediss") {
            Some(kind) => (true, kind),
            None => (false, scheme.strip_prefix("redis").ok_or("its scheme is not one of Redis")?),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        let (kind, db) = match plain {
            "" => (Kind::Single, path),
            "+sentinel" => {
                let (name, db) = path.split_once('/').unwrap_or((path, ""));
                if name.is_empty() {
                    return Err("it lacks the master's name: redis+sentinel://host,host/name");
                }
                (Kind::Sentinel(name.to_owned()), db)
            }
            "-cluster" if path.is_empty() => (Kind::Cluster, path),
            "-cluster" => return Err("a cluster has no database number"),
            _ => return Err("its scheme is not one of Redis"),
        };
        let (credentials, hosts) = authority.rsplit_once('@').map_or((None, authority), |(c, h)| (Some(c), h));
        let (user, password) = match credentials {
            None => (None, None),
            Some(credentials) => {
                let (user, password) = credentials.split_once(':').ok_or("its password follows no colon")?;
                (decode(user)?, decode(password)?)
            }
        };
        let default_port = if matches!(kind, Kind::Sentinel(_)) { 26_379 } else { 6379 };
        let hosts = hosts.split(',').map(|host| parse_host(host, default_port)).collect::<Result<Vec<_>, _>>()?;
        if kind == Kind::Single && hosts.len() > 1 {
            return Err("it names several hosts; redis+sentinel:// or redis-cluster:// do");
        }
        let db = if db.is_empty() { 0 } else { db.parse().map_err(|_| "its database is not a number")? };
        Ok(Self { kind, tls, user, password, hosts, db })
    }
}

fn decode(text: &str) -> Result<Option<String>, &'static str> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| "its user or password is not UTF-8")?;
    Ok((!text.is_empty()).then(|| text.into_owned()))
}

fn parse_host(text: &str, default_port: u16) -> Result<Host, &'static str> {
    // An IPv6 address stands in brackets.
    let colon = text.rfind(':').filter(|colon| !text[*colon..].contains(']'));
    let (name, port) = match colon {
        Some(colon) => (&text[..colon], text[colon + 1..].parse().map_err(|_| "a port is not a number")?),
        None => (text, default_port),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return Err("it lacks a host");
    }
    Ok(Host { name: name.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[(&str, u16)]) -> Vec<Host> {
        list.iter().map(|(name, port)| Host { name: (*name).to_owned(), port: *port }).collect()
    }

    #[test]
    fn urls() {
        let base = Target { kind: Kind::Single, tls: false, user: None, password: None, hosts: vec![], db: 0 };
        for (url, want) in [
            ("redis://a", Target { hosts: hosts(&[("a", 6379)]), ..base.clone() }),
            ("redis://a:1/", Target { hosts: hosts(&[("a", 1)]), ..base.clone() }),
            ("redis://[::1]:7/3", Target { hosts: hosts(&[("::1", 7)]), db: 3, ..base.clone() }),
            (
                "rediss://u:p%40%2F@a:1",
                Target {
                    tls: true,
                    user: Some("u".to_owned()),
                    password: Some("p@/".to_owned()),
                    hosts: hosts(&[("a", 1)]),
                    ..base.clone()
                },
            ),
            (
                "redis+sentinel://:p@a,b:2/main/4",
                Target {
                    kind: Kind::Sentinel("main".to_owned()),
                    password: Some("p".to_owned()),
                    hosts: hosts(&[("a", 26_379), ("b", 2)]),
                    db: 4,
                    ..base.clone()
                },
            ),
            (
                "rediss-cluster://a,b:2",
                Target { kind: Kind::Cluster, tls: true, hosts: hosts(&[("a", 6379), ("b", 2)]), ..base },
            ),
        ] {
            assert_eq!(Target::parse(url).as_ref(), Ok(&want), "{url}");
            assert!(!format!("{want:?}").contains("p@"));
        }
        for (url, words) in [
            ("a:1", "scheme"),
            ("http://a", "scheme"),
            ("redis+x://a", "scheme"),
            ("redis://", "host"),
            ("redis://a:x", "port"),
            ("redis://a/x", "database"),
            ("redis://a,b", "several"),
            ("redis://secret@a", "colon"),
            ("redis-cluster://a/1", "cluster"),
            ("redis+sentinel://a", "name"),
        ] {
            assert!(Target::parse(url).expect_err(url).contains(words), "{url}");
        }
    }
}
