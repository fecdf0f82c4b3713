//! Every setting: what it means, its unit, its default, its bounds.
//!
//! Settings come from a TOML file, then from the environment: `ARTIFACTD_LEDGER__URL` sets `url` of
//! `[ledger]`, and a value is read as TOML where it is valid TOML, else as text. A setting that does
//! not exist is an error in both, so that a misspelt one never goes unnoticed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use crate::artifact::ProjectId;
use crate::artifact::key::Layout;
use crate::bytesize::{ByteSize, deserialize_allowance};
use crate::ledger::{Allowance, Policy, ResetZone, Rules, WarnAt, redis};
use crate::link::SigningKeys;
use crate::read::{Caps, Timing};

/// The prefix of settings in the environment.
pub const ENVIRONMENT_PREFIX: &str = "ARTIFACTD_";

/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to listen. Default `127.0.0.1:8080`; port 0 takes a free one.
    #[serde(default = "listen")]
    pub listen: SocketAddr,
    /// How clients reach the service, such as `https://artifacts.example.com`: what links begin with.
    /// Its host is allowed in the `Host` header of MCP requests.
    #[serde(default)]
    pub public_url: Option<url::Url>,
    /// Where the artifacts are.
    pub store: StoreConfig,
    /// Where the account books are.
    pub ledger: LedgerConfig,
    /// What projects may download.
    #[serde(default)]
    pub quota: QuotaConfig,
    /// Who may ask.
    pub access: AccessConfig,
    /// Signed links; without keys there are none.
    #[serde(default)]
    pub links: LinksConfig,
    /// Which names the service answers to.
    #[serde(default)]
    pub http: HttpConfig,
    /// Bounds on what clients can tie up.
    #[serde(default)]
    pub limits: Limits,
    /// What is logged, and how.
    #[serde(default)]
    pub log: LogConfig,
}

/// `[store]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `file:///directory` or
    /// `memory:///`. Credentials come from the provider's usual environment variables.
    pub url: String,
    /// Where artifacts lie below it. Default `{project}/{trial}/`, or `{trial}/` with
    /// `single_project`.
    #[serde(default)]
    pub layout: Option<String>,
    /// Serve this project alone; then the layout need not name it.
    #[serde(default)]
    pub single_project: Option<ProjectId>,
}

/// `[ledger]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerConfig {
    /// `embedded:///path/ledger.db`: one node, durable on its disk. For any number of replicas, Redis 7
    /// or later: `redis://[[user]:password@]host[:port][/db]`,
    /// `redis+sentinel://…host,host/master-name[/db]` or `redis-cluster://…host,host`; `rediss` in place
    /// of `redis` is TLS.
    pub url: String,
    /// What every key in Redis begins with; services that share a Redis differ in it. Default
    /// `artifactd`.
    #[serde(default = "namespace")]
    pub namespace: String,
    /// How long a call to Redis may take, connecting included, ms; 50 to 60,000, default 1000.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// Calls to Redis under way at once; further ones wait. 1 to 100,000, default 1024.
    #[serde(default = "in_flight")]
    pub in_flight: usize,
    /// Certificates (PEM) that a `rediss` server is checked against, instead of the public authorities.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Refuse a Redis that may lose charges (no append-only file, a policy that evicts) instead of
    /// warning, and do not start without Redis. Default false.
    #[serde(default)]
    pub require_durable: bool,
    /// How long a lease lives after its last renewal, s; 1 to 3600, default 30.
    #[serde(default = "lease_seconds")]
    pub lease_seconds: u64,
    /// The most that one grant lets out ahead of the books, bytes; 64 KiB to 1 GiB, default 8 MiB.
    #[serde(default = "credit")]
    pub credit: ByteSize,
}

/// `[quota]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaConfig {
    /// What a project may download a day, bytes, or `unlimited`. Default 50 GiB.
    #[serde(deserialize_with = "deserialize_allowance")]
    pub daily_bytes: Allowance,
    /// The zone whose midnight begins a day, an IANA name. Default `UTC`.
    pub reset_zone: String,
    /// The share of the allowance, percent, at which people are warned: in `/v1/quota`, in `RateLimit`, and
    /// by each replica once a day and project in the log. 1 to 100, default 80.
    pub warn_percent: u8,
}

/// `[access]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// The key file, as `artifactd keys` writes it.
    pub keys_file: PathBuf,
}

/// `[links]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinksConfig {
    /// The signing keys, at most 8: the first signs, links signed by any of them are good. To
    /// rotate, put a new one first and take the old one out when its last links have expired.
    /// Links also need `public_url`.
    pub keys: Vec<LinkKey>,
}

/// One of `[links] keys`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkKey {
    /// Its name in tokens: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub id: String,
    /// The file with its secret: at least 32 bytes, such as `head -c 32 /dev/urandom | base64` makes.
    /// Line breaks at its end do not count.
    pub secret_file: PathBuf,
}

/// `[http]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// Hosts that MCP requests may name, besides loopback and the host of `public_url`.
    pub allowed_hosts: Vec<String>,
    /// Origins that browsers may send MCP requests from, such as `https://app.example.com`,
    /// besides loopback and the origin of `public_url`.
    pub allowed_origins: Vec<String>,
}

/// `[limits]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Open connections; further ones wait to be accepted. 1 to 1,000,000, default 4096; fewer where
    /// the process may not open two files for each.
    pub connections: usize,
    /// How long a request's head may take to arrive, and so how long a connection may be idle
    /// between two requests, s; 1 to 600, default 60.
    pub head_seconds: u64,
    /// A request's head, bytes; 8 KiB to 1 MiB, default 64 KiB.
    pub head_bytes: ByteSize,
    /// An MCP request's body, bytes; 1 KiB to 16 MiB, default 256 KiB.
    pub mcp_body_bytes: ByteSize,
    /// How long one call of an MCP tool may take, s; 1 to 600, default 45. Clients give up at 60.
    pub mcp_call_seconds: u64,
    /// Calls of MCP tools that one key may have running; 1 to 10,000, default 16.
    pub mcp_calls_per_key: usize,
    /// Files in one archive; 1 to 1,000,000, default 100,000. Each takes some 300 bytes of memory while
    /// the archive is read.
    pub archive_entries: usize,
    /// A client that takes nothing for so long is cut, s; 1 to 3600, default 60.
    pub stall_seconds: u64,
    /// A client that, while the service waits for it, takes less than so many bytes a second over
    /// `stall_seconds` is cut too; 0 to 1 MiB, default 4 KiB. Much less does not work: it must take a
    /// chunk of up to 256 KiB within `stall_seconds`.
    pub least_rate: ByteSize,
    /// Open reads of one project; 1 to 1,000,000, default 1024.
    pub project_streams: usize,
    /// Open reads of all projects; 1 to 1,000,000, default 4096.
    pub streams: usize,
    /// How long a request waits for its admission by the ledger, s; 1 to 60, default 2.
    pub admission_seconds: u64,
    /// How long running answers may go on when the service stops, s; 0 to 3600, default 30.
    pub drain_seconds: u64,
}

/// `[log]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Which lines, as `tracing` filters are written. Default `info`.
    pub filter: String,
    /// How they look. Default `text`.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Why settings are not settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What is written is not a set of settings.
    #[error("{0}")]
    Invalid(String),
}

impl Config {
    /// Reads the file, if one is named, and then `environment`; checks every bound.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting and its rule.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut table = match file {
            None => Table::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
                text.parse().map_err(|error| ConfigError::Invalid(format!("{}: {error}", path.display())))?
            }
        };
        for (name, value) in environment {
            if let Some(setting) = name.strip_prefix(ENVIRONMENT_PREFIX) {
                set(&mut table, &setting.to_ascii_lowercase(), &value)
                    .ok_or_else(|| ConfigError::Invalid(format!("{name} sets a whole section or a part of a value")))?;
            }
        }
        let config: Self = table.try_into().map_err(|error: toml::de::Error| {
            let origin =
                file.map_or_else(|| "no settings file was named".to_owned(), |path| path.display().to_string());
            ConfigError::Invalid(format!(
                "settings ({origin}, then {ENVIRONMENT_PREFIX}*): {}",
                error.to_string().trim_end()
            ))
        })?;
        config.check()?;
        Ok(config)
    }

    /// The bounds that types do not say.
    fn check(&self) -> Result<(), ConfigError> {
        let limits = &self.limits;
        for (name, value, least, most) in [
            ("ledger.lease_seconds", self.ledger.lease_seconds, 1, 3600),
            ("ledger.timeout_ms", self.ledger.timeout_ms, 50, 60_000),
            ("ledger.in_flight", self.ledger.in_flight as u64, 1, 100_000),
            ("quota.warn_percent", u64::from(self.quota.warn_percent), 1, 100),
            ("ledger.credit", self.ledger.credit.bytes(), 64 << 10, 1 << 30),
            ("limits.connections", limits.connections as u64, 1, 1_000_000),
            ("limits.head_seconds", limits.head_seconds, 1, 600),
            ("limits.head_bytes", limits.head_bytes.bytes(), 8 << 10, 1 << 20),
            ("limits.mcp_body_bytes", limits.mcp_body_bytes.bytes(), 1 << 10, 16 << 20),
            ("limits.mcp_call_seconds", limits.mcp_call_seconds, 1, 600),
            ("limits.mcp_calls_per_key", limits.mcp_calls_per_key as u64, 1, 10_000),
            ("limits.archive_entries", limits.archive_entries as u64, 1, 1_000_000),
            ("limits.stall_seconds", limits.stall_seconds, 1, 3600),
            ("limits.least_rate", limits.least_rate.bytes(), 0, 1 << 20),
            ("limits.project_streams", limits.project_streams as u64, 1, 1_000_000),
            ("limits.streams", limits.streams as u64, 1, 1_000_000),
            ("limits.admission_seconds", limits.admission_seconds, 1, 60),
            ("limits.drain_seconds", limits.drain_seconds, 0, 3600),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ConfigError::Invalid(format!("{name} is {value}; it is from {least} to {most}")));
            }
        }
        self.names()?;
        crate::telemetry::filter(&self.log)?;
        self.policy()?;
        Ok(())
    }

    /// Names that could never match what a client sends.
    fn names(&self) -> Result<(), ConfigError> {
        let web = |url: &url::Url| {
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none()
        };
        if let Some(url) = self.public_url.as_ref().filter(|url| !web(url)) {
            return Err(ConfigError::Invalid(format!(
                "public_url is {url}; it is such as https://artifacts.example.com"
            )));
        }
        for host in &self.http.allowed_hosts {
            let parsed = url::Url::parse(&format!("http://{host}/")).ok();
            let said = parsed.as_ref().and_then(url::Url::host_str).unwrap_or_default();
            // What follows the name can only be a port.
            let rest = host.to_ascii_lowercase().strip_prefix(said).map(str::to_owned);
            let port = |rest: &String| rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
            if said.is_empty() || !rest.is_some_and(|rest| rest.is_empty() || port(&rest)) || host.contains('*') {
                return Err(ConfigError::Invalid(format!(
                    "http.allowed_hosts has {host:?}; it holds names, or names with a port, such as files.example.com"
                )));
            }
        }
        for origin in &self.http.allowed_origins {
            let parsed = url::Url::parse(origin).ok();
            if !parsed.is_some_and(|url| web(&url) && url.path() == "/" && !origin.contains('*')) {
                return Err(ConfigError::Invalid(format!(
                    "http.allowed_origins has {origin:?}; it holds origins, such as https://app.example.com"
                )));
            }
        }
        Ok(())
    }

    /// The layout of keys below the store's own prefix.
    ///
    /// # Errors
    /// [`ConfigError`] says which rule the template breaks.
    pub fn layout(&self, prefix: &str) -> Result<Layout, ConfigError> {
        let alone = self.store.single_project.is_some();
        let default = if alone { "{trial}/" } else { "{project}/{trial}/" };
        let template = self.store.layout.as_deref().unwrap_or(default);
        Layout::parse(prefix, template, alone).map_err(|error| ConfigError::Invalid(format!("store.layout: {error}")))
    }

    /// What the ledger works by.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such zone, or the times do not fit together.
    pub fn policy(&self) -> Result<Policy, ConfigError> {
        let zone = ResetZone::parse(&self.quota.reset_zone)
            .map_err(|error| ConfigError::Invalid(format!("quota.reset_zone: {error}")))?;
        let rules = self.rules();
        rules.check().map_err(|rule| ConfigError::Invalid(format!("ledger: {rule}")))?;
        Ok(Policy { rules, allowance: self.quota.daily_bytes, zone })
    }

    /// When people are warned.
    #[must_use]
    pub fn warn_at(&self) -> WarnAt {
        WarnAt::new(self.quota.warn_percent).unwrap_or_default()
    }

    fn rules(&self) -> Rules {
        let defaults = Rules::default();
        let lease_ms = self.ledger.lease_seconds * 1000;
        Rules {
            lease_ms,
            // Tombstones outlive every settle that would still be believed.
            tombstone_ms: defaults.tombstone_ms.max(lease_ms + defaults.unreserved_ms + 30_000),
            credit_bytes: self.ledger.credit.bytes(),
            ..defaults
        }
    }

    /// The signing keys of links, if there are any.
    ///
    /// # Errors
    /// [`ConfigError`] if a secret cannot be read, or a key breaks a rule.
    pub fn signing_keys(&self) -> Result<Option<SigningKeys>, ConfigError> {
        if self.links.keys.is_empty() {
            return Ok(None);
        }
        let read = |key: &LinkKey| {
            let path = key.secret_file.clone();
            let mut secret = std::fs::read(&path).map_err(|source| ConfigError::Read { path, source })?;
            let end = secret.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
            secret.truncate(end.map_or(0, |last| last + 1));
            Ok((key.id.clone(), secret))
        };
        let keys = self.links.keys.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        SigningKeys::new(keys).map(Some).map_err(|error| ConfigError::Invalid(format!("links.keys: {error}")))
    }

    /// How many reads may be open at once.
    #[must_use]
    pub const fn caps(&self) -> Caps {
        Caps { project: self.limits.project_streams, process: self.limits.streams }
    }

    /// How long reads wait for what.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing {
            admission_ms: self.limits.admission_seconds * 1000,
            stall_ms: self.limits.stall_seconds * 1000,
            ..Timing::default()
        }
    }
}

/// Sets `a__b` to what the environment says. `None` if a part of the path is no section.
fn set(table: &mut Table, path: &str, value: &str) -> Option<()> {
    match path.split_once("__") {
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            set(inner.as_table_mut()?, rest, value)
        }
        None => {
            let parsed = format!("v = {value}").parse::<Table>().ok().and_then(|mut t| t.remove("v"));
            table.insert(path.to_owned(), parsed.unwrap_or_else(|| Value::String(value.to_owned())));
            Some(())
        }
    }
}

fn listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8080))
}

const fn lease_seconds() -> u64 {
    30
}

fn namespace() -> String {
    redis::Options::default().namespace
}

fn timeout_ms() -> u64 {
    redis::Options::default().response.as_secs() * 1000
}

fn in_flight() -> usize {
    redis::Options::default().in_flight
}

fn credit() -> ByteSize {
    size(8 << 20)
}

fn size(bytes: u64) -> ByteSize {
    ByteSize::new(bytes).expect("a default is within bounds")
}

impl Default for QuotaConfig {
    fn default() -> Self {
        Self {
            daily_bytes: Allowance::Bytes(50 << 30),
            reset_zone: "UTC".into(),
            warn_percent: WarnAt::default().percent(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head_seconds: 60,
            head_bytes: size(64 << 10),
            mcp_body_bytes: size(256 << 10),
            mcp_call_seconds: 45,
            mcp_calls_per_key: 16,
            archive_entries: 100_000,
            stall_seconds: 60,
            least_rate: size(4 << 10),
            project_streams: Caps::default().project,
            streams: Caps::default().process,
            admission_seconds: 2,
            drain_seconds: 30,
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { filter: "info".into(), format: LogFormat::Text }
    }
}

#[cfg(test)]
mod tests;
