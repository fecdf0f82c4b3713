//! Who a request is: the keys of a file, by hash. Pure; the time is an argument.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{InvalidKeys, Key, KeyHash, Scope, Secret, parse};
use crate::access::{Capability, Credentials, Principal};
use crate::artifact::{InvalidId, Project, ProjectId, WorkspaceId};
use crate::error::{Error, Kind, Result};

/// The workspace of an operator's request that names none.
const DEFAULT_WORKSPACE: &str = "default";

/// A parsed set of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing {
    keys: HashMap<KeyHash, Key>,
}

impl KeyRing {
    /// Reads a key file.
    ///
    /// # Errors
    /// As [`parse::parse`].
    pub fn parse(text: &str) -> Result<Self, InvalidKeys> {
        let keys = parse::parse(text)?;
        Ok(Self { keys: keys.into_iter().map(|key| (key.sha256, key)).collect() })
    }

    /// How many keys there are, disabled and expired ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Finds out who asks.
    ///
    /// A personal or operator key that names no project yields a principal without one, which can
    /// ask who it is and nothing that belongs to a project.
    ///
    /// # Errors
    /// - `UNAUTHENTICATED`: no key, an unknown, disabled or expired one. Only the holder of a known
    ///   key learns which.
    /// - `INVALID_REQUEST`: a header that cannot be the id of a workspace or project.
    /// - `PROJECT_ACCESS_DENIED`: a project that the key does not speak for, existing or not.
    pub fn authenticate(&self, credentials: &Credentials, now: Timestamp) -> Result<Principal> {
        let key = self.known(credentials.key.as_deref(), now)?;
        let workspace = header("X-Workspace-ID", credentials.workspace.as_deref(), WorkspaceId::parse)?;
        let project = header("X-Project-ID", credentials.project.as_deref(), ProjectId::parse)?;
        principal(key, workspace, project)
    }

    /// Who the key of this id is in `project`.
    ///
    /// # Errors
    /// - `UNAUTHENTICATED`: no such key, or a disabled or expired one.
    /// - `PROJECT_ACCESS_DENIED`: a project that the key does not speak for.
    pub fn still(&self, key_id: &str, project: &Project, now: Timestamp) -> Result<Principal> {
        let key = self.keys.values().find(|key| key.key_id == key_id);
        let key = key.ok_or_else(|| Error::new(Kind::Unauthenticated, "There is no such key any more."))?;
        principal(usable(key, now)?, Some(project.workspace.clone()), Some(project.id.clone()))
    }

    fn known(&self, key: Option<&str>, now: Timestamp) -> Result<&Key> {
        let refused = |message: &str| Error::new(Kind::Unauthenticated, message);
        let text =
            key.ok_or_else(|| refused("This request carries no key: send the header 'Authorization: Bearer KEY'."))?;
        let key = Secret::parse(text).and_then(|secret| self.keys.get(&secret.hash()));
        usable(
            key.ok_or_else(|| refused("This key is not valid here: check it, or ask the service's operator for one."))?,
            now,
        )
    }
}

fn usable(key: &Key, now: Timestamp) -> Result<&Key> {
    let refused = |message: String| Error::new(Kind::Unauthenticated, message);
    if key.disabled {
        return Err(refused("This key is disabled: ask the service's operator for another.".into()));
    }
    if let Some(expires) = key.expires.filter(|expires| *expires <= now) {
        return Err(refused(format!("This key expired at {expires}: ask the service's operator for another.")));
    }
    Ok(key)
}

/// What `key` is in the project that is named, if one is.
fn principal(key: &Key, workspace: Option<WorkspaceId>, project: Option<ProjectId>) -> Result<Principal> {
    let (project, capabilities) = match &key.scope {
        Scope::Project(grant) => {
            let own = &grant.project;
            if workspace.is_some_and(|w| w != own.workspace) || project.is_some_and(|p| p != own.id) {
                return Err(Error::new(
                    Kind::ProjectAccessDenied,
                    "X-Workspace-ID or X-Project-ID names another project than the key's: leave both headers out.",
                ));
            }
            (Some(own.clone()), grant.access.capabilities())
        }
        Scope::Personal(grants) => match (workspace, project) {
            (Some(workspace), Some(id)) => {
                let asked = Project { workspace, id };
                let grant = grants.iter().find(|grant| grant.project == asked).ok_or_else(|| {
                    Error::new(
                        Kind::ProjectAccessDenied,
                        "This key has no access to the project that X-Workspace-ID and X-Project-ID name.",
                    )
                })?;
                (Some(asked), grant.access.capabilities())
            }
            _ => (None, [].into()),
        },
        Scope::Operator => {
            let workspace = workspace
                .unwrap_or_else(|| WorkspaceId::parse(DEFAULT_WORKSPACE).expect("the default is a workspace id"));
            let project = project.map(|id| Project { workspace, id });
            (project, [Capability::QuotaRead, Capability::QuotaManage].into())
        }
    };
    Ok(Principal { key_id: key.key_id.clone(), kind: key.kind(), project, capabilities })
}

fn header<T>(name: &str, value: Option<&str>, parse: fn(&str) -> Result<T, InvalidId>) -> Result<Option<T>> {
    value
        .map(|text| parse(text).map_err(|rule| Error::new(Kind::InvalidRequest, format!("{name}: {rule}."))))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{KeyKind, Preset};

    fn secret(digit: char) -> Secret {
        Secret::parse(&format!("epk_{}", digit.to_string().repeat(64))).expect("well formed")
    }

    fn ring() -> KeyRing {
        let entry = |digit, kind: &str, rest: &str| {
            let sha256 = secret(digit).hash();
            format!(
                "[[keys]]\nkey_id='{digit}'\nkind='{kind}'\nsha256='{sha256}'\ncreated=2026-01-01T00:00:00Z\n{rest}\n"
            )
        };
        let one = "workspace='w'\nproject='p'\npreset='read-only'";
        let text = [
            entry('1', "project", one),
            entry(
                '2',
                "personal",
                "grants=[{workspace='w',project='p',preset='read-only'},{workspace='x',project='q',capabilities=['jobs.read']}]",
            ),
            entry('3', "operator", ""),
            entry('4', "project", &format!("{one}\ndisabled=true")),
            entry('5', "project", &format!("{one}\nexpires=2026-06-01T00:00:00Z")),
        ];
        KeyRing::parse(&text.concat()).expect("a key file")
    }

    fn ask(key: &str, workspace: Option<&str>, project: Option<&str>, now: &str) -> Result<Principal> {
        let credentials = Credentials {
            key: Some(key.into()),
            workspace: workspace.map(Into::into),
            project: project.map(Into::into),
        };
        ring().authenticate(&credentials, now.parse().expect("a time"))
    }

    const MAY: &str = "2026-05-31T23:59:59Z";
    const JUNE: &str = "2026-06-01T00:00:00Z";

    #[test]
    fn who_a_request_is() {
        let read_only = Preset::ReadOnly.capabilities();
        let operator = [Capability::QuotaRead, Capability::QuotaManage].into();
        for (digit, workspace, project, kind, want, capabilities) in [
            ('1', None, None, KeyKind::Project, Some(("w", "p")), &read_only),
            ('1', Some("w"), Some("p"), KeyKind::Project, Some(("w", "p")), &read_only),
            ('1', None, Some("p"), KeyKind::Project, Some(("w", "p")), &read_only),
            ('2', Some("w"), Some("p"), KeyKind::Personal, Some(("w", "p")), &read_only),
            ('2', Some("x"), Some("q"), KeyKind::Personal, Some(("x", "q")), &[Capability::JobsRead].into()),
            ('2', None, None, KeyKind::Personal, None, &[].into()),
            ('2', Some("w"), None, KeyKind::Personal, None, &[].into()),
            ('2', None, Some("p"), KeyKind::Personal, None, &[].into()),
            ('3', None, None, KeyKind::Operator, None, &operator),
            ('3', None, Some("p"), KeyKind::Operator, Some(("default", "p")), &operator),
            ('3', Some("w"), Some("any"), KeyKind::Operator, Some(("w", "any")), &operator),
            ('5', None, None, KeyKind::Project, Some(("w", "p")), &read_only),
        ] {
            let got = ask(secret(digit).expose(), workspace, project, MAY).expect("known");
            assert_eq!(got.key_id, digit.to_string());
            assert_eq!(got.kind, kind);
            assert_eq!(got.project.as_ref().map(|p| (p.workspace.as_str(), p.id.as_str())), want);
            assert_eq!(&got.capabilities, capabilities);
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        let (one, two, three) = (secret('1'), secret('2'), secret('3'));
        for (key, workspace, project, code, say) in [
            (secret('9').expose(), None, None, "UNAUTHENTICATED", "not valid here"),
            ("", None, None, "UNAUTHENTICATED", "not valid here"),
            ("epk_short", None, None, "UNAUTHENTICATED", "not valid here"),
            (&one.expose().to_uppercase(), None, None, "UNAUTHENTICATED", "not valid here"),
            (secret('4').expose(), None, None, "UNAUTHENTICATED", "disabled"),
            (secret('5').expose(), None, None, "UNAUTHENTICATED", "expired at 2026-06-01T00:00:00Z"),
            (one.expose(), Some("x"), None, "PROJECT_ACCESS_DENIED", "leave both headers out"),
            (one.expose(), None, Some("q"), "PROJECT_ACCESS_DENIED", "leave both headers out"),
            (one.expose(), None, Some("a/b"), "INVALID_REQUEST", "X-Project-ID: a project id is"),
            (two.expose(), Some("w"), Some("q"), "PROJECT_ACCESS_DENIED", "no access"),
            (two.expose(), Some("w"), Some("nowhere"), "PROJECT_ACCESS_DENIED", "no access"),
            (two.expose(), Some("a:b"), Some("p"), "INVALID_REQUEST", "X-Workspace-ID: a workspace id is"),
            (three.expose(), None, Some(""), "INVALID_REQUEST", "X-Project-ID"),
        ] {
            let error = ask(key, workspace, project, JUNE).expect_err(say);
            assert_eq!(error.kind().code(), code, "{say}");
            assert!(error.message().contains(say), "{error}");
        }
        let error = ring().authenticate(&Credentials::default(), JUNE.parse().expect("a time")).expect_err("no key");
        assert_eq!(error.kind(), &Kind::Unauthenticated);
        assert!(error.message().contains("Authorization: Bearer"), "{error}");
    }

    #[test]
    fn what_a_key_still_is_without_its_secret() {
        let project = |workspace, id| Project {
            workspace: WorkspaceId::parse(workspace).expect("valid"),
            id: ProjectId::parse(id).expect("valid"),
        };
        let still = |key_id: &str, project: Project, now: &str| {
            let principal = ring().still(key_id, &project, now.parse().expect("a time"));
            principal.and_then(|who| who.downloader()).map(|who| who.project().clone()).map_err(|e| e.kind().code())
        };
        for (key_id, of, now, want) in [
            ("1", project("w", "p"), MAY, Ok(project("w", "p"))),
            ("2", project("w", "p"), MAY, Ok(project("w", "p"))),
            ("5", project("w", "p"), MAY, Ok(project("w", "p"))),
            ("5", project("w", "p"), JUNE, Err("UNAUTHENTICATED")),
            ("4", project("w", "p"), MAY, Err("UNAUTHENTICATED")),
            ("9", project("w", "p"), MAY, Err("UNAUTHENTICATED")),
            ("1", project("x", "p"), MAY, Err("PROJECT_ACCESS_DENIED")),
            ("2", project("w", "q"), MAY, Err("PROJECT_ACCESS_DENIED")),
            ("2", project("x", "q"), MAY, Err("ACCESS_DENIED")),
            ("3", project("w", "p"), MAY, Err("ACCESS_DENIED")),
        ] {
            assert_eq!(still(key_id, of, now), want, "{key_id}");
        }
    }
}
