//! What lies in Redis and is none of what the ledger stores: an error, never a zero, and left as it is.

use artifactd::ledger::{Admission, Allowance, AuditFilter, Ledger, Settlement};

use super::together::Own;
use crate::support::{self, id, project};

/// Writes six numbers and a text as an account.
const WRITE: &str =
    "return redis.call('SET', KEYS[1], struct.pack('>I8I8I8I8I8I8', unpack(ARGV, 1, 6)) .. ARGV[7], 'KEEPTTL')";
const READ: &str = "return {struct.unpack('>I8I8I8I8I8I8', redis.call('GET', KEYS[1]))}";

impl Own {
    /// Which of these fail: usage, history, audit, verify.
    async fn questions_fail(&self) -> [bool; 4] {
        let p = project("p");
        [
            self.ledger.usage(&p).await.is_err(),
            self.ledger.history(&p, 2).await.is_err(),
            self.ledger.audit(&p, None, &AuditFilter::default(), None, 9).await.is_err(),
            self.ledger.verify(&p, None).await.is_err(),
        ]
    }
}

#[tokio::test]
async fn an_account_with_a_number_that_is_none() {
    let own = Own::new(100);
    own.reserve(1, 20).await.unwrap();
    own.reserve(2, 30).await.unwrap();
    own.settle(2, 3, 30).await.unwrap();
    let key = own.day("account").await;
    // Reserved, open, used, counted, lines, refused.
    let sound = ["20", "1", "3", "1", "1", "0"];
    assert_eq!(own.ask(&["EVAL", READ, "1", &key]).split_whitespace().take(6).collect::<Vec<_>>(), sound);
    let write = |numbers: [&str; 6], tail: &str| {
        own.ask(&[&["EVAL", WRITE, "1", &key], &numbers[..], &[tail]].concat());
    };
    for place in 0..6 {
        let mut numbers = sound;
        numbers[place] = "9007199254740992";
        write(numbers, "10100");
        let before = own.ask(&["GET", &key]);
        assert_eq!(own.questions_fail().await, [true; 4], "{place}");
        // A reserve looks at the first three, a settle at the first five: at what they change.
        assert_eq!(own.reserve(3, 1).await.is_err(), place < 3, "{place}");
        assert_eq!(own.settle(1, 1, 20).await.is_err(), place < 5, "{place}");
        if place < 3 {
            assert_eq!(own.ask(&["GET", &key]), before, "{place}: left as it is");
            assert_eq!(own.ask(&["EXISTS", &own.record(3)]), "0");
            assert!(own.ask(&["GET", &own.record(1)]).starts_with('R'));
        }
        // As it was.
        for key in [own.record(1), own.record(3), key.clone(), own.day_of(&key, "due"), own.day_of(&key, "lines")] {
            own.ask(&["DEL", &key]);
        }
        own.ask(&["DEL", &own.record(2)]);
        own.reserve(1, 20).await.unwrap();
        own.reserve(2, 30).await.unwrap();
        own.settle(2, 3, 30).await.unwrap();
    }
    for tail in ["", "1", "10", "20100", "12100", "x", "10 100", "10100 "] {
        write(sound, tail);
        assert_eq!(own.questions_fail().await, [true; 4], "{tail:?}");
        assert!(own.reserve(3, 1).await.is_err(), "{tail:?}");
        assert_eq!(own.ask(&["EXISTS", &own.record(3)]), "0", "{tail:?}");
    }
    for text in ["", "0", "20 1 3 1 1 0 1 100", &"0".repeat(49), &"9".repeat(60)] {
        own.ask(&["SET", &key, text]);
        assert_eq!(own.questions_fail().await, [true; 4], "{text:?}");
        assert!(own.reserve(4, 1).await.is_err(), "{text:?}");
        assert!(own.settle(1, 1, 20).await.is_err(), "{text:?}");
        assert_eq!(own.ask(&["GET", &key]), text, "left as it is");
    }
    write(sound, "10100");
    assert_eq!(own.sums().await, (3, 20, 1), "none of the calls that failed has left a trace");
}

impl Own {
    /// The key beside this account.
    fn day_of(&self, account: &str, name: &str) -> String {
        account.replace(":account", &format!(":{name}"))
    }
}

#[tokio::test]
async fn an_override_or_a_record_that_is_none() {
    let own = Own::new(100);
    own.reserve(1, 20).await.unwrap();
    own.ledger.set_allowance(&project("p"), Some(&support::endless(Allowance::Bytes(90)))).await.unwrap();
    for text in ["", "x", "100", "100 never x"] {
        own.ask(&["SET", &own.key("allowance"), text]);
        assert!(own.reserve(2, 1).await.is_err(), "{text:?}");
        assert_eq!(own.ask(&["EXISTS", &own.record(2)]), "0", "{text:?}");
    }
    own.ask(&["DEL", &own.key("allowance")]);
    for text in ["", "R", "Q 2026-11-29 1 1 1 ", "R 2026-11-29 x 1 1 ", "S 2026-11-29 1 1"] {
        own.ask(&["SET", &own.record(3), text]);
        assert!(own.reserve(3, 1).await.is_err(), "{text:?}");
        assert!(own.settle(3, 1, 1).await.is_err(), "{text:?}");
        assert_eq!(own.ask(&["GET", &own.record(3)]), text.trim_end());
    }
    assert_eq!(own.sums().await, (0, 20, 1));
}

#[tokio::test]
async fn lines_that_cannot_be_rolled_up() {
    let own = Own::rolling_up(1000, 1);
    for n in 1..=4 {
        own.reserve(n, 10).await.unwrap();
    }
    own.settle(1, 1, 10).await.unwrap();
    let (key, aside) = (own.day("rolled").await, own.key("aside"));
    own.ask(&["SET", &key, "x"]);
    let before = own.ask(&["GET", &own.record(2)]);
    assert!(own.settle(2, 2, 10).await.is_err());
    assert_eq!(own.ask(&["GET", &own.record(2)]), before);
    assert_eq!(own.sums().await, (1, 30, 3));
    own.ask(&["RENAME", &key, &aside]);
    for n in 2..=4 {
        assert_eq!(own.settle(n, 2, 10).await.unwrap(), Settlement::Settled(2));
    }
    assert_eq!(own.sums().await, (7, 0, 0));
}

/// Where a list is something else, nothing is reserved or settled; once it is gone, everything is.
#[tokio::test]
async fn lists_that_are_none() {
    for (name, reserves) in [("due", false), ("lines", true)] {
        let own = Own::new(100);
        own.reserve(1, 20).await.unwrap();
        own.reserve(9, 1).await.unwrap();
        own.settle(9, 1, 1).await.unwrap();
        let (key, aside) = (own.day(name).await, own.key("aside"));
        let before = own.ask(&["GET", &own.record(1)]);
        own.ask(&["RENAME", &key, &aside]);
        own.ask(&["SET", &key, "x"]);
        assert_eq!(own.reserve(2, 5).await.is_ok(), reserves, "{name}");
        assert_eq!(own.ask(&["EXISTS", &own.record(2)]) == "1", reserves, "{name}");
        assert!(own.settle(1, 7, 20).await.is_err(), "{name}");
        assert_eq!(own.ask(&["GET", &own.record(1)]), before, "{name}");
        own.ask(&["RENAME", &aside, &key]);
        assert!(matches!(own.reserve(2, 5).await.unwrap(), Admission::Reserved(..)), "{name}: {}", id(2));
        assert_eq!(own.sums().await, (1, 25, 2), "{name}");
        assert_eq!(own.settle(1, 7, 20).await.unwrap(), Settlement::Settled(7), "{name}");
        assert_eq!(own.sums().await, (8, 5, 1), "{name}");
    }
}
