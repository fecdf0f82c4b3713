//! `artifactd serve` and `artifactd check-config`: the service, by its settings.

use std::path::PathBuf;

use super::Failure;
use crate::config::{Config, ENVIRONMENT_PREFIX};
use crate::{server, telemetry};

/// Where the settings are.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The settings file; ARTIFACTD_* variables come after it
    #[arg(long, value_name = "FILE", env = "ARTIFACTD_CONFIG")]
    config: Option<PathBuf>,
}

impl Options {
    fn load(&self) -> Result<Config, Failure> {
        // The variable that names the file is no setting.
        let own = format!("{ENVIRONMENT_PREFIX}CONFIG");
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| *name != own);
        Ok(Config::load(self.config.as_deref(), environment)?)
    }
}

/// Serves until it is told to stop.
///
/// # Errors
/// A setting is wrong, or a part of the service cannot start.
pub(super) fn serve(options: &Options) -> Result<(), Failure> {
    let config = options.load()?;
    telemetry::start(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(server::run(config, |_| ()))?)
}

/// Reads the settings and does what a start would do short of listening: opens the store, the
/// ledger and the key file.
///
/// # Errors
/// What a start would fail with.
pub(super) fn check(options: &Options) -> Result<(), Failure> {
    let config = options.load()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(server::connect(&config))?;
    println!("The settings are sound.");
    Ok(())
}
