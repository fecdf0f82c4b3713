//! HTTP as bytes: requests that no client library would send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long anything may take before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find(|line| line.split_once(':').is_some_and(|(n, _)| n.eq_ignore_ascii_case(name)))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Sends `request` as it is and reads until the service closes or the body is whole. A service that
/// stops reading in the midst of a large request still answers.
pub async fn send(address: SocketAddr, request: &[u8]) -> Answer {
    timeout(PATIENCE, exchange(address, request)).await.expect("an answer in time")
}

async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (mut reader, mut writer) = stream.into_split();
    let request = request.to_vec();
    let sender = tokio::spawn(async move {
        let _ = writer.write_all(&request).await;
        writer
    });
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    let answer = loop {
        let n = reader.read(&mut buffer).await.unwrap_or(0);
        bytes.extend_from_slice(&buffer[..n]);
        if let Some(answer) = parse(&bytes, n == 0) {
            break answer;
        }
        assert!(n > 0, "closed without an answer: {:?}", String::from_utf8_lossy(&bytes));
    };
    sender.abort();
    answer
}

fn parse(bytes: &[u8], ended: bool) -> Option<Answer> {
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = bytes[split + 4..].to_vec();
    let answer = Answer { status, head, body };
    let length = answer.header("content-length").and_then(|n| n.parse::<usize>().ok());
    (ended || answer.body.len() >= length.unwrap_or(0)).then_some(answer)
}

/// A request line and its usual headers.
pub fn request(method: &str, target: &str, key: &str, extra: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n{extra}\r\n")
        .into_bytes()
}
