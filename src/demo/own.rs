//! A folder of trials that somebody has already.

use std::fs;
use std::io;
use std::path::Path;

use crate::artifact::{ArtifactName, TrialId};

/// How many entries are looked at to find a file to show.
const ENTRIES_LOOKED_AT: usize = 10_000;

/// The file that shows best what a trial is.
pub const BEST_EXAMPLE: &str = "verifier/test-stdout.txt";

/// The folders directly below `dir` whose names are trial ids, sorted, and how many other folders
/// there are. Links are not followed.
///
/// # Errors
/// The folder cannot be read.
pub fn trials(dir: &Path) -> io::Result<(Vec<TrialId>, usize)> {
    let (mut ids, mut others) = (Vec::new(), 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        match entry.file_name().to_str().map(TrialId::parse) {
            Some(Ok(id)) => ids.push(id),
            _ => others += 1,
        }
    }
    ids.sort();
    Ok((ids, others))
}

/// A file of a trial that is worth a look: [`BEST_EXAMPLE`] if it is there, else the first allowed
/// name. `None` if there is none, or too many entries to look at.
#[must_use]
pub fn example(trial: &Path) -> Option<ArtifactName> {
    let mut found = None;
    let mut folders = vec![trial.to_owned()];
    let mut budget = ENTRIES_LOOKED_AT;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            budget = budget.checked_sub(1)?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let path = entry.path();
                    let name = path.strip_prefix(trial).ok()?.to_str().and_then(|name| ArtifactName::parse(name).ok());
                    match name {
                        Some(name) if name.as_str() == BEST_EXAMPLE => return Some(name),
                        Some(name) if found.as_ref().is_none_or(|best| name < *best) => found = Some(name),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_folders_with_the_name_of_one() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["b__1", "a__1", ".hidden", "with space"] {
            fs::create_dir(dir.path().join(name)).expect("made");
        }
        fs::write(dir.path().join("result.json"), "{}").expect("written");
        std::os::unix::fs::symlink("/", dir.path().join("link")).expect("linked");
        let (ids, others) = trials(dir.path()).expect("read");
        assert_eq!(ids.iter().map(TrialId::as_str).collect::<Vec<_>>(), ["a__1", "b__1"]);
        assert_eq!(others, 2);
        assert!(trials(&dir.path().join("none")).is_err());
    }

    #[test]
    fn the_example_is_the_verifiers_output_or_the_first_name() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(example(dir.path()), None);
        fs::create_dir_all(dir.path().join("verifier")).expect("made");
        for name in ["b.txt", "a\nb", "a.txt", "verifier/0"] {
            fs::write(dir.path().join(name), "").expect("written");
        }
        assert_eq!(example(dir.path()).expect("found").as_str(), "a.txt");
        fs::write(dir.path().join("verifier/test-stdout.txt"), "").expect("written");
        assert_eq!(example(dir.path()).expect("found").as_str(), "verifier/test-stdout.txt");
    }
}
