//! JSON in which each object has each of its names once (I-JSON, RFC 7493 §2.3).
//!
//! Parsers differ in which of two values they keep. A proxy that has read the one would let through
//! what this service then does with the other.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why bytes are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invalid {
    /// They are no JSON (RFC 8259), or nested deeper than 127 levels.
    Syntax,
    /// An object has two values of one name.
    Repeated,
}

/// Reads one value, and nothing after it.
///
/// # Errors
/// [`Invalid`] says why not.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, Invalid> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Unique.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    // The only rule about data that any JSON can break here is this module's.
    read.map_err(|error| if error.is_data() { Invalid::Repeated } else { Invalid::Syntax })
}

/// Builds a value and refuses a second one of the same name.
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom("a name is repeated"));
            }
            object.insert(name, fields.next_value_seed(Self)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_there_once() {
        for (text, outcome) in [
            (
                r#"{"a":1,"b":{"a":[{"a":null},{"a":false}]}}"#,
                Ok(json!({"a": 1, "b": {"a": [{"a": null}, {"a": false}]}})),
            ),
            (r#"{"a":1,"a":1}"#, Err(Invalid::Repeated)),
            (r#"{"a":1,"\u0061":2}"#, Err(Invalid::Repeated)),
            (r#"[0,{"b":{"c":"","c":""}}]"#, Err(Invalid::Repeated)),
            (r#"{"a":1}{"a":1}"#, Err(Invalid::Syntax)),
            (r#"{"a":1"#, Err(Invalid::Syntax)),
            ("1e400", Err(Invalid::Syntax)),
            (r#""\ud800""#, Err(Invalid::Syntax)),
            ("", Err(Invalid::Syntax)),
        ] {
            assert_eq!(parse(text.as_bytes()), outcome, "{text}");
        }
        assert_eq!(parse(b"\"\xff\""), Err(Invalid::Syntax));
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(127).as_bytes()).is_ok());
        assert_eq!(parse(nested(128).as_bytes()), Err(Invalid::Syntax));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(|number| number.trunc().into()),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(".{0,3}", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in values()) {
            prop_assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
        }
    }
}
