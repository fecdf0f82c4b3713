//! The scripts: one per transition, each put together from what it shares with others.
//!
//! Every script begins with its flags, the numbers of the rules, and the clock. A script that may not
//! fail for want of memory (it ends something, and so frees memory in the end) says `allow-oom`; the
//! server turns every other writing script away before its first line when memory is full.

use crate::ledger::{Allowance, Policy};

/// A script and the digest that a server knows it by.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) code: String,
    pub(super) sha: String,
}

/// Every script of a ledger. The file of the same name in `lua/` says keys, arguments and replies.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) reserve: Script,
    pub(super) extend: Script,
    pub(super) settle: Script,
    pub(super) usage: Script,
    pub(super) history: Script,
    pub(super) page: Script,
    pub(super) tally: Script,
    pub(super) adjust: Script,
    pub(super) set_allowance: Script,
    pub(super) get_allowance: Script,
    pub(super) record_link: Script,
    pub(super) list_links: Script,
    pub(super) revoke_link: Script,
    pub(super) peek: Script,
    pub(super) expire: Script,
    pub(super) register: Script,
    pub(super) look: Script,
    pub(super) postpone: Script,
    pub(super) time: Script,
    pub(super) identity: Script,
}

const WRITES: &str = "#!lua\n";
const ENDS: &str = "#!lua flags=allow-oom\n";
const READS: &str = "#!lua flags=no-writes\n";

/// The text of a file in `lua/`, one after the other.
macro_rules! lua {
    ($($name:literal),+) => { concat!($(include_str!(concat!("lua/", $name, ".lua"))),+) };
}

/// What reserving seldom needs, made only when it does: a script makes its functions anew each time that
/// it runs, and each costs as much as a command.
const SELDOM: &str =
    concat!("local function seldom()\n", lua!("charge", "expiry", "links"), "return sweep, link\nend\n");

impl Scripts {
    /// The scripts for a policy. `clock_of_tests` takes the time from the caller instead of the
    /// server.
    pub(super) fn new(policy: &Policy, clock_of_tests: bool) -> Self {
        let clock = if clock_of_tests { lua!("clock_of_tests") } else { lua!("clock") };
        let head = format!("{}{clock}", numbers(policy));
        let script = |flags: &str, body: &str| {
            let code = format!("{flags}{head}{body}");
            Script { sha: redis::Script::new(&code).get_hash().to_owned(), code }
        };
        Self {
            reserve: script(
                WRITES,
                &[lua!("today", "record", "account", "allowed", "room"), SELDOM, lua!("failed", "reserve")].concat(),
            ),
            extend: script(ENDS, lua!("today", "record", "extend")),
            settle: script(ENDS, lua!("today", "record", "account", "charge", "failed", "settle")),
            usage: script(ENDS, lua!("today", "record", "account", "charge", "expiry", "allowed", "usage")),
            history: script(ENDS, lua!("today", "record", "account", "charge", "expiry", "allowed", "history")),
            page: script(ENDS, lua!("today", "record", "account", "charge", "expiry", "page")),
            tally: script(ENDS, lua!("today", "record", "account", "charge", "expiry", "tally")),
            adjust: script(WRITES, lua!("today", "record", "account", "charge", "adjust")),
            set_allowance: script(WRITES, lua!("today", "record", "set_allowance")),
            get_allowance: script(READS, lua!("today", "get_allowance")),
            record_link: script(WRITES, lua!("today", "record", "links", "record_link")),
            list_links: script(ENDS, lua!("today", "record", "links", "list_links")),
            revoke_link: script(ENDS, lua!("today", "record", "links", "revoke_link")),
            peek: script(READS, lua!("today", "record", "peek")),
            expire: script(ENDS, lua!("today", "record", "account", "charge", "expiry", "expire")),
            register: script(WRITES, lua!("register")),
            look: script(READS, lua!("look")),
            postpone: script(ENDS, lua!("postpone")),
            time: script(READS, lua!("time")),
            identity: script(WRITES, lua!("identity")),
        }
    }
}

/// How long the keys of a day live at the least, ms: beyond the day itself, the retention, and a day
/// of either clock change.
fn keep_ms(retention_days: u32) -> u64 {
    const LONG_DAY_MS: u64 = 25 * 3_600_000;
    (u64::from(retention_days) + 2) * LONG_DAY_MS
}

/// How much longer than its last moment a mark lives: the moment decides, not the key's end.
const MARK_SLACK_MS: u64 = 1000;

fn numbers(policy: &Policy) -> String {
    let rules = &policy.rules;
    let allowance = match policy.allowance {
        Allowance::Unlimited => "unlimited".to_owned(),
        Allowance::Bytes(bytes) => bytes.to_string(),
    };
    format!(
        "local LEASE_MS, UNRESERVED_MS, TOMBSTONE_MS, MARK_LIVES_MS, KEEP_MS = {}, {}, {}, '{}', '{}'\n\
         local CREDIT, SWEEP_IN_RESERVE, SWEEP_BATCH, MAX_ENTRIES = {}, {}, {}, {}\n\
         local ALLOWANCE = '{allowance}'\n",
        rules.lease_ms,
        rules.unreserved_ms,
        rules.tombstone_ms,
        rules.tombstone_ms + MARK_SLACK_MS,
        keep_ms(rules.retention_days),
        rules.credit_bytes,
        rules.sweep_in_reserve,
        rules.sweep_batch,
        rules.max_entries,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{ResetZone, Rules};

    #[test]
    fn a_running_service_has_no_script_that_takes_the_time_from_its_caller() {
        let policy = Policy { rules: Rules::default(), allowance: Allowance::Unlimited, zone: ResetZone::UTC };
        let scripts = Scripts::new(&policy, false);
        for script in [&scripts.reserve, &scripts.settle, &scripts.expire, &scripts.look] {
            assert!(script.code.contains("redis.call('TIME')"));
            assert!(!script.code.contains("ARGV[#ARGV]"));
        }
        assert!(Scripts::new(&policy, true).reserve.code.contains("ARGV[#ARGV]"));
    }

    #[test]
    fn keys_of_a_day_outlive_its_retention() {
        // Made in the first moment of tomorrow's account, a day ahead; read in the last of its last kept day.
        assert!(keep_ms(35) > (1 + 1 + 35) * 24 * 3_600_000);
    }
}
