//! The lines of the access log. There is one for every request, so they are written without the detours that the
//! general formatter makes for fields of any kind: the same text for less.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::logs::ACCESS;
use crate::config::LogFormat;

/// What a line takes, about, bytes.
const LENGTH: usize = 512;

/// Writes the lines of the access log itself, and lets `others` write all others: those in colour, too.
pub(super) struct AccessLines<F> {
    pub(super) format: LogFormat,
    pub(super) others: F,
}

impl<S, N, F> FormatEvent<S, N> for AccessLines<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let known = event.metadata();
        let ours = known.target() == ACCESS && *known.level() == Level::INFO;
        if !ours || writer.has_ansi_escapes() || ctx.event_scope().is_some() {
            return self.others.format_event(ctx, writer, event);
        }
        #[expect(clippy::disallowed_methods, reason = "a line says when it was written")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        writer.write_str(&line(self.format, now, event))
    }
}

fn line(format: LogFormat, now: Duration, event: &Event<'_>) -> String {
    let json = format == LogFormat::Json;
    let mut line = Line { json, text: String::with_capacity(LENGTH) };
    line.text.push_str(if json { "{\"timestamp\":\"" } else { "" });
    put_time(&mut line.text, now);
    line.text.push_str(if json { "\",\"level\":\"INFO\"" } else { "  INFO " });
    line.text.push_str(if json { "" } else { ACCESS });
    line.text.push_str(if json { "" } else { ":" });
    event.record(&mut line);
    if json {
        line.text.extend([",\"target\":\"", ACCESS, "\"}"]);
    }
    line.text.push('\n');
    line.text
}

/// A line that is being written.
struct Line {
    json: bool,
    text: String,
}

impl Line {
    fn begin(&mut self, field: &Field) {
        let (before, after) = if self.json { (",\"", "\":") } else { (" ", "=") };
        self.text.push_str(before);
        self.text.push_str(field.name());
        self.text.push_str(after);
    }

    fn put_quoted(&mut self, text: &str) {
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
            self.text.push('"');
            self.text.push_str(text);
            self.text.push('"');
        } else if self.json {
            self.text.push_str(&serde_json::to_string(text).unwrap_or_default());
        } else {
            let _ = write!(self.text, "{text:?}");
        }
    }

    fn put_fraction(&mut self, value: f64) {
        // Of such numbers both formats have the same, and this way costs less.
        let alike = value == 0.0 || (1e-3..1e15).contains(&value.abs());
        if self.json || alike {
            self.text.push_str(&serde_json::to_string(&value).unwrap_or_default());
        } else {
            let _ = write!(self.text, "{value:?}");
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.begin(field);
        self.put_quoted(value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.begin(field);
        put_digits(&mut self.text, value, 1);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.begin(field);
        self.put_fraction(value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.begin(field);
        let _ = write!(self.text, "{value}");
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.begin(field);
        self.text.push_str(if value { "true" } else { "false" });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.begin(field);
        if self.json {
            self.put_quoted(&format!("{value:?}"));
        } else {
            let _ = write!(self.text, "{value:?}");
        }
    }
}

/// A number in decimal, with zeros before it up to so many `places`.
fn put_digits(text: &mut String, mut number: u64, places: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while number > 0 || digits.len() - first < places {
        first -= 1;
        digits[first] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
    text.extend(digits[first..].iter().copied().map(char::from));
}

/// A time since 1970 as RFC 3339 has it, with microseconds. Its seconds are written once for all that fall into one.
fn put_time(text: &mut String, since: Duration) {
    thread_local! {
        static LAST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    LAST.with_borrow_mut(|(second, shown)| {
        if *second != since.as_secs() {
            *second = since.as_secs();
            let time = i64::try_from(*second).ok().and_then(|second| Timestamp::from_second(second).ok());
            *shown = time.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S.").to_string();
        }
        text.push_str(shown);
    });
    put_digits(text, since.subsec_micros().into(), 6);
    text.push('Z');
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::subscriber::with_default;
    use tracing_subscriber::fmt;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("unpoisoned").extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        /// The text, without the times that lines begin with.
        fn timeless(&self, begins: &str) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().expect("unpoisoned").clone()).expect("text");
            let time = begins.len().."2026-11-30T12:14:41.939052Z".len() + begins.len();
            let timeless = |line: &str| {
                line[time.clone()].parse::<Timestamp>().expect("a time");
                line[..time.start].to_owned() + &line[time.end..]
            };
            text.lines().map(timeless).collect()
        }
    }

    /// Texts and numbers of every kind, in fields such as the access log has.
    fn say() {
        let texts = ["", "a-b", "a b", "\"", "\\", "'", "é\u{301}", "\u{7f}", "\u{0}\t\u{1b}[1m", "\u{2028}", "日本"];
        let numbers = [0.0, -0.0, 0.001, 0.01, 0.1, 1.0, 1.5, 12.34, 123.456, 1e3, 86_400_000.001, 0.000_5, 1e-7];
        let numbers = numbers.into_iter().chain([-1.5, 1e15, 1e16, 1e300, f64::NAN, f64::INFINITY]);
        for text in texts {
            let (shown, none) = (Some(tracing::field::display(text)), None::<&str>);
            tracing::info!(target: ACCESS, id = %text, shown, none, key_id = text, debug = ?text, broken = "a\nb\r");
        }
        for (ms, number) in numbers.zip([0, 1, 9, 10, 99, 100, u64::MAX].into_iter().cycle()) {
            tracing::info!(target: ACCESS, ms, number, status = 200_u16, signed = -7_i64, yes = true, big = 1_u128);
        }
        let thousandths = |n: u32| f64::from(n) / 1000.0;
        for ms in (0..3_000).chain([999_999, 1_000_001, u32::MAX]).map(thousandths) {
            tracing::info!(target: ACCESS, ms);
        }
        tracing::warn!(target: ACCESS, a = 1, "not of the log");
        tracing::info!(target: "artifactd::other", a = "b", "another");
        tracing::info_span!("span", a = 1).in_scope(|| tracing::info!(target: ACCESS, a = 1));
    }

    fn same(want: &[String], have: &[String]) {
        assert!(want.len() > 3_000);
        want.iter().zip(have).for_each(|(want, have)| assert_eq!(have, want));
        assert_eq!(have.len(), want.len());
    }

    #[test]
    fn the_text_is_that_of_the_general_formatter() {
        let base = || fmt().with_ansi(false);
        let text = |lines: Lines| base().with_writer(move || lines.clone());
        let (general, ours) = (Lines::default(), Lines::default());
        with_default(text(general.clone()).finish(), say);
        let access = |others| AccessLines { format: LogFormat::Text, others };
        with_default(text(ours.clone()).map_event_format(access).finish(), say);
        same(&general.timeless(""), &ours.timeless(""));

        let json = |lines: Lines| base().json().flatten_event(true).with_writer(move || lines.clone());
        let (general, ours) = (Lines::default(), Lines::default());
        with_default(json(general.clone()).finish(), say);
        let access = |others| AccessLines { format: LogFormat::Json, others };
        with_default(json(ours.clone()).map_event_format(access).finish(), say);
        let begins = "{\"timestamp\":\"";
        same(&general.timeless(begins), &ours.timeless(begins));
    }

    #[test]
    fn times_are_shown_to_the_microsecond() {
        for (seconds, nanos, want) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (0, 1_999, "1970-01-01T00:00:00.000001Z"),
            (951_782_400, 999_999_999, "2000-02-29T00:00:00.999999Z"),
            (951_782_400, 100_000_000, "2000-02-29T00:00:00.100000Z"),
            (1_796_040_881, 939_052_000, "2026-11-30T12:14:41.939052Z"),
        ] {
            let mut text = String::new();
            put_time(&mut text, Duration::new(seconds, nanos));
            assert_eq!(text, want);
        }
    }
}
