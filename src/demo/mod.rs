//! The demo: a sample project, the keys to it, and the lines that show it off.
//!
//! The sample is trials laid out like the job folders of the Harbor evaluation
//! framework, among them everything that a reader of artifacts must be able to stand.
//!
//! Its content is the same on every run, so that tests can compare it.

mod harbor;
mod images;
mod keys;
mod log;
mod own;
mod paste;
mod sample;
mod texts;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::artifact::TrialId;

pub use keys::DemoKeys;
pub use log::LOG_BYTES;
pub use own::{BEST_EXAMPLE, example, trials};
pub use paste::Paste;
pub use sample::LOG_NAME;

/// A file of a trial: its name, and what is in it.
struct Sample {
    name: String,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// The long log, written as it is made.
    Log,
}

impl Sample {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), content: Content::Bytes(bytes.into()) }
    }
}

/// Writes the sample project into the folder `dir`, one folder per trial, and returns the trials in
/// the order of their ids. `progress` is told what is being made.
///
/// A trial that is there already is left as it is: its folder gets its name only when it is
/// complete.
///
/// # Errors
/// The folder cannot be made or written.
pub fn write_sample(dir: &Path, progress: &mut dyn FnMut(&str)) -> io::Result<Vec<TrialId>> {
    fs::create_dir_all(dir)?;
    let mut ids = Vec::new();
    for (id, files) in sample::TRIALS {
        let id = TrialId::parse(id).map_err(io::Error::other)?;
        let folder = dir.join(id.as_str());
        if !folder.exists() {
            progress(&format!("writing the trial {id}"));
            // No trial id begins with a dot: nobody sees the folder under this name.
            let partial = dir.join(format!(".partial-{id}"));
            match fs::remove_dir_all(&partial) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            for file in files()? {
                write(&partial, &file)?;
            }
            fs::rename(&partial, &folder)?;
        }
        ids.push(id);
    }
    ids.sort();
    Ok(ids)
}

fn write(trial: &Path, file: &Sample) -> io::Result<()> {
    let path = trial.join(&file.name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    match &file.content {
        Content::Bytes(bytes) => out.write_all(bytes)?,
        Content::Log => log::write(&mut out)?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::artifact::ArtifactName;

    /// Name and bytes of every file below `folder`.
    fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).expect("below").to_str().expect("UTF-8").to_owned();
                    files.insert(name, fs::read(path).expect("readable"));
                }
            }
        }
        files
    }

    #[test]
    fn every_name_is_an_artifacts_and_no_two_are_the_same() {
        let mut files = 0;
        for (id, make) in sample::TRIALS {
            TrialId::parse(id).expect(id);
            let mut names: Vec<_> = make().expect(id).into_iter().map(|file| file.name).collect();
            for name in &names {
                ArtifactName::parse(name).expect(name);
            }
            files += names.len();
            names.sort();
            names.dedup();
            files -= names.len();
        }
        assert_eq!(files, 0, "doubled names");
    }

    #[test]
    fn the_sample_is_the_same_on_every_run_and_is_completed() {
        let (a, b) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mut told = Vec::new();
        let ids = write_sample(a.path(), &mut |line| told.push(line.to_owned())).expect("written");
        assert_eq!(told.len(), ids.len());
        assert!(ids.is_sorted());

        // A run that was killed, and one that was complete before.
        fs::create_dir_all(b.path().join(format!(".partial-{}", ids[0]))).expect("made");
        fs::write(b.path().join(format!(".partial-{}", ids[0])).join("half"), "x").expect("written");
        write_sample(b.path(), &mut |_| {}).expect("written");
        told.clear();
        write_sample(b.path(), &mut |line| told.push(line.to_owned())).expect("nothing to do");
        assert!(told.is_empty(), "{told:?}");

        let (a, b) = (contents(a.path()), contents(b.path()));
        assert!(a.keys().eq(b.keys()));
        assert!(a == b, "a file differs");
        for name in [
            "fix-git-merge__aB3xK9q/result.json",
            "fix-git-merge__aB3xK9q/verifier/reward.txt",
            "fix-git-merge__aB3xK9q/artifacts/manifest.json",
            "build-and-deploy__J4fXe1u/steps/build/verifier/reward.txt",
            "crack-archive__Zd8oN3r/exception.txt",
            "rename-files__T2yBq6M/artifacts/caf\u{e9}.txt",
            "rename-files__T2yBq6M/artifacts/cafe\u{301}.txt",
        ] {
            assert!(a.contains_key(name), "{name}");
        }
        let log = &a[&format!("train-tokenizer__w9LkP4d/{LOG_NAME}")];
        assert_eq!(log.len() as u64, LOG_BYTES);
        assert_eq!(a["train-tokenizer__w9LkP4d/artifacts/stderr.txt"], b"");
        for (name, bytes) in a.iter().filter(|(name, _)| name.ends_with(".json")) {
            serde_json::from_slice::<serde_json::Value>(bytes).expect(name);
        }
    }
}
