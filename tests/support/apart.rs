//! Verdicts in a process of their own, so that what they take can be told apart from all else.
//!
//! The process is this same program: [`run`] is what it does there, [`judge`] asks for it.

#![allow(dead_code, clippy::print_stdout, reason = "each program uses its part; they talk by their output")]

use std::fmt;
use std::io::Write as _;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

/// What verdicts on one file took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    /// The verdict: the media type of what is sound, or the reason.
    pub(crate) verdict: Result<String, String>,
    /// Memory at the peak, beyond what the process held with the file read, bytes.
    pub(crate) peak_bytes: u64,
    /// Processor time of all of them.
    pub(crate) cpu: Duration,
}

/// Judges `file` with `command`, which must lead to [`run`], `at_once` times at once.
pub(crate) fn judge(mut command: Command, file: &[u8], at_once: usize) -> Cost {
    let mut kept = tempfile::NamedTempFile::new().expect("a temporary file");
    kept.write_all(file).expect("written");
    let asked = format!("{at_once} {}", kept.path().display());
    let output = command.env(ASKED, asked).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    let line = told.lines().find_map(|line| line.split_once(TOLD)).unwrap_or_else(|| panic!("{output:?}"));
    line.1.parse().expect("what `run` prints")
}

const ASKED: &str = "ARTIFACTD_JUDGE";
const TOLD: &str = "cost of a verdict: ";

/// What a process does that [`judge`] started: it says what `verdict` finds, a media type or a reason, and
/// what that took. Any other process does nothing here, and is told so by `false`.
#[allow(clippy::disallowed_methods, reason = "no setting of the service")]
pub(crate) fn run(verdict: fn(&[u8]) -> Result<String, String>) -> bool {
    let Ok(asked) = std::env::var(ASKED) else { return false };
    let (at_once, path) = asked.split_once(' ').expect("a number and a path");
    let file = std::fs::read(path).expect("the file is there");
    // What the peak was so far is forgotten (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").expect("a kernel that forgets peaks");
    let before = kibibytes("VmRSS:");
    let begun = cpu_time();
    let verdict = std::thread::scope(|scope| {
        let number: usize = at_once.parse().expect("a number");
        let others: Vec<_> = (1..number).map(|_| scope.spawn(|| verdict(&file))).collect();
        let verdict = verdict(&file);
        assert!(others.into_iter().all(|other| other.join().expect("no panic") == verdict));
        verdict
    });
    let peak_bytes = kibibytes("VmHWM:").saturating_sub(before) * 1024;
    let cost = Cost { cpu: cpu_time() - begun, peak_bytes, verdict };
    println!("{TOLD}{cost}");
    true
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outcome, text) = match &self.verdict {
            Ok(media_type) => ("sound", media_type),
            Err(reason) => ("refused", reason),
        };
        write!(f, "{} {} {outcome} {text}", self.peak_bytes, self.cpu.as_micros())
    }
}

impl FromStr for Cost {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(|| line.to_owned());
        let mut number = || word()?.parse::<u64>().map_err(|error| format!("{line}: {error}"));
        let (peak_bytes, cpu) = (number()?, Duration::from_micros(number()?));
        let sound = word()? == "sound";
        let text = word()?.to_owned();
        Ok(Self { verdict: if sound { Ok(text) } else { Err(text) }, peak_bytes, cpu })
    }
}

/// A line of `/proc/self/status`.
fn kibibytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of that name");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Processor time of this process so far.
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).expect("forwards"), u32::try_from(time.tv_nsec).expect("below 10^9"))
}
