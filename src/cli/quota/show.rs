//! Answers of the service as tables for people.

use serde_json::Value;

use crate::artifact::text::visible;
use crate::bytesize::rounded;
use crate::cli::table::table;

/// A text of an answer, made safe for a terminal: names come from the evaluated run.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// An amount of bytes that fits in a column.
fn short(value: &Value) -> String {
    match value.as_i64() {
        Some(bytes) if bytes < 0 => format!("-{}", rounded(bytes.unsigned_abs())),
        Some(bytes) => rounded(bytes.unsigned_abs()),
        None => text(value),
    }
}

/// An amount of bytes, also to the byte.
fn exact(value: &Value) -> String {
    match value.as_i64() {
        Some(bytes) if bytes.unsigned_abs() >= 1024 => format!("{}  ({bytes} bytes)", short(value)),
        _ => short(value),
    }
}

fn rows(rows: &[(&str, String)]) -> String {
    let rows: Vec<_> = rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    table(&rows, &[])
}

/// A table with a head, of one row for each of `items`.
fn listed(head: &[&str], items: &Value, row: impl Fn(&Value) -> Vec<String>, right: &[usize]) -> String {
    let mut rows = vec![head.iter().map(|name| (*name).to_owned()).collect()];
    rows.extend(items.as_array().into_iter().flatten().map(row));
    table(&rows, right)
}

/// How much of the allowance that is, in whole percent rounded down; nothing without a bound.
fn share(used: &Value, of: &Value) -> String {
    match (used.as_u64(), of.as_u64()) {
        (Some(used), Some(of)) if of > 0 => format!(", {} %", u128::from(used) * 100 / u128::from(of)),
        _ => String::new(),
    }
}

/// What may still be reserved.
fn left(value: &Value) -> String {
    let left = &value["remaining_bytes"];
    if left.is_null() { "unlimited".to_owned() } else { exact(left) }
}

pub(super) fn usage(value: &Value) -> String {
    let (used, of) = (&value["used_bytes"], &value["daily_bytes"]);
    let warning = if value["warning"] == true {
        format!(": the warning threshold of {} % is reached", text(&value["warn_percent"]))
    } else {
        String::new()
    };
    rows(&[
        ("project", text(&value["project_id"])),
        ("day", format!("{} in {}, until {}", text(&value["day"]), text(&value["zone"]), text(&value["resets_at"]))),
        ("allowance", exact(of)),
        ("used", format!("{}{}{warning}", exact(used), share(used, of))),
        (
            "reserved",
            format!("{} by {} open reads", exact(&value["reserved_bytes"]), text(&value["open_reservations"])),
        ),
        ("remaining", left(value)),
        ("refused", format!("{} reads", text(&value["refused"]))),
    ])
}

pub(super) fn check(value: &Value) -> String {
    let verdict = match (value["admitted"].as_bool(), value["retry_after_seconds"].as_u64()) {
        (Some(true), _) => "admitted".to_owned(),
        (_, Some(seconds)) => format!("refused: {}; ask again in {seconds} s", text(&value["reason"])),
        (_, None) => format!("refused: {}; waiting does not help", text(&value["reason"])),
    };
    rows(&[("a read of", exact(&value["requested_bytes"])), ("would be", verdict), ("remaining", left(value))])
}

pub(super) fn history(value: &Value) -> String {
    let row = |day: &Value| {
        vec![
            text(&day["day"]),
            short(&day["daily_bytes"]),
            short(&day["used_bytes"]),
            short(&day["reserved_bytes"]),
            text(&day["refused"]),
            text(&day["count"]),
        ]
    };
    listed(&["DAY", "ALLOWANCE", "USED", "RESERVED", "REFUSED", "READS"], &value["items"], row, &[1, 2, 3, 4, 5])
}

pub(super) fn entries(value: &Value) -> String {
    let row = |entry: &Value| {
        let what = match (entry["artifact"].is_string(), entry["reason"].is_string()) {
            (true, _) => format!("{} {}", text(&entry["trial_id"]), text(&entry["artifact"])),
            (false, true) => text(&entry["reason"]),
            (false, false) => format!("{} reads of this hour", text(&entry["count"])),
        };
        vec![
            text(&entry["at"]),
            text(&entry["outcome"]),
            short(&entry["charged_bytes"]),
            short(&entry["size_bytes"]),
            text(&entry["channel"]),
            text(&entry["key_id"]),
            what,
        ]
    };
    let head = ["AT", "OUTCOME", "CHARGED", "OF", "CHANNEL", "KEY", "WHAT"];
    let list = listed(&head, &value["items"], row, &[2, 3]);
    let more = if value["next_cursor"].is_string() { "; --limit or --export shows more" } else { "" };
    let totals = &value["totals"];
    let (count, charged) = (text(&totals["count"]), exact(&totals["charged_bytes"]));
    format!("{list}{}: {count} in all, charged {charged}{more}\n", text(&value["day"]))
}

pub(super) fn groups(value: &Value) -> String {
    let by: Vec<_> = value["group_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let of =
        |sums: &Value, names: Vec<String>| [vec![short(&sums["charged_bytes"]), text(&sums["count"])], names].concat();
    let column = |by: &str| match by {
        "key" => "key_id",
        "trial" => "trial_id",
        _ => "channel",
    };
    let names: Vec<_> = by.iter().map(|by| by.to_uppercase()).collect();
    let head: Vec<_> = ["CHARGED", "READS"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let row = |group: &Value| of(group, by.iter().map(|by| text(&group[column(by)])).collect());
    let mut list = listed(&head, &value["groups"], row, &[0, 1]);
    let (others, totals) = (&value["others"], &value["totals"]);
    let (count, charged) = (text(&totals["count"]), exact(&totals["charged_bytes"]));
    if others["groups"] != 0 {
        list += &format!("{} smaller groups: charged {}\n", others["groups"], exact(&others["charged_bytes"]));
    }
    format!("{list}{}: {count} in all, charged {charged}\n", text(&value["day"]))
}

pub(super) fn verification(value: &Value) -> String {
    let balanced = if value["balanced"] == true { "yes" } else { "NO" };
    rows(&[
        ("entries", text(&value["entries"])),
        ("charged", exact(&value["charged_bytes"])),
        ("used", exact(&value["used_bytes"])),
        ("reserved", exact(&value["reserved_bytes"])),
        ("open reads", text(&value["leases"])),
        ("balanced", balanced.to_owned()),
    ])
}

pub(super) fn allowance(value: &Value) -> String {
    let set = &value["override"];
    if set.is_null() {
        return format!("{} has the default allowance.\n", text(&value["project_id"]));
    }
    let until = if set["until"].is_null() { "it is cleared".to_owned() } else { text(&set["until"]) };
    rows(&[
        ("project", text(&value["project_id"])),
        ("allowance", exact(&set["daily_bytes"])),
        ("until", until),
        ("set by", text(&set["by"])),
        ("reason", text(&set["reason"])),
    ])
}

pub(super) fn adjustment(value: &Value) -> String {
    rows(&[
        ("project", text(&value["project_id"])),
        ("day", text(&value["day"])),
        ("asked for", exact(&value["bytes"])),
        ("charged", exact(&value["applied_bytes"])),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_with_sensible_units() {
        let value = json!({
            "project_id": "demo", "day": "2026-11-29", "zone": "UTC", "resets_at": "2026-11-30T00:00:00Z",
            "daily_bytes": 53_687_091_200_u64, "used_bytes": 45_000_000_000_u64, "reserved_bytes": 100,
            "remaining_bytes": 8_687_091_100_u64, "open_reservations": 1, "refused": 2, "warn_percent": 80,
            "warning": true,
        });
        assert_eq!(
            usage(&value),
            "project    demo\n\
             day        2026-11-29 in UTC, until 2026-11-30T00:00:00Z\n\
             allowance  50.0 GiB  (53687091200 bytes)\n\
             used       41.9 GiB  (45000000000 bytes), 83 %: the warning threshold of 80 % is reached\n\
             reserved   100 B by 1 open reads\n\
             remaining  8.0 GiB  (8687091100 bytes)\n\
             refused    2 reads\n"
        );
    }

    #[test]
    fn names_do_not_reach_the_terminal_as_commands() {
        let value = json!({"day": "2026-11-29", "next_cursor": null, "totals": {"count": 1, "charged_bytes": -5},
            "items": [{"at": "t", "outcome": "completed", "charged_bytes": -5, "size_bytes": 9, "channel": null,
                "key_id": "k", "trial_id": "t1", "artifact": "a\u{1b}[31m\u{202e}b"}]});
        let shown = entries(&value);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(shown.contains("-5 B") && shown.ends_with("2026-11-29: 1 in all, charged -5 B\n"), "{shown}");
    }
}
