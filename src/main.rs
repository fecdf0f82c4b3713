//! The command line; everything else is in the library.

use std::process::ExitCode;

use clap::Parser;
use tikv_jemallocator::Jemalloc;

/// A read makes some hundred small allocations on one thread and frees many of them on another: with the
/// system's allocator they are an eighth of its processor time.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    match artifactd::cli::run(artifactd::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            artifactd::cli::report(&*error);
            ExitCode::from(artifactd::cli::exit_code(&*error))
        }
    }
}
