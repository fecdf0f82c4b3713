//! What the books say when all is over, against what the clients counted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::books::Books;
use crate::clients::{CLIENTS, Manner, Read, get};
use crate::harm::{Blow, Harm};
use crate::scene::{CREDIT, LEASE, Scene};

/// W: how long a reserve may be under way. Nothing sets it, so it is the protocol's.
const ADMISSION: Duration = Duration::from_secs(10);
/// For calls that wait for their next attempt when the harm ends.
const SLACK: Duration = Duration::from_secs(5);
/// A client may still be reading what was handed out, and settled, so long before.
const ON_THE_WIRE: Duration = Duration::from_secs(5);

/// The lines of one id: outcome and charge.
type Lines = Vec<(String, i64)>;

pub(crate) struct Verdict {
    reads: Vec<Read>,
    /// By request, then by reservation.
    lines: HashMap<String, BTreeMap<String, Lines>>,
    redis: bool,
}

impl Verdict {
    /// Waits until nothing is reserved (I7), verifies the books (I2, I3), and takes the audit.
    pub(crate) async fn of(scene: &Scene, reads: Vec<Read>) -> Self {
        let begun = scene.json("/v1/quota").await;
        let last = settled(scene).await;
        let mut lines = HashMap::<String, BTreeMap<String, Lines>>::new();
        let mut days: Vec<_> = [&begun, &last].map(|quota| quota["day"].as_str().unwrap()).into();
        days.dedup();
        for day in days {
            let mut charged = 0;
            for entry in audit(scene, day).await {
                let word = |name: &str| entry[name].as_str().unwrap().to_owned();
                let line = (word("outcome"), entry["charged_bytes"].as_i64().unwrap());
                charged += line.1;
                lines.entry(word("request_id")).or_default().entry(word("id")).or_default().push(line);
            }
            let sums = verify(scene, day).await;
            assert_eq!(sums["charged_bytes"], charged, "I3: {sums}");
        }
        Self { reads, lines, redis: !matches!(scene.books, Books::Embedded) }
    }

    fn charged(&self, read: &Read) -> u64 {
        let lines = self.lines.get(&read.request).into_iter().flatten().flat_map(|(_, lines)| lines);
        lines.map(|(_, charged)| charged).sum::<i64>().try_into().expect("no read is charged less than nothing")
    }

    fn uncovered(&self) -> impl Iterator<Item = &Read> {
        self.reads.iter().filter(|read| self.charged(read) < read.received)
    }

    fn count(&self, outcome: &str) -> usize {
        self.lines.values().flatten().flat_map(|(_, lines)| lines).filter(|(of, _)| of == outcome).count()
    }

    /// I4 and I5 for every read; and that the harm did harm.
    ///
    /// Where a failover lost calls that were answered, a read of which all that mattered was lost is
    /// charged too little: it ended before the failover. Every other one is covered.
    pub(crate) fn check(&self, harm: &Harm, blow: &Blow) {
        for read in self.uncovered() {
            let covered =
                || format!("I4: {read:?} is charged {}: {:?}", self.charged(read), self.lines.get(&read.request));
            let Some((from, to)) = blow.lost else { panic!("{}", covered()) };
            assert!(from <= read.ended && read.ended <= to + ON_THE_WIRE, "{} {:?}", covered(), (from, to));
        }
        for read in &self.reads {
            let Some(ids) = self.lines.get(&read.request) else { continue };
            assert!(self.charged(read) <= read.size, "{read:?}: {ids:?}");
            for lines in ids.values() {
                let (ends, rest): (Vec<_>, Vec<_>) = lines.iter().partition(|(outcome, _)| outcome != "corrected");
                let raised = ends.len() == 2 && ends.iter().any(|(outcome, _)| outcome == "expired");
                let raised = raised && ends.iter().any(|(outcome, _)| outcome == "unreserved");
                assert!(ends.len() == 1 || raised && rest.is_empty(), "I5: {read:?}: {lines:?}");
                assert!(rest.len() <= 1 && rest.iter().all(|(_, charged)| *charged < 0), "I5: {read:?}: {lines:?}");
                assert!(rest.is_empty() || ends[0].0 == "expired", "I5: {read:?}: {lines:?}");
                if ends[0].0 == "completed" {
                    assert_eq!(ends[0].1, i64::try_from(read.size).unwrap(), "I4: {read:?}: {lines:?}");
                }
            }
        }
        let many_grants = self.reads.iter().filter(|read| read.received > CREDIT);
        assert!(many_grants.count() > 10, "there were downloads of many grants");
        match harm {
            Harm::Killed => assert!(self.count("expired") > 0, "a dead service's leases expire"),
            Harm::Stopped if self.redis => assert!(self.count("expired") > 0, "another service expired its leases"),
            Harm::FailsOverBehind => {
                assert!(self.count("unreserved") > 0, "reservations that were lost surface");
                assert!(self.count("expired") + self.uncovered().count() > 0, "settles were lost");
            }
            _ => {}
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.reads.iter().filter(|read| read.whole()).count();
        let received: u64 = self.reads.iter().map(|read| read.received).sum();
        let charged: u64 = self.reads.iter().map(|read| self.charged(read)).sum();
        write!(f, "{} asked, {whole} came whole, {received} bytes received, {charged} charged; ", self.reads.len())?;
        let [expired, corrected, unreserved] =
            ["expired", "corrected", "unreserved"].map(|outcome| self.count(outcome));
        write!(f, "{expired} expired, {corrected} corrected, {unreserved} unreserved; ")?;
        let missing: u64 = self.uncovered().map(|read| read.received - self.charged(read)).sum();
        write!(f, "{} reads lost {missing} bytes", self.uncovered().count())
    }
}

/// I7: a lease and W after the last call nothing is reserved. Answers the quota.
async fn settled(scene: &Scene) -> Value {
    let give_up = Instant::now() + LEASE + ADMISSION + SLACK;
    loop {
        let quota = scene.json("/v1/quota").await;
        if quota["open_reservations"] == 0 {
            assert_eq!(quota["reserved_bytes"], 0, "I7: {quota}");
            return quota;
        }
        assert!(Instant::now() < give_up, "I7: {quota}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// I2 and I3, as the ledger itself recounts them.
async fn verify(scene: &Scene, day: &str) -> Value {
    let sums = scene.json(&format!("/v1/quota/audit/verify?day={day}")).await;
    assert_eq!(
        (&sums["balanced"], &sums["leases"], &sums["reserved_bytes"]),
        (&true.into(), &0.into(), &0.into()),
        "{sums}"
    );
    sums
}

async fn audit(scene: &Scene, day: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = scene.json(&format!("/v1/quota/audit?limit=100&day={day}{cursor}")).await;
        entries.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { return entries };
        cursor = format!("&cursor={next}");
    }
}

/// I1, with what the harm left in the books: more is asked for than there is room, and at no moment
/// used and reserved exceed the allowance.
pub(crate) async fn fits(scene: &mut Scene) {
    let room = 6 << 20;
    let allowance = scene.json("/v1/quota").await["used_bytes"].as_u64().unwrap() + room;
    scene.allow(allowance).await;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (addresses, files, key) = (scene.addresses(), scene.files.clone(), scene.key.clone());
        clients.spawn(async move {
            let mut statuses = Vec::new();
            for n in 0..12 {
                // From the largest of the quick ones to the smallest.
                let file = &files[files.len() - 2 - n % (files.len() - 2)];
                let address = addresses[(n + client) % addresses.len()];
                let (status, _) = get(address, &key, file, &format!("{client}-{n}"), Manner::Whole, || ()).await;
                statuses.push(status);
            }
            statuses
        });
    }
    let mut statuses = Vec::new();
    while !clients.is_empty() {
        let quota = scene.json("/v1/quota").await;
        let taken = quota["used_bytes"].as_u64().unwrap() + quota["reserved_bytes"].as_u64().unwrap();
        assert!(taken <= allowance, "I1: {quota}");
        while let Some(done) = clients.try_join_next() {
            statuses.extend(done.unwrap());
        }
    }
    for wanted in [200, 429] {
        assert!(statuses.contains(&wanted), "{wanted} in {statuses:?}");
    }
    let quota = settled(scene).await;
    assert!(quota["used_bytes"].as_u64().unwrap() <= allowance, "I1: {quota}");
    verify(scene, quota["day"].as_str().unwrap()).await;
}
