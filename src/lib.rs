//! artifactd hands the files of agent evaluations to the coding agents, people and scripts that
//! need to read them, and meters every read.

pub mod access;
pub mod artifact;
pub mod bytesize;
pub mod error;
pub mod ledger;
pub mod store;
