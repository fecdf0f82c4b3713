//! Store, ledger and authenticator with what they do being counted and timed. Each stands before
//! another of its kind and changes nothing of what that answers.

/// The [`Call`](super::metrics::Call) of this name, of which there is one.
macro_rules! call {
    ($name:literal) => {{
        static CALL: $crate::telemetry::metrics::Call = $crate::telemetry::metrics::Call::new($name);
        &CALL
    }};
}

mod access;
mod ledger;
mod store;

pub use access::ObservedAccess;
pub use ledger::ObservedLedger;
pub use store::ObservedStore;
