//! How the service is told to stop, and how long that may take.

use std::io::Result as IoResult;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long settles may take once the service was told a second time to stop.
pub(super) const AT_ONCE: Duration = Duration::from_secs(1);

/// Told once, the service drains; told twice, it cuts what is left.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    pub(super) drain: CancellationToken,
    pub(super) cut: CancellationToken,
}

impl From<CancellationToken> for Stop {
    /// Told once, when `drain` is cancelled.
    fn from(drain: CancellationToken) -> Self {
        Self { drain, cut: CancellationToken::new() }
    }
}

impl Stop {
    /// Told by SIGTERM and SIGINT, from now on.
    ///
    /// # Errors
    /// The operating system hands over no signals.
    pub(super) fn by_signals() -> IoResult<Self> {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = Self::default();
        let told = stop.clone();
        tokio::spawn(async move {
            for token in [told.drain, told.cut] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                token.cancel();
            }
        });
        Ok(stop)
    }
}

/// The parts of a stop that takes `seconds` in all: how long running answers may go on, and how long
/// the settles of those that are cut may take.
pub(super) fn shares(seconds: u64) -> (Duration, Duration) {
    let settles = (seconds / 5).clamp(1, 5);
    (Duration::from_secs(seconds.saturating_sub(settles)), Duration::from_secs(settles))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_keeps_within_its_time() {
        for (all, answers, settles) in [(0, 0, 1), (1, 0, 1), (5, 4, 1), (25, 20, 5), (3600, 3595, 5)] {
            assert_eq!(shares(all), (Duration::from_secs(answers), Duration::from_secs(settles)), "{all}");
        }
    }
}
