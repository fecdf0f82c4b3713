//! A log too long to be read whole.

use std::io::{self, Write};

/// The length of the log, in bytes.
pub const LOG_BYTES: u64 = 50_000_000;

/// No line is longer.
const LONGEST_LINE: u64 = 128;

/// Writes exactly [`LOG_BYTES`] bytes of ASCII lines, each with its number. The last one says so.
pub(super) fn write(out: &mut impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    let mut written = 0;
    // A line of room is kept, so that the last one has some to fill.
    for step in 0_u64.. {
        line.clear();
        step_line(step, &mut line)?;
        if written + line.len() as u64 + LONGEST_LINE > LOG_BYTES {
            break;
        }
        out.write_all(&line)?;
        written += line.len() as u64;
    }
    let text = "2026-11-28 23:59:59.999 INFO  trainer: finished; tokenizer saved to artifacts/tokenizer.json";
    let width = usize::try_from(LOG_BYTES - written).map_err(io::Error::other)? - 1;
    writeln!(out, "{text:.<width$}")
}

fn step_line(step: u64, line: &mut Vec<u8>) -> io::Result<()> {
    let noise = noise(step);
    let (ms, s) = (step * 97 % 1000, step * 97 / 1000);
    let (hour, minute, second) = (8 + s / 3600 % 15, s / 60 % 60, s % 60);
    write!(line, "2026-11-28 {hour:02}:{minute:02}:{second:02}.{ms:03} ")?;
    match noise % 64 {
        0 => writeln!(
            line,
            "WARN  dataloader: worker {} is slow: {} ms for one batch",
            noise >> 8 & 7,
            noise >> 16 & 1023
        ),
        1 => writeln!(line, "DEBUG gc: freed {} KiB in {} us", noise >> 8 & 0xffff, noise >> 32 & 4095),
        2 => {
            writeln!(line, "INFO  eval: step={step} bytes_per_token={}.{:03}", 3 + (noise >> 8 & 1), noise >> 16 & 511)
        }
        _ => {
            // Falls from 9.0 towards 2.0, in thousandths.
            let loss = 2000 + 7_000_000 / (1000 + step / 50) + (noise >> 8 & 63);
            writeln!(
                line,
                "INFO  trainer: step={step} loss={}.{:03} merges={} tokens_per_second={}",
                loss / 1000,
                loss % 1000,
                step / 16,
                180_000 + (noise >> 20 & 0x3fff)
            )
        }
    }
}

/// Scatters the bits of `seed` (the finisher of SplitMix64).
fn noise(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_its_length_and_whole_lines() {
        let mut log = Vec::new();
        write(&mut log).expect("memory");
        assert_eq!(log.len() as u64, LOG_BYTES);
        assert!(log.is_ascii() && log.ends_with(b".\n"));
        let longest = log.split(|b| *b == b'\n').map(<[u8]>::len).max().expect("lines");
        assert!(longest < 2 * usize::try_from(LONGEST_LINE).expect("small"), "{longest}");
        assert!(log.starts_with(b"2026-11-28 08:00:00.000 "));
    }
}
