//! Two clocks: this machine's uptime, which fences are measured on, and an estimate of the
//! ledger's time, which calls carry.

use std::sync::{Mutex, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use crate::ledger::LedgerTime;

/// Milliseconds since boot on a clock that runs on while the machine sleeps (`CLOCK_BOOTTIME`): a
/// lease ends whether or not this machine was awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Uptime(u64);

impl Uptime {
    pub(super) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let ms = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000);
        Self(u64::try_from(ms).unwrap_or(0))
    }

    pub(super) const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    pub(super) const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// How old what the ledger said may grow before it is asked again, ms.
const FRESH_MS: u64 = 60_000;

/// The ledger's time as far as it is known here: what it said last, plus the uptime since. It lags
/// by at most one reply's way, never leads; both uses (`not_after`, `asked`) are safe with that.
#[derive(Default)]
pub(super) struct LedgerClock(Mutex<Option<(LedgerTime, Uptime)>>);

impl LedgerClock {
    /// Takes what a reply said that came `at` this uptime.
    pub(super) fn note(&self, now: LedgerTime, at: Uptime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, at));
    }

    /// The estimate for `now`, if what it is made from is not too old.
    pub(super) fn estimate(&self, now: Uptime) -> Option<LedgerTime> {
        let (said, at) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let age = now.since(at);
        (age < FRESH_MS).then(|| said.plus(age))
    }
}
