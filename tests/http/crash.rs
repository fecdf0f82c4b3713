//! The process killed in mid-download: nothing is under-counted, the lease expires, the books
//! balance. And the process that could not write its log, which goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use artifactd::access::Preset;
use tempfile::TempDir;

use super::process::Process;
use super::raw;
use super::service::{PROJECT, make_key};

const SIZE: u64 = 256 << 20;
const CREDIT: u64 = 1 << 20;

#[test]
fn a_killed_process_under_counts_nothing() {
    let scratch = TempDir::new().expect("scratch directory");
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir_all(at("store/demo/t1")).expect("folders");
    std::fs::File::create(at("store/demo/t1/a")).expect("file").set_len(SIZE).expect("a sparse file");
    let key = make_key(&at("keys.toml"), "reader", PROJECT, Preset::ReadOnly);
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[store]\nurl = \"file://{0}/store\"\n[ledger]\nurl = \"embedded://{0}/ledger.db\"\n\
         lease_seconds = 1\ncredit = {CREDIT}\n[access]\nkeys_file = \"{0}/keys.toml\"\n[log]\nformat = \"json\"\n",
        scratch.path().display()
    );
    std::fs::write(at("config.toml"), config).expect("settings");

    let mut received = Vec::new();
    for kill_after in [1, 3 << 20, 40 << 20] {
        let mut process = Process::start(&at("config.toml"));
        let mut client = TcpStream::connect(process.address).expect("it listens");
        client.write_all(&raw::request("GET", "/v1/trials/t1/artifacts/a/content", &key, "")).expect("sent");
        let (mut got, mut buffer) = (0, vec![0; 256 << 10]);
        while got < kill_after {
            let n = client.read(&mut buffer).expect("bytes") as u64;
            assert!(n > 0, "the answer goes on");
            got += n;
        }
        // The lease of a process killed before may not have run out yet.
        let quota = process.json("/v1/quota", &key);
        let open = quota["open_reservations"].as_u64().expect("a number");
        assert!(open >= 1 && quota["reserved_bytes"] == open * SIZE, "{quota}");
        process.kill();
        // What was under way arrives all the same, and counts as received.
        loop {
            match client.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(n) => got += n as u64,
            }
        }
        received.push(got);
    }

    let process = Process::start(&at("config.toml"));
    let give_up = Instant::now() + Duration::from_secs(20);
    while process.json("/v1/quota", &key)["open_reservations"] != 0 {
        assert!(Instant::now() < give_up, "leases of a dead process expire");
        #[expect(clippy::disallowed_methods, reason = "no runtime runs here")]
        std::thread::sleep(Duration::from_millis(50));
    }
    let audit = process.json("/v1/quota/audit", &key);
    let entries = audit["items"].as_array().expect("entries");
    assert_eq!(entries.len(), received.len());
    for (entry, received) in entries.iter().rev().zip(&received) {
        let charged = entry["charged_bytes"].as_u64().expect("a number");
        assert_eq!(entry["outcome"], "expired");
        // The head of the answer was received, too, and is not charged: 4 KiB covers it.
        assert!(charged + 4096 >= *received, "{charged} charged, {received} received");
        assert!(charged <= received + 16 * CREDIT, "{charged} charged, {received} received");
    }
    let sums = process.json("/v1/quota/audit/verify", &key);
    assert_eq!((&sums["balanced"], &sums["reserved_bytes"]), (&true.into(), &0.into()), "{sums}");
}

/// Logs go to a full disk, or their reader has left: lines are lost, requests are not.
#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let scratch = TempDir::new().expect("scratch directory");
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir_all(at("store/demo/t1")).expect("folders");
    std::fs::write(at("store/demo/t1/a"), "hello").expect("file");
    let key = make_key(&at("keys.toml"), "reader", PROJECT, Preset::ReadOnly);
    for broken in ["full", "closed"] {
        let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
        let config = format!(
            "listen = \"{address}\"\n[store]\nurl = \"file://{0}/store\"\n[ledger]\n\
             url = \"embedded://{0}/{broken}.db\"\n[access]\nkeys_file = \"{0}/keys.toml\"\n",
            scratch.path().display()
        );
        std::fs::write(at("config.toml"), config).expect("settings");
        let log: Stdio = match broken {
            "full" => std::fs::File::options().write(true).open("/dev/full").expect("a full disk").into(),
            _ => {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                drop(reader);
                writer.into()
            }
        };
        let mut process = Process::start_logging_to(log, &at("config.toml"), address);
        for _ in 0..2 {
            assert_eq!(process.json("/v1/me", &key)["key_id"], "reader", "{broken}");
            let _ = process.json("/v1/trials/t1/artifacts/none/content", &key);
        }
        assert!(process.is_running(), "{broken}: it goes on");
    }
}
