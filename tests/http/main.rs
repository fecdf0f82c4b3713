//! The service over its own wire: a real listener, a real ledger on disk, a real store.

#![allow(unreachable_pub, reason = "the modules of one test binary share their items")]

mod agents;
mod archive;
mod content;
mod crash;
mod faults;
mod hostile;
mod identity;
mod letter;
mod links;
mod listing;
mod metering;
mod probe;
mod process;
mod quota;
mod raw;
mod recall;
mod resume;
mod s3;
#[path = "../support/mod.rs"]
mod servers;
mod service;
mod slow;
