//! The nearest valid call to one that was refused for its arguments: an agent that sees it need not
//! work out from a rule what to send.

use serde_json::{Map, Value};

use super::Tool;
use super::arguments::integer;
use crate::artifact::text::visible_json;
use crate::listing::near::edits;

/// A longer suggestion is left out: it would bury the message.
const MAX_BYTES: usize = 600;
/// How many edits make one argument's name of another.
const SLIP: usize = 2;

/// The call, as a tool's name and its arguments in JSON, unless it would be too long.
pub(super) fn nearest_call(tool: &Tool, given: &Map<String, Value>) -> Option<String> {
    let input = (tool.input)();
    let properties = input["properties"].as_object()?;
    let example: Map<String, Value> = serde_json::from_str(tool.example).ok()?;
    let mut call = Map::new();
    for (argument, value) in given {
        let Some(known) = known_as(tool, properties, argument) else { continue };
        if call.contains_key(known) || (known != argument && given.contains_key(known)) {
            continue;
        }
        if let Some(value) = fitted(&properties[known], value).filter(|value| (tool.accepts)(known, value)) {
            call.insert(known.to_owned(), value);
        }
    }
    if let Some((first, others)) = tool.exactly_one.split_first() {
        if call.contains_key(*first) {
            call.retain(|argument, _| !others.contains(&argument.as_str()));
        } else if !others.iter().any(|other| call.contains_key(*other)) {
            call.insert((*first).to_owned(), example.get(*first)?.clone());
        }
    }
    for required in input["required"].as_array()? {
        let required = required.as_str()?;
        if !call.contains_key(required) {
            call.insert(required.to_owned(), example.get(required)?.clone());
        }
    }
    let text = format!("{} {}", tool.name, visible_json(&Value::Object(call).to_string()));
    (text.len() <= MAX_BYTES).then_some(text)
}

/// The tool's argument that is meant by this name.
fn known_as<'a>(tool: &Tool, properties: &'a Map<String, Value>, argument: &str) -> Option<&'a str> {
    let chars = |text: &str| text.chars().take(64).collect::<Vec<_>>();
    let alias = || tool.aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(argument)).map(|(_, name)| *name);
    let slip = || {
        let near = properties.keys().map(|name| (edits(&chars(name), &chars(argument)), name));
        near.min().filter(|(edits, _)| *edits <= SLIP).map(|(_, name)| name.as_str())
    };
    let name = Some(argument).filter(|name| properties.contains_key(*name)).or_else(alias).or_else(slip)?;
    properties.get_key_value(name).map(|(name, _)| name.as_str())
}

/// The value, made to fit its property's type and range, or nothing if it cannot be.
fn fitted(property: &Value, value: &Value) -> Option<Value> {
    match (property["type"].as_str()?, value) {
        ("string", Value::String(_)) => Some(value.clone()),
        ("string", Value::Number(number)) => Some(number.to_string().into()),
        ("integer", Value::String(text)) => clamped(property, text.trim().parse().ok()?),
        ("integer", Value::Number(number)) => clamped(property, integer(value).or_else(|| rounded(number.as_f64()?))?),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a cast from a float to an integer saturates")]
const fn rounded(number: f64) -> Option<i64> {
    if number.is_finite() { Some(number as i64) } else { None }
}

fn clamped(property: &Value, number: i64) -> Option<Value> {
    let bound = |name: &str, none| property.get(name).and_then(Value::as_i64).unwrap_or(none);
    Some(number.clamp(bound("minimum", i64::MIN), bound("maximum", i64::MAX)).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_meant_is_kept_and_what_is_wrong_is_put_right() {
        let (list, read) = ("envloop_trial_artifacts_list", "envloop_trial_artifact_read");
        for (tool, given, want) in [
            (list, json!({}), json!({"trial_id": "fix-login__aB3xY9z"})),
            (list, json!({"trial_id": "t", "limit": 1000}), json!({"trial_id": "t", "limit": 100})),
            (list, json!({"trial_id": "t", "limit": "50"}), json!({"trial_id": "t", "limit": 50})),
            (list, json!({"trial_id": "t", "limit": "all"}), json!({"trial_id": "t"})),
            (list, json!({"trial": "t", "path": "agent/"}), json!({"trial_id": "t", "prefix": "agent/"})),
            (list, json!({"trialId": "t"}), json!({"trial_id": "t"})),
            (
                read,
                json!({"trial_id": "t", "name": "a", "max_bytes": 0}),
                json!({"trial_id": "t", "name": "a", "max_bytes": 1}),
            ),
            (
                read,
                json!({"trial_id": "t", "name": "a", "max_bytes": 1e9}),
                json!({"trial_id": "t", "name": "a", "max_bytes": 40960}),
            ),
            (
                read,
                json!({"trial_id": "t", "name": "a", "offset": 1.5}),
                json!({"trial_id": "t", "name": "a", "offset": 1}),
            ),
            (read, json!({"trial_id": "t", "name": "a", "artifact_id": "a"}), json!({"trial_id": "t", "name": "a"})),
            (read, json!({"trial_id": "t", "artifact_id": "a", "x": 1}), json!({"trial_id": "t", "artifact_id": "a"})),
            (read, json!({"trial_id": "t", "path": "agent/log"}), json!({"trial_id": "t", "name": "agent/log"})),
            (read, json!({"trial_id": "t", "name": "a", "path": "b"}), json!({"trial_id": "t", "name": "a"})),
            (read, json!({"trial_id": "t", "path": "a\u{202e}b"}), json!({"trial_id": "t", "name": "a\u{202e}b"})),
            (read, json!({"trial_id": "t"}), json!({"trial_id": "t", "name": "verifier/test-stdout.txt"})),
            (read, json!({"trial_id": 7, "name": ["a"]}), json!({"trial_id": "7", "name": "verifier/test-stdout.txt"})),
            (
                read,
                json!({"trial_id": "../t", "name": "../a"}),
                json!({"trial_id": "fix-login__aB3xY9z", "name": "verifier/test-stdout.txt"}),
            ),
        ] {
            let tool = Tool::named(tool).expect("a tool");
            let Value::Object(given) = given else { panic!("an object") };
            let got = nearest_call(tool, &given).expect("a call");
            let (name, arguments) = got.split_once(' ').expect("two parts");
            assert!(!arguments.contains('\u{202e}'), "what cannot be seen is escaped");
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            assert_eq!((name, arguments), (tool.name, want), "{given:?}");
        }
    }

    #[test]
    fn a_long_call_is_not_repeated() {
        let tool = Tool::named("envloop_trial_artifact_read").expect("a tool");
        let Value::Object(given) = json!({"trial_id": "t", "name": "x".repeat(1000), "max_bytes": 0}) else { panic!() };
        assert_eq!(nearest_call(tool, &given), None);
    }
}
