//! Many callers, many projects.

use std::sync::Arc;

use artifactd::ledger::{Admission, Extend, Extension, Policy, Reserve, Rules, Settle, Settlement};
use tokio::task::JoinSet;

use super::Subject;
use crate::support::{self, DAY, NOON, id, policy, project};

type Open = fn(Policy) -> Subject;

pub(crate) async fn parallel_reserves_fit(open: Open) {
    let it = open(policy(1000));
    let mut calls = JoinSet::new();
    for n in 0..64 {
        let ledger = Arc::clone(&it.ledger);
        calls.spawn(async move { (n, ledger.reserve(&support::reserve(n, 30, NOON + 1)).await.unwrap().reply) });
    }
    let (mut admitted, mut refused) = (Vec::new(), 0);
    while let Some(answer) = calls.join_next().await {
        match answer.unwrap() {
            (n, Admission::Reserved(..)) => admitted.push(n),
            (_, Admission::Refused(refusal)) => {
                assert!(refusal.used_bytes + refusal.reserved_bytes + 30 > 1000, "{refusal:?}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((admitted.len(), refused), (33, 31));
    assert_eq!(it.sums().await, (0, 990));
    for n in admitted {
        let ledger = Arc::clone(&it.ledger);
        calls.spawn(async move { (n, ledger.reserve(&support::reserve(n, 30, NOON + 1)).await.unwrap().reply) });
        assert_eq!(it.settle(n, 25, 30).await, Settlement::Settled(25));
    }
    assert_eq!(it.sums().await, (33 * 25, 0));
    assert_eq!(it.usage().await.refused, 31);
    assert_eq!(it.verify().await.entries, 33);
}

pub(crate) async fn parallel_repeats_charge_once(open: Open) {
    let it = open(policy(100));
    let mut calls = JoinSet::new();
    for _ in 0..16 {
        let ledger = Arc::clone(&it.ledger);
        calls.spawn(async move {
            let admitted = ledger.reserve(&support::reserve(1, 40, NOON + 1)).await.unwrap().reply;
            let settled = ledger.settle(&support::settle(1, 25, 40, NOON)).await.unwrap().reply;
            (admitted, settled)
        });
    }
    while let Some(answer) = calls.join_next().await {
        let (admitted, settled) = answer.unwrap();
        assert!(matches!(admitted, Admission::Reserved(..) | Admission::Settled), "{admitted:?}");
        assert_eq!(settled, Settlement::Settled(25));
    }
    assert_eq!(it.sums().await, (25, 0));
    assert_eq!(it.verify().await.entries, 1);
}

pub(crate) async fn projects_are_apart(open: Open) {
    let it = open(policy(100));
    for (name, size) in [("p", 100), ("q", 70), ("a:b", 5)] {
        let call = Reserve { project: project(name), ..support::reserve(1, size, NOON + 1) };
        assert!(matches!(it.ledger.reserve(&call).await.unwrap().reply, Admission::Reserved(..)), "{name}");
    }
    for (name, size) in [("p", 100), ("q", 70), ("a:b", 5), ("a", 0)] {
        let sums = it.verify_of(&project(name)).await;
        assert_eq!((sums.reserved, sums.leases), (size, u64::from(size > 0)), "{name}");
    }
    it.settle(1, 3, 100).await;
    assert_eq!(it.ledger.usage(&project("q")).await.unwrap().reply.reserved, 70);
}

/// Many callers in many projects at once, each project with an allowance for two of its three.
pub(crate) async fn parallel_projects_are_charged_apart(open: Open) {
    const PROJECTS: usize = 21;
    let it = open(policy(2 * 70));
    let mut calls = JoinSet::new();
    for n in 0..3 * PROJECTS {
        let (ledger, project) = (Arc::clone(&it.ledger), project(&format!("p{}", n % PROJECTS)));
        calls.spawn(async move {
            let (n, size) = (n as u128, 50 + (n % PROJECTS) as u64);
            let call = Reserve { project: project.clone(), ..support::reserve(n, size, NOON + 1) };
            match ledger.reserve(&call).await.unwrap().reply {
                Admission::Reserved(_, standing) => {
                    assert!(standing.used + standing.reserved <= 140 && standing.reserved % size == 0, "{standing:?}");
                }
                Admission::Refused(refusal) => {
                    assert_eq!(refusal.used_bytes + refusal.reserved_bytes, 2 * size, "{refusal:?}");
                    return None;
                }
                other => panic!("{other:?}"),
            }
            Some((project, n, size))
        });
    }
    let admitted: Vec<_> = calls.join_all().await.into_iter().flatten().collect();
    assert_eq!(admitted.len(), 2 * PROJECTS);
    let mut calls = JoinSet::new();
    for (project, n, size) in admitted {
        let ledger = Arc::clone(&it.ledger);
        calls.spawn(async move {
            let call = Settle { project, ..support::settle(n, size - 1, size, NOON) };
            assert_eq!(ledger.settle(&call).await.unwrap().reply, Settlement::Settled(size - 1));
        });
    }
    calls.join_all().await;
    for n in 0..PROJECTS {
        let sums = it.verify_of(&project(&format!("p{n}"))).await;
        assert_eq!((sums.used, sums.reserved, sums.entries), (2 * (49 + n as u64), 0, 2), "{n}");
    }
}

pub(crate) async fn sweeping_goes_through_all_projects(open: Open) {
    let it = open(policy(100));
    for n in 0..7 {
        let project = project(["p", "q", "r"][usize::try_from(n % 3).unwrap()]);
        let call = Reserve { project, ..support::reserve(n, 20, u64::MAX) };
        it.ledger.reserve(&call).await.unwrap();
        it.step(DAY / 6);
    }
    let mut expired = Vec::new();
    for _ in 0..4 {
        expired.push(it.ledger.sweep().await.unwrap().reply);
    }
    assert_eq!(expired, [3, 3, 1, 0]);
    let old = it.usage().await.day.plus(-1);
    for name in ["p", "q", "r"] {
        let sums = it.ledger.verify(&project(name), Some(old)).await.unwrap().reply;
        assert!(sums.balanced() && sums.reserved == 0 && sums.used > 0, "{name} {sums:?}");
    }
}

pub(crate) async fn a_full_sweep_leaves_nothing_reserved(open: Open) {
    let it = open(policy(100));
    for n in 1..=10 {
        it.lease(n, 10).await;
    }
    it.step(it.ledger.rules().lease_ms + it.ledger.rules().admission_ms);
    assert_eq!(it.sums().await, (100, 0));
    assert_eq!(it.usage().await.open, 0);
    it.verify().await;
}

/// Leases are due, the sweeper comes, and their owners extend them in that moment.
pub(crate) async fn what_was_extended_is_not_swept(open: Open) {
    const LEASES: u128 = 64;
    let base = policy(1 << 20);
    let it = open(Policy { rules: Rules { sweep_batch: 64, ..base.rules.clone() }, ..base });
    for round in 1..=8 {
        let ids: Vec<_> = (round * LEASES..(round + 1) * LEASES).collect();
        for n in &ids {
            it.lease(*n, 30).await;
        }
        it.step(it.ledger.rules().lease_ms);
        let asked = it.ledger.now().await.unwrap();
        let mut calls = JoinSet::new();
        for n in ids {
            let ledger = Arc::clone(&it.ledger);
            calls.spawn(async move {
                let (p, id) = (project("p"), id(n));
                (n, ledger.extend(Extend { project: &p, id, grant: 20, asked }).await.unwrap().reply)
            });
            if n % LEASES == LEASES / 8 {
                let ledger = Arc::clone(&it.ledger);
                calls.spawn(async move {
                    ledger.sweep().await.unwrap();
                    (0, Extension::Ended)
                });
            }
        }
        while let Some(answer) = calls.join_next().await {
            if let (n, Extension::Reserved(lease)) = answer.unwrap() {
                assert_eq!(it.reserve(n, 30).await.lease(), Some(lease), "{n}: granted, and taken away");
                assert_eq!(it.settle(n, 20, 30).await, Settlement::Settled(20));
            }
        }
        it.verify().await;
    }
}
