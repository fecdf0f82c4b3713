//! The entries of a day added up by what they have in common.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::artifact::TrialId;
use crate::ledger::book::Totals;
use crate::ledger::{Channel, Day, Entry};

/// The most groups in one answer; the rest are added up as one.
const MAX_GROUPS: usize = 1000;

/// What entries are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    /// The key that read, or corrected.
    Key,
    /// The way in.
    Channel,
    /// The trial.
    Trial,
}

impl GroupBy {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Key, Self::Channel, Self::Trial];

    /// The name in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Trial => "trial",
        }
    }
}

/// What the entries of a group have in common. What they are not grouped by is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The key.
    pub key_id: Option<String>,
    /// The way in; adjustments have none.
    pub channel: Option<Channel>,
    /// The trial; rolled-up entries and adjustments have none.
    pub trial: Option<TrialId>,
}

/// The sums of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// The day.
    pub day: Day,
    /// The groups by their charges, the largest first; at most 1000.
    pub groups: Vec<(Group, Totals)>,
    /// How many further groups there are, and their sums.
    pub others: (usize, Totals),
    /// The sums of all.
    pub totals: Totals,
}

/// Adds entries up.
pub(super) struct Sums<'a> {
    by: &'a [GroupBy],
    sums: BTreeMap<Group, Totals>,
}

impl<'a> Sums<'a> {
    pub(super) const fn new(by: &'a [GroupBy]) -> Self {
        Self { by, sums: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        let by = |what| self.by.contains(&what);
        let group = Group {
            key_id: by(GroupBy::Key).then(|| entry.key_id().to_owned()),
            channel: entry.channel().filter(|_| by(GroupBy::Channel)),
            trial: entry.context().filter(|_| by(GroupBy::Trial)).map(|context| context.trial.clone()),
        };
        let sum = self.sums.entry(group).or_default();
        *sum = plus(*sum, Totals { count: entry.count, charged: entry.charged });
    }

    pub(super) fn groups(self, day: Day) -> Groups {
        let mut groups: Vec<_> = self.sums.into_iter().collect();
        let totals = sum(&groups);
        groups.sort_by_key(|(_, sum)| Reverse((sum.charged, sum.count)));
        let others = groups.split_off(groups.len().min(MAX_GROUPS));
        Groups { day, others: (others.len(), sum(&others)), groups, totals }
    }
}

const fn plus(one: Totals, other: Totals) -> Totals {
    Totals { count: one.count + other.count, charged: one.charged + other.charged }
}

fn sum(groups: &[(Group, Totals)]) -> Totals {
    groups.iter().fold(Totals::default(), |sum, (_, one)| plus(sum, *one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactName;
    use crate::ledger::{Context, LedgerTime, Outcome, Subject};

    fn entry(subject: Subject, charged: i64, count: u64) -> Entry {
        let at = LedgerTime(0);
        Entry { at, id: String::new(), subject, size: 0, charged, outcome: Outcome::Completed, count }
    }

    fn read(key_id: &str, trial: &str, charged: i64) -> Entry {
        let context = Context {
            key_id: key_id.to_owned(),
            channel: Channel::Http,
            trial: TrialId::parse(trial).expect("valid"),
            artifact: ArtifactName::parse("a").expect("valid"),
            request_id: String::new(),
            link_id: None,
        };
        entry(Subject::Read(context), charged, 1)
    }

    fn groups(by: &[GroupBy], entries: &[Entry]) -> Groups {
        let mut sums = Sums::new(by);
        entries.iter().for_each(|entry| sums.add(entry));
        sums.groups(Day::parse("2026-11-29").expect("valid"))
    }

    #[test]
    fn entries_of_every_kind_are_in_one_group_and_the_largest_come_first() {
        let entries = [
            read("k", "t", 5),
            read("k", "u", 70),
            read("l", "t", 20),
            entry(Subject::RolledUp { key_id: "k".to_owned(), channel: Channel::Mcp }, 40, 9),
            entry(Subject::Adjustment { by: "op".to_owned(), reason: String::new() }, -60, 1),
        ];
        let shown = |by: &[GroupBy]| {
            let all = groups(by, &entries);
            assert_eq!(all.totals, Totals { count: 13, charged: 75 }, "{by:?}");
            assert_eq!(all.others, (0, Totals::default()));
            let row = |(group, sum): &(Group, Totals)| {
                let channel = group.channel.map_or("-", Channel::as_str);
                let trial = group.trial.as_ref().map_or("-", TrialId::as_str);
                format!("{} {channel} {trial} {} {}", group.key_id.as_deref().unwrap_or("-"), sum.count, sum.charged)
            };
            all.groups.iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[GroupBy::Key]), ["k - - 11 115", "l - - 1 20", "op - - 1 -60"]);
        assert_eq!(shown(&[GroupBy::Channel]), ["- http - 3 95", "- mcp - 9 40", "- - - 1 -60"]);
        assert_eq!(shown(&[GroupBy::Trial]), ["- - u 1 70", "- - t 2 25", "- - - 10 -20"]);
        assert_eq!(
            shown(&[GroupBy::Trial, GroupBy::Key]),
            ["k - u 1 70", "k - - 9 40", "l - t 1 20", "k - t 1 5", "op - - 1 -60"]
        );
    }

    #[test]
    fn beyond_a_thousand_groups_the_smallest_are_one_sum() {
        let entries: Vec<_> = (1..=1003).map(|n| read(&format!("k{n}"), "t", n)).collect();
        let all = groups(&[GroupBy::Key], &entries);
        assert_eq!((all.groups.len(), all.others), (1000, (3, Totals { count: 3, charged: 1 + 2 + 3 })));
        assert_eq!(all.totals, Totals { count: 1003, charged: 1003 * 1004 / 2 });
    }
}
