//! Sends spans to a collector: OTLP 1.x over HTTP, as protobuf
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! A request's spans are handed over when its answer has gone out, and sent in batches by one task.
//! Where the collector is slow or away, spans are dropped and counted; no request ever waits.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use url::Url;

use super::metrics::metrics;
use super::request::Notes;

/// Requests that may wait to be sent.
const QUEUE: usize = 4096;
/// Spans in one message, about.
const BATCH: usize = 512;
/// How long requests are collected for one message.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes the spans of requests.
#[derive(Debug, Clone)]
pub struct Spans(Sender<Vec<wire::Span>>);

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The request's notes.
    pub notes: &'a Notes,
    /// The route's pattern.
    pub route: &'static str,
    /// The method.
    pub method: &'static str,
    /// The status of the answer, 499 where the client left.
    pub status: u16,
    /// The request's id.
    pub request_id: &'a str,
    /// Now, ns since the Unix epoch.
    pub now_ns: u64,
}

impl Spans {
    /// Hands over the spans of a request, if its trace is recorded.
    pub fn take(&self, served: &Served<'_>) {
        let Some(trace) = served.notes.trace.filter(|trace| trace.sampled) else { return };
        let begun = served.now_ns.saturating_sub(nanos(served.notes.elapsed()));
        let trace_id = Bytes::copy_from_slice(&trace.trace_id.to_be_bytes());
        let id = |id: u64| Bytes::copy_from_slice(&id.to_be_bytes());
        let mut spans = vec![wire::Span {
            trace_id: trace_id.clone(),
            span_id: id(trace.span_id),
            parent_span_id: trace.parent.map(id).unwrap_or_default(),
            name: format!("{} {}", served.method, served.route),
            kind: wire::SERVER,
            start_time_unix_nano: begun,
            end_time_unix_nano: served.now_ns,
            attributes: vec![
                wire::text("http.request.method", served.method),
                wire::text("http.route", served.route),
                wire::number("http.response.status_code", served.status.into()),
                wire::text("artifactd.request_id", served.request_id),
                wire::text("artifactd.key_id", served.notes.key_id()),
                wire::number("artifactd.charged_bytes", served.notes.charged()),
            ],
            status: (served.status >= 500).then_some(wire::Status { code: wire::FAILED }),
        }];
        for (number, (phase, after, took)) in (1..).zip(served.notes.spans()) {
            let start = begun.saturating_add(nanos(after));
            spans.push(wire::Span {
                trace_id: trace_id.clone(),
                // Any id does that no other span of the trace has.
                span_id: id(trace.span_id.wrapping_add(number).max(1)),
                parent_span_id: id(trace.span_id),
                name: phase.name().to_owned(),
                kind: wire::INTERNAL,
                start_time_unix_nano: start,
                end_time_unix_nano: start.saturating_add(nanos(took)),
                attributes: Vec::new(),
                status: None,
            });
        }
        if self.0.try_send(spans).is_err() {
            metrics().spans_dropped.inc();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Begins to send spans to the collector at `endpoint`. The task ends when every [`Spans`] is gone and
/// what they took is sent.
pub fn start(endpoint: &Url) -> (Spans, impl Future<Output = ()> + Send + use<>) {
    let (sender, receiver) = channel(QUEUE);
    let target = format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/'));
    (Spans(sender), send_all(receiver, target))
}

async fn send_all(mut waiting: Receiver<Vec<wire::Span>>, target: String) {
    let client = match reqwest::Client::builder().timeout(PATIENCE).build() {
        Ok(client) => client,
        Err(error) => return tracing::error!(%error, "no traces are sent"),
    };
    let mut failing = false;
    while let Some(first) = waiting.recv().await {
        let mut spans = first;
        let late = tokio::time::sleep(PAUSE);
        tokio::pin!(late);
        while spans.len() < BATCH {
            tokio::select! {
                more = waiting.recv() => match more {
                    Some(more) => spans.extend(more),
                    None => break,
                },
                () = &mut late => break,
            }
        }
        let count = spans.len() as u64;
        let body = wire::Request::of(spans).encode_to_vec();
        let request = client.post(&target).header("content-type", "application/x-protobuf").body(body);
        let failure = match request.send().await.and_then(reqwest::Response::error_for_status) {
            Ok(_) => None,
            Err(error) => Some(error.without_url()),
        };
        if let Some(error) = &failure {
            metrics().spans_dropped.inc_by(count);
            if !failing {
                tracing::warn!(%error, "the collector takes no traces: they are dropped until it does");
            }
        } else if failing {
            tracing::info!("the collector takes traces again");
        }
        failing = failure.is_some();
    }
}

/// The messages of `opentelemetry/proto/collector/trace/v1` and what they are made of, as far as they
/// are sent.
mod wire {
    use bytes::Bytes;

    pub(super) const INTERNAL: i32 = 1;
    pub(super) const SERVER: i32 = 2;
    pub(super) const FAILED: i32 = 2;

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Request {
        #[prost(message, repeated, tag = "1")]
        resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Resource {
        #[prost(message, repeated, tag = "1")]
        attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct ScopeSpans {
        #[prost(message, optional, tag = "1")]
        scope: Option<Scope>,
        #[prost(message, repeated, tag = "2")]
        spans: Vec<Span>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Scope {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        version: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Span {
        #[prost(bytes = "bytes", tag = "1")]
        pub(super) trace_id: Bytes,
        #[prost(bytes = "bytes", tag = "2")]
        pub(super) span_id: Bytes,
        #[prost(bytes = "bytes", tag = "4")]
        pub(super) parent_span_id: Bytes,
        #[prost(string, tag = "5")]
        pub(super) name: String,
        #[prost(int32, tag = "6")]
        pub(super) kind: i32,
        #[prost(fixed64, tag = "7")]
        pub(super) start_time_unix_nano: u64,
        #[prost(fixed64, tag = "8")]
        pub(super) end_time_unix_nano: u64,
        #[prost(message, repeated, tag = "9")]
        pub(super) attributes: Vec<KeyValue>,
        #[prost(message, optional, tag = "15")]
        pub(super) status: Option<Status>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Status {
        #[prost(int32, tag = "3")]
        pub(super) code: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct KeyValue {
        #[prost(string, tag = "1")]
        key: String,
        #[prost(message, optional, tag = "2")]
        value: Option<AnyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct AnyValue {
        #[prost(oneof = "Value", tags = "1, 3")]
        value: Option<Value>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    enum Value {
        #[prost(string, tag = "1")]
        Text(String),
        #[prost(int64, tag = "3")]
        Number(i64),
    }

    fn attribute(key: &str, value: Value) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }

    pub(super) fn text(key: &str, value: &str) -> KeyValue {
        attribute(key, Value::Text(value.to_owned()))
    }

    pub(super) fn number(key: &str, value: u64) -> KeyValue {
        attribute(key, Value::Number(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    impl Request {
        pub(super) fn of(spans: Vec<Span>) -> Self {
            let (name, version) = ("artifactd".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
            let resource =
                Resource { attributes: vec![text("service.name", &name), text("service.version", &version)] };
            let scope_spans = vec![ScopeSpans { scope: Some(Scope { name, version }), spans }];
            Self { resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }] }
        }
    }
}
