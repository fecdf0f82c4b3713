//! Midnight in zones whose clocks change, and in one that is not whole hours from UTC.

use artifactd::ledger::{
    Admission, Allowance, AuditFilter, Extension, LedgerTime, Outcome, Policy, ResetZone, Settle, Settlement,
};

use super::Subject;
use crate::support::{self, id, policy, project};

type Open = fn(Policy) -> Subject;

/// A zone; the last day before a midnight, which is an instant; the hours of the day that it begins.
const MIDNIGHTS: [(&str, &str, &str, u64); 11] = [
    ("UTC", "2026-12-31", "2027-01-01T00:00:00Z", 24),
    ("Europe/Berlin", "2026-12-01", "2026-12-01T23:00:00Z", 24),
    ("Europe/Berlin", "2027-03-27", "2027-03-27T23:00:00Z", 23),
    ("Europe/Berlin", "2027-03-28", "2027-03-28T22:00:00Z", 24),
    ("Europe/Berlin", "2027-10-30", "2027-10-30T22:00:00Z", 25),
    ("Europe/Berlin", "2027-10-31", "2027-10-31T23:00:00Z", 24),
    ("America/New_York", "2027-03-13", "2027-03-14T05:00:00Z", 23),
    ("America/New_York", "2027-03-14", "2027-03-15T04:00:00Z", 24),
    ("America/New_York", "2027-11-06", "2027-11-07T04:00:00Z", 25),
    ("America/New_York", "2027-11-07", "2027-11-08T05:00:00Z", 24),
    ("Asia/Kathmandu", "2026-12-01", "2026-12-01T18:15:00Z", 24),
];

const HOUR: u64 = 3_600_000;

/// A ledger of that zone and 100 bytes a day, a millisecond before midnight; and midnight.
fn just_before(open: Open, zone: &str, midnight: &str) -> (Subject, u64) {
    let it = open(Policy { zone: ResetZone::parse(zone).unwrap(), ..policy(100) });
    let midnight = midnight.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let midnight = u64::try_from(midnight).unwrap();
    it.clock.set(midnight - 1);
    (it, midnight)
}

pub(crate) async fn a_day_begins_at_midnight(open: Open) {
    for (zone, day, text, hours) in MIDNIGHTS {
        let (it, midnight) = just_before(open, zone, text);
        let yesterday = it.lease(1, 100).await.day;
        assert_eq!(yesterday.to_string(), day, "{zone} {text}");
        let Admission::Refused(refusal) = it.reserve(2, 1).await else { panic!("{zone} {text}") };
        assert_eq!(refusal.resets_at, LedgerTime(midnight), "{zone} {text}");
        assert_eq!(it.usage().await.resets_at, LedgerTime(midnight), "{zone} {text}");
        it.step(1);
        let usage = it.usage().await;
        assert_eq!((usage.day, usage.used, usage.reserved), (yesterday.plus(1), 0, 0), "{zone} {text}");
        assert_eq!(usage.resets_at, LedgerTime(midnight + hours * HOUR), "{zone} {text}");
        assert_eq!(it.lease(3, 100).await.day, yesterday.plus(1), "{zone} {text}");
        it.settle(3, 100, 100).await;
        // The whole of the new day is one day, however many hours it has.
        it.clock.set(midnight + hours * HOUR - 1);
        assert_eq!(it.sums().await, (100, 0), "{zone} {text}");
        it.step(1);
        assert_eq!((it.usage().await.day, it.sums().await), (yesterday.plus(2), (0, 0)), "{zone} {text}");
        it.verify().await;
    }
}

pub(crate) async fn a_download_across_midnight_is_charged_to_the_day_of_its_admission(open: Open) {
    for (zone, _, text, _) in MIDNIGHTS {
        let (it, midnight) = just_before(open, zone, text);
        let p = project("p");
        let yesterday = it.lease(1, 50).await.day;
        it.lease(2, 30).await;
        let lost = Settle { id: id(3), day: Some(yesterday), ..support::settle(3, 9, 20, midnight) };
        it.step(it.ledger.rules().lease_ms - 1);
        let Extension::Reserved(lease) = it.extend(1, 40).await else { panic!("{zone} {text}") };
        assert_eq!((lease.day, lease.grant), (yesterday, 40), "{zone} {text}");
        // One settles, one is lost sight of, and one is known to nobody but its caller.
        assert_eq!(it.settle(1, 37, 50).await, Settlement::Settled(37), "{zone} {text}");
        it.step(1);
        it.ledger.sweep().await.unwrap();
        assert_eq!(it.ledger.settle(&lost).await.unwrap().reply, Settlement::Settled(9), "{zone} {text}");
        assert_eq!(it.sums().await, (0, 0), "{zone} {text}: nothing of it today");
        let page = it.ledger.audit(&p, Some(yesterday), &AuditFilter::default(), None, 9).await.unwrap().reply;
        let lines: Vec<_> = page.entries.iter().map(|entry| (entry.outcome, entry.charged)).collect();
        let wanted = [(Outcome::Unreserved, 9), (Outcome::Expired, 10), (Outcome::Completed, 37)];
        assert_eq!((page.day, lines), (yesterday, wanted.to_vec()), "{zone} {text}");
        assert_eq!(it.settle(2, 4, 30).await, Settlement::Settled(4), "{zone} {text}");
        let sums = it.ledger.verify(&p, Some(yesterday)).await.unwrap().reply;
        assert!(sums.balanced(), "{zone} {text} {sums:?}");
        assert_eq!((sums.used, sums.reserved, sums.entries), (37 + 9 + 4, 0, 4), "{zone} {text}");
        assert_eq!((it.sums().await, it.usage().await.allowance), ((0, 0), Allowance::Bytes(100)), "{zone} {text}");
    }
}

pub(crate) async fn a_clock_set_back_across_midnight_leaves_no_lease_behind(open: Open) {
    for (reads_today, sweeps) in [(false, true), (true, false), (true, true)] {
        let (it, midnight) = just_before(open, "UTC", MIDNIGHTS[0].2);
        let lease_ms = it.ledger.rules().lease_ms;
        let yesterday = it.lease(1, 10).await.day;
        it.settle(1, 10, 10).await;
        it.clock.set(midnight + lease_ms);
        if reads_today {
            it.lease(2, 10).await;
            it.settle(2, 10, 10).await;
        }
        if sweeps {
            assert_eq!(it.ledger.sweep().await.unwrap().reply, 0);
        }
        it.clock.set(midnight - 500);
        assert_eq!(it.lease(3, 10).await.day, yesterday);
        // Nobody asks for yesterday: only the sweeper finds it.
        it.clock.set(midnight + 3 * lease_ms);
        assert_eq!(it.ledger.sweep().await.unwrap().reply, 1, "{reads_today} {sweeps}");
        let sums = it.ledger.verify(&project("p"), Some(yesterday)).await.unwrap().reply;
        assert!(sums.balanced() && sums.reserved == 0 && sums.used == 20, "{sums:?}");
    }
}
