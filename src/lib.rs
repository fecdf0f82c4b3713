//! artifactd hands the files of agent evaluations to the coding agents, people and scripts that
//! need to read them, and meters every read.

pub mod access;
pub mod artifact;
pub mod bytesize;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod cursor;
pub mod demo;
pub mod error;
pub mod http;
pub mod ledger;
pub mod listing;
pub mod mcp;
pub mod quota;
pub mod read;
pub mod request;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod verdict;
