//! What a running service follows: the key file, and the settings that need no restart.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior};

use crate::access::WatchedKeys;
use crate::access::keys::POLL;
use crate::config::{ConfigError, Settings, Sources};
use crate::ledger::Ledger;
use crate::link::SigningKeys;
use crate::links::Links;
use crate::telemetry::health::Health;
use crate::telemetry::metrics::{ResultLabels, metrics};

/// How often an ongoing fault is logged.
const REMIND: Duration = Duration::from_secs(60);

/// Those that take changes.
pub(super) struct Follower {
    /// Keys in a file; a platform is asked anyway.
    pub(super) keys: Option<Arc<WatchedKeys>>,
    pub(super) health: Health,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) links: Arc<Links>,
    pub(super) settings: Option<Followed>,
}

/// Settings that are read again.
pub(super) struct Followed {
    sources: Sources,
    /// As they were when the service started.
    started: Settings,
    /// As they are in force.
    current: Settings,
    /// What was wrong with them last, and when that was logged.
    fault: Option<(String, Instant)>,
    /// Those that wait for a restart.
    waiting: Vec<String>,
}

impl Followed {
    /// Follows `sources`, which said `started`.
    pub(super) fn new(sources: Sources, started: Settings) -> Self {
        Self { sources, current: started.clone(), started, fault: None, waiting: Vec::new() }
    }
}

impl Follower {
    /// Looks once a second, and at once on SIGHUP, until the future is dropped.
    pub(super) async fn run(mut self) {
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut hangup = signal(SignalKind::hangup()).ok();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = told(&mut hangup) => tracing::info!("SIGHUP: keys and settings are read"),
            }
            if let Some(keys) = &self.keys {
                keys.reload().await;
                let unusable = keys.broken_for();
                self.health.key_file(unusable);
                metrics().key_file_unusable.set(unusable.is_some().into());
            }
            self.look_at_settings().await;
        }
    }

    async fn look_at_settings(&mut self) {
        let Some(followed) = &mut self.settings else { return };
        let sources = followed.sources.clone();
        let read = tokio::task::spawn_blocking(move || {
            let settings = sources.read()?;
            let signing = settings.config.signing_keys()?;
            Ok::<_, ConfigError>((settings, signing))
        });
        match read.await {
            Ok(Ok((settings, signing))) => followed.take(settings, signing, &*self.ledger, &self.links),
            Ok(Err(error)) => followed.complain(&error),
            // Only while the runtime shuts down.
            Err(_) => {}
        }
    }
}

impl Followed {
    fn take(&mut self, new: Settings, signing: Option<SigningKeys>, ledger: &dyn Ledger, links: &Links) {
        if self.fault.take().is_some() {
            tracing::info!("the settings can be read again");
        }
        let keys = format!("{signing:?}");
        if links.set_keys(signing) {
            tracing::info!(keys, "the signing keys of links have changed");
            count("ok");
        }
        if new.config.quota.daily_bytes != self.current.config.quota.daily_bytes {
            ledger.set_default_allowance(new.config.quota.daily_bytes);
            tracing::info!(allowance = ?new.config.quota.daily_bytes, "quota.daily_bytes has changed");
            count("ok");
        }
        let differ = self.started.differences(&new).into_iter();
        let waiting: Vec<_> = differ.filter(|setting| !setting.reloads).map(|setting| setting.name()).collect();
        if waiting != self.waiting && !waiting.is_empty() {
            tracing::warn!(settings = waiting.join(", "), "these settings have changed: restart the service for them");
        }
        self.waiting = waiting;
        self.current = new;
    }

    fn complain(&mut self, error: &ConfigError) {
        let (fault, now) = (error.to_string(), Instant::now());
        match &self.fault {
            Some((last, logged)) if *last == fault && now - *logged < REMIND => {}
            _ => {
                tracing::error!(%fault, "the settings cannot be used: the last good ones stay in force");
                count("failed");
                self.fault = Some((fault, now));
            }
        }
    }
}

fn count(result: &'static str) {
    metrics().settings_reads.get_or_create(&ResultLabels { result }).inc();
}

async fn told(hangup: &mut Option<tokio::signal::unix::Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}
