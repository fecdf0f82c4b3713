//! The front against a store in memory and a real ledger, without a network.

mod http_rules;
mod read_tool;
mod world;
