//! What a start would find, tried part by part, so that everything that is wrong is said at once.

use std::fmt;

use url::{Host, Url};

use super::connect::{ConnectError, is_redis, open_embedded, open_redis, open_upstream};
use crate::access::keys::WatchedKeys;
use crate::config::{AccessSource, Config};
use crate::ledger::{Clock as _, Ledger as _, SystemClock};
use crate::store::{Limits, StoreError};

/// Clocks that differ by more than this are worth a word, ms.
const SKEW_MS: u64 = 2_000;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, but not as one would want it to.
    Warning,
    /// The service does not start, or does not work.
    Fault,
}

/// What was found out about a part of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The part.
    pub part: &'static str,
    /// What is so, and what to do about it. Shows no secret.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Fault => "fault",
        };
        write!(f, "{level:<8} {:<7} {}", self.part, self.text)
    }
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, level: Level, part: &'static str, text: impl Into<String>) {
        self.0.push(Finding { level, part, text: text.into() });
    }
}

/// Tries everything that `config` names.
pub async fn check(config: &Config) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    addresses(config, &mut found).await;
    keys(config, &mut found).await;
    links(config, &mut found);
    store(config, &mut found).await;
    if is_redis(config) {
        redis(config, &mut found).await;
    } else {
        embedded(config, &mut found).await;
    }
    found.0
}

async fn addresses(config: &Config, found: &mut Findings) {
    for (name, address) in
        [("listen", Some(&config.listen)), ("http.metrics_listen", config.http.metrics_listen.as_ref())]
    {
        let Some(address) = address else { continue };
        match tokio::net::lookup_host(address.to_string()).await {
            Ok(_) => found.add(Level::Ok, "listen", format!("{name} {address}")),
            Err(error) => found.add(Level::Fault, "listen", format!("{name} {address}: {error}; write an IP address")),
        }
    }
}

async fn keys(config: &Config, found: &mut Findings) {
    match config.access.source() {
        Ok(AccessSource::File(path)) => match WatchedKeys::open(path).await {
            Ok(_) => found.add(Level::Ok, "keys", format!("{} can be used", path.display())),
            Err(error) => found.add(Level::Fault, "keys", ConnectError::from(error).to_string()),
        },
        Ok(AccessSource::Platform(base)) => match open_upstream(base, &config.access) {
            Ok(upstream) => platform(base, upstream.probe().await, found),
            Err(error) => found.add(Level::Fault, "keys", error.to_string()),
        },
        Err(error) => found.add(Level::Fault, "keys", error.to_string()),
    }
}

fn platform(base: &Url, answered: Result<(), String>, found: &mut Findings) {
    let loopback = base.host().is_some_and(|host| match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    });
    if base.scheme() == "http" && !loopback {
        let text = "access.upstream is http: keys go over the network as they are; use https";
        found.add(Level::Warning, "keys", text);
    }
    match answered {
        Ok(()) => found.add(Level::Ok, "keys", format!("{base} answers for keys")),
        Err(fault) => {
            let then = "nobody gets in until it answers; check access.upstream and the network";
            found.add(Level::Fault, "keys", format!("access.upstream {base}: {fault}: {then}"));
        }
    }
}

fn links(config: &Config, found: &mut Findings) {
    match config.signing_keys() {
        Ok(None) => found.add(Level::Ok, "links", "none: links.keys is empty"),
        Ok(Some(_)) if config.public_url.is_none() => {
            found.add(
                Level::Warning,
                "links",
                "links.keys are set and public_url is not: no link is made; set public_url",
            );
        }
        Ok(Some(keys)) => found.add(Level::Ok, "links", format!("signed by {keys:?}")),
        Err(error) => found.add(Level::Fault, "links", error.to_string()),
    }
}

async fn store(config: &Config, found: &mut Findings) {
    let located = match crate::store::open(&config.store.url, Limits::default()) {
        Ok(located) => located,
        Err(error) => return found.add(Level::Fault, "store", ConnectError::from(error).to_string()),
    };
    let below = if located.prefix.is_empty() { String::new() } else { format!("{}/", located.prefix) };
    let url = &config.store.url;
    match located.store.list(&below, None, 1).await {
        Ok(page) if page.objects.is_empty() && page.skipped == 0 && page.next.is_none() => {
            found.add(Level::Warning, "store", format!("{url} is empty: is its path right?"));
        }
        Ok(_) => found.add(Level::Ok, "store", format!("{url} can be listed")),
        Err(error) => found.add(Level::Fault, "store", format!("{url} {}", store_fault(&error))),
    }
}

/// What is wrong, in the words of the store's own code where it has one. The text of the error itself
/// is not shown: URLs in it may be signed.
fn store_fault(error: &StoreError) -> String {
    let mut text = format!("{error:?}");
    text.make_ascii_lowercase();
    let known = [
        ("nosuchbucket", "has no such bucket: make it, or put store.url right"),
        ("containernotfound", "has no such container: make it, or put store.url right"),
        ("requesttimetooskewed", "says that this machine's clock is wrong: set it (NTP)"),
        ("signaturedoesnotmatch", "takes the secret key for wrong: check AWS_SECRET_ACCESS_KEY"),
        ("invalidaccesskeyid", "does not know the access key: check AWS_ACCESS_KEY_ID"),
        (
            "permissiondenied",
            "may not be listed: grant the list and read actions (s3:ListBucket, s3:GetObject) to these credentials",
        ),
        (
            "accessdenied",
            "may not be listed: grant the list and read actions (s3:ListBucket, s3:GetObject) to these credentials",
        ),
        ("unauthenticated", "takes no credentials of these: check the provider's variables"),
        ("permission denied", "may not be read by this user: chown or chmod the directory"),
        ("dns error", "is at a host whose name is not known: check the endpoint (AWS_ENDPOINT_URL) and the region"),
        ("connection refused", "does not answer at its address: check the endpoint (AWS_ENDPOINT_URL)"),
        ("timedout", "does not answer in time: check the endpoint, the network and its proxy"),
        ("connect", "cannot be connected to: check the endpoint, the network and its certificates"),
    ];
    let said = known.iter().find(|(sign, _)| text.contains(sign)).map(|(_, said)| *said);
    said.unwrap_or("cannot be listed: see the log of a start with --set log.filter=debug").to_owned()
}

async fn embedded(config: &Config, found: &mut Findings) {
    match open_embedded(config) {
        Ok(ledger) => {
            found.add(Level::Ok, "ledger", format!("{} can be written", config.ledger.url()));
            ledger.close().await;
        }
        // As it is when the settings of a running service are tried before its restart.
        Err(error) if error.is_ledger_in_use() => {
            found.add(Level::Ok, "ledger", format!("{error}: fine if that is the service which is running"));
        }
        Err(error) => found.add(Level::Fault, "ledger", error.to_string()),
    }
}

async fn redis(config: &Config, found: &mut Findings) {
    let ledger = match open_redis(config).await {
        Ok(ledger) => ledger,
        Err(error) => return found.add(Level::Fault, "ledger", error.to_string()),
    };
    let findings = ledger.findings().await;
    match &findings {
        Ok(list) => list.iter().for_each(|text| found.add(Level::Warning, "ledger", text)),
        Err(error) => {
            let then = "no read is served until it answers; check ledger.url, the network and the password";
            return found.add(Level::Fault, "ledger", format!("{error}: {then}"));
        }
    }
    if let Err(error) = ledger.connect().await {
        return found.add(Level::Fault, "ledger", error.to_string());
    }
    match ledger.now().await {
        Ok(now) => {
            let skew = now.0.abs_diff(SystemClock.now_ms());
            if skew > SKEW_MS {
                let text = format!(
                    "its clock and this machine's differ by {} s: days and links follow one each; set both (NTP)",
                    skew / 1000
                );
                found.add(Level::Warning, "ledger", text);
            }
            found.add(Level::Ok, "ledger", "Redis answers, and runs scripts");
        }
        Err(error) => {
            found.add(Level::Fault, "ledger", format!("{error}: is a script allowed to run (ACL +@scripting)?"))
        }
    }
}
