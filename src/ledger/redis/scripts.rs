//! The scripts: one per transition, each put together from what it shares with others.
//!
//! Every script begins with its flags and the clock, and has the numbers of the rules in it. A script
//! that may not fail for want of memory (it ends something, and so frees memory in the end) says
//! `allow-oom`; the server turns every other writing script away before its first line when memory is
//! full.

use crate::ledger::{Allowance, MAX_AMOUNT, Policy};

/// A script and the digest that a server knows it by.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) code: String,
    pub(super) sha: String,
}

/// Every script of a ledger. The file of the same name in `lua/` says keys, arguments and replies.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) reserves: Script,
    pub(super) settles: Script,
    /// Both together.
    pub(super) calls: Script,
    pub(super) extend: Script,
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

/// What most calls of a kind do without, as a function. A script makes its functions anew each time that it
/// runs, and each costs, the more the more it holds on to; this one holds on to nothing.
macro_rules! seldom {
    ($function:literal, $($name:literal),+) => {
        concat!("local function ", $function, "\n", lua!($($name),+), "end\n")
    };
}

const OF_RESERVE: &str = seldom!(
    "seldom_reserves(now, base, today, resets_at, allowance, bound)",
    "whole",
    "record",
    "account",
    "roll",
    "charge",
    "expiry",
    "links",
    "flag",
    "days",
    "failed",
    "refusal"
);
const OF_SETTLE: &str = concat!(
    seldom!(
        "seldom_settles(now, base, today)",
        "kept",
        "whole",
        "record",
        "account",
        "roll",
        "charge",
        "failed",
        "late"
    ),
    seldom!("roll_up(now, start, rolled)", "whole", "roll", "roll_all")
);

impl Scripts {
    /// The scripts for a policy. `clock_of_tests` takes the time from the caller instead of the
    /// server.
    pub(super) fn new(policy: &Policy, clock_of_tests: bool) -> Self {
        let clock = if clock_of_tests { lua!("clock_of_tests") } else { lua!("clock") };
        let last_argument = if clock_of_tests { "#ARGV - 1" } else { "#ARGV" };
        let mut numbers = numbers(policy).to_vec();
        numbers.push(("LAST_ARGUMENT", last_argument.to_owned()));
        let script = |flags: &str, body: &str| {
            let code =
                numbers.iter().fold(format!("{flags}{clock}{body}"), |code, (name, number)| code.replace(name, number));
            Script { sha: redis::Script::new(&code).get_hash().to_owned(), code }
        };
        let reserves = [lua!("allowed"), OF_RESERVE, lua!("reserve")].concat();
        let settles = [OF_SETTLE, lua!("settle")].concat();
        let make = |calls: &[&str]| [lua!("today"), &calls.concat(), lua!("each")].concat();
        Self {
            reserves: script(WRITES, &make(&[&reserves])),
            settles: script(ENDS, &make(&[&settles])),
            calls: script(WRITES, &make(&[&reserves, &settles])),
            extend: script(ENDS, lua!("today", "whole", "record", "extend")),
            usage: script(
                ENDS,
                lua!("today", "whole", "record", "account", "roll", "charge", "expiry", "allowed", "usage"),
            ),
            history: script(
                ENDS,
                lua!("today", "whole", "record", "account", "roll", "charge", "expiry", "allowed", "history"),
            ),
            page: script(ENDS, lua!("today", "kept", "whole", "record", "account", "roll", "charge", "expiry", "page")),
            tally: script(
                ENDS,
                lua!("today", "kept", "whole", "record", "account", "roll", "charge", "expiry", "tally"),
            ),
            adjust: script(WRITES, lua!("today", "kept", "whole", "record", "account", "roll", "charge", "adjust")),
            set_allowance: script(WRITES, lua!("today", "whole", "record", "flag", "set_allowance")),
            get_allowance: script(READS, lua!("today", "get_allowance")),
            record_link: script(WRITES, lua!("today", "whole", "record", "links", "record_link")),
            list_links: script(ENDS, lua!("today", "whole", "record", "links", "list_links")),
            revoke_link: script(ENDS, lua!("today", "whole", "record", "links", "revoke_link")),
            peek: script(READS, lua!("today", "whole", "record", "peek")),
            expire: script(ENDS, lua!("today", "whole", "record", "account", "roll", "charge", "expiry", "expire")),
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

/// What is written in a script for each name, longer names before those that they contain. A local each
/// would cost more: every function that uses it would hold on to it.
fn numbers(policy: &Policy) -> [(&'static str, String); 13] {
    let rules = &policy.rules;
    let (allowance, bound) = match policy.allowance {
        Allowance::Unlimited => ("unlimited".to_owned(), MAX_AMOUNT),
        Allowance::Bytes(bytes) => (bytes.to_string(), bytes.min(MAX_AMOUNT)),
    };
    let text = |number: &dyn std::fmt::Display| format!("'{number}'");
    [
        ("UNRESERVED_MS", rules.unreserved_ms.to_string()),
        ("TOMBSTONE_MS", rules.tombstone_ms.to_string()),
        ("LEASE_MS", rules.lease_ms.to_string()),
        ("MARK_LIVES_MS", text(&(rules.tombstone_ms + MARK_SLACK_MS))),
        ("KEEP_MS", text(&keep_ms(rules.retention_days))),
        ("CREDIT", rules.credit_bytes.to_string()),
        ("SWEEP_IN_RESERVE", rules.sweep_in_reserve.to_string()),
        ("SWEEP_BATCH", rules.sweep_batch.to_string()),
        ("MAX_ENTRIES", rules.max_entries.to_string()),
        ("MAX", MAX_AMOUNT.to_string()),
        ("BOUND", bound.to_string()),
        // How an account ends that is on the list and has no override, as `account.lua` says.
        ("PLAIN", text(&format!("10{allowance}"))),
        ("ALLOWANCE", text(&allowance)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{ResetZone, Rules};

    #[test]
    fn a_running_service_has_no_script_that_takes_the_time_from_its_caller() {
        let policy = Policy { rules: Rules::default(), allowance: Allowance::Unlimited, zone: ResetZone::UTC };
        let scripts = Scripts::new(&policy, false);
        for script in [&scripts.calls, &scripts.reserves, &scripts.settles, &scripts.expire, &scripts.look] {
            assert!(script.code.contains("redis.call('TIME')"));
            assert!(!script.code.contains("ARGV[#ARGV]"));
        }
        assert!(Scripts::new(&policy, true).calls.code.contains("ARGV[#ARGV]"));
    }

    #[test]
    fn every_number_is_in_its_place() {
        let policy = Policy { rules: Rules::default(), allowance: Allowance::Bytes(77), zone: ResetZone::UTC };
        let Scripts { calls, usage, .. } = Scripts::new(&policy, false);
        for (name, _) in numbers(&policy) {
            assert!([&calls, &usage].iter().all(|script| !script.code.contains(name)), "{name}");
        }
        let entries = policy.rules.max_entries;
        assert!(calls.code.contains(&format!("of.lines >= {entries} and")), "the longer name goes first");
        assert!([calls, usage].iter().all(|script| script.code.contains("return '77', '0'")));
    }

    #[test]
    fn keys_of_a_day_outlive_its_retention() {
        // Made in the first moment of tomorrow's account, a day ahead; read in the last of its last kept day.
        assert!(keep_ms(35) > (1 + 1 + 35) * 24 * 3_600_000);
    }
}
