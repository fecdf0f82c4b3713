//! API keys kept in a file.
//!
//! A key is `epk_` and 64 hex digits. It is shown once, when it is made; the file holds its SHA-256
//! only, and a key is looked up by that. A file is TOML, one `[[keys]]` table per key:
//!
//! ```toml
//! [[keys]]
//! key_id    = "ci-reader"
//! kind      = "project"                 # project, personal or operator
//! sha256    = "…"                       # 64 hex digits
//! created   = 2026-11-29T12:00:00Z
//! expires   = 2027-11-29T12:00:00Z      # optional
//! disabled  = false                     # optional
//! workspace = "default"
//! project   = "demo"
//! preset    = "read-only"               # or capabilities = ["jobs.read", …]
//!
//! [[keys]]
//! key_id  = "ada"
//! kind    = "personal"
//! sha256  = "…"
//! created = 2026-11-29T12:00:00Z
//! grants  = [{ workspace = "default", project = "demo", preset = "project-automation" }]
//! ```
//!
//! [`parse`] reads it strictly, [`ring`] decides who a request is, [`write`](mod@write) changes the file for
//! the command line, and [`watch`] keeps a running service at the file's present state.

pub mod parse;
pub mod ring;
pub mod secret;
pub mod watch;
pub mod write;

pub use parse::{Access, Grant, InvalidKeys, Key, Scope};
pub use ring::KeyRing;
pub use secret::{KeyHash, Secret};
pub use watch::{POLL, WatchedKeys};
pub use write::{KeyFile, KeyFileError};
