//! A process that works on a ledger until it is killed.
//!
//! The child is this test binary, asked for the one test below; what it was answered it writes to
//! its output, a line per answer, after the answer.

#![allow(clippy::disallowed_methods, reason = "a child is told what to do by its environment")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use artifactd::ledger::{Admission, Embedded, Ledger, Settlement, SystemClock};
use tokio::task::JoinSet;

use crate::support::{self, ManualClock, NOON, open, policy, project};

/// Names the file for the child.
const FILE: &str = "ARTIFACTD_TEST_LEDGER";
/// What a line of the child that is an answer begins with.
const ANSWER: &str = "answer ";

/// The test binary, asked for one of its ignored tests.
pub(super) fn child(test: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", test]).env(FILE, file).stdout(Stdio::piped());
    command
}

pub(super) fn file() -> std::path::PathBuf {
    std::env::var_os(FILE).expect("started by its parent").into()
}

fn say(text: &str) {
    writeln!(std::io::stdout().lock(), "{ANSWER}{text}").unwrap();
}

#[test]
#[ignore = "the child of a_killed_process_loses_no_answered_call"]
fn works_until_it_is_killed() {
    let first: u128 = std::env::var("ARTIFACTD_TEST_FIRST").unwrap().parse().unwrap();
    let ledger = std::sync::Arc::new(open(&file(), 1 << 40, &ManualClock::at(NOON)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut callers = JoinSet::new();
        for caller in 0..8 {
            let ledger = std::sync::Arc::clone(&ledger);
            callers.spawn(async move {
                // Bounded: far more than the parent waits for.
                for round in 0..100_000 {
                    let n = first + caller + 8 * round;
                    let call = support::reserve(n, 100, NOON + 1);
                    let Admission::Reserved(..) = ledger.reserve(&call).await.unwrap().reply else { panic!("{n}") };
                    say(&format!("reserved {n}"));
                    if !n.is_multiple_of(3) {
                        let actual = u64::try_from(n % 101).unwrap();
                        ledger.settle(&support::settle(n, actual, 100, NOON)).await.unwrap();
                        say(&format!("settled {n} {actual}"));
                    }
                }
            });
        }
        while callers.join_next().await.is_some() {}
    });
}

fn read_answers(child: &mut Child, enough: usize) -> Vec<String> {
    let mut answers = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        // The test runner's own words may stand before the first answer, in the same line.
        if let Some((_, answer)) = line.split_once(ANSWER) {
            answers.push(answer.to_owned());
        }
        if answers.len() == enough {
            // SIGKILL; what was written before it is still read.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    answers
}

#[tokio::test]
async fn a_killed_process_loses_no_answered_call() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let mut least = 0;
    for round in 0..6 {
        let mut command = child("durability::child::works_until_it_is_killed", &path);
        let first = 1 + round * 1_000_000;
        let mut child = command.env("ARTIFACTD_TEST_FIRST", first.to_string()).spawn().unwrap();
        let answers = read_answers(&mut child, 40 + 97 * usize::try_from(round).unwrap());
        assert!(answers.len() >= 40, "the child was killed, it did not end: {answers:?}");

        let ledger = open(&path, 1 << 40, &ManualClock::at(NOON));
        for answer in &answers {
            let words: Vec<_> = answer.split(' ').collect();
            let n = words[1].parse().unwrap();
            if words[0] == "settled" {
                let actual = words[2].parse().unwrap();
                least += actual;
                let again = ledger.settle(&support::settle(n, 55, 100, NOON)).await.unwrap().reply;
                assert_eq!(again, Settlement::Settled(actual), "{answer}");
            } else {
                let again = ledger.reserve(&support::reserve(n, 100, 0)).await.unwrap().reply;
                assert!(matches!(again, Admission::Reserved(..) | Admission::Settled), "{answer}: {again:?}");
                let settled = answers.iter().any(|other| other.starts_with(&format!("settled {n} ")));
                assert!(settled || !n.is_multiple_of(3) || again != Admission::Settled, "{answer}: {again:?}");
            }
        }
        let sums = ledger.verify(&project("p"), None).await.unwrap().reply;
        assert!(sums.balanced() && sums.used >= least, "{sums:?} {least}");
        ledger.close().await;
    }
}

#[test]
#[ignore = "the child of a_file_belongs_to_one_process"]
fn opens_a_file_that_is_in_use() {
    let refused = Embedded::open(file(), policy(1), SystemClock).unwrap_err();
    say(&refused.to_string());
}

#[tokio::test]
async fn a_file_belongs_to_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let owner = open(&path, 100, &ManualClock::at(NOON));
    let mut second = child("durability::child::opens_a_file_that_is_in_use", &path).spawn().unwrap();
    let answers = read_answers(&mut second, usize::MAX);
    assert_eq!(answers, ["the ledger's file is in use by another process"]);
    let here = Embedded::open(&path, policy(1), SystemClock).unwrap_err();
    assert!(matches!(here, artifactd::ledger::embedded::OpenError::Owned), "{here}");
    assert!(owner.usage(&project("p")).await.is_ok());
    owner.close().await;
    open(&path, 100, &ManualClock::at(NOON)).close().await;
}
