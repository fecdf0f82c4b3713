//! Downloads that break off and go on.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::raw;
use super::service::Service;

const PATH: &str = "/v1/trials/t1/artifacts/a/content";
const SIZE: usize = 8 << 20;
const CUTS: usize = 50;

/// One connection, given up after about `most` bytes of body. Answers the status, the validator and
/// what arrived.
async fn part(service: &Service, from: usize, validator: &str, most: usize) -> (u16, String, Vec<u8>) {
    let extra = match from {
        0 => String::new(),
        _ => format!("Range: bytes={from}-\r\nIf-Range: {validator}\r\n"),
    };
    let mut stream = TcpStream::connect(service.address).await.expect("it listens");
    stream.write_all(&raw::request("GET", PATH, &service.keys.read_only, &extra)).await.expect("sent");
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let n = timeout(raw::PATIENCE, stream.read(&mut buffer)).await.expect("in time").expect("bytes");
        bytes.extend_from_slice(&buffer[..n]);
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let body = head.map_or(0, |at| bytes.len() - at - 4);
        if n == 0 || body >= most {
            let at = head.expect("a head");
            let text = String::from_utf8_lossy(&bytes[..at]).into_owned();
            let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
            let answer = raw::Answer { status, head: text, body: Vec::new() };
            let etag = answer.header("etag").expect("one").to_owned();
            return (status, etag, bytes.split_off(at + 4));
        }
    }
}

fn content(seed: u64) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut content = vec![0; SIZE];
    random.fill(&mut content[..]);
    content
}

async fn strong_etag(service: &Service) -> String {
    loop {
        let answer = service.get("/v1/trials/t1/artifacts/a").await;
        let item: serde_json::Value = answer.json().await.expect("JSON");
        let etag = item["etag"].as_str().expect("one").to_owned();
        if !etag.starts_with("W/") {
            return etag;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn cut_at_random_and_resumed_fifty_times_it_is_identical() {
    let want = content(1);
    let service = Service::start(&[("t1", "a", &want)]).await;
    let etag = strong_etag(&service).await;
    let mut random = StdRng::seed_from_u64(2);
    let mut got = Vec::new();
    let mut cuts = 0;
    while got.len() < SIZE {
        let most = if cuts < CUTS { random.random_range(1..SIZE / CUTS) } else { SIZE };
        let (status, _, mut bytes) = part(&service, got.len(), &etag, most).await;
        assert_eq!(status, if got.is_empty() { 200 } else { 206 });
        if cuts < CUTS {
            // What had arrived when the connection broke.
            bytes.truncate(most);
        }
        got.extend(bytes);
        cuts += 1;
    }
    assert!(cuts > CUTS && got == want, "{cuts} parts");
    service.settled().await;
}

#[tokio::test]
async fn a_file_replaced_in_between_is_never_mixed() {
    let (old, new) = (content(1), content(3));
    let service = Service::start(&[("t1", "a", &old)]).await;
    let etag = strong_etag(&service).await;
    let (_, _, mut bytes) = part(&service, 0, "", 1000).await;
    bytes.truncate(1000);
    assert_eq!(bytes, old[..1000]);
    service.put("t1", "a", &new);
    let (status, other, bytes) = part(&service, 1000, &etag, SIZE).await;
    assert_eq!((status, bytes == new), (200, true), "another version comes whole");
    assert_ne!(other, etag);
    service.settled().await;
}
