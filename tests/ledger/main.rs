//! Every ledger against its contract, against the model, and against a hostile machine.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test stops where it fails, and says what it saw")]

#[path = "../support/mod.rs"]
mod servers;

mod contract;
mod durability;
mod model;
mod redis;
mod support;
