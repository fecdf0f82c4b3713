//! Every ledger against its contract, against the model, and against a hostile machine.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

#[path = "../support/mod.rs"]
mod servers;

mod contract;
mod durability;
mod model;
mod redis;
mod support;
