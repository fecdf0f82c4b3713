//! Every metric, in one list.
//!
//! A label's value is a `&'static str` or a number that the service makes: no text of a client can
//! become one, so the number of time series is bounded by the program. What is counted here costs a
//! lookup in a small table and an atomic addition.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::process::Process;
use super::series::Series;
use crate::ledger::Channel;

/// The media type of the exposition: Prometheus' text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The most routes that have series of their own: more than the router has.
const ROUTES: usize = 128;

/// Labels of one request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The route's pattern.
    pub route: &'static str,
    /// The method.
    pub method: &'static str,
    /// The answer's status; 499 where the client did not stay for all of it.
    pub status: u32,
}

/// Labels of what is told apart by its route alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    /// The route's pattern.
    pub route: &'static str,
}

/// Labels of a call to the store or the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// Which call.
    pub call: &'static str,
    /// How it ended: `ok`, or the kind of error.
    pub result: &'static str,
}

/// A call to the store or the ledger, whose good answers are counted without a lookup once there was one.
pub struct Call {
    name: &'static str,
    ok: OnceLock<Histogram>,
}

impl Call {
    /// The call of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, ok: OnceLock::new() }
    }

    /// Counts in `family` an answer that took so long: `ok`, or the kind of error.
    pub fn took(&self, family: &Seconds<CallLabels>, result: &'static str, time: Duration) {
        let labels = CallLabels { call: self.name, result };
        if result == "ok" {
            self.ok.get_or_init(|| family.get_or_create_owned(&labels)).observe(time.as_secs_f64());
        } else {
            family.get_or_create(&labels).observe(time.as_secs_f64());
        }
    }
}

macro_rules! one_label {
    ($($(#[doc = $doc:literal])+ $name:ident($label:ident);)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub struct $name {
            $(#[doc = $doc])+
            pub $label: &'static str,
        }
    )+};
}

one_label! {
    /// The way that bytes went: `http`, `mcp`, `link`.
    ChannelLabels(channel);
    /// The code of an error.
    CodeLabels(code);
    /// How a read ended.
    OutcomeLabels(outcome);
    /// What was found out about an image: `sound`, or the reason why it is not shown.
    VerdictLabels(verdict);
    /// How something went: `ok` or `failed`.
    ResultLabels(result);
    /// What became of a look at an object that memory was to save: a `hit`, a `miss`, or `stale`.
    RecallLabels(recall);
    /// The version of the program.
    VersionLabels(version);
}

/// A histogram of seconds for each of several labels.
pub type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

/// Makes [`Metrics`] of the list: field, type, name without its prefix and unit, meaning, and how it is
/// made where its default does not do.
macro_rules! metrics {
    ($($field:ident: $type:ty = $name:literal $(in $unit:ident)?, $help:literal $(, $make:expr)?;)+) => {
        /// The metrics of the process.
        pub struct Metrics {
            registry: Registry,
            $(#[doc = $help] pub $field: $type,)+
        }

        impl Metrics {
            fn new() -> Self {
                let mut registry = Registry::default();
                registry.register_collector(Box::new(Process));
                let own = registry.sub_registry_with_prefix("artifactd");
                let build = Info::new(VersionLabels { version: env!("CARGO_PKG_VERSION") });
                own.register("build", "The version of the program", build);
                $(
                    let $field: $type = metrics!(@make $($make)?);
                    metrics!(@register own, $name, $help, $field.clone() $(, $unit)?);
                )+
                Self { registry, $($field,)+ }.begun()
            }
        }
    };
    (@make) => { Default::default() };
    (@make $make:expr) => { $make };
    (@register $own:ident, $name:literal, $help:literal, $metric:expr) => { $own.register($name, $help, $metric) };
    (@register $own:ident, $name:literal, $help:literal, $metric:expr, $unit:ident) => {
        $own.register_with_unit($name, $help, Unit::$unit, $metric)
    };
}

metrics! {
    requests: Family<RequestLabels, Counter> =
        "requests", "Requests that were answered, by route, method and status; 499 where the client left";
    request_seconds: Seconds<RouteLabels> = "request_duration" in Seconds,
        "From the head of a request to the last byte of its answer", Seconds::new_with_constructor(latency);
    answer_bytes: Family<RouteLabels, Counter> = "answer" in Bytes, "Bytes of the bodies of answers";
    connections: Gauge = "connections_open", "Connections that are open";
    reads: Gauge = "reads_open", "Reads that are open, each with a reservation";
    charged_bytes: Series<ChannelLabels, Counter> =
        "charged" in Bytes, "Bytes that reads are charged, by the way they went";
    refusals: Family<CodeLabels, Counter> = "refusals", "Requests that were answered with an error, by its code";
    reservation_seconds: Series<OutcomeLabels, Histogram> = "reservation_age" in Seconds,
        "How old reservations are when they end, by how the read ended", Seconds::new_with_constructor(age as fn() -> _).into();
    ledger_seconds: Seconds<CallLabels> =
        "ledger_call" in Seconds, "Calls to the ledger, by call and result", Seconds::new_with_constructor(latency);
    store_seconds: Seconds<CallLabels> = "store_call" in Seconds,
        "Calls to the store until their answer begins, by call and result", Seconds::new_with_constructor(latency);
    recalls: Series<RecallLabels, Counter> = "store_recalls",
        "Reads of what the service may have seen seconds ago: a hit saves a look at the store; stale, if it had changed";
    verdicts: Family<VerdictLabels, Counter> = "verdicts", "Images that were judged, by verdict";
    verdict_seconds: Histogram =
        "verdict_duration" in Seconds, "How long the verdict on an image takes, its turn included", latency();
    sweeps: Family<ResultLabels, Counter> = "sweeps", "Looks for leases that ran out";
    expired_leases: Counter = "expired_leases", "Leases of silent projects that ran out and were charged their grant";
    lost_leases: Counter = "lost_leases", "Open leases that the ledger no longer knew";
    unreserved_entries: Counter =
        "unreserved_entries", "Reads charged without a reservation, since the ledger had lost it";
    late_settles: Counter = "late_settles", "Settles that the ledger did not believe any more";
    abandoned_settles: Counter = "abandoned_settles", "Settles that the ledger did not take in all the time they have";
    quota_warnings: Counter =
        "quota_warnings", "Projects that were found to be near the end of their allowance, once a day each";
    ledger_losses: Counter = "ledger_losses", "Times that the ledger was found to have lost what it held";
    key_file_unusable: Gauge = "key_file_unusable", "1 while the key file cannot be used";
    settings_reads: Family<ResultLabels, Counter> = "settings_reads", "Changed settings that were read while running";
    spans_dropped: Counter = "spans_dropped", "Spans that the collector did not take in time";
    draining: Gauge = "draining", "1 while the service stops";
}

/// The metrics of this process.
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);
    &METRICS
}

impl Metrics {
    /// Begins with 0 what is known beforehand, so that its first increase is seen as one.
    fn begun(self) -> Self {
        for result in ["ok", "failed"] {
            self.sweeps.get_or_create(&ResultLabels { result }).inc_by(0);
            self.settings_reads.get_or_create(&ResultLabels { result }).inc_by(0);
        }
        for recall in ["hit", "miss", "stale"] {
            self.recalls.with(&RecallLabels { recall }, |recalls| recalls.inc_by(0));
        }
        for channel in [Channel::Http, Channel::Mcp, Channel::Link].map(Channel::as_str) {
            self.charged_bytes.with(&ChannelLabels { channel }, |bytes| bytes.inc_by(0));
        }
        self.verdicts.get_or_create(&VerdictLabels { verdict: "sound" }).inc_by(0);
        self
    }

    /// All of them, as Prometheus reads them.
    #[must_use]
    pub fn exposition(&self) -> String {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry).expect("a String takes all text");
        text
    }

    /// Counts what became of a look that memory was to save: `hit`, `miss` or `stale`.
    pub fn recalled(&self, recall: &'static str) {
        self.recalls.with(&RecallLabels { recall }, Counter::inc);
    }

    /// Counts an answer that is an error.
    pub fn refused(&self, code: &'static str) {
        self.refusals.get_or_create(&CodeLabels { code }).inc();
    }
}

/// A route of the service, and what is measured of it.
#[derive(Debug)]
pub struct Route {
    pattern: &'static str,
    /// Of the answers that come first, which are like most.
    requests: OnceLock<(&'static str, u16, Counter)>,
    seconds: OnceLock<Histogram>,
    bytes: OnceLock<Counter>,
}

/// Where requests lead that match no route, or that there is no room for.
pub static NOWHERE: Route = Route::new("-");

impl Route {
    const fn new(pattern: &'static str) -> Self {
        Self { pattern, requests: OnceLock::new(), seconds: OnceLock::new(), bytes: OnceLock::new() }
    }

    /// The route of a pattern. Patterns are written in the program.
    #[must_use]
    pub fn of(pattern: &str) -> &'static Self {
        static KNOWN: LazyLock<RwLock<HashMap<&'static str, &'static Route>>> = LazyLock::new(RwLock::default);
        if let Some(route) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
            return route;
        }
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        match known.get(pattern) {
            Some(route) => route,
            None => {
                let pattern = if known.len() < ROUTES { String::from(pattern).leak() } else { "other" };
                known.entry(pattern).or_insert_with(|| Box::leak(Box::new(Self::new(pattern))))
            }
        }
    }

    /// The pattern, as a label.
    #[must_use]
    pub const fn pattern(&self) -> &'static str {
        self.pattern
    }

    /// Counts an answer.
    pub fn answered(&self, method: &'static str, status: u16, bytes: u64, took: Duration) {
        let (metrics, route) = (metrics(), self.pattern);
        let labels = RequestLabels { route, method, status: status.into() };
        match self.requests.get_or_init(|| (method, status, metrics.requests.get_or_create_owned(&labels))) {
            (first, of, requests) if (*first, *of) == (method, status) => requests.inc(),
            _ => metrics.requests.get_or_create(&labels).inc(),
        };
        let labels = RouteLabels { route };
        self.bytes.get_or_init(|| metrics.answer_bytes.get_or_create_owned(&labels)).inc_by(bytes);
        let seconds = self.seconds.get_or_init(|| metrics.request_seconds.get_or_create_owned(&labels));
        seconds.observe(took.as_secs_f64());
    }
}

/// A method as a label: whatever else a client makes up is one of them.
#[must_use]
pub fn method(method: &http::Method) -> &'static str {
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"].into_iter().find(|name| method == *name).unwrap_or("other")
}

/// From a quarter of a millisecond to half a minute.
fn latency() -> Histogram {
    Histogram::new([0.000_25, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0])
}

/// From a moment to hours.
fn age() -> Histogram {
    Histogram::new([0.01, 0.1, 1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 1800.0, 7200.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_services_own() {
        assert_eq!(Route::of("/v1/trials").pattern(), "/v1/trials");
        assert_eq!(method(&http::Method::GET), "GET");
        assert_eq!(method(&http::Method::from_bytes(b"EVIL").expect("a method")), "other");
    }

    #[test]
    fn every_metric_has_a_help_line_and_the_prefix() {
        metrics().refused("NOT_FOUND");
        let text = metrics().exposition();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert!(name.starts_with("artifactd_") || name.starts_with("process_"), "{line}");
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let name = line.split(' ').next().expect("a name");
            assert!(text.contains(&format!("# HELP {name} ")), "{line}");
        }
        assert!(text.contains("artifactd_refusals_total{code=\"NOT_FOUND\"}"), "{text}");
    }
}
