//! Amounts at the edges of 32 bits and of what every reader of numbers holds exactly.

use artifactd::ledger::{
    Adjust, Adjustment, Admission, Allowance, AuditFilter, Extension, MAX_AMOUNT, Policy, RefusalReason, Settlement,
};

use super::Subject;
use crate::support::{self, policy, project};

type Open = fn(Policy) -> Subject;

const AMOUNTS: [u64; 6] = [0, 1, u32::MAX as u64, 1 << 32, MAX_AMOUNT - 1, MAX_AMOUNT];

fn unlimited() -> Policy {
    Policy { allowance: Allowance::Unlimited, ..policy(0) }
}

impl Subject {
    async fn refused(&self, n: u128, size: u64) -> RefusalReason {
        match self.reserve(n, size).await {
            Admission::Refused(refusal) => {
                assert_eq!(refusal.requested_bytes, size);
                refusal.reason
            }
            other => panic!("{size}: {other:?}"),
        }
    }
}

pub(crate) async fn every_amount_is_exact(open: Open) {
    for amount in AMOUNTS {
        let it = open(unlimited());
        let lease = it.lease(1, amount).await;
        assert_eq!(lease.grant, amount.min(it.ledger.rules().credit_bytes));
        assert_eq!(it.sums().await, (0, amount));
        let Extension::Reserved(lease) = it.extend(1, amount).await else { panic!("{amount}") };
        assert_eq!(lease.grant, amount);
        let settled = it.settle(1, amount, amount).await;
        assert_eq!((settled, it.settle(1, 0, amount).await), (Settlement::Settled(amount), settled));
        assert_eq!(it.sums().await, (amount, 0));
        let page = it.ledger.audit(&project("p"), None, &AuditFilter::default(), None, 9).await.unwrap().reply;
        let charge = i64::try_from(amount).unwrap();
        assert_eq!((page.entries[0].size, page.entries[0].charged, page.total_charged), (amount, charge, charge));
        assert_eq!(it.verify().await.used, amount);
    }
    let it = open(unlimited());
    for (n, above) in (1..).zip([MAX_AMOUNT + 1, 1 << 54, u64::MAX]) {
        assert_eq!(it.refused(n, above).await, RefusalReason::TooLarge);
    }
    assert_eq!(it.verify().await.used, 0);
}

pub(crate) async fn every_allowance_is_exact(open: Open) {
    for amount in AMOUNTS {
        // By default, and by an override.
        for default in [Allowance::Bytes(amount), Allowance::Unlimited] {
            let it = open(Policy { allowance: default, ..policy(0) });
            let set = support::endless(Allowance::Bytes(amount));
            if default == Allowance::Unlimited {
                it.ledger.set_allowance(&project("p"), Some(&set)).await.unwrap();
                assert_eq!(it.ledger.allowance(&project("p")).await.unwrap().reply, Some(set));
            }
            assert_eq!(it.usage().await.allowance, Allowance::Bytes(amount));
            assert_eq!(it.refused(1, amount + 1).await, RefusalReason::TooLarge);
            it.lease(2, amount).await;
            assert_eq!(it.usage().await.remaining(), Some(0));
            if amount > 0 {
                assert_eq!(it.refused(3, 1).await, RefusalReason::Busy);
                it.settle(2, amount - 1, amount).await;
                it.lease(4, 1).await;
                it.settle(4, 1, 1).await;
                assert_eq!(it.refused(5, 1).await, RefusalReason::Spent);
            }
            // What weighs nothing always fits.
            it.lease(6, 0).await;
            assert_eq!(it.sums().await, (amount, 0));
            it.verify().await;
        }
    }
}

pub(crate) async fn nothing_and_everything_are_different(open: Open) {
    let (none, all) = (open(policy(0)), open(unlimited()));
    assert_eq!((none.usage().await.remaining(), all.usage().await.remaining()), (Some(0), None));
    assert_eq!(
        (none.usage().await.allowance, all.usage().await.allowance),
        (Allowance::Bytes(0), Allowance::Unlimited)
    );
    assert_eq!(none.refused(1, 1).await, RefusalReason::TooLarge);
    all.lease(1, 1).await;
    none.lease(2, 0).await;
    all.lease(2, MAX_AMOUNT - 1).await;
    // Also what has no bound is counted, and numbers end.
    assert_eq!(all.refused(3, 1).await, RefusalReason::Busy);
    assert_eq!((none.sums().await, all.sums().await), ((0, 0), (0, MAX_AMOUNT)));
}

pub(crate) async fn corrections_are_exact(open: Open) {
    let it = open(unlimited());
    let day = it.usage().await.day;
    let most = i64::try_from(MAX_AMOUNT).unwrap();
    let (mut n, mut used) = (0, 0);
    for (bytes, applied) in [
        (0, 0),
        (1, 1),
        (1 << 32, 1 << 32),
        (-1, -1),
        (most, most - (1 << 32)),
        (most, 0),
        (-most, -most),
        (-1, 0),
        (i64::from(u32::MAX), i64::from(u32::MAX)),
    ] {
        n += 1;
        used += applied;
        let (project, by, reason) = (project("p"), "op".to_owned(), String::new());
        let call = Adjust { project, id: n.to_string(), day, bytes, by, reason };
        assert_eq!(it.ledger.adjust(&call).await.unwrap().reply, Adjustment::Applied(applied), "{bytes}");
        assert_eq!(it.sums().await, (u64::try_from(used).unwrap(), 0), "{bytes}");
    }
    assert_eq!(it.verify().await.entries, n);
}
