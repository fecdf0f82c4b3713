//! What a file of a trial is: its identity, its place in the bucket, what it may be shown as.
//!
//! Everything here is pure: no I/O, no clock, no async. Identifiers are parsed once, at the edge,
//! and trusted from then on; a function that takes an [`ArtifactName`] need not check it again.

pub mod image;
pub mod key;
pub mod media;
pub mod range;
pub mod text;

use std::fmt;
use std::sync::Arc;

/// Why a string is not an identifier. The text names the rule, never the rejected value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {rule}")]
pub struct InvalidId {
    what: &'static str,
    rule: &'static str,
}

/// Defines a cheaply cloned, validated string: one type per kind of identifier.
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:path, $schema:tt) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses the identifier.
            ///
            /// # Errors
            /// [`InvalidId`] names the rule that `text` breaks.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                match $check(text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(rule) => Err(InvalidId { what: $what, rule }),
                }
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

identifier!(
    /// A workspace: `[A-Za-z0-9_-]{1,128}`.
    WorkspaceId, "a workspace id", check_workspace, {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}
);
identifier!(
    /// A project, unique across workspaces: `[A-Za-z0-9_:-]{1,128}`.
    ProjectId, "a project id", check_project, {"type": "string", "pattern": "^[A-Za-z0-9_:-]{1,128}$"}
);
identifier!(
    /// A trial of a project: `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`.
    TrialId, "a trial id", check_trial, {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"}
);
identifier!(
    /// An artifact's logical POSIX path inside its trial.
    ///
    /// UTF-8, 1 to 1024 bytes, `/`-separated; no empty, `.` or `..` segment, no backslash, no
    /// control character, no Windows drive prefix. Compared byte by byte: two normal forms of one
    /// accented letter are two names.
    ArtifactName, "an artifact name", check_name, {
        "type": "string",
        "description": "A relative POSIX path of at most 1024 bytes of UTF-8: no empty, `.` or `..` segment, no \
                        backslash, no control character, no drive letter at its head.",
        "minLength": 1,
        "maxLength": 1024,
    }
);

/// The longest identifier of a workspace, project or trial, in bytes.
pub const MAX_ID_BYTES: usize = 128;
/// The longest [`ArtifactName`], in bytes.
pub const MAX_NAME_BYTES: usize = 1024;

fn check_chars(text: &str, extra: &str, rule: &'static str) -> Result<(), &'static str> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || extra.as_bytes().contains(&b);
    if (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(legal) { Ok(()) } else { Err(rule) }
}

fn check_workspace(text: &str) -> Result<(), &'static str> {
    check_chars(text, "_-", "is 1 to 128 of A-Z a-z 0-9 _ -")
}

fn check_project(text: &str) -> Result<(), &'static str> {
    check_chars(text, "_:-", "is 1 to 128 of A-Z a-z 0-9 _ : -")
}

fn check_trial(text: &str) -> Result<(), &'static str> {
    const RULE: &str = "is 1 to 128 of A-Z a-z 0-9 . _ : - and begins with a letter or digit";
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(RULE);
    }
    check_chars(text, "._:-", RULE)
}

fn check_name(text: &str) -> Result<(), &'static str> {
    if !(1..=MAX_NAME_BYTES).contains(&text.len()) {
        return Err("is 1 to 1024 bytes long");
    }
    let head = text.as_bytes();
    if head.len() >= 2 && head[0].is_ascii_alphabetic() && head[1] == b':' {
        return Err("does not begin with a drive letter");
    }
    check_segments(text)
}

/// The rules of names that hold for each segment of a longer key, too.
fn check_segments(text: &str) -> Result<(), &'static str> {
    if text.contains('\\') {
        return Err("has no backslash");
    }
    if text.chars().any(char::is_control) {
        return Err("has no control character");
    }
    if text.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err("has no empty, '.' or '..' segment");
    }
    Ok(())
}

/// Whether every `/`-separated segment of `text` may stand in an [`ArtifactName`]: not empty, `.` or
/// `..`, no backslash, no control character. The rules of the whole name (its length, the drive
/// letter) are not asked, since an object's key begins with more than the name.
#[must_use]
pub fn has_sound_segments(text: &str) -> bool {
    check_segments(text).is_ok()
}

/// A project and the workspace that it lives in: the scope of every read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Project {
    /// The workspace, used by layouts that name it.
    pub workspace: WorkspaceId,
    /// The project, the account that reads are charged to.
    pub id: ProjectId,
}

impl ArtifactName {
    /// The name as one URL path segment: `~` written `~0`, `/` written `~1` (RFC 6901 §3).
    #[must_use]
    pub fn artifact_id(&self) -> String {
        self.0.replace('~', "~0").replace('/', "~1")
    }

    /// Reads an artifact id back into the name.
    ///
    /// # Errors
    /// A `~` that is not `~0` or `~1`, a literal `/`, or a name that breaks the rules.
    pub fn from_artifact_id(id: &str) -> Result<Self, InvalidId> {
        let invalid = |rule| InvalidId { what: "an artifact id", rule };
        if id.contains('/') {
            return Err(invalid("writes '/' as ~1"));
        }
        let mut name = String::with_capacity(id.len());
        let mut chars = id.chars();
        while let Some(c) = chars.next() {
            name.push(match c {
                '~' => match chars.next() {
                    Some('0') => '~',
                    Some('1') => '/',
                    _ => return Err(invalid("has only ~0 and ~1 as escapes")),
                },
                c => c,
            });
        }
        Self::parse(&name)
    }

    /// The last segment: what a saved file is called.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_allowed() {
        for name in [
            "a",
            "agent/log.txt",
            "100%",
            "a+b",
            "[1]{2}",
            "cafe\u{301}",
            "caf\u{e9}",
            "日本/語",
            ".hidden",
            "core#1",
            "..x",
            "a b",
            "~",
            "~0~1",
            "x~1y",
            "1:b",
            "literal-%3D",
            "ab:c",
            &"n".repeat(1024),
        ] {
            let parsed = ArtifactName::parse(name).expect(name);
            assert_eq!(parsed.as_str(), name);
            assert_eq!(ArtifactName::from_artifact_id(&parsed.artifact_id()), Ok(parsed), "{name}");
        }
    }

    #[test]
    fn names_that_are_refused() {
        for name in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "./a",
            "a\\b",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a\u{85}",
            "C:",
            "c:/x",
            "z:x",
            &"n".repeat(1025),
        ] {
            assert!(ArtifactName::parse(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn artifact_ids_round_trip_and_refuse_other_escapes() {
        let name = ArtifactName::parse("verifier/std~out.txt").expect("valid");
        assert_eq!(name.artifact_id(), "verifier~1std~0out.txt");
        for id in ["a/b", "a~", "a~2", "~1a", "a~1~1b", "..", "a~1..", "", "a\\b"] {
            assert!(ArtifactName::from_artifact_id(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn ids_have_their_alphabets() {
        assert!(ProjectId::parse("a_b:c-9").is_ok());
        assert!(WorkspaceId::parse("a:b").is_err());
        assert!(TrialId::parse("task__aB3.x:1-2").is_ok());
        for bad in ["", ".a", "-a", "_a", "a/b", "a b", "é", &"t".repeat(129)] {
            assert!(TrialId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_file_name_is_the_last_segment() {
        assert_eq!(ArtifactName::parse("a/b/c.txt").expect("valid").file_name(), "c.txt");
        assert_eq!(ArtifactName::parse("c.txt").expect("valid").file_name(), "c.txt");
    }
}
