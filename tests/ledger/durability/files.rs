//! Files that the ledger must not take, or cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use artifactd::ledger::embedded::OpenError;
use artifactd::ledger::{Embedded, Ledger, Policy, Rules, SystemClock};
use rusqlite::Connection;

use super::child;
use crate::support::{self, ManualClock, NOON, open, policy, project};

fn refusal(path: &Path) -> OpenError {
    Embedded::open(path, policy(1), SystemClock).expect_err("refused")
}

#[test]
fn a_file_of_a_later_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    drop(open(&path, 1, &ManualClock::at(NOON)));
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 4).unwrap();
    let refused = refusal(&path);
    assert!(matches!(refused, OpenError::Version(4)), "{refused:?}");
    assert!(refused.to_string().contains("version 4"), "{refused}");
}

#[test]
fn a_file_that_is_no_ledger_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(&text, "my notes ".repeat(1000)).unwrap();
    let database = directory.path().join("other.db");
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)").unwrap();
    for path in [&text, &database] {
        let before = (path == &text).then(|| fs::read(path).unwrap());
        let refused = refusal(path);
        assert!(matches!(refused, OpenError::Foreign), "{refused:?}");
        assert!(before.is_none_or(|before| fs::read(path).unwrap() == before));
    }
    let rows: i64 = Connection::open(&database).unwrap().query_row("SELECT a FROM mine", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn a_path_that_cannot_hold_a_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path().to_owned(), directory.path().join("missing/ledger.db")] {
        assert!(matches!(refusal(&path), OpenError::Storage(_)), "{path:?}");
    }
}

#[test]
fn rules_that_contradict_each_other_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let broken = Policy { rules: Rules { tombstone_ms: 1, ..Rules::default() }, ..policy(1) };
    let refused = Embedded::open(&path, broken, SystemClock).expect_err("refused");
    assert!(matches!(refused, OpenError::Rules(_)) && !path.exists(), "{refused}");
}

#[test]
#[ignore = "the child of a_read_only_file_is_refused, run as a user whom permissions bind"]
fn finds_its_file_read_only() {
    let refused = refusal(&child::file());
    assert!(matches!(refused, OpenError::ReadOnly), "{refused:?}");
}

#[test]
fn a_read_only_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    drop(open(&path, 1, &ManualClock::at(NOON)));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let child = child::child("durability::files::finds_its_file_read_only", &path);
    // Permissions do not bind root.
    let mut command = if rustix::process::getuid().is_root() {
        let mut other = Command::new("setpriv");
        other
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(child.get_program())
            .args(child.get_args());
        other.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
        other
    } else {
        child
    };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// What is written to an unlinked file would be forgotten by the next start, and a second process
/// could open the name.
#[tokio::test]
async fn a_file_that_was_removed_or_replaced_is_unavailable_until_it_is_back() {
    type Act = fn(&Path);
    let log = |path: &Path| path.with_file_name("ledger.db-wal");
    let cases: [(&str, Act, Option<Act>); 4] = [
        (
            "moved, and moved back",
            |path| fs::rename(path, path.with_extension("away")).unwrap(),
            Some(|path| fs::rename(path.with_extension("away"), path).unwrap()),
        ),
        ("removed", |path| fs::remove_file(path).unwrap(), None),
        (
            "replaced by a copy",
            |path| {
                fs::copy(path, path.with_extension("copy")).unwrap();
                fs::rename(path.with_extension("copy"), path).unwrap();
            },
            None,
        ),
        ("its directory removed", |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(), None),
    ];
    for (what, act, undo) in cases {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        fs::create_dir(&home).unwrap();
        let path = home.join("ledger.db");
        let ledger = open(&path, 100, &ManualClock::at(NOON));
        ledger.reserve(&support::reserve(1, 50, NOON + 1)).await.unwrap();
        act(&path);
        for n in [2, 3] {
            let refused = ledger.reserve(&support::reserve(n, 1, NOON + 1)).await.expect_err(what);
            let cause = std::error::Error::source(&refused).map(ToString::to_string);
            assert!(format!("{refused} {cause:?}").contains("removed or replaced"), "{what}: {refused} {cause:?}");
        }
        if let Some(undo) = undo {
            undo(&path);
            ledger.settle(&support::settle(1, 20, 50, NOON)).await.unwrap();
            let sums = ledger.verify(&project("p"), None).await.unwrap().reply;
            assert!(sums.balanced() && sums.used == 20, "{what}: {sums:?}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let ledger = open(&path, 100, &ManualClock::at(NOON));
    ledger.reserve(&support::reserve(1, 50, NOON + 1)).await.unwrap();
    fs::remove_file(log(&path)).unwrap();
    ledger.reserve(&support::reserve(2, 1, NOON + 1)).await.expect_err("the log is a part of the file");
}

#[tokio::test]
async fn a_write_ahead_log_that_was_cut_keeps_what_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let ledger = open(&path, 100, &ManualClock::at(NOON));
    ledger.reserve(&support::reserve(1, 50, NOON + 1)).await.unwrap();
    // What a crash of the machine could leave: the files as they are now, the last write torn.
    let copy = directory.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    ledger.reserve(&support::reserve(2, 40, NOON + 1)).await.unwrap();
    let log = fs::read(directory.path().join("ledger.db-wal")).unwrap();
    fs::write(directory.path().join("copy.db-wal"), &log[..log.len() - 100]).unwrap();
    let copy = open(&copy, 100, &ManualClock::at(NOON));
    let sums = copy.verify(&project("p"), None).await.unwrap().reply;
    assert!(sums.balanced() && sums.reserved >= 50, "{sums:?}");
}

#[tokio::test]
async fn a_file_of_an_earlier_version_is_brought_up() {
    let second = "ALTER TABLE account DROP COLUMN allowance; ALTER TABLE adjustment DROP COLUMN bytes;
                  ALTER TABLE adjustment DROP COLUMN reason; PRAGMA user_version = 2;";
    let first = "DROP TABLE link; ALTER TABLE record DROP COLUMN link_id; ALTER TABLE line DROP COLUMN link_id;
                 PRAGMA user_version = 1;";
    for earlier in [second.to_owned(), second.to_owned() + first] {
        is_brought_up(&earlier).await;
    }
}

async fn is_brought_up(earlier: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let ledger = open(&path, 100, &ManualClock::at(NOON));
    ledger.reserve(&support::reserve(1, 50, NOON + 1)).await.unwrap();
    ledger.close().await;
    Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
    let ledger = open(&path, 100, &ManualClock::at(NOON));
    ledger.settle(&support::settle(1, 20, 50, NOON)).await.unwrap();
    assert!(ledger.links(&project("p"), None, 9).await.unwrap().reply.is_empty());
    let sums = ledger.verify(&project("p"), None).await.unwrap().reply;
    assert!(sums.balanced() && sums.used == 20, "{sums:?}");
}
