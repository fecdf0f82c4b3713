//! The command line. Each command is one file: its options, and what it does with them.

use std::io::{self, Write as _};
use std::time::Duration;

pub mod check;
pub mod config;
pub mod demo;
pub mod healthcheck;
pub mod keys;
pub mod quota;
pub mod serve;

mod table;

/// What a command failed with, as shown to the user.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The command line.
#[derive(Debug, clap::Parser)]
#[command(name = "artifactd", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serve the artifacts of a store
    Serve(serve::Options),
    /// Serve a sample project, or a folder of trials of your own, and print lines to paste
    Demo(demo::Options),
    /// Make, list and disable keys
    Keys(keys::Options),
    /// Show how an account stands and where its bytes went; for operators, change it
    Quota(Box<quota::Options>),
    /// Try the settings, the store, the ledger and the keys; exit 0 if nothing keeps them from working
    CheckConfig(check::Options),
    /// What can be set
    Config(config::Options),
    /// Ask a running service whether it is up; exit 0 if so
    Healthcheck(healthcheck::Options),
}

/// Runs the command of the process's arguments. Blocks until it is done.
///
/// # Errors
/// What the command failed with; its text is for the user.
pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Serve(options) => serve::serve(&options),
        Command::CheckConfig(options) => check::run(&options),
        Command::Config(options) => config::run(&options),
        Command::Keys(options) => keys::run(options),
        Command::Healthcheck(options) => healthcheck::run(&options),
        Command::Demo(options) => demo::run(options),
        Command::Quota(options) => quota::run(*options),
    }
}

/// The exit code of a command that failed: 2 where `quota` got no answer, so that 1 is always an answer
/// of no; 1 for everything else.
#[must_use]
pub fn exit_code(error: &(dyn std::error::Error + 'static)) -> u8 {
    if error.is::<quota::Unanswered>() { 2 } else { 1 }
}

/// How long calls of the operating system may take that are still under way when all is done.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// Runs `service` to its end. A call that never returns, into a file system that hangs, say, does
/// not keep the process: by then everything is settled.
fn run_service<T>(service: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(service);
    runtime.shutdown_timeout(LAST_CALLS);
    outcome
}

/// Tells the user what went wrong, with its causes, on standard error.
pub fn report(error: &(dyn std::error::Error + 'static)) {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        // Some errors say their cause themselves.
        let line = inner.to_string();
        if !text.contains(&line) {
            text = format!("{text}: {line}");
        }
        cause = inner.source();
    }
    note(&format!("artifactd: {}", text.trim_end()));
}

/// Writes what a command was asked for to standard output, as it is.
///
/// # Errors
/// It cannot be written: what is not shown (a new key, say) must not pass for done.
fn answer(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("standard output: {error}").into())
}

/// Writes a line for the user to standard error. Where nobody reads it, nobody misses it.
fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
