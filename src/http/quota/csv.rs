//! Entries as rows of RFC 4180 that a spreadsheet can open without running anything.
//!
//! A cell that begins with `=`, `+`, `-` or `@` is a formula to a spreadsheet, and names come from
//! the evaluated run. Such a text gets an apostrophe in front, which makes it a text; the exact names
//! are in the NDJSON. Every text is quoted, so that no separator of any locale ends its cell. Numbers
//! are not quoted: a negative charge stays a number.

use crate::ledger::{Entry, Subject};

/// The first row.
pub(super) const HEAD: &str = "at,id,outcome,key_id,channel,trial_id,artifact,request_id,link_id,size_bytes,\
                               charged_bytes,count,reason\r\n";

/// A row for each entry.
pub(super) fn rows(entries: &[Entry]) -> String {
    entries.iter().map(row).collect()
}

fn row(entry: &Entry) -> String {
    let context = entry.context();
    let reason = match &entry.subject {
        Subject::Adjustment { reason, .. } => reason,
        Subject::Read(_) | Subject::RolledUp { .. } => "",
    };
    [
        entry.at.timestamp().to_string(),
        text(&entry.id),
        entry.outcome.as_str().to_owned(),
        text(entry.key_id()),
        entry.channel().map_or("", |channel| channel.as_str()).to_owned(),
        text(context.map_or("", |context| context.trial.as_str())),
        text(context.map_or("", |context| context.artifact.as_str())),
        text(context.map_or("", |context| &context.request_id)),
        context.and_then(|context| context.link_id).map(|link| link.to_string()).unwrap_or_default(),
        entry.size.to_string(),
        entry.charged.to_string(),
        entry.count.to_string(),
        text(reason),
    ]
    .join(",")
        + "\r\n"
}

/// A text as a quoted cell; nothing at all if it is empty.
fn text(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    // Some programs skip blanks before they look, and take the wide forms for the narrow ones.
    let first = text.trim_start().chars().next();
    let harmless = !text.starts_with(['\t', '\r', '\n']) && !first.is_some_and(|c| "=+-@＝＋－＠".contains(c));
    format!("\"{}{}\"", if harmless { "" } else { "'" }, text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{ArtifactName, TrialId};
    use crate::ledger::{Channel, Context, LedgerTime, LinkId, Outcome};

    #[test]
    fn no_text_is_a_formula_or_ends_its_cell() {
        for (from, cell) in [
            ("", ""),
            ("a.txt", "\"a.txt\""),
            ("a,b;c", "\"a,b;c\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("日本", "\"日本\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            (" =1", "\"' =1\""),
            ("\u{a0}=1", "\"'\u{a0}=1\""),
            ("＝1", "\"'＝1\""),
            ("\t1", "\"'\t1\""),
            ("\"=1", "\"\"\"=1\""),
            ("a=1", "\"a=1\""),
            ("'", "\"'\""),
        ] {
            assert_eq!(text(from), cell, "{from:?}");
        }
    }

    #[test]
    fn rows_of_every_kind() {
        let entry = |id: &str, subject, charged, outcome, count| Entry {
            at: LedgerTime(1_795_953_600_000),
            id: id.to_owned(),
            subject,
            size: 9,
            charged,
            outcome,
            count,
        };
        let context = Context {
            key_id: "k".to_owned(),
            channel: Channel::Link,
            trial: TrialId::parse("t1").expect("valid"),
            artifact: ArtifactName::parse("=HYPERLINK(\"x\")").expect("valid"),
            request_id: "r".to_owned(),
            link_id: Some(LinkId(uuid::Uuid::from_u128(7))),
        };
        let rolled = Subject::RolledUp { key_id: "k".to_owned(), channel: Channel::Http };
        let adjusted = Subject::Adjustment { by: "op".to_owned(), reason: "a crash".to_owned() };
        let all = rows(&[
            entry("i", Subject::Read(context), 9, Outcome::Completed, 1),
            entry("", rolled, 9, Outcome::Aborted, 3),
            entry("fix", adjusted, -9, Outcome::Adjusted, 1),
        ]);
        let at = "2026-11-29T12:00:00Z";
        assert_eq!(
            all,
            format!(
                "{at},\"i\",completed,\"k\",link,\"t1\",\"'=HYPERLINK(\"\"x\"\")\",\"r\",\
                 00000000-0000-0000-0000-000000000007,9,9,1,\r\n\
                 {at},,aborted,\"k\",http,,,,,9,9,3,\r\n\
                 {at},\"fix\",adjusted,\"op\",,,,,,9,-9,1,\"a crash\"\r\n"
            )
        );
        assert!(all.lines().all(|line| line.matches(',').count() == HEAD.matches(',').count()));
    }
}
