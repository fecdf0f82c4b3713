//! Requests to the Azure emulator, signed with its well-known account key. They reach what clients
//! refuse to name.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

/// The emulator's account.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
/// The emulator's published key.
pub(crate) const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Makes a container.
pub(crate) async fn create_container(endpoint: &str, container: &str) {
    put(endpoint, container, Some(("restype", "container")), Vec::new()).await;
}

/// Puts a blob; `path` is container and key, percent-encoded.
pub(crate) async fn put_blob(endpoint: &str, path: &str, body: Vec<u8>) {
    put(endpoint, path, None, body).await;
}

/// A PUT with a shared key (Azure Storage, "Authorize with Shared Key").
async fn put(endpoint: &str, path: &str, query: Option<(&str, &str)>, body: Vec<u8>) {
    let date = jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&jiff::Timestamp::now())
        .expect("a date");
    let length = if body.is_empty() { String::new() } else { body.len().to_string() };
    let path = format!("/{ACCOUNT}/{path}");
    let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-date", date.as_str()), ("x-ms-version", "2021-08-06")];
    let canonical: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let queried = query.map(|(name, value)| format!("\n{name}:{value}")).unwrap_or_default();
    let text = format!("PUT\n\n\n{length}\n\n\n\n\n\n\n\n\n{canonical}/{ACCOUNT}{path}{queried}");
    let key = BASE64_STANDARD.decode(KEY).expect("a key");
    let signature = BASE64_STANDARD.encode(hmac_sha256(&key, text.as_bytes()));

    let query = query.map(|(name, value)| format!("?{name}={value}")).unwrap_or_default();
    let mut request = reqwest::Client::new().put(format!("{endpoint}{path}{query}")).body(body);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.header("authorization", format!("SharedKey {ACCOUNT}:{signature}"));
    let response = request.send().await.expect("an answer");
    let status = response.status();
    assert!(status.is_success(), "PUT {path}: {status} {}", response.text().await.unwrap_or_default());
}

/// RFC 2104.
fn hmac_sha256(key: &[u8], text: &[u8]) -> impl AsRef<[u8]> {
    let mut block = [0_u8; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |byte: u8| block.map(|b| b ^ byte);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize()
}
