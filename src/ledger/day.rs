//! The budget day: the calendar day of the reset zone. Days of 23 and 25 hours are right.
//!
//! The days of a zone tile time: a day lasts from the first instant that its date has until the
//! first instant of the next. So every moment belongs to one day and days never run backwards,
//! even where clocks are set back across midnight. A date that a zone skipped is an empty day,
//! to which no moment belongs.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::LedgerTime;

/// A calendar day, written `2026-11-29`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

impl Day {
    /// Reads `YYYY-MM-DD`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 10).then(|| text.parse().ok().map(Self)).flatten()
    }

    /// The day `days` calendar days later, or earlier if negative; the calendar's first and last
    /// days bound it.
    #[must_use]
    pub fn plus(self, days: i64) -> Self {
        // More days than any calendar holds, and few enough for a span.
        let days = days.clamp(-4_000_000, 4_000_000);
        Self(self.0.saturating_add(days.days()))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In one piece: every settle says one.
        let (year, month, day) = (self.0.year(), self.0.month(), self.0.day());
        let digit = |number: i16, place: i16| b'0' + u8::try_from(number / place % 10).unwrap_or_default();
        let [y, m, d] = [year, month.into(), day.into()];
        let text = [
            [digit(y, 1000), digit(y, 100), digit(y, 10), digit(y, 1), b'-'],
            [digit(m, 10), digit(m, 1), b'-', digit(d, 10), digit(d, 1)],
        ];
        match str::from_utf8(text.as_flattened()) {
            Ok(text) if year >= 0 => f.write_str(text),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl serde::Serialize for Day {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl schemars::JsonSchema for Day {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Day".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date"})
    }
}

/// A day and the time that it takes: from `start` until just before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaySpan {
    /// The date.
    pub day: Day,
    /// The first instant of the day.
    pub start: LedgerTime,
    /// The first instant after the day, when allowances are whole again.
    pub end: LedgerTime,
}

impl DaySpan {
    /// Whether `time` lies in the day.
    #[must_use]
    pub fn contains(&self, time: LedgerTime) -> bool {
        self.start <= time && time < self.end
    }
}

/// Three days in a row, for a ledger that picks the day by a clock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    /// The day before today.
    pub yesterday: DaySpan,
    /// The day of the moment asked for.
    pub today: DaySpan,
    /// The day after today.
    pub tomorrow: DaySpan,
}

impl Days {
    /// The day that `time` belongs to; `None` if it is none of the three.
    #[must_use]
    pub fn pick(&self, time: LedgerTime) -> Option<DaySpan> {
        [self.yesterday, self.today, self.tomorrow].into_iter().find(|span| span.contains(time))
    }
}

/// A reset zone that is not in the time zone database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0:?}: give an IANA name such as \"UTC\" or \"Europe/Berlin\"")]
pub struct UnknownZone(pub String);

/// The time zone in whose midnight allowances are whole again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetZone(TimeZone);

impl ResetZone {
    /// UTC, the default.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The zone of an IANA name, in any letter case.
    ///
    /// # Errors
    /// [`UnknownZone`] if the database has no such name.
    pub fn parse(name: &str) -> Result<Self, UnknownZone> {
        TimeZone::get(name).map(Self).map_err(|_| UnknownZone(name.to_owned()))
    }

    /// The day of `now` and its two neighbours. Moments beyond the year 9998 count as its end.
    #[must_use]
    pub fn days(&self, now: LedgerTime) -> Days {
        let now = now.min(LAST_MOMENT);
        // The civil date may be one off where midnight came twice or not at all: the spans decide.
        let civil = Day(timestamp(now).to_zoned_datetime(self.0.clone()).date());
        let mut today = self.span(civil);
        while now < today.start {
            today = self.before(today);
        }
        while today.end <= now {
            today = self.after(today);
        }
        Days { yesterday: self.before(today), today, tomorrow: self.after(today) }
    }

    fn before(&self, span: DaySpan) -> DaySpan {
        let earlier = self.span(span.day.plus(-1));
        // Nothing starts before the epoch, so a day there may be empty without having been skipped.
        if earlier.start < earlier.end || earlier.end == LedgerTime(0) { earlier } else { self.before(earlier) }
    }

    fn after(&self, span: DaySpan) -> DaySpan {
        let later = self.span(span.day.plus(1));
        if later.start < later.end { later } else { self.after(later) }
    }

    fn span(&self, day: Day) -> DaySpan {
        DaySpan { day, start: self.start_of(day), end: self.start_of(day.plus(1)) }
    }

    fn start_of(&self, day: Day) -> LedgerTime {
        let noon = day.0.at(12, 0, 0, 0).to_zoned_datetime(self.0.clone());
        let start = noon.and_then(|noon| noon.start_of_day()).expect("days are bounded by LAST_MOMENT");
        LedgerTime(u64::try_from(start.timestamp().as_millisecond()).unwrap_or(0))
    }
}

/// 9998-12-31T00:00:00Z: far enough from the end of the calendar for a neighbour on each side.
const LAST_MOMENT: LedgerTime = LedgerTime(253_370_678_400_000);

fn timestamp(time: LedgerTime) -> Timestamp {
    let ms = i64::try_from(time.0).expect("bounded by LAST_MOMENT");
    Timestamp::from_millisecond(ms).expect("bounded by LAST_MOMENT")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn at(text: &str) -> LedgerTime {
        let time: Timestamp = text.parse().expect(text);
        LedgerTime(u64::try_from(time.as_millisecond()).expect("after the epoch"))
    }

    fn days(zone: &str, now: &str) -> Days {
        ResetZone::parse(zone).expect(zone).days(at(now))
    }

    #[test]
    fn a_day_lasts_from_its_first_instant_to_that_of_the_next() {
        for (zone, now, day, start, hours) in [
            ("UTC", "2026-11-29T00:00:00Z", "2026-11-29", "2026-11-29T00:00:00Z", 24),
            ("UTC", "2026-11-28T23:59:59.999Z", "2026-11-28", "2026-11-28T00:00:00Z", 24),
            ("Asia/Kolkata", "2026-11-28T18:30:00Z", "2026-11-29", "2026-11-28T18:30:00Z", 24),
            // Clocks go forward and back in the night.
            ("Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29", "2026-03-28T23:00:00Z", 23),
            ("Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-25", "2026-10-24T22:00:00Z", 25),
            // Midnight itself does not exist: the day begins at one o'clock.
            ("America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06", "2026-09-06T04:00:00Z", 23),
            // Clocks go back at midnight: the hour before it comes twice.
            ("America/Santiago", "2026-04-05T03:30:00Z", "2026-04-04", "2026-04-04T03:00:00Z", 25),
            // Midnight comes twice: the day begins with the first.
            ("America/Havana", "2026-11-01T12:00:00Z", "2026-11-01", "2026-11-01T04:00:00Z", 25),
            // A minute after midnight clocks went back into the day before: the new day goes on.
            ("America/Goose_Bay", "2010-11-07T03:30:00Z", "2010-11-07", "2010-11-07T03:00:00Z", 25),
            // The day before was skipped.
            ("Pacific/Apia", "2011-12-31T00:00:00Z", "2011-12-31", "2011-12-30T10:00:00Z", 24),
        ] {
            let today = days(zone, now).today;
            assert_eq!((today.day.to_string().as_str(), today.start), (day, at(start)), "{zone} {now}");
            assert_eq!(today.end.since(today.start), hours * HOUR, "{zone} {now}");
            assert!(today.contains(at(now)) && !today.contains(today.end), "{zone} {now}");
        }
    }

    #[test]
    fn neighbours_touch_and_a_skipped_date_is_no_neighbour() {
        for (zone, now, yesterday, tomorrow) in [
            ("UTC", "2026-03-01T10:00:00Z", "2026-02-28", "2026-03-02"),
            ("Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28", "2026-03-30"),
            ("Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-28", "2011-12-31"),
            ("Pacific/Apia", "2011-12-30T11:00:00Z", "2011-12-29", "2012-01-01"),
        ] {
            let days = days(zone, now);
            assert_eq!(days.yesterday.day.to_string(), yesterday, "{zone} {now}");
            assert_eq!(days.tomorrow.day.to_string(), tomorrow, "{zone} {now}");
            assert_eq!(days.yesterday.end, days.today.start, "{zone} {now}");
            assert_eq!(days.today.end, days.tomorrow.start, "{zone} {now}");
        }
    }

    #[test]
    fn every_moment_of_three_days_is_picked_and_no_other() {
        let days = days("Europe/Berlin", "2026-10-25T12:00:00Z");
        assert_eq!(days.pick(days.yesterday.start), Some(days.yesterday));
        assert_eq!(days.pick(LedgerTime(days.today.start.0 - 1)), Some(days.yesterday));
        assert_eq!(days.pick(days.today.start), Some(days.today));
        assert_eq!(days.pick(LedgerTime(days.today.end.0 - 1)), Some(days.today));
        assert_eq!(days.pick(days.today.end), Some(days.tomorrow));
        assert_eq!(days.pick(days.tomorrow.end), None);
        assert_eq!(days.pick(LedgerTime(days.yesterday.start.0 - 1)), None);
    }

    #[test]
    fn days_tile_a_century_of_hours() {
        for zone in ["America/Goose_Bay", "America/Toronto", "Pacific/Apia", "America/Santiago", "Africa/Monrovia"] {
            let zone = ResetZone::parse(zone).expect(zone);
            let mut today = zone.days(LedgerTime(0)).today;
            while today.start < at("2040-01-01T00:00:00Z") {
                let next = zone.days(today.end).today;
                assert_eq!(next.start, today.end, "{today:?}");
                assert!(next.day > today.day, "{today:?}");
                today = next;
            }
        }
    }

    #[test]
    fn the_ends_of_time_have_a_day() {
        for now in [LedgerTime(0), LedgerTime(u64::MAX)] {
            for zone in ["UTC", "Pacific/Kiritimati", "America/Adak"] {
                let days = ResetZone::parse(zone).expect(zone).days(now);
                assert!(days.yesterday.day < days.today.day && days.today.day < days.tomorrow.day);
            }
        }
    }

    #[test]
    fn a_zone_is_named_as_iana_does() {
        assert_eq!(ResetZone::parse("europe/berlin"), ResetZone::parse("Europe/Berlin"));
        for name in ["", "Mars/Olympus", "+02:00", "Europe", "../UTC"] {
            let refused = ResetZone::parse(name).expect_err(name).to_string();
            assert!(refused.contains(&format!("{name:?}")) && refused.contains("IANA"), "{refused}");
        }
    }

    #[test]
    fn a_day_is_written_and_read_in_one_form() {
        assert_eq!(Day::parse("2026-11-29").map(|day| day.to_string()).as_deref(), Some("2026-11-29"));
        for text in ["", "2026-1-2", "20261129", "2026-02-30", "2026-11-29T00", " 2026-11-2", "+002026-11"] {
            assert_eq!(Day::parse(text), None, "{text:?}");
        }
        let day = Day::parse("2026-03-01").expect("valid");
        assert_eq!(day.plus(-1).to_string(), "2026-02-28");
        assert!(day.plus(i64::MIN) < day && day < day.plus(i64::MAX));
        for days in (-4_000_000..4_000_000).step_by(997) {
            let day = day.plus(days);
            assert_eq!(day.to_string(), day.0.to_string());
        }
    }
}
