//! From settings to adapters.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::Adapters;
use crate::access::keys::{KeyFileError, WatchedKeys};
use crate::access::upstream::Lives;
use crate::access::{Authenticator, Upstream};
use crate::config::{AccessConfig, AccessSource, Address, Config, ConfigError};
use crate::ledger::embedded::OpenError as LedgerError;
use crate::ledger::redis::{OpenError as RedisError, Options};
use crate::ledger::{Embedded, Ledger, Redis, SystemClock};
use crate::store::{Limits, OpenError as StoreError};

/// How long a platform's refusal is remembered at most.
const REFUSED: Duration = Duration::from_secs(5);
/// How long a platform that did not answer is not asked the same again.
const PAUSE: Duration = Duration::from_secs(1);

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error("store.url: {0}")]
    Store(#[from] StoreError),
    /// The ledger cannot be used.
    #[error("ledger.url {path}: {source}{remedy}", path = .path.display(), remedy = ledger_remedy(.source))]
    Ledger {
        /// The ledger's file.
        path: PathBuf,
        /// Why not.
        source: LedgerError,
    },
    /// The ledger in Redis cannot be used.
    #[error("ledger.url: {0}")]
    Redis(#[from] RedisError),
    /// The certificates for Redis cannot be read.
    #[error("ledger.ca_file {path}: {source}; it holds certificates as PEM, and this user may read it", path = .path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The keys cannot be used.
    #[error("access.keys_file: {0}{remedy}", remedy = keys_remedy(.0))]
    Keys(#[from] KeyFileError),
    /// The platform cannot be asked from this machine.
    #[error("access.upstream: {0}")]
    Upstream(#[from] reqwest::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; set listen or http.metrics_listen to another, or stop who has it")]
    Listen {
        /// The address.
        address: Address,
        /// Why not.
        source: std::io::Error,
    },
}

/// Opens what `config` names. Keys in a file come a second time as what they are, for those who
/// reload them.
///
/// # Errors
/// [`ConnectError`] says which part, and why.
pub async fn connect(config: &Config) -> Result<(Adapters, Option<Arc<WatchedKeys>>), ConnectError> {
    let located = crate::store::open(&config.store.url, Limits::default())?;
    let layout = config.layout(&located.prefix)?;
    let signing = config.signing_keys()?;
    let (access, keys): (Arc<dyn Authenticator>, _) = match config.access.source()? {
        AccessSource::File(path) => {
            let keys = Arc::new(WatchedKeys::open(path).await?);
            (Arc::clone(&keys) as _, Some(keys))
        }
        AccessSource::Platform(base) => (Arc::new(open_upstream(base, &config.access)?), None),
    };
    // Last: all else is sound if it is the ledger that is in use.
    let ledger = ledger(config).await?;
    Ok((Adapters { store: located.store, layout, ledger, access, signing }, keys))
}

const fn ledger_remedy(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Lock(_) | LedgerError::ReadOnly | LedgerError::Storage(_) => {
            "; its directory must be there, on a local disk, and be writable for this user"
        }
        LedgerError::Foreign => "; name a file of its own",
        // The others say it themselves, or are no matter of settings.
        _ => "",
    }
}

const fn keys_remedy(error: &KeyFileError) -> &'static str {
    match error {
        KeyFileError::Io { .. } => "; `artifactd keys create --keys-file` makes one, and this user may read it",
        _ => "",
    }
}

impl ConnectError {
    /// Whether all else is sound, and another process has the ledger: this one's predecessor, say.
    #[must_use]
    pub const fn is_ledger_in_use(&self) -> bool {
        matches!(self, Self::Ledger { source: LedgerError::Owned, .. })
    }
}

/// The platform that knows the keys.
pub(super) fn open_upstream(base: &Url, access: &AccessConfig) -> Result<Upstream, ConnectError> {
    let (fresh, grace) = (Duration::from_secs(access.upstream_fresh_seconds), access.upstream_grace_seconds);
    let lives = Lives { fresh, refused: fresh.min(REFUSED), grace: Duration::from_secs(grace), pause: PAUSE };
    Ok(Upstream::new(base, Duration::from_millis(access.upstream_timeout_ms), lives)?)
}

async fn ledger(config: &Config) -> Result<Arc<dyn Ledger>, ConnectError> {
    if is_redis(config) { redis(config).await } else { Ok(Arc::new(open_embedded(config)?)) }
}

/// Whether the books are in Redis.
pub(super) fn is_redis(config: &Config) -> bool {
    config.ledger.url().starts_with("redis")
}

/// The ledger in a file.
pub(super) fn open_embedded(config: &Config) -> Result<Embedded, ConnectError> {
    let Some(path) = config.ledger.url().strip_prefix("embedded://").filter(|path| path.starts_with('/')) else {
        let schemes = "embedded:///path/ledger.db, redis://, redis+sentinel:// or redis-cluster://";
        return Err(ConfigError::Invalid(format!("ledger.url is {schemes}")).into());
    };
    let ledger = Embedded::open(path, config.policy()?, SystemClock);
    ledger.map_err(|source| ConnectError::Ledger { path: path.into(), source })
}

/// A Redis that is out of reach is no reason not to start, unless the settings say so: reads are
/// refused until it answers.
async fn redis(config: &Config) -> Result<Arc<dyn Ledger>, ConnectError> {
    let ledger = open_redis(config).await?;
    match ledger.connect().await {
        Err(error) if config.ledger.require_durable => return Err(error.into()),
        Err(error) => tracing::warn!(%error, "starting without a ledger: reads are refused until it answers"),
        Ok(()) => {}
    }
    Ok(Arc::new(ledger))
}

/// The ledger in Redis, not yet connected.
pub(super) async fn open_redis(config: &Config) -> Result<Redis, ConnectError> {
    let settings = &config.ledger;
    let root_certificates = match &settings.ca_file {
        None => None,
        Some(path) => {
            let unread = |source| ConnectError::Certificates { path: path.clone(), source };
            Some(tokio::fs::read(path).await.map_err(unread)?)
        }
    };
    let options = Options {
        namespace: settings.namespace.clone(),
        response: Duration::from_millis(settings.timeout_ms),
        in_flight: settings.in_flight,
        root_certificates,
        require_durable: settings.require_durable,
        ..Options::default()
    };
    Ok(Redis::open(settings.url(), config.policy()?, options)?)
}
