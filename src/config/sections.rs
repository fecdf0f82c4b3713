//! The settings, section by section. This is where each of them is documented.

use std::path::PathBuf;

use serde::Deserialize;

use super::address::Address;
use super::names;
use super::secret::Secret;
use super::setting::{Form, Preset, section};
use crate::artifact::ProjectId;
use crate::bytesize::ByteSize;
use crate::ledger::{Allowance, ResetZone};

const fn count(least: u64, most: u64) -> Form {
    Form::Number { unit: "", least, most }
}

const fn seconds(least: u64, most: u64) -> Form {
    Form::Number { unit: "seconds", least, most }
}

const ADDRESS: Form = Form::Text("host:port, such as 127.0.0.1:8080, localhost:8080 or [::1]:8080", |text| {
    text.parse::<Address>().is_ok()
});

const fn text(what: &'static str) -> Form {
    Form::Text(what, |_| true)
}

section! {
    /// All settings.
    pub struct Config of "" {
        /// Where to listen. Port 0 takes a free one.
        listen: Address = Preset::Is("127.0.0.1:8080"), ADDRESS;
        /// How clients reach the service: what links begin with. Its host is allowed in the `Host` header of
        /// MCP requests.
        public_url: Option<url::Url> = Preset::Unset, Form::Text("a URL such as https://artifacts.example.com", names::is_web);
        with {
            /// Where the artifacts are.
            store: StoreConfig;
            /// Where the account books are.
            ledger: LedgerConfig;
            /// What projects may download.
            quota: QuotaConfig;
            /// Who may ask.
            access: AccessConfig;
            /// Signed links; without keys there are none.
            links: LinksConfig;
            /// Which names the service answers to, and where it shows its metrics.
            http: HttpConfig;
            /// Bounds on what clients can tie up.
            limits: Limits;
            /// What is logged, and how.
            log: LogConfig;
            /// Traces, over OTLP.
            traces: TracesConfig;
        }
    }
}

section! {
    /// Where the artifacts are.
    pub struct StoreConfig of "store" {
        /// `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `file:///directory` or
        /// `memory:///`. Credentials come from the provider's usual environment variables (`AWS_*`, `GOOGLE_*`,
        /// `AZURE_*`).
        url: String = Preset::Required, text("a URL such as s3://bucket/prefix or file:///directory");
        /// Where artifacts lie below it: a template of the segments `{workspace}`, `{project}` and `{trial}`.
        /// Without it `{project}/{trial}/`, or `{trial}/` with `single_project`.
        layout: Option<String> = Preset::Unset, text("a template such as \"{project}/{trial}/\"");
        /// Serve this project alone; then the layout need not name it.
        single_project: Option<ProjectId> = Preset::Unset, Form::Text("a project id, 1 to 128 of A-Z a-z 0-9 _ : -", |text| ProjectId::parse(text).is_ok());
        /// How long a read of an object store may begin without looking at the object first, once its size and
        /// ETag were seen: by a listing, a look or a read. An object that was replaced since is found by opening it,
        /// so no answer is older for it; it saves a request to the store. 0 looks before every read.
        cache_seconds: u64 = Preset::Is("5"), seconds(0, 300);
    }
}

section! {
    /// Where the account books are.
    pub struct LedgerConfig of "ledger" {
        /// `embedded:///path/ledger.db`: one node, durable on its disk. For any number of replicas, Redis 7 or
        /// later: `redis://[[user]:password@]host[:port][/db]`, `redis+sentinel://…host,host/master-name[/db]`
        /// or `redis-cluster://…host,host`; `rediss` in place of `redis` is TLS. This or `url_file` is required.
        url: Option<Secret> = Preset::Unset, Form::Secret("a URL such as redis://host:6379 or embedded:///path/ledger.db");
        /// A file that holds the URL instead, so that its password stands in no settings file.
        url_file: Option<PathBuf> = Preset::Unset, Form::File;
        /// What every key in Redis begins with; services that share a Redis differ in it.
        namespace: String = Preset::Is("artifactd"), Form::Text("1 to 64 characters of A-Z a-z 0-9 . _ - :", crate::ledger::redis::is_namespace);
        /// How long a call to Redis may take, connecting included.
        timeout_ms: u64 = Preset::Is("1000"), Form::Number { unit: "milliseconds", least: 50, most: 60_000 };
        /// Calls to Redis under way at once; further ones wait.
        in_flight: usize = Preset::Is("1024"), count(1, 100_000);
        /// Certificates (PEM) that a `rediss` server is checked against, instead of the public authorities.
        ca_file: Option<PathBuf> = Preset::Unset, Form::File;
        /// Refuse a Redis that may lose charges (no append-only file, a policy that evicts) instead of warning,
        /// and do not start without Redis.
        require_durable: bool = Preset::Is("false"), Form::Flag;
        /// How long a lease lives after its last renewal.
        lease_seconds: u64 = Preset::Is("30"), seconds(1, 3600);
        /// The most that one grant lets out ahead of the books.
        credit: ByteSize = Preset::Is("8 MiB"), Form::Bytes { least: 64 << 10, most: 1 << 30 };
    }
}

section! {
    /// What projects may download.
    pub struct QuotaConfig of "quota" {
        /// What a project may download a day, unless an operator set another allowance for it.
        daily_bytes: Allowance as "crate::bytesize::deserialize_allowance" =
            Preset::Is("50 GiB"), Form::Allowance, reloads;
        /// The zone whose midnight begins a day.
        reset_zone: String = Preset::Is("UTC"), Form::Text("an IANA name such as UTC or Europe/Berlin", |text| ResetZone::parse(text).is_ok());
        /// The share of the allowance at which people are warned: in `/v1/quota`, in `RateLimit`, and by each
        /// replica once a day and project in the log.
        warn_percent: u8 = Preset::Is("80"), Form::Number { unit: "percent", least: 1, most: 100 };
        /// Days that the audit and the totals of a day are kept, today apart. All replicas must agree on this and
        /// on `audit_entries`.
        retention_days: u32 = Preset::Is("35"), Form::Number { unit: "days", least: 1, most: 400 };
        /// Reads of a project that have a line of their own in a day's audit, some 190 bytes each; further ones
        /// are added to one line per hour, key, channel and outcome.
        audit_entries: u64 = Preset::Is("100000"), count(1, 100_000);
    }
}

section! {
    /// Who may ask.
    pub struct AccessConfig of "access" {
        /// The key file, as `artifactd keys` writes it. A change of it is in force within two seconds.
        /// This or `upstream` is required.
        keys_file: Option<PathBuf> = Preset::Unset, Form::File;
        /// A platform that knows the keys instead: its `GET /v1/me` is asked with the caller's `Authorization`,
        /// `X-Workspace-ID` and `X-Project-ID`. Signed links then live at most an hour.
        upstream: Option<url::Url> = Preset::Unset, Form::Text("a URL such as https://platform.example.com", names::is_web);
        /// How long an answer of the platform is good without asking again, and so how long a key that was
        /// withdrawn may still be used. A refusal is good for 5 seconds at most.
        upstream_fresh_seconds: u64 = Preset::Is("10"), seconds(0, 300);
        /// While the platform does not answer, what it last said of a key is good for so long, counted from when
        /// it said it; other keys get 503 `ACCESS_UNAVAILABLE`. 0 lets nobody in without an answer.
        upstream_grace_seconds: u64 = Preset::Is("60"), seconds(0, 3600);
        /// How long the platform may take to answer.
        upstream_timeout_ms: u64 = Preset::Is("3000"), Form::Number { unit: "milliseconds", least: 50, most: 60_000 };
    }
}

section! {
    /// Signed links; without keys there are none. They also need `public_url`.
    pub struct LinksConfig of "links" {
        /// The signing keys, at most 8: the first signs, links signed by any of them are good. Each has an `id`
        /// of 1 to 64 of `A-Z a-z 0-9 . _ -`, and a `secret_file` of at least 32 bytes, such as
        /// `head -c 32 /dev/urandom | base64` makes; line breaks at its end do not count. To rotate, put a new one
        /// first and take the old one out when its last links have expired.
        keys: Vec<LinkKey> = Preset::Is("[]"), Form::SigningKeys, reloads;
    }
}

/// One of `[links] keys`.
#[derive(Debug, Clone, Deserialize)]
pub struct LinkKey {
    /// Its name in tokens: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub id: String,
    /// The file with its secret: at least 32 bytes; line breaks at its end do not count.
    pub secret_file: PathBuf,
}

section! {
    /// Which names the service answers to, and where it shows its metrics.
    pub struct HttpConfig of "http" {
        /// Hosts that MCP requests may name, besides loopback and the host of `public_url`.
        allowed_hosts: Vec<String> = Preset::Is("[]"), Form::Texts("names, or names with a port, such as files.example.com");
        /// Origins that browsers may send MCP requests from, besides loopback and the origin of `public_url`.
        allowed_origins: Vec<String> = Preset::Is("[]"), Form::Texts("origins, such as https://app.example.com");
        /// Proxies whose `X-Forwarded-For` or `Forwarded` is believed: it says from where a request comes, in the
        /// log. Addresses and networks; where both fields are there and do not agree, neither is believed.
        trusted_proxies: Vec<String> = Preset::Is("[]"), Form::Texts("addresses or networks, such as 10.0.0.0/8");
        /// Where `/metrics` is served alone, so that clients do not reach it. Without it `/metrics` is served
        /// beside the API.
        metrics_listen: Option<Address> = Preset::Unset, ADDRESS;
    }
}

section! {
    /// Bounds on what clients can tie up.
    pub struct Limits of "limits" {
        /// Open connections, and so requests under way. Of further ones, 64 at a time are answered 503
        /// `OVERLOADED` and closed (probes and `/metrics` are answered as ever); the rest wait for that. Fewer
        /// where the process may not open two files for each.
        connections: usize = Preset::Is("4096"), count(1, 1_000_000);
        /// How long a request's head may take to arrive, and so how long a connection may be idle between two
        /// requests.
        head_seconds: u64 = Preset::Is("60"), seconds(1, 600);
        /// A request's head. About as much of an answer lies ready for a client that does not take it.
        head_bytes: ByteSize = Preset::Is("32 KiB"), Form::Bytes { least: 8 << 10, most: 1 << 20 };
        /// An MCP request's body.
        mcp_body_bytes: ByteSize = Preset::Is("256 KiB"), Form::Bytes { least: 1 << 10, most: 16 << 20 };
        /// How long one call of an MCP tool may take. Clients give up at 60.
        mcp_call_seconds: u64 = Preset::Is("45"), seconds(1, 600);
        /// Requests that one key may have under way, those to MCP apart.
        requests_per_key: usize = Preset::Is("1024"), count(1, 1_000_000);
        /// Requests that all keys of one project may have under way, those to MCP apart.
        requests_per_project: usize = Preset::Is("2048"), count(1, 1_000_000);
        /// Calls of MCP tools that one key may have running.
        mcp_calls_per_key: usize = Preset::Is("16"), count(1, 10_000);
        /// Files in one archive. Each takes some 300 bytes of memory while the archive is read.
        archive_entries: usize = Preset::Is("100000"), count(1, 1_000_000);
        /// A client that takes nothing for so long is cut.
        stall_seconds: u64 = Preset::Is("60"), seconds(1, 3600);
        /// A client that, while the service waits for it, takes less than so many bytes a second over
        /// `stall_seconds` is cut too. Much less than the default does not work: it must take a chunk of up to
        /// 256 KiB within `stall_seconds`.
        least_rate: ByteSize = Preset::Is("4 KiB"), Form::Bytes { least: 0, most: 1 << 20 };
        /// Open reads of one project.
        project_streams: usize = Preset::Is("1024"), count(1, 1_000_000);
        /// Open reads of all projects.
        streams: usize = Preset::Is("4096"), count(1, 1_000_000);
        /// How long a request waits for its admission by the ledger.
        admission_seconds: u64 = Preset::Is("2"), seconds(1, 60);
        /// How long a stop may take in all. Running answers may go on for all of it but its last fifth, 1 to 5
        /// seconds, in which those that are cut are settled. A second SIGTERM cuts them at once.
        drain_seconds: u64 = Preset::Is("25"), seconds(0, 3600);
    }
}

section! {
    /// What is logged, and how.
    pub struct LogConfig of "log" {
        /// Which lines, as `tracing` filters are written. No line holds a secret, at `trace` neither. Lines
        /// that tell who changed the account books (`artifactd::changes`) are written in any case.
        filter: String = Preset::Is("info"), text("a filter such as info, or warn,artifactd=debug");
        /// How they look: for people, or one JSON object a line.
        format: LogFormat = Preset::Is("text"), Form::OneOf(&["text", "json"]);
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

section! {
    /// Traces, sent over OTLP (HTTP, protobuf). Without an endpoint there are none.
    pub struct TracesConfig of "traces" {
        /// The collector: spans go to `/v1/traces` below it.
        endpoint: Option<url::Url> = Preset::Unset, Form::Text("a URL such as http://127.0.0.1:4318", names::is_web);
        /// Of 100 requests that bring no `traceparent` so many are traced; one that does decides itself.
        sample_percent: u64 = Preset::Is("10"), Form::Number { unit: "percent", least: 0, most: 100 };
    }
}
