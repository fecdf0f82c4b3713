//! Log lines: which, and how they look.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

use crate::config::{ConfigError, LogConfig, LogFormat};

/// The filter that the settings ask for.
///
/// # Errors
/// [`ConfigError`] if it is not one, or names something without a level: `inof` would silence all
/// but a target of that name.
pub(crate) fn filter(config: &LogConfig) -> Result<EnvFilter, ConfigError> {
    let invalid = |why: String| ConfigError::Invalid(format!("log.filter {:?}: {why}", config.filter));
    for part in config.filter.split(',').map(str::trim).filter(|part| !part.contains(['=', '['])) {
        if part.parse::<LevelFilter>().is_err() {
            return Err(invalid(format!("{part:?} is no level; one for a target is written TARGET=LEVEL")));
        }
    }
    EnvFilter::try_new(&config.filter).map_err(|error| invalid(error.to_string()))
}

/// Sends log lines to standard error, from now on and for the whole process.
///
/// # Errors
/// [`ConfigError`] if the filter is not one.
pub fn start(config: &LogConfig) -> Result<(), ConfigError> {
    let filter = filter(config)?;
    // A line that cannot be written (the disk is full, the reader of a pipe has gone) is lost. To
    // report that on standard error, as is the default, would panic in whatever was being logged.
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    // A second call in one process keeps the first subscriber.
    let _ = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}
