//! File descriptors: as many as the system lets the process have, and never all for connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::store::local::most_open;

/// Descriptors for all that is neither a served connection nor what it reads: the ledger, logs, the
/// runtime, and connections that are turned away. Files that stay open a moment longer have a share of their own.
const OWN: u64 = 64 + super::door::SPARE as u64;

/// How many of `wanted` connections there can be while each of them can still read a file. Raises
/// the process's limit as far as it may: the usual 1024 is for programs that use `select`.
pub(super) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "cannot raise the limit of open files");
        }
    }
    let possible = possible(getrlimit(Resource::Nofile).current, wanted);
    if possible < wanted {
        tracing::warn!(wanted, possible, "the limit of open files allows fewer connections (ulimit -n, LimitNOFILE)");
    }
    possible
}

/// Two descriptors a connection: its socket, and a file or a connection to the store.
fn possible(descriptors: Option<u64>, wanted: usize) -> usize {
    let own = OWN + most_open(descriptors) as u64;
    let most = descriptors.map_or(u64::MAX, |all| (all.saturating_sub(own) / 2).max(1));
    wanted.min(usize::try_from(most).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_can_read_a_file() {
        for (descriptors, wanted, connections) in [
            (None, 4096, 4096),
            (Some(1 << 20), 4096, 4096),
            (Some(1024), 4096, 384),
            (Some(1024), 100, 100),
            (Some(256), 4096, 48),
            (Some(10), 100, 1),
        ] {
            assert_eq!(possible(descriptors, wanted), connections, "{descriptors:?} {wanted}");
        }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_may() {
        connections(1);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
