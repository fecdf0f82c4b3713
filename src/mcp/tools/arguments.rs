//! A tool's arguments, taken one by one. What is wrong is said so that an agent can put it right:
//! the argument, what was given, what is allowed.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::artifact::text::visible_json;
use crate::artifact::{ArtifactName, InvalidId, TrialId};
use crate::error::{Error, Kind, Result};
use crate::listing::checked_prefix;
use crate::request::number;

/// How much of a wrong value is repeated, in characters.
const SHOWN: usize = 80;

/// Arguments that were not taken yet.
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(super) const fn new(arguments: Map<String, Value>) -> Self {
        Self(arguments)
    }

    /// The trial, which every tool here needs.
    pub(super) fn trial(&mut self) -> Result<TrialId> {
        let id = self.text("trial_id")?;
        let id = id.ok_or_else(|| Error::new(Kind::InvalidRequest, "trial_id is missing; it names the trial."))?;
        TrialId::parse(&id).map_err(|rule| wrong_id(Kind::InvalidRequest, "trial_id", &id, &rule))
    }

    /// The artifact, by exactly one of its two names.
    pub(super) fn artifact(&mut self) -> Result<ArtifactName> {
        let wrong = |argument, given: &str, rule: &InvalidId| wrong_id(Kind::InvalidName, argument, given, rule);
        match (self.text("name")?, self.text("artifact_id")?) {
            (Some(name), None) => ArtifactName::parse(&name).map_err(|rule| wrong("name", &name, &rule)),
            (None, Some(id)) => ArtifactName::from_artifact_id(&id).map_err(|rule| wrong("artifact_id", &id, &rule)),
            (Some(_), Some(_)) => {
                Err(Error::new(Kind::InvalidRequest, "name and artifact_id are both given; give exactly one of them."))
            }
            (None, None) => Err(Error::new(
                Kind::InvalidRequest,
                "name and artifact_id are both missing; give exactly one of them.",
            )),
        }
    }

    /// A text, if given.
    pub(super) fn text(&mut self, argument: &str) -> Result<Option<String>> {
        match self.0.remove(argument) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(Kind::InvalidRequest, argument, &other, "a string")),
        }
    }

    /// The beginning of an artifact's name, if given.
    pub(super) fn prefix(&mut self) -> Result<Option<String>> {
        let prefix = self.text("prefix")?;
        match &prefix {
            Some(given) if checked_prefix(given).is_err() => {
                let allowed = "the beginning of an artifact name: no empty, '.' or '..' segment, no control character";
                Err(wrong(Kind::InvalidName, "prefix", &Value::from(given.as_str()), allowed))
            }
            _ => Ok(prefix),
        }
    }

    /// A whole number of this range, if given. `kind` is the error outside of it.
    pub(super) fn whole(&mut self, argument: &str, allowed: RangeInclusive<i64>, kind: Kind) -> Result<Option<i64>> {
        let given = match self.0.remove(argument) {
            None | Some(Value::Null) => return Ok(None),
            Some(given) => given,
        };
        match integer(&given).filter(|number| allowed.contains(number)) {
            Some(number) => Ok(Some(number)),
            None if (*allowed.start(), *allowed.end()) == (i64::MIN, i64::MAX) => {
                Err(wrong(kind, argument, &given, "a whole number"))
            }
            None => {
                let rule = format!("a whole number from {} to {}", allowed.start(), allowed.end());
                Err(wrong(kind, argument, &given, &rule))
            }
        }
    }
}

/// Refuses arguments that the tool does not have.
pub(super) fn check_known(given: &Map<String, Value>, properties: &Map<String, Value>) -> Result<()> {
    let Some(unknown) = given.keys().find(|argument| !properties.contains_key(*argument)) else { return Ok(()) };
    let known: Vec<_> = properties.keys().map(String::as_str).collect();
    let given = shown(&Value::from(unknown.as_str()));
    let message = format!("{given} is no argument of this tool; it has {}.", known.join(", "));
    Err(Error::new(Kind::InvalidRequest, message))
}

/// The whole number, if it is one.
pub(super) fn integer(value: &Value) -> Option<i64> {
    value.as_number().and_then(number::integer)
}

fn wrong(kind: Kind, argument: &str, given: &Value, allowed: &str) -> Error {
    Error::new(kind, format!("{argument} is {}; it must be {allowed}.", shown(given)))
}

fn wrong_id(kind: Kind, argument: &str, given: &str, rule: &InvalidId) -> Error {
    Error::new(kind, format!("{argument} is {}; {rule}.", shown(&Value::from(given))))
}

fn shown(value: &Value) -> String {
    let json = visible_json(&value.to_string());
    match json.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &json[..end]),
        None => json,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        let Value::Object(map) = value else { panic!("an object") };
        Arguments::new(map)
    }

    #[test]
    fn what_is_wrong_is_named_with_what_was_given_and_what_is_allowed() {
        let whole = |value: Value| arguments(json!({"n": value})).whole("n", 1..=100, Kind::InvalidLimit);
        assert_eq!(whole(json!(5)).expect("fine"), Some(5));
        assert_eq!(whole(json!(5.0)).expect("fine"), Some(5));
        assert_eq!(whole(json!(null)).expect("fine"), None);
        for (bad, shown) in [
            (json!(0), "n is 0;"),
            (json!(101), "n is 101;"),
            (json!(-1), "n is -1;"),
            (json!(1.5), "n is 1.5;"),
            (json!("5"), "n is \"5\";"),
            (json!(u64::MAX), "n is 18446744073709551615;"),
            (json!(1e300), "n is 1e+300;"),
            (json!([1]), "n is [1];"),
            (json!("a\u{202e}\u{200b}"), "n is \"a\\u202e\\u200b\";"),
        ] {
            let error = whole(bad).expect_err("refused");
            assert_eq!(error.kind(), &Kind::InvalidLimit);
            assert_eq!(error.message(), format!("{shown} it must be a whole number from 1 to 100."));
        }
    }

    #[test]
    fn one_name_of_an_artifact_is_needed() {
        for (given, want) in [(json!({"name": "a/b"}), "a/b"), (json!({"artifact_id": "a~1b", "name": null}), "a/b")] {
            assert_eq!(arguments(given).artifact().expect("fine").as_str(), want);
        }
        for (given, code, words) in [
            (json!({}), "INVALID_REQUEST", "exactly one"),
            (json!({"name": "a", "artifact_id": "a"}), "INVALID_REQUEST", "exactly one"),
            (json!({"name": 5}), "INVALID_REQUEST", "name is 5; it must be a string"),
            (json!({"name": "../x"}), "INVALID_NAME", "name is \"../x\"; an artifact name has no"),
            (json!({"artifact_id": "a/b"}), "INVALID_NAME", "artifact_id is \"a/b\"; an artifact id writes"),
        ] {
            let error = arguments(given).artifact().expect_err("refused");
            assert_eq!(error.kind().code(), code);
            assert!(error.message().contains(words), "{}", error.message());
        }
    }

    #[test]
    fn a_trial_is_needed() {
        assert!(arguments(json!({})).trial().expect_err("refused").message().starts_with("trial_id is missing"));
        let long = "x".repeat(5000);
        let error = arguments(json!({"trial_id": long})).trial().expect_err("refused");
        assert!(error.message().len() < 250 && error.message().contains("a trial id is 1 to 128"));
    }

    #[test]
    fn what_no_tool_knows_is_refused() {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let known = object(json!({"name": {}, "trial_id": {}}));
        check_known(&object(json!({"name": "a"})), &known).expect("fine");
        let error = check_known(&object(json!({"name": "a", "path": "b"})), &known).expect_err("refused");
        assert_eq!(error.message(), "\"path\" is no argument of this tool; it has name, trial_id.");
    }
}
