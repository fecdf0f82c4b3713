//! Signed links: what is in a token, and who signed it. Pure.
//!
//! # The token
//!
//! ```text
//! token   = payload "." mac
//! payload = base64url( JSON )                      without padding (RFC 4648 §5)
//! mac     = base64url( HMAC-SHA256( secret, "artifactd link v1\n" payload ) )
//! JSON    = {"key":…,"workspace":…,"project":…,"trial":…,"name":…,"etag":…,"expires":…,"link":…,"issuer":…}
//! ```
//!
//! `key` names the signing key, `etag` the version (as in the `ETag` header), `expires` the last
//! second (Unix time) at which a download may begin, `link` the link in the ledger, `issuer` the key
//! that asked for it. All other members are those of the artifact's identity.
//!
//! The MAC covers the payload's characters as they stand in the URL, so nothing is brought into a
//! canonical form, and nothing of a payload is looked at before its MAC is found good. A token
//! consists of `A-Z a-z 0-9 - _ .` alone, which no proxy re-encodes.
//!
//! Every signing key is tried on every token, in constant time each: neither the answer nor its
//! time tells in what way a token is wrong.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::artifact::{ArtifactName, Project, ProjectId, TrialId, WorkspaceId};
use crate::ledger::LinkId;

/// The shortest life of a link, s.
pub const MIN_LIFE_SECONDS: u64 = 60;
/// The longest life of a link, s: 7 days.
pub const MAX_LIFE_SECONDS: u64 = 7 * 24 * 3600;
/// The life of a link for which none is asked, s.
pub const DEFAULT_LIFE_SECONDS: u64 = 15 * 60;

/// The shortest secret of a signing key, bytes: as much as the MAC has.
pub const MIN_SECRET_BYTES: usize = 32;
/// The most signing keys that are live at once.
pub const MAX_SIGNING_KEYS: usize = 8;
/// The longest token. The longest identity there is, in base64, stays well below.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// Keeps these MACs apart from all others that the same secret may be used for.
const DOMAIN: &[u8] = b"artifactd link v1\n";

/// What a link says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The project that is charged.
    pub project: Project,
    /// The trial.
    pub trial: TrialId,
    /// The artifact.
    pub name: ArtifactName,
    /// The version, as the `ETag` header says it.
    pub etag: String,
    /// The last second at which a download may begin, Unix time.
    pub expires: u64,
    /// The link in the ledger.
    pub link: LinkId,
    /// The key that asked for the link.
    pub issuer: String,
}

/// A token is not of this service, or not any more, or was tampered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid here")]
pub struct InvalidToken;

/// Why keys are not a [`SigningKeys`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSigningKeys(String);

/// The signing keys: the first signs, all are believed.
pub struct SigningKeys(Vec<SigningKey>);

struct SigningKey {
    id: String,
    /// Keyed and begun with [`DOMAIN`], to be cloned for each token.
    mac: Hmac<Sha256>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload<'a> {
    key: &'a str,
    workspace: WorkspaceId,
    project: ProjectId,
    trial: TrialId,
    name: ArtifactName,
    etag: String,
    expires: u64,
    link: LinkId,
    issuer: String,
}

impl SigningKeys {
    /// Takes 1 to [`MAX_SIGNING_KEYS`] pairs of an id (1 to 64 of `A-Z a-z 0-9 . _ -`, each once) and a
    /// secret of at least [`MIN_SECRET_BYTES`] bytes.
    ///
    /// # Errors
    /// [`InvalidSigningKeys`] says which rule is broken.
    pub fn new(keys: impl IntoIterator<Item = (String, impl AsRef<[u8]>)>) -> Result<Self, InvalidSigningKeys> {
        let mut ring: Vec<SigningKey> = Vec::new();
        for (id, secret) in keys {
            let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
            if !(1..=64).contains(&id.len()) || !id.bytes().all(legal) {
                return Err(InvalidSigningKeys("the id of a signing key is 1 to 64 of A-Z a-z 0-9 . _ -".into()));
            }
            if ring.iter().any(|key| key.id == id) {
                return Err(InvalidSigningKeys(format!("the signing key {id} is named twice")));
            }
            if secret.as_ref().len() < MIN_SECRET_BYTES {
                return Err(InvalidSigningKeys(format!(
                    "the secret of the signing key {id} has fewer than {MIN_SECRET_BYTES} bytes"
                )));
            }
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_ref()).expect("HMAC takes a key of any length");
            mac.update(DOMAIN);
            ring.push(SigningKey { id, mac });
        }
        if !(1..=MAX_SIGNING_KEYS).contains(&ring.len()) {
            return Err(InvalidSigningKeys(format!("there are 1 to {MAX_SIGNING_KEYS} signing keys")));
        }
        Ok(Self(ring))
    }

    /// The token of a link.
    #[must_use]
    pub fn sign(&self, claims: &Claims) -> String {
        let key = &self.0[0];
        let payload = Payload {
            key: &key.id,
            workspace: claims.project.workspace.clone(),
            project: claims.project.id.clone(),
            trial: claims.trial.clone(),
            name: claims.name.clone(),
            etag: claims.etag.clone(),
            expires: claims.expires,
            link: claims.link,
            issuer: claims.issuer.clone(),
        };
        let json = serde_json::to_vec(&payload).expect("strings and numbers are JSON");
        let mut token = URL_SAFE_NO_PAD.encode(json);
        let mac = key.mac.clone().chain_update(&token).finalize().into_bytes();
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(mac, &mut token);
        token
    }

    /// What a token says, if one of the keys signed it. Whether it has expired is for the caller.
    ///
    /// # Errors
    /// [`InvalidToken`], whatever is wrong.
    pub fn verify(&self, token: &str) -> Result<Claims, InvalidToken> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(InvalidToken);
        }
        let (payload, mac) = token.split_once('.').unwrap_or((token, ""));
        // One that is no base64 takes as long as one that is wrong.
        let mac = URL_SAFE_NO_PAD.decode(mac).unwrap_or_default();
        let mut signer = None;
        for key in &self.0 {
            if key.mac.clone().chain_update(payload).verify_slice(&mac).is_ok() {
                signer = Some(key);
            }
        }
        let signer = signer.ok_or(InvalidToken)?;
        let json = URL_SAFE_NO_PAD.decode(payload).map_err(|_| InvalidToken)?;
        let payload: Payload<'_> = serde_json::from_slice(&json).map_err(|_| InvalidToken)?;
        if payload.key != signer.id {
            return Err(InvalidToken);
        }
        Ok(Claims {
            project: Project { workspace: payload.workspace, id: payload.project },
            trial: payload.trial,
            name: payload.name,
            etag: payload.etag,
            expires: payload.expires,
            link: payload.link,
            issuer: payload.issuer,
        })
    }
}

/// The same ids and secrets in the same order, compared in constant time by a MAC of nothing.
impl PartialEq for SigningKeys {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&SigningKey, &SigningKey)| {
            one.id == other.id && one.mac.clone().finalize() == other.mac.clone().finalize()
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn keys(pairs: &[(&str, u8)]) -> SigningKeys {
        SigningKeys::new(pairs.iter().map(|(id, byte)| ((*id).to_owned(), [*byte; 32]))).expect("keys")
    }

    fn claims() -> Claims {
        Claims {
            project: Project {
                workspace: WorkspaceId::parse("w").expect("valid"),
                id: ProjectId::parse("p:1").expect("valid"),
            },
            trial: TrialId::parse("t__1").expect("valid"),
            name: ArtifactName::parse("out/報告 \"1\".txt").expect("valid"),
            etag: "W/\"a-b\"".into(),
            expires: 1_795_953_600,
            link: LinkId(Uuid::from_u128(7)),
            issuer: "key".into(),
        }
    }

    #[test]
    fn a_token_is_made_of_what_the_format_says() {
        let token = keys(&[("one", 1)]).sign(&claims());
        let (payload, mac) = token.split_once('.').expect("two parts");
        assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)), "{token}");
        let json = URL_SAFE_NO_PAD.decode(payload).expect("base64url");
        assert_eq!(
            String::from_utf8(json).expect("text"),
            "{\"key\":\"one\",\"workspace\":\"w\",\"project\":\"p:1\",\"trial\":\"t__1\",\
             \"name\":\"out/報告 \\\"1\\\".txt\",\"etag\":\"W/\\\"a-b\\\"\",\"expires\":1795953600,\
             \"link\":\"00000000-0000-0000-0000-000000000007\",\"issuer\":\"key\"}"
        );
        let mut want = Hmac::<Sha256>::new_from_slice(&[1; 32]).expect("a key");
        want.update(b"artifactd link v1\n");
        want.update(payload.as_bytes());
        assert_eq!(URL_SAFE_NO_PAD.decode(mac).expect("base64url"), want.finalize().into_bytes().to_vec());
    }

    #[test]
    fn keys_are_rotated_by_putting_a_new_one_first() {
        let (old, both, new) = (keys(&[("old", 1)]), keys(&[("new", 2), ("old", 1)]), keys(&[("new", 2)]));
        let token = old.sign(&claims());
        assert_eq!(both.verify(&token), Ok(claims()));
        assert_eq!(new.verify(&token), Err(InvalidToken));
        let token = both.sign(&claims());
        assert_eq!(new.verify(&token), Ok(claims()));
        assert_eq!(old.verify(&token), Err(InvalidToken));
        // The same secret under another name is another key; another secret under its name too.
        assert_eq!(keys(&[("renamed", 1)]).verify(&old.sign(&claims())), Err(InvalidToken));
        assert_eq!(keys(&[("old", 2)]).verify(&old.sign(&claims())), Err(InvalidToken));
    }

    #[test]
    fn every_character_of_a_token_counts() {
        let keys = keys(&[("one", 1)]);
        let token = keys.sign(&claims());
        assert_eq!(keys.verify(&token), Ok(claims()));
        for at in 0..token.len() {
            for with in ["A", "B", ".", "=", "", "%41"] {
                let mut bad = token.clone();
                bad.replace_range(at..=at, with);
                assert!(bad == token || keys.verify(&bad) == Err(InvalidToken), "{with} at {at}");
            }
            assert_eq!(keys.verify(&token[..at]), Err(InvalidToken));
        }
        for bad in ["", ".", "..", &format!("{token}."), &format!("{token}A"), &format!(" {token}"), &"A".repeat(9000)]
        {
            assert_eq!(keys.verify(bad), Err(InvalidToken), "{bad}");
        }
    }

    #[test]
    fn no_field_can_be_exchanged() {
        let keys = keys(&[("one", 1)]);
        let token = keys.sign(&claims());
        let (payload, mac) = token.split_once('.').expect("two parts");
        let json = String::from_utf8(URL_SAFE_NO_PAD.decode(payload).expect("base64url")).expect("text");
        for (from, to) in [
            ("\"one\"", "\"two\""),
            ("\"w\"", "\"x\""),
            ("\"p:1\"", "\"p:2\""),
            ("t__1", "t__2"),
            ("out/", "in/"),
            ("a-b", "a-c"),
            ("1795953600", "9795953600"),
            ("000000000007", "000000000008"),
            ("\"issuer\":\"key\"", "\"issuer\":\"yek\""),
        ] {
            let forged = json.replace(from, to);
            assert_ne!(forged, json, "{from}");
            let forged = format!("{}.{mac}", URL_SAFE_NO_PAD.encode(forged));
            assert_eq!(keys.verify(&forged), Err(InvalidToken), "{from}");
        }
    }

    #[test]
    fn the_longest_identity_fits() {
        let keys = keys(&[("one", 1)]);
        let claims = Claims { name: ArtifactName::parse(&"\u{1F600}".repeat(256)).expect("valid"), ..claims() };
        assert_eq!(keys.verify(&keys.sign(&claims)), Ok(claims));
    }

    #[test]
    fn rings_that_are_refused() {
        let new = |pairs: &[(&str, usize)]| {
            let keys = pairs.iter().map(|(id, bytes)| ((*id).to_owned(), vec![7; *bytes]));
            SigningKeys::new(keys).map(|ring| format!("{ring:?}")).map_err(|error| error.to_string())
        };
        assert_eq!(new(&[("a", 32), ("b", 64)]), Ok("[\"a\", \"b\"]".into()));
        for (pairs, words) in [
            (&[][..], "1 to 8"),
            (&[("a", 32); 2][..], "twice"),
            (&[("a", 31)][..], "fewer than 32"),
            (&[("", 32)][..], "1 to 64"),
            (&[("a b", 32)][..], "1 to 64"),
        ] {
            let error = new(pairs).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }
}
