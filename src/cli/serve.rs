//! `artifactd serve`: the service, by its settings.

use std::path::PathBuf;

use super::{Failure, run_service};
use crate::config::{Address, ENVIRONMENT_PREFIX, Sources};
use crate::{server, telemetry};

/// Variables of the command line that are no settings: the file of them, and what `quota` asks by.
const NO_SETTINGS: [&str; 3] = ["CONFIG", "KEY", "URL"];

/// Where the settings are.
#[derive(Debug, clap::Args)]
#[group(id = "settings")]
pub struct Options {
    /// The settings file; ARTIFACTD_* variables come after it
    #[arg(long, value_name = "FILE", env = "ARTIFACTD_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen, instead of what the settings say
    #[arg(long, value_name = "ADDR")]
    listen: Option<Address>,
    /// A setting, such as limits.streams=100; after file and environment, as often as needed
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

fn assignment(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("a setting is NAME=VALUE, such as limits.streams=100")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

impl Options {
    /// Where the settings come from.
    ///
    /// # Errors
    /// A variable is not UTF-8.
    pub(super) fn sources(&self) -> Result<Sources, Failure> {
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
        let listen = self.listen.iter().map(|address| ("listen".to_owned(), address.to_string()));
        Ok(Sources::new(self.config.clone(), environment, listen.chain(self.set.iter().cloned())))
    }
}

/// Serves until it is told to stop.
///
/// # Errors
/// A setting is wrong, or a part of the service cannot start.
pub(super) fn serve(options: &Options) -> Result<(), Failure> {
    let sources = options.sources()?;
    let settings = sources.read()?;
    telemetry::start(&settings.config.log)?;
    run_service(async { Ok(server::run(sources, settings, |_| ()).await?) })
}
