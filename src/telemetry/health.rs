//! How the parts of the service are doing, for `/readyz?verbose`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::metrics;

/// What is known of the parts; written by those who call them.
#[derive(Debug, Clone, Default)]
pub struct Health {
    store: Arc<Mutex<Part>>,
    ledger: Arc<Mutex<Part>>,
    lost: Arc<Mutex<Option<Instant>>>,
    key_file: Arc<Mutex<Option<Duration>>>,
}

/// When a part answered last, and when not.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    answered: Option<Instant>,
    failed: Option<Instant>,
}

/// A part of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The store.
    Store,
    /// The ledger.
    Ledger,
}

impl Health {
    fn part(&self, of: Of) -> &Mutex<Part> {
        match of {
            Of::Store => &self.store,
            Of::Ledger => &self.ledger,
        }
    }

    /// Notes whether a call was answered, `at` which time.
    pub fn note(&self, of: Of, answered: bool, at: Instant) {
        let mut part = self.part(of).lock().unwrap_or_else(PoisonError::into_inner);
        let when = if answered { &mut part.answered } else { &mut part.failed };
        *when = Some(at);
    }

    /// Notes that the ledger was found to have lost what it held.
    pub fn ledger_lost_data(&self) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Notes for how long the key file has been unusable; `None` while all is well.
    pub fn key_file(&self, unusable_for: Option<Duration>) {
        *self.key_file.lock().unwrap_or_else(PoisonError::into_inner) = unusable_for;
    }

    /// All of it, in seconds since: no name, no address, nothing secret.
    #[must_use]
    pub fn report(&self) -> Value {
        let ago = |at: Option<Instant>| at.map(|at| at.elapsed().as_secs());
        let shown = |of: Of| {
            let part = *self.part(of).lock().unwrap_or_else(PoisonError::into_inner);
            let status = match (part.answered, part.failed) {
                (None, None) => "unknown",
                (Some(answered), Some(failed)) if failed > answered => "failing",
                (None, Some(_)) => "failing",
                (Some(_), _) => "ok",
            };
            json!({"status": status, "answered_seconds_ago": ago(part.answered), "failed_seconds_ago": ago(part.failed)})
        };
        let mut ledger = shown(Of::Ledger);
        ledger["lost_leases"] = json!(metrics().lost_leases.get());
        ledger["unreserved_entries"] = json!(metrics().unreserved_entries.get());
        ledger["lost_data_seconds_ago"] = json!(ago(*self.lost.lock().unwrap_or_else(PoisonError::into_inner)));
        let unusable = self.key_file.lock().unwrap_or_else(PoisonError::into_inner).map(|time| time.as_secs());
        let keys = json!({
            "status": if unusable.is_none() { "ok" } else { "failing" },
            "unusable_for_seconds": unusable,
        });
        json!({"store": shown(Of::Store), "ledger": ledger, "key_file": keys})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_says_how_a_part_does() {
        let health = Health::default();
        assert_eq!(health.report()["ledger"]["status"], "unknown");
        for (answered, status) in [(true, "ok"), (false, "failing"), (true, "ok")] {
            health.note(Of::Ledger, answered, Instant::now());
            assert_eq!(health.report()["ledger"]["status"], status);
        }
        assert_eq!(health.report()["store"]["status"], "unknown");
        assert_eq!(health.report()["ledger"]["lost_data_seconds_ago"], Value::Null);
        health.ledger_lost_data();
        assert_eq!(health.report()["ledger"]["lost_data_seconds_ago"], 0);
        health.key_file(Some(Duration::from_secs(3)));
        assert_eq!(health.report()["key_file"]["unusable_for_seconds"], 3);
    }
}
