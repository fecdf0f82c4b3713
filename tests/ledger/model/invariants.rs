//! The invariants, read off the model's book.

use std::collections::BTreeMap;

use artifactd::artifact::ProjectId;
use artifactd::ledger::book::State;
use artifactd::ledger::memory::MemoryBook;
use artifactd::ledger::{Allowance, Day, Outcome, ReservationId};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// What became of an id, as its service saw it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fate {
    pub(super) day: Option<Day>,
    pub(super) handed: u64,
    /// What an accepted settle said.
    pub(super) settled: Option<u64>,
    /// The settle came when the ledger had forgotten the id: a higher charge stands.
    pub(super) forgotten: bool,
}

/// I1: what was just admitted fits.
pub(super) fn admission(
    book: &MemoryBook,
    project: &ProjectId,
    day: Day,
    limit: Allowance,
) -> Result<(), TestCaseError> {
    let (_, _, account) = book.accounts().find(|(p, d, _)| *p == project && *d == day).unwrap();
    prop_assert!(limit.covers(account.used + account.reserved), "I1: {account:?} {limit:?}");
    Ok(())
}

/// I2 and I3 for every account.
pub(super) fn sums(book: &MemoryBook) -> Result<(), TestCaseError> {
    for (project, day, account) in book.accounts() {
        let leases = book.records().filter(|(p, _, record)| {
            *p == project && record.day == day && matches!(record.state, State::Reserved { .. })
        });
        let (open, reserved) = leases.fold((0, 0), |(n, sum), (_, _, record)| (n + 1, sum + record.size));
        prop_assert_eq!((account.open, account.reserved), (open, reserved), "I2");
        let lines = book.entries().filter(|(p, d, _)| *p == project && *d == day);
        let (counted, charged) = lines.fold((0, 0), |(n, sum), (.., entry)| (n + entry.count, sum + entry.charged));
        prop_assert_eq!(i64::try_from(account.used).unwrap(), charged, "I3");
        prop_assert_eq!(account.counted, counted, "I3");
    }
    Ok(())
}

/// I4, I5 and I6 for every id of a day that is kept, where no line was rolled up.
pub(super) fn fates(
    book: &MemoryBook,
    fates: &BTreeMap<ReservationId, Fate>,
    first_kept: Day,
) -> Result<(), TestCaseError> {
    let mut lines: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (_, day, entry) in book.entries() {
        lines.entry(entry.id.clone()).or_default().push((day, entry.outcome, entry.charged));
    }
    for (id, fate) in fates {
        let of_id = lines.remove(&id.to_string()).unwrap_or_default();
        let charged: i64 = of_id.iter().map(|(_, _, charged)| charged).sum();
        let open = book.records().find(|(_, known, _)| known == id).and_then(|(_, _, record)| match record.state {
            State::Reserved { grant, .. } => Some(grant),
            _ => None,
        });
        let ends = of_id.iter().filter(|(_, outcome, _)| !matches!(outcome, Outcome::Corrected)).count();
        let Some(day) = fate.day else {
            prop_assert!(ends <= 1, "I5: a stray is charged once: {of_id:?}");
            continue;
        };
        if day < first_kept {
            continue;
        }
        prop_assert!(of_id.iter().all(|(of, ..)| *of == day), "I6: admitted on {day}: {of_id:?}");
        if let Some(grant) = open {
            prop_assert!(of_id.is_empty(), "I5: open, yet charged: {of_id:?}");
            prop_assert!(grant >= fate.handed, "I4: {fate:?}, granted {grant}");
            continue;
        }
        prop_assert_eq!(ends, 1, "I5: ended once: {:?}", of_id);
        prop_assert!(charged >= i64::try_from(fate.handed).unwrap(), "I4: {fate:?}, charged {charged}");
        if let Some(settled) = fate.settled.filter(|_| !fate.forgotten) {
            prop_assert_eq!(charged, i64::try_from(settled).unwrap(), "I4");
        }
    }
    Ok(())
}
