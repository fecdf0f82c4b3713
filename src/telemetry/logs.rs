//! Log lines: which, and how they look.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

use super::access_line::AccessLines;
use crate::config::{ConfigError, LogConfig, LogFormat};

/// The target of the access log's lines.
pub const ACCESS: &str = "artifactd::access";

/// The target of the lines that tell what was changed in the account books.
pub const CHANGES: &str = "artifactd::changes";

/// The filter that the settings ask for; lines of [`CHANGES`] pass in any case.
///
/// # Errors
/// [`ConfigError`] if it is not one, or names something without a level: `inof` would silence all
/// but a target of that name.
pub(crate) fn filter(config: &LogConfig) -> Result<EnvFilter, ConfigError> {
    let invalid = |why: String| ConfigError::Invalid(format!("log.filter {:?}: {why}", config.filter));
    for part in config.filter.split(',').map(str::trim).filter(|part| !part.contains(['=', '['])) {
        if part.parse::<LevelFilter>().is_err() {
            return Err(invalid(format!("{part:?} is no level; one for a target is written TARGET=LEVEL")));
        }
    }
    let filter = EnvFilter::try_new(&config.filter).map_err(|error| invalid(error.to_string()))?;
    let changes = format!("{CHANGES}=info").parse().expect("a directive");
    Ok(filter.add_directive(changes))
}

/// Sends log lines to standard error, from now on and for the whole process.
///
/// # Errors
/// [`ConfigError`] if the filter is not one.
pub fn start(config: &LogConfig) -> Result<(), ConfigError> {
    let filter = filter(config)?;
    // A line that cannot be written (the disk is full, the reader of a pipe has gone) is lost. To
    // report that on standard error, as is the default, would panic in whatever was being logged.
    let mut lines = fmt().with_env_filter(filter).with_writer(|| Masked).log_internal_errors(false);
    if !io::stderr().is_terminal() {
        // Colours are for eyes.
        lines = lines.with_ansi(false);
    }
    // A second call in one process keeps the first subscriber.
    let format = config.format;
    let _ = match format {
        LogFormat::Text => lines.map_event_format(|others| AccessLines { format, others }).try_init(),
        LogFormat::Json => {
            lines.json().flatten_event(true).map_event_format(|others| AccessLines { format, others }).try_init()
        }
    };
    Ok(())
}

/// Standard error, where no key is shown: clients put theirs wherever text goes, and errors quote text.
struct Masked;

impl Write for Masked {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(&masked(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A line with the digits of keys taken out: of everything that begins like one and goes on for a
/// while.
fn masked(line: &[u8]) -> Cow<'_, [u8]> {
    const NAME: &[u8] = b"epk";
    const FEW: usize = 12;
    // Every line is looked through: by what is rare in it.
    let begins = |text: &[u8]| {
        let named = |at: &usize| text[at - NAME.len()..*at].eq_ignore_ascii_case(NAME);
        (NAME.len()..text.len()).find(|at| text[*at] == b'_' && named(at))
    };
    let mut shown = Vec::new();
    let mut rest = line;
    while let Some(at) = begins(rest) {
        let (before, key) = rest.split_at(at + 1);
        let digits = key.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        shown.extend_from_slice(before);
        if digits > FEW {
            shown.extend_from_slice("…".as_bytes());
            rest = &key[digits..];
        } else {
            rest = key;
        }
    }
    if shown.is_empty() {
        return Cow::Borrowed(line);
    }
    shown.extend_from_slice(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_wherever_they_stand() {
        let key = format!("epk_{}", "0123456789abcdef".repeat(4));
        for (line, shown) in [
            ("nothing".to_owned(), "nothing"),
            (key.clone(), "epk_…"),
            (format!("a {key} b \"{}x\" c {key}", key.to_uppercase()), "a epk_… b \"EPK_…x\" c epk_…"),
            (key[..30].to_owned(), "epk_…"),
            ("epk_ and epk_12 are none".to_owned(), "epk_ and epk_12 are none"),
            (format!("_ epk epk_{key} pk_"), "_ epk epk_epk_… pk_"),
            (format!("é{key}é"), "éepk_…é"),
        ] {
            assert_eq!(String::from_utf8_lossy(&masked(line.as_bytes())), shown, "{line}");
        }
    }
}
