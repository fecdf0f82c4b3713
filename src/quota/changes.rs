//! The line in the log that a change of an account leaves: who, when, what, until when, why, and in
//! place of what.

use super::Adjust;
use crate::access::QuotaManager;
use crate::ledger::{Allowance, LedgerTime, Override};
use crate::request::RequestId;
use crate::telemetry::CHANGES;

/// A change that is under way. It writes its line when it is dropped, however it ends: a caller that
/// does not stay for the answer, or a ledger that does not give one, may have changed the books all
/// the same.
pub(super) struct Change<'a> {
    who: &'a QuotaManager,
    request: &'a RequestId,
    what: What<'a>,
    state: State,
}

/// What is changed.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    /// The allowance becomes `to` (`None`: the default) in place of `from`.
    Allowance { to: Option<&'a Override>, from: Option<&'a Override> },
    /// A day is corrected.
    Day(&'a Adjust),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Done { applied: Option<i64> },
    Refused,
}

impl<'a> Change<'a> {
    /// Before the ledger is called.
    pub(super) const fn begin(who: &'a QuotaManager, request: &'a RequestId, what: What<'a>) -> Self {
        Self { who, request, what, state: State::Unknown }
    }

    /// The books are changed; of a correction, by so many bytes.
    pub(super) fn done(mut self, applied: Option<i64>) {
        self.state = State::Done { applied };
    }

    /// The ledger said that it changed nothing: there is nothing to tell.
    pub(super) fn refused(mut self) {
        self.state = State::Refused;
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let (outcome, applied) = match self.state {
            State::Refused => return,
            State::Done { applied } => ("done", applied),
            State::Unknown => ("unknown", None),
        };
        let (project, by, request_id) = (self.who.project(), self.who.key_id(), self.request);
        match self.what {
            What::Allowance { to, from } => tracing::info!(
                target: CHANGES,
                change = if to.is_some() { "allowance set" } else { "allowance cleared" },
                outcome,
                %project,
                by,
                %request_id,
                daily_bytes = to.map(daily_bytes),
                until = to.and_then(until),
                reason = to.map(|to| to.reason.as_str()),
                replaced_daily_bytes = from.map(daily_bytes),
                replaced_until = from.and_then(until),
                replaced_by = from.map(|from| from.by.as_str()),
                replaced_reason = from.map(|from| from.reason.as_str()),
            ),
            What::Day(Adjust { id, day, bytes, reason, .. }) => tracing::info!(
                target: CHANGES,
                change = "day corrected",
                outcome,
                %project,
                by,
                %request_id,
                %day,
                adjustment_id = id,
                bytes,
                applied_bytes = applied,
                reason,
            ),
        }
    }
}

fn daily_bytes(set: &Override) -> String {
    match set.allowance {
        Allowance::Unlimited => "unlimited".to_owned(),
        Allowance::Bytes(bytes) => bytes.to_string(),
    }
}

fn until(set: &Override) -> Option<String> {
    set.until.map(LedgerTime::timestamp).map(|until| until.to_string())
}
