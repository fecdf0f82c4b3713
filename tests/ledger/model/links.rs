//! The links of a history, as those who made and revoked them know them.

use std::collections::BTreeMap;

use artifactd::artifact::{ArtifactName, ProjectId};
use artifactd::ledger::{LedgerTime, Link, LinkId};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use uuid::Uuid;

use super::services::trial;

#[derive(Debug, Clone)]
struct Known {
    link: Link,
    recorded: bool,
    revoked: bool,
}

impl Known {
    fn is_live(&self, now: LedgerTime) -> bool {
        self.recorded && !self.revoked && now <= self.link.expires
    }
}

#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<(ProjectId, LinkId), Known>);

impl Links {
    /// The link of that number. When it expires was said when it was made.
    pub(super) fn make(&mut self, project: &ProjectId, n: u128, expires: LedgerTime) -> Link {
        let id = LinkId(Uuid::from_u128(n));
        let artifact = ArtifactName::parse("a").unwrap();
        let link = Link { id, key_id: "k0".to_owned(), trial: trial(0), artifact, expires };
        let known = self.0.entry((project.clone(), id));
        known.or_insert(Known { link, recorded: false, revoked: false }).link.clone()
    }

    pub(super) fn recorded(&mut self, project: &ProjectId, now: LedgerTime, id: LinkId) {
        let known = self.0.get_mut(&(project.clone(), id)).unwrap();
        known.recorded |= now <= known.link.expires;
    }

    pub(super) fn revoked(
        &mut self,
        project: &ProjectId,
        now: LedgerTime,
        id: LinkId,
        answer: bool,
    ) -> Result<(), TestCaseError> {
        let known = self.0.get_mut(&(project.clone(), id)).filter(|known| known.recorded && now <= known.link.expires);
        prop_assert_eq!(answer, known.is_some(), "a link is known from its record to its end");
        if let Some(known) = known {
            known.revoked = true;
        }
        Ok(())
    }

    /// What was admitted by a link was admitted by one that lives.
    pub(super) fn check_live(&self, project: &ProjectId, now: LedgerTime, id: LinkId) -> Result<(), TestCaseError> {
        let known = self.0.get(&(project.clone(), id));
        prop_assert!(known.is_some_and(|known| known.is_live(now)), "admitted at {:?} by {:?}", now, known);
        Ok(())
    }

    /// What is listed lives.
    pub(super) fn check_listed(
        &self,
        project: &ProjectId,
        now: LedgerTime,
        listed: &[Link],
    ) -> Result<(), TestCaseError> {
        listed.iter().try_for_each(|link| self.check_live(project, now, link.id))
    }
}
