//! What is noted of a request while it is served, for its line in the log and its trace.
//!
//! The notes stand beside the task that serves the request, so that nothing on the way has to hand
//! them on: [`timing`] and [`took`] add to those of the request that they run for, and do nothing elsewhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::metrics::{NOWHERE, Route};
use super::trace::TraceContext;

/// What a request spends its time on, until its answer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding out who asks.
    Auth,
    /// Looking things up in the store.
    Stat,
    /// The admission by the ledger.
    Reserve,
    /// Opening objects, and reading those that are read before the answer.
    Store,
    /// Judging an image.
    Verdict,
}

impl Phase {
    /// Every phase, in the order of a request.
    pub const ALL: [Self; 5] = [Self::Auth, Self::Stat, Self::Reserve, Self::Store, Self::Verdict];

    /// The phase's name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Stat => "stat",
            Self::Reserve => "reserve",
            Self::Store => "store",
            Self::Verdict => "verdict",
        }
    }
}

/// A phase that ended: which, how long after the request's begin it began, and how long it took.
pub type Span = (Phase, Duration, Duration);

/// What is noted of one request.
#[derive(Debug)]
pub struct Notes {
    /// The trace that the request belongs to; `None` where nothing is traced.
    pub trace: Option<TraceContext>,
    begun: Instant,
    route: OnceLock<&'static Route>,
    key_id: OnceLock<String>,
    charged: AtomicU64,
    micros: [AtomicU64; Phase::ALL.len()],
    spans: Mutex<Vec<Span>>,
}

tokio::task_local! {
    static NOTES: Arc<Notes>;
}

impl Notes {
    /// Notes of a request that begins now.
    #[must_use]
    pub fn begin(trace: Option<TraceContext>) -> Arc<Self> {
        Arc::new(Self {
            trace,
            begun: Instant::now(),
            route: OnceLock::new(),
            key_id: OnceLock::new(),
            charged: AtomicU64::new(0),
            micros: [const { AtomicU64::new(0) }; Phase::ALL.len()],
            spans: Mutex::default(),
        })
    }

    /// The notes of the request that this is called for.
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        NOTES.try_with(Arc::clone).ok()
    }

    /// Serves the request that these are the notes of.
    pub fn scope<F: Future>(self: &Arc<Self>, serve: F) -> impl Future<Output = F::Output> + use<F> {
        NOTES.scope(Arc::clone(self), serve)
    }

    /// Notes a charge, bytes.
    pub fn charge(&self, bytes: u64) {
        self.charged.fetch_add(bytes, Relaxed);
    }

    /// The route that the request leads to.
    #[must_use]
    pub fn route(&self) -> &'static Route {
        self.route.get().copied().unwrap_or(&NOWHERE)
    }

    /// Who asks; empty if that was not found out.
    #[must_use]
    pub fn key_id(&self) -> &str {
        self.key_id.get().map_or("", String::as_str)
    }

    /// Bytes charged so far.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.charged.load(Relaxed)
    }

    /// How long ago the request began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How long a phase took in all, ms.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a request takes no 2^53 microseconds")]
    pub fn ms(&self, phase: Phase) -> f64 {
        self.micros[phase as usize].load(Relaxed) as f64 / 1000.0
    }

    /// The phases that ended, in the order of their ends; only of requests whose trace is recorded.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn took(&self, phase: Phase, begun: Instant, ended: Instant) {
        let took = ended.saturating_duration_since(begun);
        self.micros[phase as usize].fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        if self.trace.is_some_and(|trace| trace.sampled) {
            let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
            spans.push((phase, begun.saturating_duration_since(self.begun), took));
        }
    }
}

/// Notes where the present request leads.
pub fn leads_to(route: &'static Route) {
    let _ = NOTES.try_with(|notes| notes.route.set(route));
}

/// Notes who asks.
pub fn asks(key_id: &str) {
    let _ = NOTES.try_with(|notes| notes.key_id.set(key_id.to_owned()));
}

/// Notes that a phase took from `begun` to `ended`.
pub fn took(phase: Phase, begun: Instant, ended: Instant) {
    let _ = NOTES.try_with(|notes| notes.took(phase, begun, ended));
}

/// A phase that goes on until this is dropped. A guard, and no future around the work: each such would copy the
/// work twice, and every one around it again.
#[must_use]
pub struct Timing(Phase, Instant);

/// Notes how long a phase takes, from now until the guard is dropped: also when the work is given up.
pub fn timing(phase: Phase) -> Timing {
    Timing(phase, Instant::now())
}

impl Drop for Timing {
    fn drop(&mut self) {
        took(self.0, self.1, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_done_for_a_request_is_noted_with_it() {
        let trace = TraceContext { trace_id: 1, span_id: 2, parent: None, sampled: true };
        let notes = Notes::begin(Some(trace));
        let timed = async |phase| {
            let _timing = timing(phase);
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        timed(Phase::Auth).await;
        notes
            .scope(async {
                timed(Phase::Stat).await;
                timed(Phase::Stat).await;
                let given_up = async {
                    let _timing = timing(Phase::Reserve);
                    std::future::pending::<()>().await;
                };
                assert!(tokio::time::timeout(Duration::from_millis(2), given_up).await.is_err());
                asks("k");
                leads_to(Route::of("/v1/trials"));
            })
            .await;
        notes.charge(3);
        notes.charge(4);
        assert!(Notes::current().is_none());
        assert_eq!((notes.key_id(), notes.route().pattern()), ("k", "/v1/trials"));
        assert_eq!((notes.charged(), notes.ms(Phase::Auth)), (7, 0.0));
        assert!(notes.ms(Phase::Stat) >= 4.0 && notes.ms(Phase::Reserve) >= 2.0);
        let spans: Vec<_> = notes.spans().into_iter().map(|(phase, ..)| phase).collect();
        assert_eq!(spans, [Phase::Stat, Phase::Stat, Phase::Reserve]);
    }
}
