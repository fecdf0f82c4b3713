//! What the books say, and what operators change in them.

use super::{Redis, allowance, line, nonsense};
use crate::artifact::ProjectId;
use crate::ledger::{
    Adjust, Adjustment, Allowance, At, AuditFilter, AuditPage, Day, DaySpan, DayUsage, Entry, LedgerTime, MAX_AMOUNT,
    MAX_PAGE, Override, Reply, Unavailable, Usage, Verification,
};

/// Lines of the audit that one script looks at.
const STRETCH: usize = 1000;
/// How often a recount begins anew because the account changed under it, before it is done in one
/// go, during which the server answers nobody.
const RECOUNTS: usize = 3;
/// A stretch that holds every line.
const EVERYTHING: usize = 1 << 40;

/// What one script added up of a day.
#[derive(Default)]
struct Tally {
    sums: Verification,
    counted: u64,
    /// Lines left to add up.
    left: u64,
}

/// A stretch of the audit, newest first.
struct Stretch {
    day: Day,
    /// `None`: the day is no longer kept.
    sums: Option<Sums>,
    lines: Vec<(u64, Entry)>,
}

struct Sums {
    used: u64,
    counted: u64,
    /// The sequence number of the newest line below the stretch.
    below: Option<u64>,
}

fn named(day: Option<Day>) -> String {
    day.map(|day| day.to_string()).unwrap_or_default()
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

impl Redis {
    pub(super) async fn read_usage(&self, project: &ProjectId) -> Reply<Usage> {
        let base = self.names.base(project);
        let (mut answer, today) = self.run_swept(&self.scripts().usage, &base, |_| Vec::new()).await?;
        let reply = Usage {
            day: today.day,
            resets_at: today.end,
            allowance: allowance(&answer.text()?)?,
            used: answer.amount()?,
            reserved: answer.amount()?,
            open: answer.amount()?,
            refused: answer.amount()?,
            earliest_end: answer.maybe()?.map(LedgerTime),
        };
        Ok(At { now: answer.now, reply })
    }

    pub(super) async fn read_history(&self, project: &ProjectId, days: u32) -> Reply<Vec<DayUsage>> {
        let base = self.names.base(project);
        let days = i64::from(days.clamp(1, self.policy.rules.kept_days()));
        let asked = |today: &DaySpan| (0..days).map(|ago| today.day.plus(-ago)).collect::<Vec<_>>();
        let arguments = |today: &DaySpan| asked(today).iter().map(Day::to_string).collect();
        let (mut answer, today) = self.run_swept(&self.scripts().history, &base, arguments).await?;
        let in_force = allowance(&answer.text()?)?;
        let mut rows = Vec::new();
        for day in asked(&today) {
            let last = match answer.text()?.as_str() {
                "-" => None,
                text => Some(allowance(text)?),
            };
            rows.push(DayUsage {
                day,
                allowance: if day == today.day { Some(in_force) } else { last },
                used: answer.amount()?,
                reserved: answer.amount()?,
                refused: answer.amount()?,
                entries: answer.amount()?,
                count: answer.amount()?,
            });
        }
        Ok(At { now: answer.now, reply: rows })
    }

    /// A page. Without a filter the account has the totals; with one the whole day is looked through,
    /// stretch by stretch, each of them a call of its own.
    pub(super) async fn read_audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage> {
        let limit = limit.clamp(1, MAX_PAGE);
        let everything = *filter == AuditFilter::default();
        let (newest, length) = if everything { (from, limit) } else { (None, STRETCH) };
        let At { now, reply: mut stretch } = self.stretch(project, day, newest, length, filter).await?;
        let day = stretch.day;
        let mut page = AuditPage { day, entries: Vec::new(), next: None, total_count: 0, total_charged: 0 };
        let Some(sums) = stretch.sums.take() else { return Ok(At { now, reply: page }) };
        if everything {
            page.entries = stretch.lines.into_iter().map(|(_, entry)| entry).collect();
            (page.next, page.total_count, page.total_charged) = (sums.below, sums.counted, signed(sums.used));
            return Ok(At { now, reply: page });
        }
        let mut below = sums.below;
        loop {
            for (sequence, entry) in stretch.lines.into_iter().filter(|(_, entry)| filter.admits(entry)) {
                page.total_count += entry.count;
                page.total_charged += entry.charged;
                if from.is_some_and(|from| sequence > from) {
                    continue;
                }
                if page.entries.len() < limit {
                    page.entries.push(entry);
                } else {
                    page.next.get_or_insert(sequence);
                }
            }
            if below.is_none() {
                return Ok(At { now, reply: page });
            }
            stretch = self.stretch(project, Some(day), below, STRETCH, filter).await?.reply;
            below = stretch.sums.take().and_then(|sums| sums.below);
        }
    }

    async fn stretch(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        newest: Option<u64>,
        length: usize,
        filter: &AuditFilter,
    ) -> Reply<Stretch> {
        let base = self.names.base(project);
        let hints = line::hints(filter);
        let arguments = |_: &DaySpan| {
            let newest = newest.map(|newest| newest.min(MAX_AMOUNT).to_string()).unwrap_or_default();
            let mut arguments = vec![named(day), newest, length.to_string()];
            arguments.extend(hints.iter().cloned());
            arguments
        };
        let (mut answer, _) = self.run_swept(&self.scripts().page, &base, arguments).await?;
        let day = answer.day()?;
        if answer.word == "gone" {
            return Ok(At { now: answer.now, reply: Stretch { day, sums: None, lines: Vec::new() } });
        }
        let (used, counted, below) = (answer.amount()?, answer.amount()?, answer.amount()?);
        let sums = Some(Sums { used, counted, below: (below > 0).then_some(below) });
        let mut lines = Vec::new();
        while !answer.is_empty() {
            let sequence = answer.amount()?;
            lines.push((sequence, line::read(&answer.text()?).ok_or_else(|| nonsense("line of the audit"))?));
        }
        Ok(At { now: answer.now, reply: Stretch { day, sums, lines } })
    }

    /// Adds up a day. It is done by stretches, so that others are answered in between; the sums are
    /// those of one moment if the account was the same from the first to the last.
    pub(super) async fn recount(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification> {
        for _ in 0..RECOUNTS {
            let (At { now, reply: first }, day) = self.tally(project, day, 0, STRETCH).await?;
            let Some(mut all) = first else { return Ok(At { now, reply: Verification::default() }) };
            let mut same = true;
            let mut from = STRETCH;
            while same && all.left > 0 {
                let (more, _) = self.tally(project, Some(day), from, STRETCH).await?;
                let Some(more) = more.reply else { return Ok(At { now, reply: Verification::default() }) };
                same = (more.sums.used, more.sums.reserved, more.counted, more.sums.entries)
                    == (all.sums.used, all.sums.reserved, all.counted, all.sums.entries);
                all.sums.charged += more.sums.charged;
                (all.left, from) = (more.left, from + STRETCH);
            }
            if same {
                return Ok(At { now, reply: all.sums });
            }
        }
        let (At { now, reply }, _) = self.tally(project, day, 0, EVERYTHING).await?;
        Ok(At { now, reply: reply.map(|all| all.sums).unwrap_or_default() })
    }

    async fn tally(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        from: usize,
        length: usize,
    ) -> Result<(At<Option<Tally>>, Day), Unavailable> {
        let base = self.names.base(project);
        let arguments = |_: &DaySpan| vec![named(day), from.to_string(), length.to_string()];
        let (mut answer, today) = self.run_swept(&self.scripts().tally, &base, arguments).await?;
        let (now, day) = (answer.now, day.unwrap_or(today.day));
        if answer.word == "gone" {
            return Ok((At { now, reply: None }, day));
        }
        let (used, reserved, entries, counted) =
            (answer.amount()?, answer.amount()?, answer.amount()?, answer.amount()?);
        let (charged, leases, leased, indexed) =
            (answer.signed()?, answer.amount()?, answer.amount()?, answer.amount()?);
        let sums = Verification { entries, charged, used, reserved, leases, leased, indexed };
        let left = entries.saturating_sub(from.saturating_add(length) as u64);
        Ok((At { now, reply: Some(Tally { sums, counted, left }) }, day))
    }

    pub(super) async fn write_allowance(&self, project: &ProjectId, exception: Option<&Override>) -> Reply<()> {
        let base = self.names.base(project);
        let arguments = |_: &DaySpan| match exception {
            None => vec![String::new(); 3],
            Some(Override { allowance, until, by, reason }) => vec![
                match allowance {
                    Allowance::Unlimited => "unlimited".to_owned(),
                    Allowance::Bytes(bytes) => bytes.to_string(),
                },
                until.map_or_else(|| "-".to_owned(), |until| until.0.to_string()),
                line::json((by, reason)),
            ],
        };
        let (answer, _) = self.run_with(&self.scripts().set_allowance, &base, arguments).await?;
        Ok(At { now: answer.now, reply: () })
    }

    pub(super) async fn read_allowance(&self, project: &ProjectId) -> Reply<Option<Override>> {
        let base = self.names.base(project);
        let (mut answer, _) = self.run_with(&self.scripts().get_allowance, &base, |_| Vec::new()).await?;
        let reply = match answer.word.as_str() {
            "none" => None,
            "set" => {
                let (allowance, until) = (allowance(&answer.text()?)?, answer.maybe()?.map(LedgerTime));
                let why = serde_json::from_str(&answer.text()?);
                let (by, reason) = why.map_err(|_| nonsense("reason"))?;
                Some(Override { allowance, until, by, reason })
            }
            _ => return Err(nonsense("allowance")),
        };
        Ok(At { now: answer.now, reply })
    }

    pub(super) async fn write_adjustment(&self, call: &Adjust) -> Reply<Adjustment> {
        let base = self.names.base(&call.project);
        let bytes = call.bytes.clamp(-signed(MAX_AMOUNT), signed(MAX_AMOUNT)).to_string();
        let arguments = |_: &DaySpan| {
            vec![call.id.clone(), call.day.to_string(), bytes.clone(), line::correction(call), line::json(&call.reason)]
        };
        let (mut answer, _) = self.run_with(&self.scripts().adjust, &base, arguments).await?;
        let reply = match answer.word.as_str() {
            "applied" => Adjustment::Applied(answer.signed()?),
            "conflict" => Adjustment::Conflict,
            "no_such_day" => Adjustment::NoSuchDay,
            _ => return Err(nonsense("adjustment")),
        };
        Ok(At { now: answer.now, reply })
    }
}
