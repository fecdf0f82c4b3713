//! `artifactd serve` and `artifactd check-config`: the service, by its settings.

use std::path::PathBuf;

use super::{Failure, answer, run_service};
use crate::config::{Config, ENVIRONMENT_PREFIX};
use crate::{server, telemetry};

/// Variables of the command line that are no settings: the file of them, and what `quota` asks by.
const NO_SETTINGS: [&str; 3] = ["CONFIG", "KEY", "URL"];

/// Where the settings are.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The settings file; ARTIFACTD_* variables come after it
    #[arg(long, value_name = "FILE", env = "ARTIFACTD_CONFIG")]
    config: Option<PathBuf>,
}

impl Options {
    fn load(&self) -> Result<Config, Failure> {
        let mut environment = Vec::new();
        for (name, value) in std::env::vars_os() {
            // A name that is no text is no setting's.
            let Ok(name) = name.into_string() else { continue };
            let setting = name.strip_prefix(ENVIRONMENT_PREFIX);
            if setting.is_some_and(|setting| !NO_SETTINGS.contains(&setting)) {
                let value = value.into_string().map_err(|_| format!("{name} is not UTF-8"))?;
                environment.push((name, value));
            }
        }
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
    run_service(async { Ok(server::run(config, |_| ()).await?) })
}

/// Reads the settings and does what a start would do short of listening: opens the store, the
/// ledger and the key file.
///
/// # Errors
/// What a start would fail with.
pub(super) fn check(options: &Options) -> Result<(), Failure> {
    let config = options.load()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match runtime.block_on(server::connect(&config)) {
        Ok(_) => answer("The settings are sound.\n"),
        // As it is when the settings of a running service are tried before its restart.
        Err(error) if error.is_ledger_in_use() => {
            answer(&format!("The settings are sound, as far as can be told while the service runs: {error}.\n"))
        }
        Err(error) => Err(error.into()),
    }
}
