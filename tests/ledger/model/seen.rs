//! What histories met. An invariant that no history puts to the test is not tested: in the end all of
//! it must have happened.

use std::collections::BTreeMap;
use std::sync::Mutex;

use artifactd::ledger::memory::MemoryBook;
use artifactd::ledger::{Admission, RefusalReason, Settlement, Subject};

const ALL: [&str; 26] = [
    "again",
    "stale",
    "link_revoked",
    "admitted",
    "admitted by a link",
    "repeat of what is open",
    "repeat of what was settled",
    "repeat of what expired",
    "repeat of what was refused",
    "refused: too_large",
    "refused: spent",
    "refused: busy",
    "extension of what has ended",
    "settled",
    "settled on a later day",
    "settled too late",
    "revoked a link",
    "revoked nothing",
    "line: completed",
    "line: expired",
    "line: corrected",
    "line: unreserved",
    "line: released",
    "line: adjusted",
    "line of several",
    "several days",
];

#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<BTreeMap<String, u64>>);

impl Seen {
    pub(super) fn note(&self, what: &str) {
        *self.0.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn admission(&self, answer: &Admission, known: bool) {
        match answer {
            Admission::Again => self.note("again"),
            Admission::Stale => self.note("stale"),
            Admission::LinkRevoked => self.note("link_revoked"),
            Admission::Reserved(..) => self.note(if known { "repeat of what is open" } else { "admitted" }),
            Admission::Settled => self.note("repeat of what was settled"),
            Admission::Expired => self.note("repeat of what expired"),
            Admission::Refused(_) if known => self.note("repeat of what was refused"),
            Admission::Refused(refusal) => self.note(match refusal.reason {
                RefusalReason::TooLarge => "refused: too_large",
                RefusalReason::Spent => "refused: spent",
                RefusalReason::Busy => "refused: busy",
            }),
        }
    }

    pub(super) fn settlement(&self, answer: Settlement, on_a_later_day: bool) {
        match answer {
            Settlement::TooLate => self.note("settled too late"),
            Settlement::Settled(_) if on_a_later_day => self.note("settled on a later day"),
            Settlement::Settled(_) => self.note("settled"),
        }
    }

    pub(super) fn lines(&self, book: &MemoryBook) {
        for (_, _, entry) in book.entries() {
            match entry.subject {
                Subject::RolledUp { .. } if entry.count > 1 => self.note("line of several"),
                _ => self.note(&format!("line: {}", entry.outcome.as_str())),
            }
        }
        if book.accounts().any(|(_, day, _)| book.accounts().any(|(_, other, _)| other != day)) {
            self.note("several days");
        }
    }

    /// Fails if something never happened.
    pub(super) fn check(&self) {
        let seen = self.0.lock().unwrap();
        println!("{seen:?}");
        let missing: Vec<_> = ALL.iter().filter(|what| !seen.contains_key(**what)).collect();
        assert!(missing.is_empty(), "no history had: {missing:?}");
    }
}
