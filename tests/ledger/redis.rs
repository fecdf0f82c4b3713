//! Ledgers in real Redis servers, and what is particular to them: keys, faults, failovers, TLS.

use std::time::Duration;

use artifactd::ledger::redis::{Options, Redis};
use artifactd::ledger::Policy;

use crate::servers::redis::{cluster_url, shared, shared_cluster, url};
use crate::support::ManualClock;

/// Options with a namespace that no other test has, and time enough for a machine with much to do.
pub(crate) fn options() -> Options {
    let namespace = format!("t{}", uuid::Uuid::now_v7().simple());
    Options { namespace, response: Duration::from_secs(10), connect: Duration::from_secs(10), ..Options::default() }
}

pub(crate) fn on_shared_server(policy: Policy, clock: ManualClock) -> Redis {
    Redis::open_with_clock(&url(shared()), policy, options(), clock).unwrap()
}

pub(crate) fn on_shared_cluster(policy: Policy, clock: ManualClock) -> Redis {
    Redis::open_with_clock(&cluster_url(shared_cluster()), policy, options(), clock).unwrap()
}
