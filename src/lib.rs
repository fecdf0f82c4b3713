//! artifactd hands the files of agent evaluations to the coding agents, people and scripts that
//! need to read them, and meters every read.
//!
//! A *trial* (one agent at one task) leaves *artifacts* behind: logs, screenshots, JSON, archives.
//! They were written by an untrusted run and lie in an object store or a directory. This crate
//! serves them, and its documentation is the architecture document.
//!
//! ```text
//!  coding agent ── POST /v1/mcp ─────────────┐
//!  el, curl, CI ── GET …/artifacts/…/content ┴─► fronts: mcp, http ─► access: principal, capability
//!                                                      │
//!                                     ┌────────────────┼───────────────┐
//!                                     ▼                ▼               ▼
//!                                  listing            read           quota        use cases
//!                                     │     stat ─► reserve whole size │
//!                                     │     ─► open that version       │
//!                                     │     ─► stream that counts      │
//!                                     │     ─► settle, audit entry     │
//!                                     └──► catalog ◄───┴───► ledger ◄──┘
//!                                             │                │
//!                                             ▼                ▼
//!                                           store      embedded (SQLite), Redis    adapters
//!                              S3, GCS, Azure, memory, directory
//! ```
//!
//! # Three promises
//!
//! 1. **No byte is read without a reservation, no byte is lost or charged twice.** Before the first
//!    byte of a file is read, its whole size is reserved against the project's allowance of the
//!    day. What was handed out is charged, the rest given back: on kill -9, on a full disk, on a
//!    client that hangs up. [`ledger`] says how.
//! 2. **Nothing malformed or foreign reaches an agent or a browser as if it were sound.** What a
//!    file is, its bytes say and never its name ([`artifact::media`]); an image is shown only if it
//!    decodes whole ([`artifact::image`]); text stands in a frame that it cannot imitate
//!    ([`mcp`]); a browser gets inert types ([`http`]).
//! 3. **It costs nearly nothing.** One stat, which seconds of memory may save, one reservation, one
//!    ranged read on the way in; the settle follows behind the answer.
//!
//! # The path of a request
//!
//! A front reads the head ([`request`]), asks [`access`] who it is, and gets a
//! [`Principal`](access::Principal). A use case takes no principal but a proof that the principal
//! hands out ([`Viewer`](access::Viewer), [`Downloader`](access::Downloader),
//! [`QuotaReader`](access::QuotaReader), [`QuotaManager`](access::QuotaManager)): a handler that forgets to authorise does not compile. The
//! [`catalog`] is the only way to the [`store`]; it opens an object only for a
//! [`Reservation`](read::Reservation), which only [`read`] can win from the [`ledger`]. An
//! [`Error`](error::Error) carries one of a closed list of kinds; each front turns it into its own
//! kind of answer.
//!
//! # What depends on what
//!
//! [`archive::layout`], [`artifact`], [`link`], [`ledger::state`], [`ledger::day`] and [`cursor`] are
//! pure: no I/O, no clock, no async. Adapters ([`store::local`], [`store::object`],
//! [`ledger::embedded`], [`ledger::redis`]) know the core and their own library. Use cases
//! ([`listing`], [`read`], [`archive`], [`links`], [`quota`]) know the core and the traits
//! [`Store`](store::Store) and [`Ledger`](ledger::Ledger). Fronts know use cases, never an adapter
//! and never each other. Only [`server`] wires. [`telemetry`] stands beside all of them: they tell it
//! what happens, and nothing that they do hangs on it.

pub mod access;
pub mod archive;
pub mod artifact;
pub mod bytesize;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod cursor;
pub mod demo;
mod encoding;
pub mod error;
pub mod http;
pub mod ledger;
pub mod link;
pub mod links;
pub mod listing;
pub mod mcp;
pub mod quota;
pub mod read;
pub mod request;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod verdict;
