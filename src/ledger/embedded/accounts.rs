//! The accounts of one transaction: read once, and written at its end. Its calls are mostly of few
//! accounts, and each call would write its own three times.

use std::collections::HashMap;

use crate::artifact::ProjectId;
use crate::ledger::Day;
use crate::ledger::book::Account;

#[derive(Debug, Default)]
pub(super) struct Accounts(HashMap<ProjectId, Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    day: Day,
    account: Account,
    changed: bool,
}

impl Accounts {
    pub(super) fn get(&self, project: &ProjectId, day: Day) -> Option<Account> {
        self.0.get(project)?.iter().find(|kept| kept.day == day).map(|kept| kept.account)
    }

    /// Keeps an account, `changed` or as it is stored, in place of what was kept of it.
    pub(super) fn keep(&mut self, project: &ProjectId, day: Day, account: Account, changed: bool) {
        let kept = Kept { day, account, changed };
        let Some(days) = self.0.get_mut(project) else {
            self.0.insert(project.clone(), vec![kept]);
            return;
        };
        match days.iter_mut().find(|one| one.day == day) {
            Some(one) => *one = kept,
            None => days.push(kept),
        }
    }

    /// Those that were changed; afterwards none are kept.
    pub(super) fn take_changed(&mut self) -> impl Iterator<Item = (ProjectId, Day, Account)> + use<> {
        let all = std::mem::take(&mut self.0).into_iter();
        let each = all.flat_map(|(project, days)| days.into_iter().map(move |kept| (project.clone(), kept)));
        each.filter(|(_, kept)| kept.changed).map(|(project, kept)| (project, kept.day, kept.account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_each_is_kept_and_only_what_changed_is_written() {
        let (p, q) = (ProjectId::parse("p").unwrap(), ProjectId::parse("q").unwrap());
        let (today, tomorrow) = (Day::parse("2026-11-29").unwrap(), Day::parse("2026-11-30").unwrap());
        let account = |used| Account { used, ..Account::default() };
        let mut accounts = Accounts::default();
        accounts.keep(&p, today, account(1), false);
        accounts.keep(&p, tomorrow, account(2), false);
        accounts.keep(&q, today, account(3), true);
        accounts.keep(&p, today, account(4), true);
        assert_eq!(accounts.get(&p, today), Some(account(4)));
        assert_eq!(accounts.get(&p, tomorrow), Some(account(2)));
        assert_eq!(accounts.get(&q, tomorrow), None);
        let mut changed: Vec<_> = accounts.take_changed().collect();
        changed.sort_by_key(|(_, _, account)| account.used);
        assert_eq!(changed, [(q, today, account(3)), (p.clone(), today, account(4))]);
        assert_eq!(accounts.get(&p, today), None);
    }
}
