//! `artifactd check-config`: everything that a start needs, short of listening, and what is wrong with
//! each of it.

use super::{Failure, answer, serve};
use crate::server::{Finding, Level, check};

/// Options of `artifactd check-config`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    settings: serve::Options,
    /// Take warnings for faults
    #[arg(long)]
    strict: bool,
}

/// Prints a line for each finding.
///
/// # Errors
/// Something keeps the service from working.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let sources = options.settings.sources()?;
    let settings = match sources.read() {
        Ok(settings) => settings,
        Err(error) => {
            let text = error.to_string();
            let faults = text.lines().map(|line| finding(Level::Fault, line));
            return tell(faults.collect(), Level::Fault);
        }
    };
    let from = sources.file().map_or_else(|| "the environment".to_owned(), |path| path.display().to_string());
    let mut findings = vec![finding(Level::Ok, &format!("{from} can be read"))];
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    findings.extend(runtime.block_on(check(&settings.config)));
    runtime.shutdown_timeout(super::LAST_CALLS);
    tell(findings, if options.strict { Level::Warning } else { Level::Fault })
}

fn finding(level: Level, text: &str) -> Finding {
    Finding { level, part: "config", text: text.to_owned() }
}

/// Prints the findings; those of `failing` and worse are an error.
fn tell(findings: Vec<Finding>, failing: Level) -> Result<(), Failure> {
    answer(&findings.iter().map(|finding| format!("{finding}\n")).collect::<String>())?;
    match findings.iter().filter(|finding| finding.level >= failing).count() {
        0 => Ok(()),
        1 => Err("one finding keeps the service from working".into()),
        count => Err(format!("{count} findings keep the service from working").into()),
    }
}
