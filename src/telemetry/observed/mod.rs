//! Store, ledger and authenticator with what they do being counted and timed. Each stands before
//! another of its kind and changes nothing of what that answers.

mod access;
mod ledger;
mod store;

pub use access::ObservedAccess;
pub use ledger::ObservedLedger;
pub use store::ObservedStore;
