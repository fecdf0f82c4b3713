//! The front against a store in memory and a real ledger, without a network.

mod answers;
mod bytes;
mod golden;
mod http_rules;
mod limits;
mod near;
mod pictures;
mod read_tool;
mod troubles;
mod wire;
mod world;
