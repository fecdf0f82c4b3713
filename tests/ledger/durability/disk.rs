//! A disk without room. The kernel refuses to let the child's files grow (RLIMIT_FSIZE), which any
//! user may ask of it; then it lets them grow again.

use std::path::Path;
use std::process::{Command, Stdio};

use artifactd::ledger::{Admission, Ledger, Settlement};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::child;
use crate::support::{self, ManualClock, NOON, open, project};

fn let_files_grow_to(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn largest_file(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap()
}

#[test]
#[ignore = "the child of a_full_disk_is_unavailable_until_there_is_room"]
fn fills_its_disk() {
    let path = child::file();
    let ledger = open(&path, 1 << 40, &ManualClock::at(NOON));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        ledger.reserve(&support::reserve(1, 100, NOON + 1)).await.unwrap();
        for full in 1..=3 {
            let_files_grow_to(Some(largest_file(path.parent().unwrap()) + 20_000));
            let first = 1000 * full;
            let mut answered = first;
            let refused = loop {
                assert!(answered < first + 900, "the disk never filled");
                match ledger.reserve(&support::reserve(answered, 1, NOON + 1)).await {
                    Ok(_) => answered += 1,
                    Err(refused) => break refused,
                }
            };
            assert!(refused.to_string().contains("unavailable"), "{refused}");
            // Now not even what is there can be overwritten.
            let_files_grow_to(Some(0));
            for _ in 0..3 {
                let call = support::settle(1, 70, 100, NOON);
                assert!(ledger.settle(&call).await.is_err(), "there is still no room");
            }
            let_files_grow_to(None);
            // Nothing of the calls that failed is there, all of the others is, and no restart was needed.
            let usage = ledger.usage(&project("p")).await.unwrap().reply;
            assert_eq!(usage.reserved, 100 + u64::try_from(answered - first).unwrap());
            assert_eq!(usage.used, 0);
            let admitted = ledger.reserve(&support::reserve(answered, 1, NOON + 1)).await.unwrap().reply;
            assert!(matches!(admitted, Admission::Reserved(..)), "{admitted:?}");
            for n in first..=answered {
                let settled = ledger.settle(&support::settle(n, 0, 1, NOON)).await.unwrap().reply;
                assert_eq!(settled, Settlement::Settled(0));
            }
            assert!(ledger.verify(&project("p"), None).await.unwrap().reply.balanced());
        }
        assert_eq!(ledger.settle(&support::settle(1, 70, 100, NOON)).await.unwrap().reply, Settlement::Settled(70));
        ledger.close().await;
    });
}

#[test]
fn a_full_disk_is_unavailable_until_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let child = child::child("durability::disk::fills_its_disk", &directory.path().join("ledger.db"));
    // The signal that comes with the refusal would end the process; ignored, the write just fails.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(child.get_program()).args(child.get_args());
    shell.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
