//! Calls of several projects that go in one script.

use artifactd::ledger::{Admission, Ledger, Reserve, Settle, Settlement};

use super::together::Own;
use crate::support::{self, DAY, NOON, id, project};

const PROJECTS: u64 = 40;

/// The project of the nth call.
fn name(n: u64) -> String {
    format!("p{}", n % PROJECTS)
}

/// What the nth call reserves, and what it is charged.
fn amounts(n: u64) -> (u64, u64) {
    (10 + n % PROJECTS, 1 + n % PROJECTS)
}

fn reserve(n: u64, not_after: u64) -> Reserve {
    Reserve { project: project(&name(n)), ..support::reserve(n.into(), amounts(n).0, not_after) }
}

fn settle(n: u64) -> Settle {
    let (size, actual) = amounts(n);
    Settle { project: project(&name(n)), ..support::settle(n.into(), actual, size, NOON) }
}

/// How many scripts the server has run by their digests.
pub(super) fn scripts(own: &Own) -> u32 {
    let stats = own.ask(&["INFO", "commandstats"]);
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Projects share scripts; what breaks one leaves the others as they are.
#[tokio::test]
async fn projects_go_together_and_fail_alone() {
    let own = Own::new(1000);
    let day = own.ledger.usage(&project("p")).await.unwrap().reply.day;
    let key = |n: u64, key: &str| own.key(key).replace("{p}", &format!("{{{}}}", name(n)));
    // All are on the sweeper's list, and the scripts are known.
    for n in 0..PROJECTS {
        own.ledger.reserve(&reserve(n, NOON)).await.unwrap();
        own.ledger.settle(&settle(n)).await.unwrap();
    }
    own.ask(&["SET", &key(7, &format!("{day}:account")), &"x".repeat(60)]);
    own.ask(&["DEL", &key(8, &format!("{day}:due"))]);
    own.ask(&["SET", &key(8, &format!("{day}:due")), "x"]);

    let (before, calls) = (scripts(&own), PROJECTS..4 * PROJECTS);
    let answers = own.reserves(calls.clone().map(|n| reserve(n, NOON)).collect()).await;
    // Two go by themselves; the others wait, and go 64 at a time.
    assert!(scripts(&own) - before <= 4, "{} scripts for {calls:?}", scripts(&own) - before);
    let mut open = Vec::new();
    for (n, answer) in calls.zip(answers) {
        match (n % PROJECTS, answer) {
            (7, Err(error)) => assert!(error.to_string().contains("what is stored is no account"), "{error}"),
            (8, Err(error)) => assert!(error.to_string().contains("WRONGTYPE"), "{error}"),
            (_, Ok(Admission::Reserved(_, standing))) => {
                let (size, used) = amounts(n);
                assert_eq!((standing.used, standing.reserved), (used, size * (n / PROJECTS)), "{n}");
                open.push(n);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(open.len(), 3 * 38);
    let broken = 9 + PROJECTS;
    let record = key(broken, &format!("id:{}", id(broken.into())));
    own.ask(&["DEL", &record]);
    own.ask(&["LPUSH", &record, "x"]);

    let before = scripts(&own);
    let answers = own.settles(open.iter().map(|n| settle(*n)).collect()).await;
    assert!(scripts(&own) - before <= 4, "{} scripts for {} calls", scripts(&own) - before, open.len());
    for (n, answer) in open.into_iter().zip(answers) {
        match answer {
            Err(error) => assert!(n == broken && error.to_string().contains("WRONGTYPE"), "{n}: {error}"),
            Ok(charged) => assert_eq!(charged, Settlement::Settled(amounts(n).1), "{n}"),
        }
    }
    for n in (0..PROJECTS).filter(|n| ![7, 8, 9].contains(n)) {
        let sums = own.ledger.verify(&project(&name(n)), None).await.unwrap().reply;
        assert!(sums.balanced(), "{n}: {sums:?}");
        assert_eq!((sums.used, sums.reserved), (4 * amounts(n).1, 0), "{n}");
    }
}

/// The scripts that several projects share do nothing for any of them on a day that is over.
#[tokio::test]
async fn projects_that_go_together_learn_of_a_new_day_together() {
    let own = Own::new(100);
    for n in 0..PROJECTS {
        own.ledger.reserve(&reserve(n, NOON)).await.unwrap();
    }
    own.clock.step(DAY);
    let calls = (PROJECTS..3 * PROJECTS).map(|n| {
        let mut call = reserve(n, NOON + DAY);
        call.size = 60;
        call
    });
    let answers = own.reserves(calls.collect()).await;
    let admitted = answers.iter().filter(|answer| matches!(answer, Ok(Admission::Reserved(..)))).count();
    let refused = answers.iter().filter(|answer| matches!(answer, Ok(Admission::Refused(_)))).count();
    assert_eq!((admitted, refused), (40, 40), "{answers:?}");
    for n in 0..PROJECTS {
        let sums = own.ledger.verify(&project(&name(n)), None).await.unwrap().reply;
        assert_eq!((sums.used, sums.reserved), (0, 60));
    }
}
