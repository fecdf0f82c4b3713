//! The reference of all settings, as `artifactd config docs` prints it and `docs/configuration.md`
//! holds it.

use std::fmt::Write as _;

use super::setting::{Form, Preset, Setting};
use super::{SECTIONS, Section};

const INTRODUCTION: &str = "\
# Configuration

This page is what `artifactd config docs` prints.

Settings come from a TOML file (`--config FILE`, or `ARTIFACTD_CONFIG`), then from the environment, then
from the command line (`--set limits.streams=100`, as often as needed); what comes later counts. Every
setting has an environment variable: `ARTIFACTD_`, the section, two underscores, the name. There a text is
written without quotes, and a list as words with commas between them. An unknown setting is an error.
Amounts of bytes are whole numbers with a unit or without: `123`, `8 MiB`, `50 GB`.

`artifactd check-config` reads the settings as a start would, tries the store, the ledger and the keys, and
says what is wrong with each; it exits 0 if nothing keeps the service from working, else 1 (`--strict`: also
1 if there is a warning). A command line that is wrong exits 2.

The settings file is read again when it changes, within two seconds, and on SIGHUP. Settings marked
*followed* are in force at once then, and so are the contents of the key file and of the files of link keys;
changes of others are named in the log and wait for a restart. Settings that cannot be read leave the last
good ones in force.

No message and no log line shows a secret. `ledger.url` may hold a password: it can come from the
environment, or from a file of its own (`ledger.url_file`).
";

/// The whole reference, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    for section in &SECTIONS {
        text.push_str(&of_section(section));
    }
    text
}

fn of_section(section: &Section) -> String {
    let heading =
        if section.name.is_empty() { "Above all sections".to_owned() } else { format!("`[{}]`", section.name) };
    let mut text = format!("\n## {heading}\n");
    if !section.name.is_empty() {
        let _ = writeln!(text, "\n{}", joined(section.about));
    }
    for setting in section.settings {
        text.push_str(&of_setting(setting));
    }
    text
}

fn of_setting(setting: &Setting) -> String {
    let default = match setting.default {
        Preset::Required => "required".to_owned(),
        Preset::Unset => "default: none".to_owned(),
        Preset::Is(text) if is_quoted(setting.form) => format!("default `\"{text}\"`"),
        Preset::Is(text) => format!("default `{text}`"),
    };
    let followed = if setting.reloads { "; followed" } else { "" };
    format!(
        "\n### `{}`\n\n{}\n\n- {}; {default}{followed}\n- `{}`\n",
        setting.key,
        joined(setting.about),
        setting.form,
        setting.variable(),
    )
}

/// Whether a file has it between quotes.
const fn is_quoted(form: Form) -> bool {
    !matches!(form, Form::Number { .. } | Form::Flag | Form::Texts(_) | Form::SigningKeys)
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}
