//! The service over its own wire: a real listener, a real ledger on disk, a real store.

#![allow(unreachable_pub, reason = "the modules of one test binary share their items")]

mod agents;
mod content;
mod crash;
mod faults;
mod hostile;
mod identity;
mod listing;
mod metering;
mod probe;
mod raw;
mod service;
