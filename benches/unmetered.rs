//! The service as it is, over a ledger that admits everything and keeps nothing: beside it, the price of
//! metering is a figure. `unmetered CONFIG` serves as `artifactd serve --config CONFIG` does, but for the
//! ledger; `downloads.py` builds and runs it.

#![allow(clippy::unwrap_used, reason = "a program for a bench")]

use std::path::Path;
use std::sync::Arc;

use artifactd::artifact::ProjectId;
use artifactd::config::Config;
use artifactd::ledger::{
    Adjust, Adjustment, Admission, Allowance, At, AuditFilter, AuditPage, Clock as _, Day, DayUsage, Extend, Extension,
    Lease, Ledger, LedgerTime, Link, LinkId, Override, Reply, Reserve, ResetZone, Rules, Settle, Settlement, Standing,
    SystemClock, Unavailable, Usage, Verification,
};
use artifactd::server::{Adapters, Server, connect};
use async_trait::async_trait;
use tikv_jemallocator::Jemalloc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// As the service has.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Admits everything, keeps nothing.
struct NoBooks {
    rules: Rules,
    day: Day,
}

impl NoBooks {
    fn new() -> Self {
        let now = LedgerTime(SystemClock.now_ms());
        Self { rules: Rules::default(), day: ResetZone::UTC.days(now).today.day }
    }

    fn lease(&self, grant: u64) -> Lease {
        Lease { grant, day: self.day, deadline: LedgerTime(SystemClock.now_ms()).plus(self.rules.lease_ms) }
    }
}

fn at<T>(reply: T) -> Reply<T> {
    Ok(At { now: LedgerTime(SystemClock.now_ms()), reply })
}

fn none<T>() -> Result<T, Unavailable> {
    Err(Unavailable("no books are kept".into()))
}

#[async_trait]
impl Ledger for NoBooks {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn set_default_allowance(&self, _: Allowance) {}

    async fn now(&self) -> Result<LedgerTime, Unavailable> {
        Ok(LedgerTime(SystemClock.now_ms()))
    }

    async fn reserve(&self, call: &Reserve) -> Reply<Admission> {
        let resets_at = LedgerTime(SystemClock.now_ms());
        let standing = Standing { day: self.day, allowance: Allowance::Unlimited, used: 0, reserved: 0, resets_at };
        at(Admission::Reserved(self.lease(call.size), standing))
    }

    async fn extend(&self, call: Extend<'_>) -> Reply<Extension> {
        at(Extension::Reserved(self.lease(call.grant)))
    }

    async fn settle(&self, call: &Settle) -> Reply<Settlement> {
        at(Settlement::Settled(call.actual))
    }

    async fn sweep(&self) -> Reply<usize> {
        at(0)
    }

    async fn usage(&self, _: &ProjectId) -> Reply<Usage> {
        none()
    }

    async fn history(&self, _: &ProjectId, _: u32) -> Reply<Vec<DayUsage>> {
        none()
    }

    async fn audit(
        &self,
        _: &ProjectId,
        _: Option<Day>,
        _: &AuditFilter,
        _: Option<u64>,
        _: usize,
    ) -> Reply<AuditPage> {
        none()
    }

    async fn verify(&self, _: &ProjectId, _: Option<Day>) -> Reply<Verification> {
        none()
    }

    async fn set_allowance(&self, _: &ProjectId, _: Option<&Override>) -> Reply<()> {
        none()
    }

    async fn allowance(&self, _: &ProjectId) -> Reply<Option<Override>> {
        none()
    }

    async fn record_link(&self, _: &ProjectId, _: &Link) -> Reply<()> {
        none()
    }

    async fn links(&self, _: &ProjectId, _: Option<LinkId>, _: usize) -> Reply<Vec<Link>> {
        none()
    }

    async fn revoke_link(&self, _: &ProjectId, _: LinkId) -> Reply<bool> {
        none()
    }

    async fn adjust(&self, _: &Adjust) -> Reply<Adjustment> {
        none()
    }
}

#[tokio::main]
async fn main() {
    let file = std::env::args().nth(1).expect("the settings file");
    let environment = std::env::vars().filter(|(name, _)| name.starts_with("ARTIFACTD_"));
    let config = Config::load(Some(Path::new(&file)), environment).unwrap();
    artifactd::telemetry::start(&config.log).unwrap();
    let (adapters, _keys) = connect(&config).await.unwrap();
    let listener = TcpListener::bind(config.listen.to_string()).await.unwrap();
    let stop = CancellationToken::new();
    let told = stop.clone();
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    tokio::spawn(async move {
        terminate.recv().await;
        told.cancel();
    });
    Server::new(Adapters { ledger: Arc::new(NoBooks::new()), ..adapters }, &config).serve(listener, stop).await;
}
