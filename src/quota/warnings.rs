//! The warning that a day's allowance goes to its end, in the log and the metrics once a day and project.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::artifact::ProjectId;
use crate::ledger::{Allowance, Day, WarnAt};
use crate::telemetry::metrics;

/// Watches what admissions and looks at the quota say of accounts anyway: it asks the ledger nothing.
/// Each replica of the service watches, and so warns, for itself.
#[derive(Debug, Default)]
pub struct Warnings {
    at: WarnAt,
    told: Mutex<Told>,
}

/// Which projects the log has of a day.
#[derive(Debug, Default)]
struct Told {
    day: Option<Day>,
    projects: BTreeSet<ProjectId>,
}

impl Warnings {
    /// Warns at `at`.
    #[must_use]
    pub fn new(at: WarnAt) -> Self {
        Self { at, told: Mutex::default() }
    }

    /// When people are warned.
    #[must_use]
    pub const fn at(&self) -> WarnAt {
        self.at
    }

    /// Takes how an account stands; answers whether the log was told of it just now.
    pub fn note(&self, project: &ProjectId, day: Day, allowance: Allowance, used: u64) -> bool {
        if !self.at.reached(allowance, used) {
            return false;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.day != Some(day) {
            *told = Told { day: Some(day), projects: BTreeSet::new() };
        }
        if told.projects.contains(project) {
            return false;
        }
        told.projects.insert(project.clone());
        let (percent, daily_bytes) = (self.at.percent(), allowance.bytes());
        metrics().quota_warnings.inc();
        tracing::warn!(%project, %day, used_bytes = used, daily_bytes, percent, "a project's allowance goes to its end");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_day_and_project() {
        let warnings = Warnings::new(WarnAt::new(50).expect("in bounds"));
        let (p, q) = (ProjectId::parse("p").expect("valid"), ProjectId::parse("q").expect("valid"));
        let today = Day::parse("2026-11-29").expect("valid");
        let limit = Allowance::Bytes(100);
        for (project, day, used, told) in [
            (&p, today, 49, false),
            (&p, today, 50, true),
            (&p, today, 90, false),
            (&q, today, 49, false),
            (&q, today, 100, true),
            (&p, today.plus(1), 0, false),
            (&p, today.plus(1), 60, true),
            (&p, today.plus(1), 60, false),
        ] {
            assert_eq!(warnings.note(project, day, limit, used), told, "{project} {day} {used}");
        }
        assert!(!warnings.note(&q, today.plus(1), Allowance::Unlimited, u64::MAX));
    }
}
