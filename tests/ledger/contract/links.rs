//! Links: what is admitted by them, what is listed, when they are forgotten.

use artifactd::artifact::{ArtifactName, TrialId};
use artifactd::ledger::{Admission, AuditFilter, Channel, Context, LedgerTime, Link, LinkId, Policy, Reserve};
use uuid::Uuid;

use super::Subject;
use crate::support::{self, NOON, context, policy, project};

type Open = fn(Policy) -> Subject;

fn link(n: u128, expires: u64) -> Link {
    Link {
        id: LinkId(Uuid::from_u128(n)),
        key_id: "k".to_owned(),
        trial: TrialId::parse("t").unwrap(),
        artifact: ArtifactName::parse("é \"log\".txt").unwrap(),
        expires: LedgerTime(expires),
    }
}

impl Subject {
    async fn record(&self, link: &Link) {
        self.ledger.record_link(&project("p"), link).await.unwrap();
    }

    async fn live(&self, after: Option<LinkId>, limit: usize) -> Vec<u128> {
        let links = self.ledger.links(&project("p"), after, limit).await.unwrap().reply;
        links.iter().map(|link| link.id.0.as_u128()).collect()
    }

    async fn revoke(&self, of: &str, n: u128) -> bool {
        self.ledger.revoke_link(&project(of), LinkId(Uuid::from_u128(n))).await.unwrap().reply
    }

    async fn follow(&self, n: u128, link: u128) -> Admission {
        let call = support::reserve(n, 10, self.now().await + self.ledger.rules().admission_ms);
        let context = Context { channel: Channel::Link, link_id: Some(LinkId(Uuid::from_u128(link))), ..context() };
        self.ledger.reserve(&Reserve { context, ..call }).await.unwrap().reply
    }
}

pub(crate) async fn a_revoked_or_unknown_link_admits_nothing(open: Open) {
    let it = open(policy(100));
    it.record(&link(7, NOON + 60_000)).await;
    assert!(it.follow(1, 7).await.lease().is_some());
    assert_eq!(it.follow(2, 8).await, Admission::LinkRevoked);
    assert!(!it.revoke("p", 8).await && !it.revoke("q", 7).await);
    assert!(it.revoke("p", 7).await && it.revoke("p", 7).await);
    assert_eq!(it.follow(3, 7).await, Admission::LinkRevoked);
    // A late copy of the call that recorded it brings it not back.
    it.record(&link(7, NOON + 60_000)).await;
    assert_eq!(it.follow(4, 7).await, Admission::LinkRevoked);
    // What was reserved before goes on, and a retry of its call says so.
    assert!(it.follow(1, 7).await.lease().is_some());
    it.settle(1, 10, 10).await;
    let usage = it.usage().await;
    assert_eq!((usage.used, usage.reserved, usage.refused), (10, 0, 0));
    let page = it.ledger.audit(&project("p"), None, &AuditFilter::default(), None, 9).await.unwrap().reply;
    let entry = page.entries[0].context().unwrap();
    assert_eq!((entry.channel, entry.link_id), (Channel::Link, Some(LinkId(Uuid::from_u128(7)))));
    it.verify().await;
}

pub(crate) async fn live_links_are_listed_by_id(open: Open) {
    let it = open(policy(100));
    for n in [3, 1, 4, 2, 5] {
        it.record(&link(n, NOON + 60_000)).await;
    }
    it.ledger.record_link(&project("q"), &link(6, NOON + 60_000)).await.unwrap();
    it.revoke("p", 2).await;
    assert_eq!(it.live(None, 9).await, [1, 3, 4, 5]);
    assert_eq!(it.live(Some(LinkId(Uuid::from_u128(1))), 2).await, [3, 4]);
    assert_eq!(it.live(Some(LinkId(Uuid::from_u128(5))), 2).await, [0; 0]);
    let links = it.ledger.links(&project("p"), None, 1).await.unwrap().reply;
    assert_eq!(links, [link(1, NOON + 60_000)]);
}

pub(crate) async fn links_end(open: Open) {
    let it = open(policy(100));
    it.record(&link(1, NOON + 1000)).await;
    it.record(&link(2, NOON + 9000)).await;
    it.step(1000);
    // Through its last moment.
    assert!(it.follow(1, 1).await.lease().is_some());
    assert_eq!(it.live(None, 9).await, [1, 2]);
    it.step(1);
    assert_eq!((it.live(None, 9).await, it.follow(2, 1).await), (vec![2], Admission::LinkRevoked));
    assert!(!it.revoke("p", 1).await);
    it.ledger.sweep().await.unwrap();
    // Recorded too late, it is not recorded.
    it.record(&link(1, NOON + 1000)).await;
    assert_eq!((it.live(None, 9).await, it.follow(3, 1).await), (vec![2], Admission::LinkRevoked));
    assert!(it.follow(4, 2).await.lease().is_some());
}
