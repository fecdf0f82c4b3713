//! Verdicts on images, off the async threads: at most one a core, each for a bounded time.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::artifact::image::{Reason, Sound, verdict};
use crate::error::{Error, Result};
use crate::telemetry::metrics::{VerdictLabels, metrics};
use crate::telemetry::request::{Phase, timing};

/// How long one image may be looked at before it counts as too costly.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Judges images on the blocking pool.
#[derive(Debug, Clone)]
pub struct Verdicts {
    permits: Arc<Semaphore>,
    time_limit: Duration,
}

impl Default for Verdicts {
    /// As many at once as there are cores, each for [`TIME_LIMIT`].
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from), TIME_LIMIT)
    }
}

impl Verdicts {
    /// At most `at_once` verdicts run; each is given up after `time_limit`.
    #[must_use]
    pub fn new(at_once: usize, time_limit: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), time_limit }
    }

    /// The verdict on a whole file. Waits for its turn; the time limit counts from then. A verdict
    /// that is given up keeps its permit until it is done, so that no more run than may.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if no verdict can be had, as on shutdown.
    pub async fn of(&self, bytes: Bytes) -> Result<std::result::Result<Sound, Reason>> {
        let begun = Instant::now();
        let timed = timing(Phase::Verdict);
        let outcome = self.run(move || verdict(&bytes)).await?;
        drop(timed);
        let verdict = outcome.as_ref().err().map_or("sound", Reason::name);
        metrics().verdicts.get_or_create(&VerdictLabels { verdict }).inc();
        metrics().verdict_seconds.observe(begun.elapsed().as_secs_f64());
        Ok(outcome)
    }

    async fn run(
        &self,
        judge: impl FnOnce() -> std::result::Result<Sound, Reason> + Send + 'static,
    ) -> Result<std::result::Result<Sound, Reason>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(Error::internal)?;
        let judged = tokio::task::spawn_blocking(move || {
            let _held = permit;
            judge()
        });
        match tokio::time::timeout(self.time_limit, judged).await {
            Err(_) => Ok(Err(Reason::TooCostly { what: "it takes too long to judge".into() })),
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(join)) if join.is_panic() => {
                tracing::error!("the check of an image panicked: the image is refused");
                Ok(Err(Reason::Unsupported { what: "an image that the check itself cannot cope with" }))
            }
            Ok(Err(join)) => Err(Error::internal(join)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_is_no_image_is_refused() {
        let got = Verdicts::default().of(Bytes::from_static(b"no image")).await.expect("a verdict");
        assert!(got.is_err());
    }

    #[tokio::test]
    async fn a_panic_is_a_refusal() {
        let verdicts = Verdicts::new(1, TIME_LIMIT);
        let got = verdicts.run(|| panic!("decoder")).await.expect("a verdict");
        assert!(matches!(got, Err(Reason::Unsupported { .. })));
        assert_eq!(verdicts.permits.available_permits(), 1, "the permit came back");
    }

    #[tokio::test]
    async fn a_verdict_that_takes_too_long_is_given_up_and_still_counts_as_running() {
        let verdicts = Verdicts::new(1, Duration::from_millis(10));
        let (release, wait) = mpsc::channel::<()>();
        let got = verdicts
            .run(move || {
                let _ = wait.recv();
                Err(Reason::Truncated { at: 7 })
            })
            .await;
        assert!(matches!(got.expect("a verdict"), Err(Reason::TooCostly { .. })));
        assert_eq!(verdicts.permits.available_permits(), 0);
        drop(release);
        let next = verdicts.run(|| Err(Reason::Truncated { at: 7 })).await.expect("a verdict");
        assert_eq!(next, Err(Reason::Truncated { at: 7 }), "its turn came when the slow one was done");
    }
}
