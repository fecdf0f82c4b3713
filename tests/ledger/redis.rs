//! Ledgers in real Redis servers, and what is particular to them: keys, faults, failovers, TLS.

mod batches;
mod failover;
mod faults;
mod keys;
mod lanes;
mod nonsense;
mod secure;
mod together;

use std::sync::Arc;
use std::time::Duration;

use artifactd::ledger::redis::{Options, Redis};
use artifactd::ledger::{
    Admission, Ledger, LedgerTime, Policy, ReservationId, Reserve, Settle, Settlement, Unavailable,
};

use crate::servers::redis::{cluster_url, shared, shared_cluster, url};
use crate::support::{self, ManualClock, project};

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

/// A ledger by the server's own clock, with calls that fail soon.
fn open(url: &str, options: Options) -> Arc<Redis> {
    Arc::new(Redis::open(url, support::policy(1 << 40), options).unwrap())
}

/// A read of ten bytes of project `p`.
#[derive(Debug, Clone, Copy)]
struct Read(ReservationId);

impl Read {
    fn new() -> Self {
        Self(ReservationId::new())
    }

    async fn reserve(self, ledger: &Redis) -> Result<Admission, Unavailable> {
        let call = Reserve { id: self.0, ..support::reserve(0, 10, u64::MAX) };
        Ok(ledger.reserve(&call).await?.reply)
    }

    /// Settles seven bytes.
    async fn settle(self, ledger: &Redis, now: LedgerTime) -> Result<Settlement, Unavailable> {
        let call = Settle { id: self.0, ..support::settle(0, 7, 10, now.0) };
        Ok(ledger.settle(&call).await?.reply)
    }
}

/// Calls until there is an answer, at most twenty seconds.
async fn until_answered<T, F: Future<Output = Result<T, Unavailable>>>(mut call: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn assert_balanced(ledger: &Redis) {
    let sums = until_answered(|| async { ledger.verify(&project("p"), None).await }).await.reply;
    assert!(sums.balanced(), "{sums:?}");
}
