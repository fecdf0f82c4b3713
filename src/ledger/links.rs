//! What a ledger knows of signed links: that they were made, and whether they were revoked.

use std::fmt;

use uuid::Uuid;

use super::LedgerTime;
use crate::artifact::{ArtifactName, TrialId};

/// Names one link: a UUIDv7 made with it. No secret: it opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub Uuid);

impl LinkId {
    /// A fresh id.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads the hyphenated lower-case form and no other.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self).filter(|id| id.to_string() == text)
    }
}

impl Default for LinkId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl serde::Serialize for LinkId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl schemars::JsonSchema for LinkId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LinkId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "uuid"})
    }
}

impl<'de> serde::Deserialize<'de> for LinkId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("no link id"))
    }
}

/// A link as it is recorded until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its id.
    pub id: LinkId,
    /// The key that made it.
    pub key_id: String,
    /// The trial.
    pub trial: TrialId,
    /// The artifact.
    pub artifact: ArtifactName,
    /// Known through this moment, and not afterwards.
    pub expires: LedgerTime,
}
