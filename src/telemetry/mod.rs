//! What the service says about itself.
//!
//! - [`logs`]: lines on standard error, one of them a request.
//! - [`metrics`](mod@metrics): counters, gauges and histograms for Prometheus, all in one list.
//! - [`request`]: what is noted of one request while it is served: who asks, how long each phase
//!   takes, what it is charged. Log line and trace are made of it.
//! - [`trace`]: the W3C trace context; [`otlp`] sends spans to a collector.
//! - [`observed`]: store, ledger and authenticator, with what they do being counted and timed.
//! - [`health`]: how the store and the ledger are doing, for `/readyz?verbose`.

mod access_line;
pub mod health;
pub mod logs;
pub mod metrics;
pub mod observed;
pub mod otlp;
mod process;
pub mod request;
mod series;
pub mod trace;

pub(crate) use logs::filter;
pub use logs::{CHANGES, start};
pub use metrics::metrics;
