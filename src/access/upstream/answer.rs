//! What a platform's `GET /v1/me` says, judged strictly. Pure.

use http::StatusCode;
use serde::Deserialize;

use crate::access::{Capability, Credentials, KeyKind, Principal};
use crate::artifact::{Project, ProjectId, WorkspaceId};
use crate::error::{Error, Kind};

/// The longest key id, bytes.
const MAX_KEY_ID_BYTES: usize = 128;

/// What became of a question.
#[derive(Debug)]
pub(super) enum Answer {
    /// Who it is.
    Known(Principal),
    /// The platform lets it in nowhere, or not there.
    Refused(Refusal),
    /// No answer that could be relied on, and why not, for the log.
    Useless(String),
}

/// Why a platform lets a key in nowhere, or not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It knows no such key, or not any more.
    UnknownKey,
    /// The key does not speak for the project.
    OtherProject,
    /// It takes the headers for malformed.
    Malformed,
}

impl Refusal {
    /// What is said to who asks.
    #[must_use]
    pub fn error(self) -> Error {
        match self {
            Self::UnknownKey => Error::new(
                Kind::Unauthenticated,
                "Send a key that the platform knows as `Authorization: Bearer KEY`; this one is unknown, disabled or expired.",
            ),
            Self::OtherProject => Error::new(
                Kind::ProjectAccessDenied,
                "This key does not speak for the workspace and project that the request names.",
            ),
            Self::Malformed => Error::new(
                Kind::InvalidRequest,
                "The platform that knows the keys takes X-Workspace-ID or X-Project-ID for malformed.",
            ),
        }
    }
}

/// Members that this service has no use for may stand beside these.
#[derive(Deserialize)]
struct Body {
    auth_method: String,
    workspace: Option<WorkspaceOf>,
    project: Option<ProjectOf>,
    key_id: String,
    kind: KeyKind,
    /// A platform may know capabilities that mean nothing here.
    capabilities: Vec<String>,
}

#[derive(Deserialize)]
struct WorkspaceOf {
    workspace_id: WorkspaceId,
}

#[derive(Deserialize)]
struct ProjectOf {
    project_id: ProjectId,
    workspace_id: WorkspaceId,
}

/// Judges the answer to a question that was asked with `credentials`.
pub(super) fn judge(status: StatusCode, body: &[u8], credentials: &Credentials) -> Answer {
    match status {
        StatusCode::OK => match principal(body, credentials) {
            Ok(principal) => Answer::Known(principal),
            Err(fault) => Answer::Useless(fault),
        },
        StatusCode::UNAUTHORIZED => Answer::Refused(Refusal::UnknownKey),
        StatusCode::FORBIDDEN => Answer::Refused(Refusal::OtherProject),
        StatusCode::BAD_REQUEST => Answer::Refused(Refusal::Malformed),
        other => Answer::Useless(format!("status {other}")),
    }
}

fn principal(body: &[u8], credentials: &Credentials) -> Result<Principal, String> {
    let body: Body = serde_json::from_slice(body).map_err(|error| format!("not the body of /v1/me: {error}"))?;
    if body.auth_method != "api_key" {
        return Err("auth_method is not api_key".to_owned());
    }
    let sane = (1..=MAX_KEY_ID_BYTES).contains(&body.key_id.len()) && body.key_id.bytes().all(|b| b.is_ascii_graphic());
    if !sane {
        return Err("key_id is not 1 to 128 visible ASCII characters".to_owned());
    }
    let project = body.project.map(|of| Project { workspace: of.workspace_id, id: of.project_id });
    let workspace = body.workspace.map(|of| of.workspace_id);
    if let (Some(project), Some(workspace)) = (&project, &workspace)
        && project.workspace != *workspace
    {
        return Err("the project lies in another workspace than the answer names".to_owned());
    }
    // Who asked about one project must not be taken to another, whatever the platform meant.
    let named = |asked: &Option<String>, said: Option<&str>| asked.as_deref().is_none_or(|asked| Some(asked) == said);
    let said = workspace.as_ref().or(project.as_ref().map(|project| &project.workspace)).map(WorkspaceId::as_str);
    if !named(&credentials.project, project.as_ref().map(|project| project.id.as_str()))
        || !named(&credentials.workspace, said)
    {
        return Err("the answer is about another project than was asked about".to_owned());
    }
    if body.kind == KeyKind::Project && project.is_none() {
        return Err("a project key without a project".to_owned());
    }
    let known = |name: &String| Capability::ALL.into_iter().find(|capability| capability.as_str() == name);
    let fits = |capability: &Capability| {
        body.kind != KeyKind::Operator || matches!(capability, Capability::QuotaRead | Capability::QuotaManage)
    };
    let capabilities = body.capabilities.iter().filter_map(known).filter(fits).collect();
    Ok(Principal { key_id: body.key_id, kind: body.kind, project, capabilities })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn good() -> Value {
        json!({
            "auth_method": "api_key",
            "workspace": {"workspace_id": "w", "name": "W"},
            "project": {"project_id": "p", "workspace_id": "w", "name": "P"},
            "key_id": "k1",
            "kind": "project",
            "capabilities": ["jobs.read", "jobs.admire", "quota.manage"],
            "more": 1,
        })
    }

    fn asked(workspace: Option<&str>, project: Option<&str>) -> Credentials {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Credentials { key: Some("secret".into()), workspace: own(workspace), project: own(project) }
    }

    fn said(body: &Value, credentials: &Credentials) -> Result<Principal, String> {
        match judge(StatusCode::OK, body.to_string().as_bytes(), credentials) {
            Answer::Known(principal) => Ok(principal),
            Answer::Useless(fault) => Err(fault),
            Answer::Refused(refusal) => panic!("{refusal:?}"),
        }
    }

    #[test]
    fn what_is_said_of_a_key_is_taken() {
        let principal = said(&good(), &asked(Some("w"), Some("p"))).expect("good");
        assert_eq!((principal.key_id.as_str(), principal.kind), ("k1", KeyKind::Project));
        assert_eq!(principal.project.expect("named").id.as_str(), "p");
        assert_eq!(principal.capabilities, [Capability::JobsRead, Capability::QuotaManage].into());
        let mut operator = good();
        operator["kind"] = json!("operator");
        let operator = said(&operator, &asked(None, None)).expect("good");
        assert_eq!(operator.capabilities, [Capability::QuotaManage].into());
        let mut personal = good();
        (personal["kind"], personal["project"]) = (json!("personal"), Value::Null);
        assert_eq!(said(&personal, &asked(None, None)).expect("good").project, None);
    }

    #[test]
    fn an_answer_that_is_not_whole_and_to_the_point_is_no_answer() {
        let asker = asked(Some("w"), Some("p"));
        for (member, value, fault) in [
            ("auth_method", json!("session"), "auth_method"),
            ("key_id", json!(""), "key_id"),
            ("key_id", json!("a b"), "key_id"),
            ("key_id", json!("k".repeat(129)), "key_id"),
            ("kind", json!("root"), "unknown variant"),
            ("capabilities", json!("all"), "invalid type"),
            ("capabilities", Value::Null, "invalid type"),
            ("project", Value::Null, "another project"),
            ("project", json!({"project_id": "p", "workspace_id": "v"}), "another workspace"),
            ("project", json!({"project_id": "q", "workspace_id": "w"}), "another project"),
            ("project", json!({"project_id": "../q", "workspace_id": "w"}), "project id"),
            ("workspace", json!({"workspace_id": "v"}), "another workspace"),
        ] {
            let mut body = good();
            body[member] = value.clone();
            let said = said(&body, &asker).expect_err(member);
            assert!(said.contains(fault), "{member} {value}: {said}");
        }
        let mut homeless = good();
        homeless["project"] = Value::Null;
        assert!(said(&homeless, &asked(None, None)).is_err(), "a project key carries its project");
        for text in ["", "[]", "{}", "null", "<html>", "{\"auth_method\":\"api_key\"}"] {
            assert!(matches!(judge(StatusCode::OK, text.as_bytes(), &asker), Answer::Useless(_)), "{text}");
        }
    }

    #[test]
    fn statuses() {
        for (status, code) in [
            (401, Some("UNAUTHENTICATED")),
            (403, Some("PROJECT_ACCESS_DENIED")),
            (400, Some("INVALID_REQUEST")),
            (204, None),
            (301, None),
            (404, None),
            (429, None),
            (500, None),
            (503, None),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let got = match judge(status, good().to_string().as_bytes(), &asked(None, None)) {
                Answer::Refused(refusal) => Some(refusal.error().kind().code()),
                Answer::Useless(_) => None,
                Answer::Known(principal) => panic!("{status}: {principal:?}"),
            };
            assert_eq!(got, code, "{status}");
        }
    }
}
