//! What one call of a tool, and one key's calls together, may tie up.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::access::Crowd;

/// Runs calls, so many of a key and each for so long.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    /// The calls that run, by key.
    pub(super) crowd: Crowd,
    /// How long one may take.
    pub(super) time_limit: Duration,
}

/// How a call did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// As many run already as may.
    Crowded,
    /// It took longer than it may, and was dropped.
    Overlong,
    /// It panicked.
    Panicked,
}

impl Calls {
    /// At most `per_key` calls of one key at once, each for at most `time_limit`.
    #[must_use]
    pub(super) fn new(per_key: usize, time_limit: Duration) -> Self {
        Self { crowd: Crowd::new(per_key), time_limit }
    }

    /// Runs a call of this key. Whatever it holds is let go when this returns.
    ///
    /// # Errors
    /// [`Failed`] says why there is no outcome.
    pub(super) async fn run<T>(&self, key_id: &str, call: impl Future<Output = T>) -> Result<T, Failed> {
        let _place = self.crowd.enter(key_id).ok_or(Failed::Crowded)?;
        match tokio::time::timeout(self.time_limit, AssertUnwindSafe(call).catch_unwind()).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => Err(Failed::Panicked),
            Err(_) => Err(Failed::Overlong),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(45);

    #[tokio::test(start_paused = true)]
    async fn every_call_ends_and_gives_its_place_back() {
        let calls = Calls::new(1, LIMIT);
        let begun = tokio::time::Instant::now();
        assert_eq!(calls.run("k", async { 7 }).await, Ok(7));
        assert_eq!(calls.run("k", async { panic!("a tool") }).await.map(|(): ()| ()), Err(Failed::Panicked));
        assert_eq!(calls.run("k", pending::<()>()).await, Err(Failed::Overlong));
        assert_eq!(begun.elapsed().as_secs(), LIMIT.as_secs());
        assert_eq!(calls.run("k", async { 8 }).await, Ok(8));
        assert_eq!(calls.crowd.running(), 0);
    }

    #[tokio::test]
    async fn a_key_has_its_own_places() {
        let calls = Calls::new(2, LIMIT);
        let (one, two) = (calls.crowd.enter("k").expect("free"), calls.crowd.enter("k").expect("free"));
        assert_eq!(calls.run("k", async { 1 }).await, Err(Failed::Crowded));
        assert_eq!(calls.run("other", async { 1 }).await, Ok(1));
        drop(one);
        assert_eq!(calls.run("k", async { 1 }).await, Ok(1));
        drop(two);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_goes_away_frees_its_place() {
        let calls = Calls::new(1, LIMIT);
        let gone = tokio::time::timeout(Duration::from_secs(1), calls.run("k", pending::<()>()));
        assert!(gone.await.is_err());
        assert_eq!(calls.run("k", async { 1 }).await, Ok(1));
    }
}
