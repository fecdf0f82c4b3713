//! Redis that forgets its scripts, stalls, fills up, restarts, or turns into a replica.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use artifactd::ledger::redis::Options;
use artifactd::ledger::{Admission, Ledger, Settlement};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::redis::{Read, assert_balanced, open, options, until_answered};
use crate::servers::redis::{ask, server, server_at, url, wait, write_before_answering};
use crate::support::project;

fn hasty() -> Options {
    Options { response: Duration::from_millis(400), connect: Duration::from_millis(400), ..options() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgotten_scripts_are_sent_again() {
    let own = server(&[]);
    let port = own.address.port();
    let ledger = open(&url(port), options());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let ledger = ledger.clone();
        calls.spawn(async move {
            for _ in 0..20 {
                let (read, now) = (Read::new(), ledger.now().await.unwrap());
                assert!(matches!(read.reserve(&ledger).await.unwrap(), Admission::Reserved(..)));
                assert_eq!(read.settle(&ledger, now).await.unwrap(), Settlement::Settled(7));
            }
        });
    }
    while !calls.is_empty() {
        ask(port, &["SCRIPT", "FLUSH"]);
        while let Some(done) = calls.try_join_next() {
            done.unwrap();
        }
    }
    assert_eq!(ledger.usage(&project("p")).await.unwrap().reply.used, 16 * 20 * 7);
    assert_balanced(&ledger).await;
}

#[tokio::test]
async fn a_call_that_timed_out_was_perhaps_executed_and_its_repeat_answers_what_is() {
    let own = server(&[]);
    let port = own.address.port();
    let ledger = open(&url(port), hasty());
    let now = ledger.now().await.unwrap();
    ask(port, &["CLIENT", "PAUSE", "1500", "WRITE"]);
    let (read, begun) = (Read::new(), Instant::now());
    assert!(read.reserve(&ledger).await.is_err());
    assert!(begun.elapsed() < Duration::from_millis(1200), "the wait is bounded");
    let admitted = until_answered(|| read.reserve(&ledger)).await;
    assert!(matches!(admitted, Admission::Reserved(..)));
    assert_eq!(read.settle(&ledger, now).await.unwrap(), Settlement::Settled(7));
    let usage = ledger.usage(&project("p")).await.unwrap().reply;
    assert_eq!((usage.used, usage.reserved, usage.open), (7, 0, 0), "admitted once");
    assert_balanced(&ledger).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_left_and_found_again() {
    let own = server(&[]);
    let ledger = open(&url(own.address.port()), hasty());
    ledger.now().await.unwrap();
    let signal =
        |name: &str| assert!(Command::new("kill").args([name, &own.id().to_string()]).status().unwrap().success());
    signal("-STOP");
    let read = Read::new();
    for _ in 0..5 {
        assert!(read.reserve(&ledger).await.is_err());
    }
    signal("-CONT");
    assert!(matches!(until_answered(|| read.reserve(&ledger)).await, Admission::Reserved(..)));
    assert_eq!(ledger.usage(&project("p")).await.unwrap().reply.open, 1, "five copies, one lease");
}

/// A way to a server that hands on what either side says a moment later. How often it was taken, too.
async fn long_way(port: u16, moment: Duration) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (own, taken) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counted.fetch_add(1, Relaxed);
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            for end in [&client, &server] {
                end.set_nodelay(true).unwrap();
            }
            let ((mut asked, mut to_client), (mut answered, mut to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut asked, &mut to_server).await });
            tokio::spawn(async move {
                let mut answer = vec![0; 1 << 20];
                while let Ok(read @ 1..) = answered.read(&mut answer).await {
                    tokio::time::sleep(moment).await;
                    if to_client.write_all(&answer[..read]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (own, taken)
}

/// More calls than a slow server can take in time: those that it can are answered, the others are told in time,
/// and it does not pass for one that is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_in_vain_are_told_in_time_and_cost_no_connection() {
    let own = server(&[]);
    let (port, taken) = long_way(own.address.port(), Duration::from_millis(50)).await;
    let response = Duration::from_secs(2);
    let ledger = open(&url(port), Options { response, connect: Duration::from_secs(5), ..options() });
    until_answered(|| Read::new().reserve(&ledger)).await;
    let connections = taken.load(Relaxed);
    let begun = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4_000 {
        let ledger = ledger.clone();
        calls.spawn(async move { (Read::new().reserve(&ledger).await.is_ok(), begun.elapsed()) });
    }
    let told = calls.join_all().await;
    let latest = told.iter().map(|(_, after)| *after).max().unwrap();
    let answered = told.iter().filter(|(answered, _)| *answered).count();
    assert!((1..4_000).contains(&answered), "{answered} are answered");
    assert!(latest < 2 * response, "the last is told after {latest:?}");
    assert_eq!(taken.load(Relaxed), connections, "the connection was given up, though it answers");
}

#[tokio::test]
async fn when_memory_is_full_nothing_is_admitted_and_everything_is_settled() {
    let own = server(&[]);
    let port = own.address.port();
    let ledger = open(&url(port), options());
    let now = ledger.now().await.unwrap();
    let open_reads: Vec<_> = (0..5).map(|_| Read::new()).collect();
    for read in &open_reads {
        read.reserve(&ledger).await.unwrap();
    }
    ask(port, &["CONFIG", "SET", "maxmemory", "1"]);
    let refused = Read::new();
    let error = refused.reserve(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    for read in &open_reads {
        assert_eq!(read.settle(&ledger, now).await.unwrap(), Settlement::Settled(7));
    }
    let usage = ledger.usage(&project("p")).await.unwrap().reply;
    assert_eq!((usage.used, usage.open), (35, 0));
    assert_balanced(&ledger).await;
    ask(port, &["CONFIG", "SET", "maxmemory", "0"]);
    assert!(matches!(refused.reserve(&ledger).await.unwrap(), Admission::Reserved(..)));
}

#[tokio::test]
async fn a_read_only_server_is_left_until_it_takes_writes_again() {
    let (own, master) = (server(&[]), server(&[]));
    let port = own.address.port();
    let ledger = open(&url(port), hasty());
    Read::new().reserve(&ledger).await.unwrap();
    ask(port, &["REPLICAOF", "127.0.0.1", &master.address.port().to_string()]);
    let begun = Instant::now();
    assert!(Read::new().reserve(&ledger).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(2));
    ask(port, &["REPLICAOF", "NO", "ONE"]);
    assert!(matches!(until_answered(|| Read::new().reserve(&ledger)).await, Admission::Reserved(..)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_comes_back_with_every_call_that_it_answered() {
    let mut own = server(&[]);
    let port = own.address.port();
    write_before_answering(port);
    let ledger = open(&url(port), hasty());
    let mut calls = tokio::task::JoinSet::new();
    let (answered, mut told) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..8 {
        let (ledger, answered) = (ledger.clone(), answered.clone());
        calls.spawn(async move {
            for _ in 0..60 {
                let read = Read::new();
                let now = until_answered(|| ledger.now()).await;
                assert!(matches!(until_answered(|| read.reserve(&ledger)).await, Admission::Reserved(..)));
                let settled = until_answered(|| read.settle(&ledger, now)).await;
                assert_eq!(settled, Settlement::Settled(7));
                answered.send(()).unwrap();
            }
        });
    }
    drop(answered);
    let mut count = 0;
    while told.recv().await.is_some() {
        count += 1;
        if count == 100 || count == 250 {
            let dir = own.dir.path().to_owned();
            own.kill();
            let again = server_at(port, &dir);
            own.replace(again);
            wait("the server's file", || ask(port, &["PING"]) == "PONG");
        }
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    let usage = ledger.usage(&project("p")).await.unwrap().reply;
    assert_eq!((usage.used, usage.reserved, usage.open), (8 * 60 * 7, 0, 0), "not a byte lost, not a byte twice");
    assert_balanced(&ledger).await;
}

#[tokio::test]
async fn no_server_is_said_at_once_and_found_when_it_is_there() {
    let port = crate::servers::free_port();
    let ledger = open(&url(port), hasty());
    assert!(ledger.connect().await.is_err());
    let begun = Instant::now();
    for _ in 0..20 {
        assert!(Read::new().reserve(&ledger).await.is_err());
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "refusals do not wait for one another");
    let dir = tempfile::tempdir().unwrap();
    let mut child = server_at(port, dir.path());
    assert!(matches!(until_answered(|| Read::new().reserve(&ledger)).await, Admission::Reserved(..)));
    child.kill().unwrap();
    child.wait().unwrap();
}
