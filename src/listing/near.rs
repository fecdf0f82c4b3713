//! The names that a caller may have meant. A look costs at most two pages of a listing, wherever
//! in a store of any size: one from the beginning, and one from where the wanted name would stand.

use super::{Listing, MAX_LIMIT};
use crate::access::Viewer;
use crate::artifact::{ArtifactName, TrialId};
use crate::error::Result;

/// Names that are offered in place of a wrong one, at most.
pub(crate) const MAX_OFFERED: usize = 5;
/// Names are compared by their last so many characters: the work for one is bounded.
const COMPARED_CHARS: usize = 128;
/// The part of a wanted name that the second page begins at: enough to land in its neighbourhood,
/// too little to land behind a name with a slip in it.
const KEPT_CHARS: usize = 2;

impl Listing {
    /// Artifacts of the trial that are called most like `wanted`, nearest first. Empty if the trial
    /// has none that can be named.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`.
    pub async fn artifacts_near(
        &self,
        who: &Viewer,
        trial: &TrialId,
        wanted: &ArtifactName,
    ) -> Result<Vec<ArtifactName>> {
        let base = self.catalog.trial_prefix(who, trial);
        let first = self.catalog.list(&base, None, MAX_LIMIT).await?;
        let mut objects = first.objects;
        if first.next.is_some() {
            let after = format!("{}{}", base.as_str(), neighbourhood(wanted.as_str()));
            objects.extend(self.catalog.list(&base, Some(&after), MAX_LIMIT).await?.objects);
        }
        let names = objects.iter().filter_map(|object| {
            let name = object.key.strip_prefix(base.as_str())?;
            ArtifactName::parse(name).ok()
        });
        Ok(nearest(wanted.as_str(), names.collect(), ArtifactName::as_str))
    }

    /// Trials of the project whose ids are most like `wanted`, nearest first.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE`.
    pub async fn trials_near(&self, who: &Viewer, wanted: &TrialId) -> Result<Vec<TrialId>> {
        let base = self.catalog.trials_prefix(who);
        let first = self.catalog.folders(&base, None, MAX_LIMIT).await?;
        let mut names = first.names;
        if first.next.is_some() {
            let after = neighbourhood(wanted.as_str());
            names.extend(self.catalog.folders(&base, Some(after), MAX_LIMIT).await?.names);
        }
        let ids = names.iter().filter_map(|name| TrialId::parse(name).ok());
        Ok(nearest(wanted.as_str(), ids.collect(), TrialId::as_str))
    }
}

/// The folders of a name and the first letters of what is in them.
fn neighbourhood(wanted: &str) -> &str {
    let file = wanted.rfind('/').map_or(0, |slash| slash + 1);
    let kept = wanted[file..].char_indices().nth(KEPT_CHARS).map_or(wanted.len() - file, |(end, _)| end);
    &wanted[..file + kept]
}

/// The candidates that are most like `wanted`: those of the same file name first, then by the
/// number of edits between the whole names.
fn nearest<T>(wanted: &str, candidates: Vec<T>, text: impl Fn(&T) -> &str) -> Vec<T> {
    let wanted_chars = tail(wanted);
    let mut ranked: Vec<_> = candidates
        .into_iter()
        .map(|candidate| {
            let name = text(&candidate);
            let moved = file_name(name).eq_ignore_ascii_case(file_name(wanted));
            ((!moved, edits(&wanted_chars, &tail(name)), name.to_owned()), candidate)
        })
        .collect();
    ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
    ranked.dedup_by(|(one, _), (other, _)| one.2 == other.2);
    ranked.into_iter().take(MAX_OFFERED).map(|(_, candidate)| candidate).collect()
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn tail(name: &str) -> Vec<char> {
    let chars: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    chars[chars.len().saturating_sub(COMPARED_CHARS)..].to_vec()
}

/// How many characters must be put in, taken out or changed to make one of the other (Levenshtein).
pub(crate) fn edits(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("kitten", "sitting", 3),
            ("日本", "日木", 1),
        ] {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(edits(&chars(one), &chars(other)), count, "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_same_file_elsewhere_comes_first_and_then_the_fewest_edits() {
        let names =
            vec!["a/x", "agent/trial.txt", "b/deep/trial.log", "agent/trial.log.1", "zzz", "agent/tria.log", "q"];
        let got = nearest("agent/Trial.log", names, |name| name);
        assert_eq!(got, ["b/deep/trial.log", "agent/tria.log", "agent/trial.log.1", "agent/trial.txt", "a/x"]);
        assert!(nearest("x", Vec::<&str>::new(), |name| name).is_empty());
        assert_eq!(nearest("a", vec!["b", "b"], |name| name), ["b"], "two pages may overlap");
    }

    #[test]
    fn a_second_page_begins_before_the_name_that_was_meant() {
        for (wanted, kept) in
            [("agent/trial.lgo", "agent/tr"), ("trial", "tr"), ("a/b", "a/b"), ("日本語/日本語", "日本語/日本")]
        {
            assert_eq!(neighbourhood(wanted), kept);
        }
    }
}
