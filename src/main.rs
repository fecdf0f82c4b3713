//! The command line; everything else is in the library.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match artifactd::cli::run(artifactd::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            artifactd::cli::report(&*error);
            ExitCode::from(artifactd::cli::exit_code(&*error))
        }
    }
}
