//! What lies in Redis: every key in its project's slot, every key with an end.

use std::collections::BTreeSet;

use artifactd::artifact::{ArtifactName, TrialId};
use artifactd::ledger::{
    Adjust, Allowance, Clock, Extend, Ledger, LedgerTime, Link, LinkId, Override, Policy, Reserve, Rules, Settle,
};

use crate::redis::{on_shared_server, options};
use crate::servers::redis::{ask, server, shared_cluster, url};
use crate::support::{self, DAY, ManualClock, NOON, id, policy, project};
use artifactd::ledger::redis::Redis;

/// The keys of a server and how long each lives, ms; without those that end while they are looked at.
fn keys(port: u16) -> Vec<(String, i64)> {
    let keys = ask(port, &["KEYS", "*"]);
    let lives = |key: &str| ask(port, &["PTTL", key]).parse().unwrap();
    keys.lines()
        .filter(|key| !key.is_empty())
        .map(|key| (key.to_owned(), lives(key)))
        .filter(|(_, lives)| *lives != -2)
        .collect()
}

#[tokio::test]
async fn every_key_ends_and_lies_in_the_slot_of_its_project() {
    let own = server(&[]);
    let port = own.address.port();
    let base = policy(100);
    let policy = Policy { rules: Rules { max_entries: 1, ..base.rules.clone() }, ..base };
    let clock = ManualClock::at(NOON);
    let options = artifactd::ledger::redis::Options { namespace: "artifactd".to_owned(), ..options() };
    let ledger = Redis::open_with_clock(&url(port), policy, options, clock.clone()).unwrap();
    let p = project("a:b");
    let reserve = |n, size| Reserve { project: p.clone(), ..support::reserve(n, size, NOON + 10_000) };
    let settle = |n, actual| Settle { project: p.clone(), ..support::settle(n, actual, 50, NOON) };
    let today = ledger.usage(&p).await.unwrap().reply.day;

    let ends = |what: &str| {
        let keys = keys(port);
        assert!(keys.iter().all(|(_, lives)| *lives > 0), "after {what}: {keys:?}");
        keys.into_iter().map(|(key, _)| key).collect::<BTreeSet<_>>()
    };
    ledger.reserve(&reserve(1, 50)).await.unwrap();
    ends("reserve");
    ledger.extend(Extend { project: &p, id: id(1), grant: 20, asked: LedgerTime(NOON) }).await.unwrap();
    ends("extend");
    ledger.reserve(&reserve(2, 200)).await.unwrap();
    ends("a refusal");
    ledger.settle(&settle(1, 5)).await.unwrap();
    ends("settle");
    for n in 3..6 {
        ledger.reserve(&reserve(n, 10)).await.unwrap();
        ledger.settle(&settle(n, 5)).await.unwrap();
    }
    ends("rolling up");
    ledger.settle(&settle(9, 5)).await.unwrap();
    ends("an unreserved settle");
    let adjust = Adjust {
        project: p.clone(),
        id: "{odd}".to_owned(),
        day: today.plus(-1),
        bytes: 5,
        by: "op".to_owned(),
        reason: String::new(),
    };
    ledger.adjust(&adjust).await.unwrap();
    ends("an adjustment");
    ledger.reserve(&reserve(10, 5)).await.unwrap();
    clock.step(ledger.rules().lease_ms);
    assert_eq!(ledger.sweep().await.unwrap().reply, 1);
    ends("a sweep");
    let until = Some(LedgerTime(NOON + 3_600_000));
    let set = Override { allowance: Allowance::Unlimited, until, by: "op".to_owned(), reason: String::new() };
    ledger.set_allowance(&p, Some(&set)).await.unwrap();
    let all = ends("an override with an end");

    let link = |n, lives_ms| Link {
        id: LinkId(uuid::Uuid::from_u128(n)),
        key_id: "k".to_owned(),
        trial: TrialId::parse("t").unwrap(),
        artifact: ArtifactName::parse("a").unwrap(),
        expires: LedgerTime(clock.now_ms() + lives_ms),
    };
    ledger.record_link(&p, &link(1, 3_600_000)).await.unwrap();
    // A shorter one does not shorten the lists.
    ledger.record_link(&p, &link(2, 1000)).await.unwrap();
    assert!(keys(port).iter().filter(|(key, _)| key.contains(":links")).all(|(_, lives)| *lives > 3_600_000));
    let mut all: BTreeSet<_> = all.into_iter().chain(ends("a link")).collect();
    assert!(ledger.revoke_link(&p, link(2, 0).id).await.unwrap().reply);
    all.extend(ends("a revocation"));

    let slot = |key: &str| ask(shared_cluster()[0], &["CLUSTER", "KEYSLOT", key]);
    let of_project: BTreeSet<_> = all.iter().filter(|key| *key != "artifactd:1:projects").collect();
    assert!(of_project.len() > 12, "{all:?}");
    assert!(of_project.iter().all(|key| key.starts_with("artifactd:1:{a:b}:")), "{all:?}");
    assert_eq!(of_project.iter().map(|key| slot(key)).collect::<BTreeSet<_>>().len(), 1, "{all:?}");

    // The one thing that must not end by itself.
    ledger.set_allowance(&p, Some(&Override { until: None, ..set })).await.unwrap();
    let endless: Vec<_> = keys(port).into_iter().filter(|(_, lives)| *lives <= 0).collect();
    assert_eq!(endless, [("artifactd:1:{a:b}:allowance".to_owned(), -1)]);
}

#[tokio::test]
async fn nothing_ends_before_its_time() {
    let own = server(&[]);
    let port = own.address.port();
    let base = policy(100);
    let policy = Policy { rules: Rules { max_entries: 1, ..base.rules.clone() }, ..base };
    let ledger = Redis::open_with_clock(&url(port), policy, options(), ManualClock::at(NOON)).unwrap();
    let begun = std::time::Instant::now();
    let (p, rules) = (project("p"), ledger.rules().clone());
    for n in 1..=4 {
        ledger.reserve(&support::reserve(n, 20, NOON + rules.admission_ms)).await.unwrap();
    }
    ledger.reserve(&support::reserve(5, 50, NOON + rules.admission_ms)).await.unwrap();
    for n in 1..=3 {
        ledger.settle(&support::settle(n, 5, 20, NOON)).await.unwrap();
    }
    let day = ledger.usage(&p).await.unwrap().reply.day;
    let (by, reason) = ("op".to_owned(), String::new());
    let adjust =
        Adjust { project: p.clone(), id: "a".to_owned(), day, bytes: 5, by: by.clone(), reason: reason.clone() };
    ledger.adjust(&adjust).await.unwrap();
    let until = Some(LedgerTime(NOON + 3_600_000));
    let set = Override { allowance: Allowance::Unlimited, until, by, reason };
    ledger.set_allowance(&p, Some(&set)).await.unwrap();

    // An open lease ends by its settle or by the sweep, and by nothing else: it stays as long as its day.
    let kept = u64::from(rules.retention_days) * DAY;
    let least = [
        (format!("id:{}", id(1)), rules.tombstone_ms),
        (format!("id:{}", id(4)), kept),
        (format!("id:{}", id(5)), rules.admission_ms),
        (format!("{day}:account"), kept),
        (format!("{day}:due"), kept),
        (format!("{day}:lines"), kept),
        (format!("{day}:rolled"), kept),
        (":days".to_owned(), kept),
        ("adjustment:a".to_owned(), kept),
        (":allowance".to_owned(), 3_600_000),
        (":projects".to_owned(), kept),
    ];
    let keys = keys(port);
    for (name, least) in &least {
        let (_, lives) = keys.iter().find(|(key, _)| key.ends_with(name)).expect(name);
        let lived = u64::try_from(begun.elapsed().as_millis()).unwrap();
        assert!(u64::try_from(*lives).unwrap() + lived >= *least, "{name} ends in {lives} ms");
    }
    assert_eq!(keys.len(), least.len() + 2, "every kind of key is in the table: {keys:?}");
}

#[tokio::test]
async fn a_long_read_keeps_the_books_of_its_day() {
    let own = server(&[]);
    let port = own.address.port();
    let clock = ManualClock::at(NOON);
    let ledger = Redis::open_with_clock(&url(port), policy(100), options(), clock.clone()).unwrap();
    ledger.reserve(&support::reserve(1, 50, NOON)).await.unwrap();
    for (key, _) in keys(port) {
        ask(port, &["PEXPIRE", &key, "100000"]);
    }
    let p = project("p");
    ledger.extend(Extend { project: &p, id: id(1), grant: 20, asked: LedgerTime(NOON) }).await.unwrap();
    let short: Vec<_> =
        keys(port).into_iter().filter(|(key, lives)| *lives <= 100_000 && !key.ends_with("projects")).collect();
    assert_eq!(short, []);
}

#[tokio::test]
async fn a_project_of_yesterday_stays_on_the_sweepers_list() {
    let (own, clock) = (server(&[]), ManualClock::at(NOON));
    let options = options();
    let open =
        || Redis::open_with_clock(&url(own.address.port()), policy(100), options.clone(), clock.clone()).unwrap();
    let (reader, sweeper) = (open(), open());
    let (midnight, lease_ms) = (NOON + DAY / 2, reader.rules().lease_ms);
    clock.set(midnight - 1000);
    reader.reserve(&support::reserve(1, 10, u64::MAX)).await.unwrap();
    reader.settle(&support::settle(1, 10, 10, midnight - 1000)).await.unwrap();
    clock.set(midnight + lease_ms);
    assert_eq!(sweeper.sweep().await.unwrap().reply, 0);
    // The clock is set back, and who reads still takes the project for listed.
    clock.set(midnight - 500);
    reader.reserve(&support::reserve(2, 10, u64::MAX)).await.unwrap();
    clock.set(midnight + 3 * lease_ms);
    assert_eq!(sweeper.sweep().await.unwrap().reply, 1);
}

#[tokio::test]
async fn namespaces_are_apart() {
    let clock = ManualClock::at(NOON);
    let one = on_shared_server(policy(100), clock.clone());
    let other = on_shared_server(policy(100), clock);
    one.reserve(&support::reserve(1, 50, NOON)).await.unwrap();
    assert_eq!(one.usage(&project("p")).await.unwrap().reply.reserved, 50);
    assert_eq!(other.usage(&project("p")).await.unwrap().reply.reserved, 0);
}
