//! Signed links: recorded until they expire, listed by id, revoked.

use super::{Redis, bounded, line, nonsense};
use crate::artifact::{ArtifactName, ProjectId, TrialId};
use crate::ledger::{At, DaySpan, LedgerTime, Link, LinkId, MAX_PAGE, Reply};

/// What of a link no script looks at.
fn subject(link: &Link) -> String {
    line::json((&link.key_id, link.trial.as_str(), link.artifact.as_str()))
}

/// Reads a link; `None` if it is none.
fn read(id: &str, expires: LedgerTime, subject: &str) -> Option<Link> {
    let (key_id, trial, artifact): (String, String, String) = serde_json::from_str(subject).ok()?;
    let (trial, artifact) = (TrialId::parse(&trial).ok()?, ArtifactName::parse(&artifact).ok()?);
    Some(Link { id: LinkId::parse(id)?, key_id, trial, artifact, expires })
}

impl Redis {
    pub(super) async fn write_link(&self, project: &ProjectId, link: &Link) -> Reply<()> {
        let base = self.names.base(project);
        let arguments = |_: &DaySpan| vec![link.id.to_string(), bounded(link.expires.0), subject(link)];
        let (answer, _) = self.run_with(&self.scripts().record_link, &base, arguments).await?;
        Ok(At { now: answer.now, reply: () })
    }

    pub(super) async fn read_links(
        &self,
        project: &ProjectId,
        after: Option<LinkId>,
        limit: usize,
    ) -> Reply<Vec<Link>> {
        let base = self.names.base(project);
        let arguments = |_: &DaySpan| {
            let after = after.map(|id| id.to_string()).unwrap_or_default();
            vec![after, limit.clamp(1, MAX_PAGE).to_string()]
        };
        let (mut answer, _) = self.run_swept(&self.scripts().list_links, &base, arguments).await?;
        let mut links = Vec::new();
        while !answer.is_empty() {
            let (id, expires, subject) = (answer.text()?, answer.time()?, answer.text()?);
            links.push(read(&id, expires, &subject).ok_or_else(|| nonsense("link"))?);
        }
        Ok(At { now: answer.now, reply: links })
    }

    pub(super) async fn write_revocation(&self, project: &ProjectId, id: LinkId) -> Reply<bool> {
        let base = self.names.base(project);
        let (answer, _) = self.run_with(&self.scripts().revoke_link, &base, |_| vec![id.to_string()]).await?;
        let reply = match answer.word.as_str() {
            "revoked" => true,
            "unknown" => false,
            _ => return Err(nonsense("revocation")),
        };
        Ok(At { now: answer.now, reply })
    }
}
