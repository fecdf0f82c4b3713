//! Every ledger against its contract, against the model, and against a hostile machine.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod contract;
mod durability;
mod model;
mod support;
