//! The contract of a ledger: every row and rule of the transition table, asked through the trait.
//!
//! A ledger runs the suite by `contract!(open)`, where `open(Policy) -> Subject` gives it an empty
//! one. Time passes by [`Subject::step`] alone.

mod audit;
mod days;
mod links;
mod numbers;
mod rows;
mod together;

use std::sync::Arc;

use artifactd::artifact::ProjectId;
use artifactd::ledger::{
    Admission, Embedded, Extend, Extension, Lease, Ledger, Policy, Settlement, Usage, Verification,
};

use crate::redis;
use crate::support::{self, ManualClock, MemoryLedger, NOON, id, project};

/// A ledger under test and its clock, which stands at noon when it is opened.
pub(crate) struct Subject {
    ledger: Arc<dyn Ledger>,
    clock: ManualClock,
    /// Whatever must live as long as the ledger.
    _keep: Box<dyn std::any::Any>,
}

impl Subject {
    fn step(&self, ms: u64) {
        self.clock.step(ms);
    }

    async fn now(&self) -> u64 {
        self.ledger.now().await.unwrap().0
    }

    async fn reserve(&self, n: u128, size: u64) -> Admission {
        let not_after = self.now().await + self.ledger.rules().admission_ms;
        self.reserve_by(n, size, not_after).await
    }

    async fn reserve_by(&self, n: u128, size: u64, not_after: u64) -> Admission {
        self.ledger.reserve(&support::reserve(n, size, not_after)).await.unwrap().reply
    }

    async fn lease(&self, n: u128, size: u64) -> Lease {
        match self.reserve(n, size).await {
            Admission::Reserved(lease, _) => lease,
            other => panic!("{other:?}"),
        }
    }

    async fn extend(&self, n: u128, grant: u64) -> Extension {
        let asked = self.ledger.now().await.unwrap();
        let call = Extend { project: &project("p"), id: id(n), grant, asked };
        self.ledger.extend(call).await.unwrap().reply
    }

    async fn settle(&self, n: u128, actual: u64, size: u64) -> Settlement {
        let call = support::settle(n, actual, size, self.now().await);
        self.ledger.settle(&call).await.unwrap().reply
    }

    async fn usage(&self) -> Usage {
        self.ledger.usage(&project("p")).await.unwrap().reply
    }

    async fn sums(&self) -> (u64, u64) {
        let usage = self.usage().await;
        (usage.used, usage.reserved)
    }

    async fn verify_of(&self, project: &ProjectId) -> Verification {
        let sums = self.ledger.verify(project, None).await.unwrap().reply;
        assert!(sums.balanced(), "{sums:?}");
        sums
    }

    async fn verify(&self) -> Verification {
        self.verify_of(&project("p")).await
    }
}

/// One test per case, run on the ledger that `$open` gives.
macro_rules! contract {
    ($open:path) => {
        contract! { $open;
            rows: reserving_holds_and_settling_charges, the_default_allowance_may_change, a_known_id_answers_its_present_state,
                a_refusal_says_why_and_is_remembered, a_late_call_is_stale, again_until_all_due_are_swept,
                extending_raises_and_never_lowers, expiry_charges_the_grant_and_a_late_settle_corrects,
                a_settle_may_exceed_the_grant, unknown_settles, a_release_overtakes_its_reserve,
                tombstones_end, a_day_ends_in_mid_read, amounts_have_a_bound, replies_carry_the_time;
            audit: pages_and_totals, what_a_settle_says_of_an_open_lease_counts_for_nothing, filters,
                every_character_survives, overrides, adjustments, history_of_the_kept_days, what_is_foreseen_happens,
                roll_up, retention;
            days: a_day_begins_at_midnight, a_download_across_midnight_is_charged_to_the_day_of_its_admission,
                a_clock_set_back_across_midnight_leaves_no_lease_behind;
            numbers: every_amount_is_exact, every_allowance_is_exact, nothing_and_everything_are_different,
                corrections_are_exact;
            links: a_revoked_or_unknown_link_admits_nothing, live_links_are_listed_by_id, links_end;
            together: parallel_reserves_fit, parallel_repeats_charge_once, parallel_projects_are_charged_apart, projects_are_apart,
                sweeping_goes_through_all_projects, a_full_sweep_leaves_nothing_reserved,
                what_was_extended_is_not_swept;
        }
    };
    ($open:path; $($module:ident: $($case:ident),*;)*) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            crate::contract::$module::$case($open).await;
        }
    )*)*};
}

fn embedded(policy: Policy) -> Subject {
    let clock = ManualClock::at(NOON);
    let directory = tempfile::tempdir().unwrap();
    let ledger = Embedded::open(directory.path().join("ledger.db"), policy, clock.clone()).unwrap();
    Subject { ledger: Arc::new(ledger), clock, _keep: Box::new(directory) }
}

fn memory(policy: Policy) -> Subject {
    let clock = ManualClock::at(NOON);
    Subject { ledger: Arc::new(MemoryLedger::new(policy, clock.clone())), clock, _keep: Box::new(()) }
}

mod on_embedded {
    contract!(super::embedded);
}

mod on_memory {
    contract!(super::memory);
}

fn redis_single(policy: Policy) -> Subject {
    let clock = ManualClock::at(NOON);
    let ledger = redis::on_shared_server(policy, clock.clone());
    Subject { ledger: Arc::new(ledger), clock, _keep: Box::new(()) }
}

fn redis_cluster(policy: Policy) -> Subject {
    let clock = ManualClock::at(NOON);
    let ledger = redis::on_shared_cluster(policy, clock.clone());
    Subject { ledger: Arc::new(ledger), clock, _keep: Box::new(()) }
}

mod on_redis {
    contract!(super::redis_single);
}

mod on_redis_cluster {
    contract!(super::redis_cluster);
}
