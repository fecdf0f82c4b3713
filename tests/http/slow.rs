//! Clients that drip, leave, or want too much at once.

use std::path::Path;
use std::time::Duration;

use artifactd::access::Preset;
use artifactd::ledger::Allowance;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::probe::Fault;
use super::process::Process;
use super::raw;
use super::service::{Options, PROJECT, Service, make_key};

const MIB: usize = 1 << 20;
const PATH: &str = "/v1/trials/t1/artifacts/a/content";

/// Asks for the file through a small window.
async fn slow_client(service: &Service) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(8192).expect("set");
    let mut client = socket.connect(service.address).await.expect("it listens");
    client.write_all(&raw::request("GET", PATH, &service.keys.read_only, "")).await.expect("sent");
    client
}

#[tokio::test]
async fn a_client_that_drips_is_cut_and_charged_what_went_out() {
    let settings = "[limits]\nstall_seconds = 2\nleast_rate = \"1 MiB\"\n".to_owned();
    let options = Options { settings, ..Options::default() };
    let service = Service::with(&[("t1", "a", &vec![7; 64 * MIB])], options).await;
    let mut client = slow_client(&service).await;
    let mut some = [0; 4096];
    // It takes something all the time, and never enough.
    let dripping = async {
        loop {
            match client.read(&mut some).await {
                Ok(0) | Err(_) => break,
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let settled = async {
        service.quota_until(|quota| quota["open_reservations"] == 1).await;
        service.quota_until(|quota| quota["open_reservations"] == 0).await;
    };
    tokio::time::timeout(raw::PATIENCE, async {
        tokio::select! { () = dripping => {}, () = settled => {} }
    })
    .await
    .expect("it is cut");
    let charged = service.settled().await;
    assert!(charged < 64 * MIB as u64, "{charged}");
    assert_eq!(service.json("/v1/quota/audit").await["items"][0]["outcome"], "aborted");
}

#[tokio::test]
async fn open_reads_are_capped_by_project_and_in_all() {
    let (project, process) = ((429, "TOO_MANY_REQUESTS"), (503, "OVERLOADED"));
    for (settings, own, foreign) in [("project_streams = 2", project, 200), ("streams = 2", process, 503)] {
        let settings = format!("[limits]\n{settings}\n");
        let options = Options { settings, daily: Allowance::Unlimited, ..Options::default() };
        let service = Service::with(&[("t1", "a", &[7; 1000])], options).await;
        service.put_foreign("t1", "a", &[7; 1000]);
        service.store.set(Fault::StallAfter(10));
        let mut open = Vec::new();
        for _ in 0..2 {
            open.push(service.get(PATH).await);
        }
        let third = service.get(PATH).await;
        let status = third.status().as_u16();
        assert_eq!(third.headers()["retry-after"], "1");
        let code = third.json::<Value>().await.expect("JSON")["code"].clone();
        assert_eq!((status, code.as_str().expect("a code")), own);
        let other = service.request(Method::GET, PATH, &service.keys.foreign).send().await.expect("an answer");
        assert_eq!(other.status().as_u16(), foreign);
        drop(other);
        // What is no read has room.
        let head = service.request(Method::HEAD, PATH, &service.keys.read_only).send().await.expect("an answer");
        assert_eq!(head.status(), StatusCode::OK);
        let quota = service.json("/v1/quota").await;
        assert_eq!(quota["refused"], 0, "the ledger was not asked");
        service.store.set(Fault::None);
        for answer in open {
            assert_eq!(answer.bytes().await.expect("whole").len(), 1000);
        }
        service.settled().await;
        assert_eq!(service.get(PATH).await.status(), 200, "places are given back");
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_though_there_is_nothing_to_send() {
    let service = Service::start(&[("t1", "a", &vec![7; 4 * MIB])]).await;
    // Only the connection can tell that the client is gone.
    service.store.set(Fault::StallAfter(100));
    let mut client = TcpStream::connect(service.address).await.expect("it listens");
    client.write_all(&raw::request("GET", PATH, &service.keys.read_only, "")).await.expect("sent");
    assert!(client.read(&mut [0; 4096]).await.expect("bytes") > 0);
    service.quota_until(|quota| quota["open_reservations"] == 1).await;
    let begun = tokio::time::Instant::now();
    drop(client);
    assert_eq!(service.settled().await, 100);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// What the log says of a download that does not come to its end, and what it was charged.
async fn logged(end: impl AsyncFnOnce(TcpStream, &Path)) -> (Vec<Value>, Value) {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir_all(at("store/demo/t1")).expect("folders");
    let file = at("store/demo/t1/a");
    std::fs::File::create(&file).expect("file").set_len(256 << 20).expect("a sparse file");
    let key = make_key(&at("keys.toml"), "reader", PROJECT, Preset::ReadOnly);
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[store]\nurl = \"file://{0}/store\"\n[ledger]\nurl = \"embedded://{0}/ledger.db\"\n\
         [access]\nkeys_file = \"{0}/keys.toml\"\n[log]\nformat = \"json\"\n",
        scratch.path().display()
    );
    std::fs::write(at("config.toml"), config).expect("settings");
    let process = Process::start(&at("config.toml"));
    let mut client = TcpStream::connect(process.address).await.expect("it listens");
    client.write_all(&raw::request("GET", PATH, &key, "X-Request-Id: this-one\r\n")).await.expect("sent");
    assert!(client.read(&mut [0; 4096]).await.expect("bytes") > 0);
    end(client, &file).await;
    let give_up = tokio::time::Instant::now() + raw::PATIENCE;
    let charged = loop {
        let quota = process.json("/v1/quota", &key);
        if quota["open_reservations"] == 0 {
            break quota["used_bytes"].clone();
        }
        assert!(tokio::time::Instant::now() < give_up, "{quota}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let lines = process.stop();
    let lines = lines.lines().filter(|line| line.contains("\"this-one\""));
    (lines.map(|line| serde_json::from_str(line).expect("JSON")).collect(), charged)
}

#[tokio::test]
async fn a_client_that_left_is_logged_as_499() {
    let (lines, charged) = logged(async |client, _| drop(client)).await;
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&line["status"], &line["bytes"]), (&json!(499), &charged), "{line}");
}

/// A run may still write what is read of it: that is no fault of the service.
#[tokio::test]
async fn a_file_that_is_written_meanwhile_is_logged_as_a_warning() {
    let (lines, charged) = logged(async |mut client, file| {
        let mut file = std::fs::OpenOptions::new().append(true).open(file).expect("file");
        std::io::Write::write_all(&mut file, b"more").expect("written");
        let mut rest = Vec::new();
        // How the end looks depends on what was still to be read.
        let _ = client.read_to_end(&mut rest).await;
        assert!(rest.len() < 256 << 20, "never whole");
    })
    .await;
    let [why, line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&why["level"], &why["message"]), (&json!("WARN"), &json!("the answer was cut")));
    assert!(why["error"].as_str().is_some_and(|error| error.contains("ARTIFACT_CHANGED")), "{why}");
    assert_eq!((&line["status"], &line["bytes"]), (&json!(200), &charged), "{line}");
}

#[tokio::test]
async fn requests_of_one_key_are_capped_until_their_last_byte() {
    capped("requests_per_key", "This key has 2 requests", StatusCode::OK).await;
}

#[tokio::test]
async fn requests_of_one_project_are_capped_whoever_asks() {
    capped("requests_per_project", "This project has 2 requests", StatusCode::TOO_MANY_REQUESTS).await;
}

/// Two requests are as many as `limit` lets in; so a third is told `why`, and one by another key of the project is
/// answered as `other_key` says.
async fn capped(limit: &str, why: &str, other_key: StatusCode) {
    let options = Options { settings: format!("[limits]\n{limit} = 2\n"), ..Options::default() };
    let service = Service::with(&[("t1", "a", &[7; 1000])], options).await;
    service.store.set(Fault::StallAfter(10));
    let open = [service.get(PATH).await, service.get(PATH).await];
    // Whatever it asks for.
    let third = service.get("/v1/quota").await;
    assert_eq!((third.status().as_u16(), &third.headers()["retry-after"]), (429, &"1".parse().expect("valid")));
    let refusal: Value = third.json().await.expect("JSON");
    assert_eq!(refusal["code"], "TOO_MANY_REQUESTS");
    assert!(refusal["detail"].as_str().is_some_and(|detail| detail.contains(why)), "{refusal}");
    let other = service.request(Method::GET, "/v1/quota", &service.keys.automation).send().await.expect("an answer");
    assert_eq!(other.status(), other_key);
    assert_eq!(service.get("/healthz").await.status(), StatusCode::OK);
    service.store.set(Fault::None);
    for answer in open {
        assert_eq!(answer.bytes().await.expect("whole").len(), 1000);
    }
    service.settled().await;
    assert_eq!(service.get(PATH).await.status(), 200, "places are given back");
}
