//! A book in memory: the model that every ledger is compared with. Plain maps, no cleverness.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::book::{Account, AdjustmentRecord, Book, LinkRecord, Record, RollKey, State, Totals};
use super::{AuditFilter, Day, Entry, LedgerTime, Link, LinkId, Override, ReservationId, Verification};
use crate::artifact::ProjectId;

type Lines = BTreeMap<u64, Entry>;

/// The account books of every project, in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryBook {
    records: BTreeMap<(ProjectId, ReservationId), Record>,
    accounts: BTreeMap<(ProjectId, Day), Account>,
    lines: BTreeMap<(ProjectId, Day), Lines>,
    rolled: BTreeMap<(ProjectId, Day, RollKey), u64>,
    exceptions: BTreeMap<ProjectId, Override>,
    adjustments: BTreeMap<(ProjectId, String), AdjustmentRecord>,
    links: BTreeMap<(ProjectId, LinkId), LinkRecord>,
}

impl MemoryBook {
    /// Every id that is stored and what is stored of it.
    pub fn records(&self) -> impl Iterator<Item = (&ProjectId, ReservationId, &Record)> {
        self.records.iter().map(|((project, id), record)| (project, *id, record))
    }

    /// Every account and its sums.
    pub fn accounts(&self) -> impl Iterator<Item = (&ProjectId, Day, &Account)> {
        self.accounts.iter().map(|((project, day), account)| (project, *day, account))
    }

    /// Every line of the audit.
    pub fn entries(&self) -> impl Iterator<Item = (&ProjectId, Day, &Entry)> {
        self.lines.iter().flat_map(|((project, day), lines)| lines.values().map(move |entry| (project, *day, entry)))
    }

    fn leases(&self) -> impl Iterator<Item = (LedgerTime, &ProjectId, Day, ReservationId, u64)> {
        self.records().filter_map(|(project, id, record)| match record.state {
            State::Reserved { deadline, .. } => Some((deadline, project, record.day, id, record.size)),
            _ => None,
        })
    }

    fn leases_of(&self, project: &ProjectId, day: Day) -> impl Iterator<Item = (LedgerTime, ReservationId, u64)> {
        self.leases()
            .filter(move |(_, of, on, ..)| *of == project && *on == day)
            .map(|(deadline, _, _, id, size)| (deadline, id, size))
    }

    fn matching(&self, project: &ProjectId, day: Day, filter: &AuditFilter) -> impl Iterator<Item = (u64, &Entry)> {
        let lines = self.lines.get(&(project.clone(), day)).into_iter().flatten();
        lines.rev().filter(|(_, entry)| filter.admits(entry)).map(|(sequence, entry)| (*sequence, entry))
    }
}

impl Book for MemoryBook {
    type Error = Infallible;

    fn record(&mut self, project: &ProjectId, id: ReservationId) -> Result<Option<Record>, Infallible> {
        Ok(self.records.get(&(project.clone(), id)).cloned())
    }

    fn put_record(&mut self, project: &ProjectId, id: ReservationId, record: &Record) -> Result<(), Infallible> {
        self.records.insert((project.clone(), id), record.clone());
        Ok(())
    }

    fn due(
        &mut self,
        project: &ProjectId,
        day: Day,
        now: LedgerTime,
        limit: usize,
    ) -> Result<Vec<ReservationId>, Infallible> {
        let mut due: Vec<_> = self.leases_of(project, day).filter(|(deadline, ..)| *deadline <= now).collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit).map(|(_, id, _)| id).collect())
    }

    fn due_anywhere(&mut self, now: LedgerTime, limit: usize) -> Result<Vec<(ProjectId, ReservationId)>, Infallible> {
        let mut due: Vec<_> = self.leases().filter(|(deadline, ..)| *deadline <= now).collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit).map(|(_, project, _, id, _)| (project.clone(), id)).collect())
    }

    fn earliest_deadline(&mut self, project: &ProjectId, day: Day) -> Result<Option<LedgerTime>, Infallible> {
        Ok(self.leases_of(project, day).map(|(deadline, ..)| deadline).min())
    }

    fn account(&mut self, project: &ProjectId, day: Day) -> Result<Account, Infallible> {
        Ok(self.accounts.get(&(project.clone(), day)).copied().unwrap_or_default())
    }

    fn put_account(&mut self, project: &ProjectId, day: Day, account: &Account) -> Result<(), Infallible> {
        self.accounts.insert((project.clone(), day), *account);
        Ok(())
    }

    fn put_line(
        &mut self,
        project: &ProjectId,
        day: Day,
        sequence: u64,
        entry: &Entry,
        roll: Option<&RollKey>,
    ) -> Result<(), Infallible> {
        if let Some(key) = roll {
            self.rolled.insert((project.clone(), day, key.clone()), sequence);
        }
        self.lines.entry((project.clone(), day)).or_default().insert(sequence, entry.clone());
        Ok(())
    }

    fn rolled(&mut self, project: &ProjectId, day: Day, key: &RollKey) -> Result<Option<(u64, Entry)>, Infallible> {
        let sequence = self.rolled.get(&(project.clone(), day, key.clone())).copied();
        let lines = self.lines.get(&(project.clone(), day));
        Ok(sequence.zip(lines).and_then(|(sequence, lines)| Some((sequence, lines.get(&sequence)?.clone()))))
    }

    fn lines(
        &mut self,
        project: &ProjectId,
        day: Day,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Entry)>, Infallible> {
        let lines =
            self.matching(project, day, filter).filter(|(sequence, _)| from.is_none_or(|from| *sequence <= from));
        Ok(lines.take(limit).map(|(sequence, entry)| (sequence, entry.clone())).collect())
    }

    fn totals(&mut self, project: &ProjectId, day: Day, filter: &AuditFilter) -> Result<Totals, Infallible> {
        Ok(self.matching(project, day, filter).fold(Totals::default(), |sum, (_, entry)| Totals {
            count: sum.count + entry.count,
            charged: sum.charged + entry.charged,
        }))
    }

    fn recount(&mut self, project: &ProjectId, day: Day) -> Result<Verification, Infallible> {
        let account = self.account(project, day)?;
        let (leases, leased) = self.leases_of(project, day).fold((0, 0), |(n, sum), (_, _, size)| (n + 1, sum + size));
        let everything = AuditFilter::default();
        let lines = self.matching(project, day, &everything);
        let (entries, charged) = lines.fold((0, 0), |(n, sum), (_, entry)| (n + 1, sum + entry.charged));
        let (used, reserved) = (account.used, account.reserved);
        // The leases are their own deadline index here.
        Ok(Verification { entries, charged, used, reserved, leases, leased, indexed: leases })
    }

    fn exception(&mut self, project: &ProjectId) -> Result<Option<Override>, Infallible> {
        Ok(self.exceptions.get(project).cloned())
    }

    fn put_exception(&mut self, project: &ProjectId, exception: Option<&Override>) -> Result<(), Infallible> {
        match exception {
            Some(exception) => self.exceptions.insert(project.clone(), exception.clone()),
            None => self.exceptions.remove(project),
        };
        Ok(())
    }

    fn adjustment(&mut self, project: &ProjectId, id: &str) -> Result<Option<AdjustmentRecord>, Infallible> {
        Ok(self.adjustments.get(&(project.clone(), id.to_owned())).cloned())
    }

    fn put_adjustment(&mut self, project: &ProjectId, id: &str, record: &AdjustmentRecord) -> Result<(), Infallible> {
        self.adjustments.insert((project.clone(), id.to_owned()), record.clone());
        Ok(())
    }

    fn link(&mut self, project: &ProjectId, id: LinkId) -> Result<Option<LinkRecord>, Infallible> {
        Ok(self.links.get(&(project.clone(), id)).cloned())
    }

    fn put_link(&mut self, project: &ProjectId, record: &LinkRecord) -> Result<(), Infallible> {
        self.links.insert((project.clone(), record.link.id), record.clone());
        Ok(())
    }

    fn live_links(
        &mut self,
        project: &ProjectId,
        now: LedgerTime,
        after: Option<LinkId>,
        limit: usize,
    ) -> Result<Vec<Link>, Infallible> {
        let own = self.links.iter().filter(|((of, id), _)| of == project && after.is_none_or(|after| *id > after));
        let live = own.filter(|(_, record)| !record.revoked && now <= record.link.expires);
        Ok(live.take(limit).map(|(_, record)| record.link.clone()).collect())
    }

    fn forget_links(&mut self, now: LedgerTime, limit: usize) -> Result<(), Infallible> {
        let over = self.links.iter().filter(|(_, record)| record.link.expires < now);
        let mut old: Vec<_> = over.map(|(key, record)| (record.link.expires, key.clone())).collect();
        old.sort_unstable();
        for (_, key) in old.into_iter().take(limit) {
            self.links.remove(&key);
        }
        Ok(())
    }

    fn forget_records(&mut self, now: LedgerTime, limit: usize) -> Result<(), Infallible> {
        let over = |record: &Record| record.state.until().filter(|until| *until < now);
        let mut old: Vec<_> =
            self.records.iter().filter_map(|(key, record)| Some((over(record)?, key.clone()))).collect();
        old.sort_unstable();
        for (_, key) in old.into_iter().take(limit) {
            self.records.remove(&key);
        }
        Ok(())
    }

    fn forget_days(&mut self, first_kept: Day, _limit: usize) -> Result<(), Infallible> {
        self.accounts.retain(|(_, day), account| *day >= first_kept || account.open > 0);
        let kept = &self.accounts;
        self.lines.retain(|key, _| kept.contains_key(key));
        self.rolled.retain(|(project, day, _), _| kept.contains_key(&(project.clone(), *day)));
        self.adjustments.retain(|_, record| record.day >= first_kept);
        Ok(())
    }
}
