//! `artifactd config`: what can be set.

use super::{Failure, answer};
use crate::config::reference;

/// Options of `artifactd config`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the reference of all settings, in Markdown
    Docs,
}

/// Prints what is asked for.
///
/// # Errors
/// Standard output takes nothing.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    match options.what {
        What::Docs => answer(&reference::markdown()),
    }
}
