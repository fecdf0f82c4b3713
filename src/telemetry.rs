//! Logs.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{ConfigError, LogConfig, LogFormat};

/// Sends log lines to standard error, from now on and for the whole process.
///
/// # Errors
/// [`ConfigError`] if the filter is not one.
pub fn start(config: &LogConfig) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&config.filter)
        .map_err(|error| ConfigError::Invalid(format!("log.filter {:?}: {error}", config.filter)))?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call in one process keeps the first subscriber.
    let _ = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}
