//! `artifactd quota`: how an account stands, and where its bytes went, asked of a running service.
//!
//! Exit codes: 0; 1 if the answer is no (`verify`: not balanced, `check`: not admitted); 2 if there
//! was none.

mod client;
mod show;

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;

use super::{Failure, answer, note};
use crate::artifact::{ProjectId, TrialId, WorkspaceId};
use crate::bytesize::{ByteSize, parse_allowance};
use crate::ledger::{Allowance, Channel, Day, Outcome};
use crate::quota::GroupBy;
use client::Client;

/// Entries shown if no number is given.
const DEFAULT_ENTRIES: usize = 25;
/// Entries that one page has at most.
const PAGE: usize = 100;

/// Options of `artifactd quota`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    service: Service,
    /// Print JSON, as the service answers it
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

/// Which service, and who asks.
#[derive(Debug, clap::Args)]
struct Service {
    /// Where the service is
    #[arg(long, global = true, value_name = "URL", env = "ARTIFACTD_URL", default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// The file with the key; without it the key is taken from the variable `ARTIFACTD_KEY`
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The project: for operators any, for personal keys one of theirs
    #[arg(long, global = true, value_parser = ProjectId::parse)]
    project: Option<ProjectId>,
    /// The project's workspace, for personal keys
    #[arg(long, global = true, value_parser = WorkspaceId::parse)]
    workspace: Option<WorkspaceId>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show how the account stands today
    Show,
    /// Ask whether a read of a file of that size would be admitted now; exit 1 if not
    Check {
        /// The size, such as "8 MiB"
        bytes: ByteSize,
    },
    /// Show the last days
    History {
        /// How many, today included; at most those that are kept
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        days: Option<u32>,
    },
    /// Show the entries of a day, newest first
    Audit(Audit),
    /// Add a day up again and compare; exit 1 if it does not balance
    Verify {
        /// The day, such as 2026-11-29 [default: today]
        #[arg(long, value_parser = day)]
        day: Option<Day>,
    },
    /// Show, set or clear the allowance that --project has instead of the default
    Allowance {
        #[command(subcommand)]
        action: AllowanceAction,
    },
    /// Correct what was charged to a day of --project
    Adjust {
        /// Your name for this correction: repeated with the same, it is applied once
        #[arg(long)]
        id: String,
        /// The day, such as 2026-11-29
        #[arg(long, value_parser = day)]
        day: Day,
        /// How much to charge, or with a minus to give back, such as "-8 MiB"
        #[arg(long, value_parser = signed, allow_hyphen_values = true)]
        bytes: i64,
        /// Why; it stands in the audit
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, clap::Args)]
struct Audit {
    /// The day, such as 2026-11-29 [default: today]
    #[arg(long, value_parser = day)]
    day: Option<Day>,
    /// Only this trial
    #[arg(long, value_name = "TRIAL", value_parser = TrialId::parse)]
    trial: Option<TrialId>,
    /// Only this key
    #[arg(long)]
    key_id: Option<String>,
    /// Only this channel: mcp, http or link
    #[arg(long, value_parser = Channel::ALL.map(Channel::as_str))]
    channel: Option<String>,
    /// Only this outcome
    #[arg(long, value_parser = Outcome::ALL.map(Outcome::as_str))]
    outcome: Option<String>,
    /// How many entries [default: 25]
    #[arg(long, conflicts_with_all = ["by", "export"])]
    limit: Option<usize>,
    /// Add them up by these, by commas
    #[arg(long, value_delimiter = ',', value_parser = GroupBy::ALL.map(GroupBy::as_str), conflicts_with = "export")]
    by: Vec<String>,
    /// Write all of them to standard output
    #[arg(long, value_enum)]
    export: Option<Export>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Export {
    /// One JSON object a line
    Ndjson,
    /// For spreadsheets
    Csv,
}

#[derive(Debug, clap::Subcommand)]
enum AllowanceAction {
    /// Show it, and who set it
    Show,
    /// Set it, at once
    Set {
        /// Bytes a day, such as "100 GiB", or unlimited
        #[arg(value_parser = parse_allowance)]
        daily_bytes: Allowance,
        /// When the default is in force again, such as 2026-12-01T00:00:00Z
        #[arg(long)]
        until: Option<Timestamp>,
        /// Why
        #[arg(long)]
        reason: String,
    },
    /// Return to the default, at once
    Clear,
}

fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "a day is such as 2026-11-29".to_owned())
}

fn signed(text: &str) -> Result<i64, String> {
    let (minus, amount) = text.strip_prefix('-').map_or((false, text), |amount| (true, amount));
    let bytes = amount.parse::<ByteSize>().map_err(|error| error.to_string())?.bytes();
    let bytes = i64::try_from(bytes).map_err(|error| error.to_string())?;
    Ok(if minus { -bytes } else { bytes })
}

/// The answer is no.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct No(String);

/// There was no answer.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct Unanswered(Failure);

/// Asks, and prints the answer.
///
/// # Errors
/// [`No`], or [`Unanswered`] for everything else.
pub(super) fn run(options: Options) -> Result<(), Failure> {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(ask(options)));
    outcome.map_err(|error| if error.is::<No>() { error } else { Unanswered(error).into() })
}

async fn ask(options: Options) -> Result<(), Failure> {
    let Options { service, json, action } = options;
    let client = Client::new(&service)?;
    let print =
        |value: &Value, table: fn(&Value) -> String| answer(&if json { format!("{value}\n") } else { table(value) });
    match action {
        Action::Show => print(&client.get("quota", &[]).await?, show::usage),
        Action::Check { bytes } => {
            let value = client.get("quota/check", &[("bytes", Some(bytes.bytes().to_string()))]).await?;
            print(&value, show::check)?;
            if value["admitted"] == true { Ok(()) } else { Err(No("it would not be admitted now".to_owned()).into()) }
        }
        Action::History { days } => {
            let query = [("days", days.map(|days| days.to_string()))];
            print(&client.get("quota/history", &query).await?, show::history)
        }
        Action::Verify { day } => {
            let query = [("day", day.map(|day| day.to_string()))];
            let value = client.get("quota/audit/verify", &query).await?;
            print(&value, show::verification)?;
            if value["balanced"] == true { Ok(()) } else { Err(No("the books do not balance".to_owned()).into()) }
        }
        Action::Audit(audit) => {
            let query = audit.query();
            if let Some(export) = audit.export {
                let media_type = match export {
                    Export::Ndjson => "application/x-ndjson",
                    Export::Csv => "text/csv",
                };
                return client.stream("quota/audit", &query, media_type, std::io::stdout().lock()).await;
            }
            if !audit.by.is_empty() {
                return print(&client.get("quota/audit", &query).await?, show::groups);
            }
            print(&entries(&client, query, audit.limit.unwrap_or(DEFAULT_ENTRIES)).await?, show::entries)
        }
        Action::Allowance { action } => {
            let path = format!("projects/{}/allowance", named(&service)?);
            match action {
                AllowanceAction::Show => print(&client.get(&path, &[]).await?, show::allowance),
                AllowanceAction::Set { daily_bytes, until, reason } => {
                    let daily_bytes = daily_bytes.bytes().map_or_else(|| json!("unlimited"), |bytes| json!(bytes));
                    let body = json!({"daily_bytes": daily_bytes, "until": until, "reason": reason});
                    print(&client.send(http::Method::PUT, &path, Some(&body)).await?, show::allowance)
                }
                AllowanceAction::Clear => {
                    client.send(http::Method::DELETE, &path, None).await?;
                    note("The default allowance is in force.");
                    Ok(())
                }
            }
        }
        Action::Adjust { id, day, bytes, reason } => {
            let path = format!("projects/{}/adjustments", named(&service)?);
            let body = json!({"adjustment_id": id, "day": day, "bytes": bytes, "reason": reason});
            print(&client.send(http::Method::POST, &path, Some(&body)).await?, show::adjustment)
        }
    }
}

fn named(service: &Service) -> Result<&ProjectId, Failure> {
    service.project.as_ref().ok_or_else(|| "--project is needed: it says whose account is meant".into())
}

type Query = Vec<(&'static str, Option<String>)>;

impl Audit {
    fn query(&self) -> Query {
        vec![
            ("day", self.day.map(|day| day.to_string())),
            ("trial_id", self.trial.as_ref().map(ToString::to_string)),
            ("key_id", self.key_id.clone()),
            ("channel", self.channel.clone()),
            ("outcome", self.outcome.clone()),
            ("group_by", (!self.by.is_empty()).then(|| self.by.join(","))),
        ]
    }
}

/// The first `limit` entries, from as many pages as that takes, as one.
async fn entries(client: &Client, query: Query, limit: usize) -> Result<Value, Failure> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let mut query = query.clone();
        let wanted = limit.saturating_sub(all.len()).clamp(1, PAGE);
        query.extend([("limit", Some(wanted.to_string())), ("cursor", cursor)]);
        let mut page = client.get("quota/audit", &query).await?;
        if let Value::Array(items) = page["items"].take() {
            all.extend(items);
        }
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() || all.len() >= limit {
            page["items"] = Value::Array(all);
            return Ok(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_amounts() {
        for (text, bytes) in [
            ("5", Ok(5)),
            ("-5", Ok(-5)),
            ("-8 MiB", Ok(-8 << 20)),
            ("9007199254740991", Ok((1 << 53) - 1)),
            ("--5", Err(())),
            ("- 5", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(signed(text).map_err(|_| ()), bytes, "{text}");
        }
    }
}
