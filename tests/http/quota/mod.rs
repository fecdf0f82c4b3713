//! The account and its audit over HTTP: what each endpoint answers, to whom, and to what not.

mod account;
mod command;
mod export;
mod manage;
mod refused;
mod warning;

use artifactd::ledger::Allowance;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::service::{Options, Service};

pub const FILES: &[(&str, &str, &[u8])] = &[
    ("t1", "a.txt", &[b'a'; 100]),
    ("t1", "=cmd|' /C calc'!A0", &[b'b'; 50]),
    ("t2", "日本, \"quoted\".txt", &[b'c'; 30]),
    ("t2", "large", &[b'd'; 1000]),
    ("t3", "huge", &[b'e'; 2000]),
];

pub fn allowed(daily: u64) -> Options {
    Options { daily: Allowance::Bytes(daily), ..Options::default() }
}

/// Reads the three small files: two by HTTP, one by an agent, and waits until they are settled.
pub async fn with_entries(options: Options) -> Service {
    let service = Service::with(FILES, options).await;
    read(&service, "t1", "a.txt").await;
    read(&service, "t1", "=cmd%7C'%20~1C%20calc'!A0").await;
    let arguments = json!({"trial_id": "t2", "name": "日本, \"quoted\".txt"});
    service.tool("envloop_trial_artifact_read", arguments).await;
    assert_eq!(service.settled().await, 180);
    service
}

pub async fn read(service: &Service, trial: &str, artifact: &str) {
    let answer = service.get(&format!("/v1/trials/{trial}/artifacts/{artifact}/content")).await;
    assert_eq!(answer.status(), 200);
    answer.bytes().await.expect("bytes");
}

impl Service {
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        key: &str,
        project: Option<&str>,
        body: Option<&str>,
    ) -> Response {
        let mut request = self.request(method, path, key);
        if let Some(project) = project {
            request = request.header("x-project-id", project);
        }
        if let Some(body) = body {
            request = request.body(body.to_owned());
        }
        request.send().await.expect("an answer")
    }

    /// Asks as the operator; answers status and body.
    pub async fn operate(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string());
        let answer = self.ask(method, path, &self.keys.operator, None, body.as_deref()).await;
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&answer.bytes().await.expect("a body")).unwrap_or_default())
    }

    pub async fn export(&self, media_type: &str, query: &str) -> Response {
        let path = format!("/v1/quota/audit{query}");
        let request = self.request(Method::GET, &path, &self.keys.read_only);
        request.header("accept", media_type).send().await.expect("an answer")
    }
}

/// Takes what differs from run to run out of an answer, after a look at its form.
pub fn without_times(mut value: Value) -> Value {
    let times = ["day", "resets_at", "at", "id", "request_id", "until"];
    match &mut value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                *field = match field.take() {
                    Value::String(text) if times.contains(&name.as_str()) => {
                        assert!(!text.is_empty());
                        json!("…")
                    }
                    other => without_times(other),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_times(item.take())),
        _ => {}
    }
    value
}
