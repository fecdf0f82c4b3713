//! What a setting is: its name, its form, its bounds, its default. `section!` makes of one table both
//! the struct that the service reads and the rows that check, read and document it.

use std::fmt;

use toml::Value;

use crate::bytesize::{ByteSize, parse_allowance};

/// The prefix of settings in the environment.
pub const ENVIRONMENT_PREFIX: &str = "ARTIFACTD_";

/// A section of the settings file.
#[derive(Debug)]
pub struct Section {
    /// Its name; empty for what stands above all sections.
    pub name: &'static str,
    /// What it is about, in lines.
    pub about: &'static [&'static str],
    /// Its settings, in the order of the documentation.
    pub settings: &'static [Setting],
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its section's name.
    pub section: &'static str,
    /// Its name within the section.
    pub key: &'static str,
    /// What it means, in lines.
    pub about: &'static [&'static str],
    /// What it may be.
    pub form: Form,
    /// What it is where nobody sets it.
    pub default: Preset,
    /// Whether a running service takes a change of it.
    pub reloads: bool,
}

/// What a setting is where nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Somebody must.
    Required,
    /// Nothing.
    Unset,
    /// This, written as in the environment.
    Is(&'static str),
}

/// What a setting may be. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A text; the phrase says which, the function tells it from others.
    Text(&'static str, fn(&str) -> bool),
    /// A text that is never shown, since it may hold a password.
    Secret(&'static str),
    /// The path of a file.
    File,
    /// A whole number, of this unit.
    Number {
        /// The unit, `""` for a count.
        unit: &'static str,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// An amount of bytes.
    Bytes {
        /// The least, bytes.
        least: u64,
        /// The most, bytes.
        most: u64,
    },
    /// An amount of bytes, or `unlimited`.
    Allowance,
    /// Yes or no.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of texts; the phrase says of which.
    Texts(&'static str),
    /// The signing keys of links.
    SigningKeys,
}

impl Setting {
    /// `section.key`, as messages call it.
    #[must_use]
    pub fn name(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }

    /// Its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.name().replace('.', "__").to_ascii_uppercase())
    }

    /// Reads the text of a variable, a flag or a default.
    ///
    /// # Errors
    /// What it would have to be instead.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let toml = || format!("v = {text}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("v"));
        let value = match self.form {
            Form::Text(..) | Form::Secret(_) | Form::File | Form::OneOf(_) | Form::Bytes { .. } | Form::Allowance => {
                Value::String(text.to_owned())
            }
            Form::Number { .. } => text.trim().parse().map(Value::Integer).unwrap_or(Value::String(text.to_owned())),
            Form::Flag => text.trim().parse().map(Value::Boolean).unwrap_or(Value::String(text.to_owned())),
            // One word, or several with commas, are clear without brackets and quotes.
            Form::Texts(_) if !text.trim_start().starts_with('[') => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                Value::Array(words.map(|word| Value::String(word.to_owned())).collect())
            }
            Form::Texts(_) | Form::SigningKeys => toml().unwrap_or(Value::String(text.to_owned())),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Judges a value.
    ///
    /// # Errors
    /// Names the setting, and says what it is and what it would have to be.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        let sound = match (self.form, value) {
            (Form::Text(_, sound), Value::String(text)) => !text.trim().is_empty() && sound(text),
            (Form::Secret(_) | Form::File, Value::String(text)) => !text.trim().is_empty(),
            (Form::Number { least, most, .. }, Value::Integer(number)) => {
                u64::try_from(*number).is_ok_and(|number| (least..=most).contains(&number))
            }
            (Form::Bytes { least, most }, value) => {
                bytes(value).is_some_and(|bytes| (least..=most).contains(&bytes.bytes()))
            }
            (Form::Allowance, Value::String(text)) => parse_allowance(text).is_ok(),
            (Form::Allowance, value) => bytes(value).is_some(),
            (Form::Flag, Value::Boolean(_)) => true,
            (Form::OneOf(words), Value::String(word)) => words.contains(&word.as_str()),
            (Form::Texts(_), Value::Array(items)) => items.iter().all(Value::is_str),
            (Form::SigningKeys, Value::Array(items)) => items.iter().all(is_signing_key),
            _ => false,
        };
        if sound { Ok(()) } else { Err(format!("{} is {}; it is {}", self.name(), self.shown(value), self.form)) }
    }

    /// The value, for a message. A secret is not shown, and nothing is that may hold one.
    fn shown(&self, value: &Value) -> String {
        match (self.form, value) {
            (_, Value::String(text)) if text.trim().is_empty() => "empty".to_owned(),
            // As in https://user:password@host.
            (_, Value::String(text)) if text.contains('@') => "something with an @".to_owned(),
            (Form::Secret(_) | Form::SigningKeys, _) | (_, Value::Table(_)) => "something else".to_owned(),
            (_, value) => value.to_string(),
        }
    }
}

fn bytes(value: &Value) -> Option<ByteSize> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Integer(number) => ByteSize::new(u64::try_from(*number).ok()?),
        _ => None,
    }
}

fn is_signing_key(value: &Value) -> bool {
    value.as_table().is_some_and(|key| {
        key.len() == 2 && ["id", "secret_file"].iter().all(|name| key.get(*name).is_some_and(Value::is_str))
    })
}

impl fmt::Display for Form {
    /// What a setting of this form is, to go on after "it is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(what, _) | Self::Secret(what) => f.write_str(what),
            Self::File => f.write_str("the path of a file"),
            Self::Number { unit: "", least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Number { unit, least, most } => write!(f, "a whole number of {unit} from {least} to {most}"),
            Self::Bytes { least, most } => {
                let size = |bytes| ByteSize::new(bytes).map(|size| size.to_string()).unwrap_or_default();
                write!(f, "an amount of bytes from {} to {}", size(*least), size(*most))
            }
            Self::Allowance => f.write_str("an amount of bytes, such as \"50 GiB\", or \"unlimited\""),
            Self::Flag => f.write_str("true or false"),
            Self::OneOf(words) => f.write_str(&words.join(" or ")),
            Self::Texts(what) => write!(f, "a list of {what}"),
            Self::SigningKeys => f.write_str("a list such as [{ id = \"2026-11\", secret_file = \"link.key\" }]"),
        }
    }
}

/// Makes a section's struct, and `SECTION`, the table of its settings: documentation, name, type,
/// default and form of each stand in one place. `reloads` marks those that a running service follows.
macro_rules! section {
    ($(#[doc = $about:literal])+ pub struct $name:ident of $section:literal {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty $(as $with:literal)? = $default:expr, $form:expr $(, $reloads:ident)?;)+
        $(with { $($(#[doc = $part_doc:literal])+ $part:ident: $part_type:ty;)+ })?
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, serde::Deserialize)]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde(deserialize_with = $with)])? pub $field: $type,)+
            $($($(#[doc = $part_doc])+ pub $part: $part_type,)+)?
        }

        impl $name {
            /// What may be set here.
            pub const SECTION: $crate::config::setting::Section = $crate::config::setting::Section {
                name: $section,
                about: &[$($about),+],
                settings: &[$($crate::config::setting::Setting {
                    section: $section,
                    key: stringify!($field),
                    about: &[$($doc),+],
                    form: $form,
                    default: $default,
                    reloads: $crate::config::setting::section!(@reloads $($reloads)?),
                }),+],
            };
        }
    };
    (@reloads reloads) => { true };
    (@reloads) => { false };
}

pub(super) use section;
