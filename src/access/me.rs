//! What `GET /v1/me` tells a key of itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Capability, KeyKind, Principal};
use crate::artifact::{ProjectId, WorkspaceId};

/// The body of `GET /v1/me`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Me {
    auth_method: &'static str,
    workspace: Option<Workspace>,
    project: Option<ProjectOf>,
    key_id: String,
    kind: KeyKind,
    capabilities: BTreeSet<Capability>,
}

/// A workspace; it has no other name than its id.
#[derive(Debug, Serialize, JsonSchema)]
struct Workspace {
    workspace_id: WorkspaceId,
    name: WorkspaceId,
}

/// A project; it has no other name than its id.
#[derive(Debug, Serialize, JsonSchema)]
struct ProjectOf {
    project_id: ProjectId,
    workspace_id: WorkspaceId,
    name: ProjectId,
}

impl From<&Principal> for Me {
    fn from(principal: &Principal) -> Self {
        let project = principal.project.as_ref();
        Self {
            auth_method: "api_key",
            workspace: project.map(|p| Workspace { workspace_id: p.workspace.clone(), name: p.workspace.clone() }),
            project: project.map(|p| ProjectOf {
                project_id: p.id.clone(),
                workspace_id: p.workspace.clone(),
                name: p.id.clone(),
            }),
            key_id: principal.key_id.clone(),
            kind: principal.kind,
            capabilities: principal.capabilities.iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::artifact::Project;

    #[test]
    fn the_body_with_and_without_a_project() {
        let project = Project {
            workspace: WorkspaceId::parse("default").expect("valid"),
            id: ProjectId::parse("demo").expect("valid"),
        };
        let mut principal = Principal {
            key_id: "k".into(),
            kind: KeyKind::Personal,
            project: Some(project),
            capabilities: [Capability::QuotaRead, Capability::JobsRead].into(),
        };
        let body = |p: &Principal| serde_json::to_value(Me::from(p)).expect("JSON");
        assert_eq!(
            body(&principal),
            json!({
                "auth_method": "api_key",
                "workspace": {"workspace_id": "default", "name": "default"},
                "project": {"project_id": "demo", "workspace_id": "default", "name": "demo"},
                "key_id": "k",
                "kind": "personal",
                "capabilities": ["jobs.read", "quota.read"],
            })
        );
        principal.project = None;
        assert_eq!((&body(&principal)["project"], &body(&principal)["workspace"]), (&json!(null), &json!(null)));
    }
}
