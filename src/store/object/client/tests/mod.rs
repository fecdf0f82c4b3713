//! Against servers that are scripted to the byte.

mod connections;
mod peers;
mod proxies;
mod silence;
mod trust;

use http::{Method, Request};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponse};
use object_store::{ClientConfigKey as Key, ClientOptions};

use super::Client;

/// A client of these options, which may speak plain http.
fn client(options: &[(Key, &str)]) -> Client {
    let plain = ClientOptions::new().with_timeout_disabled().with_allow_http(true);
    Client::new(&options.iter().fold(plain, |all, (key, value)| all.with_config(*key, *value))).expect("a client")
}

fn get(url: &str) -> HttpRequest {
    Request::builder().method(Method::GET).uri(url).body(bytes::Bytes::new().into()).expect("a request")
}

async fn text(answer: Result<HttpResponse, HttpError>) -> Result<String, HttpErrorKind> {
    match answer.expect("an answer").into_body().bytes().await {
        Ok(bytes) => Ok(String::from_utf8(bytes.to_vec()).expect("text")),
        Err(error) => Err(error.kind()),
    }
}
