//! From settings to adapters.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::Adapters;
use crate::access::keys::{KeyFileError, WatchedKeys};
use crate::config::{Config, ConfigError};
use crate::ledger::embedded::OpenError as LedgerError;
use crate::ledger::{Embedded, Ledger, SystemClock};
use crate::store::{Limits, OpenError as StoreError};

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger cannot be used.
    #[error("{path}: {source}", path = .path.display())]
    Ledger {
        /// The ledger's file.
        path: PathBuf,
        /// Why not.
        source: LedgerError,
    },
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// Opens what `config` names. The keys come a second time as what they are, for those who reload
/// them.
///
/// # Errors
/// [`ConnectError`] says which part, and why.
pub async fn connect(config: &Config) -> Result<(Adapters, Arc<WatchedKeys>), ConnectError> {
    let located = crate::store::open(&config.store.url, Limits::default())?;
    let layout = config.layout(&located.prefix)?;
    let signing = config.signing_keys()?;
    let ledger = ledger(config)?;
    let keys = Arc::new(WatchedKeys::open(&config.access.keys_file).await?);
    let access = Arc::clone(&keys);
    Ok((Adapters { store: located.store, layout, ledger, access, signing }, keys))
}

fn ledger(config: &Config) -> Result<Arc<dyn Ledger>, ConnectError> {
    let Some(path) = config.ledger.url.strip_prefix("embedded://").filter(|path| path.starts_with('/')) else {
        return Err(ConfigError::Invalid("ledger.url is embedded:///path/ledger.db".into()).into());
    };
    let ledger = Embedded::open(path, config.policy()?, SystemClock);
    Ok(Arc::new(ledger.map_err(|source| ConnectError::Ledger { path: path.into(), source })?))
}
