//! Every setting: what it means, its unit, its default, its bounds.
//!
//! Settings come from a TOML file, then from the environment (`ARTIFACTD_LEDGER__URL` is `url` of
//! `[ledger]`), then from the command line. The tables in [`sections`] are the one place where a
//! setting is described: they check what is read, and `artifactd config docs` prints them. A setting
//! that does not exist is an error everywhere, so that a misspelt one never goes unnoticed.

pub mod address;
mod names;
pub mod reference;
mod secret;
pub mod sections;
pub mod setting;
mod sources;

use std::path::{Path, PathBuf};

use toml::Table;
use url::Url;

use crate::artifact::key::Layout;
use crate::ledger::{Policy, ResetZone, Rules, WarnAt};
use crate::link::SigningKeys;
use crate::read::{Caps, Timing};
use crate::request::forwarded::Network;

pub use address::Address;
pub use secret::Secret;
pub use sections::{
    AccessConfig, Config, HttpConfig, LedgerConfig, Limits, LinkKey, LinksConfig, LogConfig, LogFormat, QuotaConfig,
    StoreConfig, TracesConfig,
};
pub use setting::{ENVIRONMENT_PREFIX, Section};
pub use sources::{Settings, Sources};

/// Every section, in the order of the documentation.
pub const SECTIONS: [Section; 10] = [
    Config::SECTION,
    StoreConfig::SECTION,
    LedgerConfig::SECTION,
    QuotaConfig::SECTION,
    AccessConfig::SECTION,
    LinksConfig::SECTION,
    HttpConfig::SECTION,
    Limits::SECTION,
    LogConfig::SECTION,
    TracesConfig::SECTION,
];

/// Why settings are not settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What is written is not a set of settings: a line for each that is wrong.
    #[error("{0}")]
    Invalid(String),
}

fn invalid(text: impl Into<String>) -> ConfigError {
    ConfigError::Invalid(text.into())
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
        Ok(Sources::new(file.map(Path::to_owned), environment, []).read()?.config)
    }

    /// Takes values of which each is within its own bounds, and checks them against each other.
    fn of(table: Table) -> Result<Self, ConfigError> {
        let mut config: Self = table.try_into().map_err(|error: toml::de::Error| invalid(error.message()))?;
        config.ledger.url = Some(config.ledger.located()?);
        names::check(&config)?;
        config.layout("")?;
        crate::telemetry::filter(&config.log)?;
        config.policy()?;
        Ok(config)
    }

    /// The layout of keys below the store's own prefix.
    ///
    /// # Errors
    /// [`ConfigError`] says which rule the template breaks.
    pub fn layout(&self, prefix: &str) -> Result<Layout, ConfigError> {
        let alone = self.store.single_project.is_some();
        let default = if alone { "{trial}/" } else { "{project}/{trial}/" };
        let template = self.store.layout.as_deref().unwrap_or(default);
        Layout::parse(prefix, template, alone).map_err(|error| invalid(format!("store.layout: {error}")))
    }

    /// What the ledger works by.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such zone, or the times do not fit together.
    pub fn policy(&self) -> Result<Policy, ConfigError> {
        let zone =
            ResetZone::parse(&self.quota.reset_zone).map_err(|error| invalid(format!("quota.reset_zone: {error}")))?;
        let rules = self.rules();
        rules.check().map_err(|rule| invalid(format!("ledger: {rule}")))?;
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
            max_entries: self.quota.audit_entries,
            retention_days: self.quota.retention_days,
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
            let secret = std::fs::read(&key.secret_file).map_err(|error| {
                let file = key.secret_file.display();
                invalid(format!(
                    "links.keys: secret_file {file} of the key {}: {error}; `head -c 32 /dev/urandom | base64` makes a \
                     secret, and this user may read it",
                    key.id
                ))
            })?;
            Ok((key.id.clone(), without_line_end(secret)))
        };
        let keys = self.links.keys.iter().map(read).collect::<Result<Vec<_>, ConfigError>>()?;
        SigningKeys::new(keys).map(Some).map_err(|error| invalid(format!("links.keys: {error}")))
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

/// Who knows the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessSource<'a> {
    /// This file.
    File(&'a Path),
    /// The platform here.
    Platform(&'a Url),
}

impl AccessConfig {
    /// Who knows the keys.
    ///
    /// # Errors
    /// [`ConfigError`] unless it is one of the two.
    pub fn source(&self) -> Result<AccessSource<'_>, ConfigError> {
        match (&self.keys_file, &self.upstream) {
            (Some(path), None) => Ok(AccessSource::File(path)),
            (None, Some(base)) => Ok(AccessSource::Platform(base)),
            (Some(_), Some(_)) => {
                Err(invalid("access.keys_file and access.upstream are both set; take one of them out"))
            }
            (None, None) => Err(invalid(format!(
                "{}; or set access.upstream, where a platform knows the keys",
                sources::missing_fault("access.keys_file", "ARTIFACTD_ACCESS__KEYS_FILE", None)
            ))),
        }
    }
}

impl HttpConfig {
    /// Proxies that are believed when they say from where a request comes.
    #[must_use]
    pub fn networks(&self) -> Vec<Network> {
        self.trusted_proxies.iter().filter_map(|text| text.parse().ok()).collect()
    }
}

impl LedgerConfig {
    /// The ledger's URL, never empty once settings were read.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_ref().map_or("", Secret::expose)
    }

    /// The URL, from wherever it stands.
    fn located(&self) -> Result<Secret, ConfigError> {
        match (&self.url, &self.url_file) {
            (Some(url), None) => Ok(url.clone()),
            (None, Some(path)) => {
                let remedy = "it holds the URL alone, and this user may read it";
                let text = std::fs::read(path)
                    .map_err(|error| invalid(format!("ledger.url_file {}: {error}; {remedy}", path.display())))?;
                let url = String::from_utf8(without_line_end(text)).unwrap_or_default();
                if url.is_empty() {
                    return Err(invalid(format!("ledger.url_file {} holds no URL; {remedy}", path.display())));
                }
                Ok(url.into())
            }
            (Some(_), Some(_)) => Err(invalid("ledger.url and ledger.url_file are both set; take one of them out")),
            (None, None) => Err(invalid(sources::missing_fault("ledger.url", "ARTIFACTD_LEDGER__URL", None))),
        }
    }
}

/// What a file holds, without the line breaks that editors put at its end.
fn without_line_end(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    text.truncate(end.map_or(0, |last| last + 1));
    text
}

#[cfg(test)]
mod tests;
