//! The ledger of many replicas: Redis 7 or later, alone, behind Sentinels, or as a cluster.
//!
//! Every transition is one script, executed as a whole by the server on the keys of one project; its
//! clock is the server's. A script may be executed any number of times, so a call whose answer was
//! lost, by the network, a failover or the client of a cluster that repeats by itself, is simply made
//! again. The allowance, the leases and the audit live in the same slot and change together.
//!
//! The service tells each script which day it takes for today. A script whose clock is outside that
//! day does nothing and says so, and is repeated with the day of its clock; so the day is always that
//! of the server, though only this side knows of zones.
//!
//! `lua/` holds the scripts, each with its keys, arguments and replies; `account.lua` and
//! `record.lua` say how things are stored.

mod books;
mod calls;
mod connect;
mod gather;
mod health;
mod keys;
mod line;
mod link;
mod links;
mod packed;
mod reply;
mod run;
mod scripts;
mod sweeper;
mod target;
mod together;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;

use super::{
    Adjust, Adjustment, Admission, Allowance, At, AuditFilter, AuditPage, Clock, Day, DaySpan, DayUsage, Extend,
    Extension, Lease, Ledger, LedgerTime, Link as SignedLink, LinkId, MAX_AMOUNT, Override, Policy, Reply, Reserve,
    Rules, Settle, Settlement, Unavailable, Usage, Verification,
};
use crate::artifact::ProjectId;
use crate::telemetry::metrics;
use calls::{Call, Done};
use connect::Connector;
use gather::Gather;
use keys::Names;
use link::Link;
use reply::{Answer, nonsense};
use run::Today;
use scripts::Scripts;
use sweeper::Registered;
use target::{Kind, Target};
use together::Gathered;

/// How long it may take to look at every server.
const EXAMINED: Duration = Duration::from_secs(10);

/// How to reach Redis, and what is asked of it.
#[derive(Clone)]
pub struct Options {
    /// What every key begins with: two services that share a Redis differ in it. Default `artifactd`.
    pub namespace: String,
    /// How long one call may take, connecting included. Default 1 s.
    pub response: Duration,
    /// How long one attempt to connect may take. Default 1 s.
    pub connect: Duration,
    /// Calls under way at once; further ones wait, within their time. Default 1024.
    pub in_flight: usize,
    /// Certificates (PEM) that servers are checked against, instead of the public authorities.
    pub root_certificates: Option<Vec<u8>>,
    /// Use no server that may lose what it was told (no append-only file, a policy that evicts),
    /// instead of warning.
    pub require_durable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "artifactd".to_owned(),
            response: Duration::from_secs(1),
            connect: Duration::from_secs(1),
            in_flight: 1024,
            root_certificates: None,
            require_durable: false,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// Why a ledger in Redis cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is wrong. The text shows nothing of it: it may hold a password.
    #[error("the ledger's URL is wrong: {0}")]
    Url(&'static str),
    /// The namespace would break the layout of keys.
    #[error("the ledger's namespace has 1 to 64 characters of A-Z a-z 0-9 . _ - :")]
    Namespace,
    /// The rules cannot work together.
    #[error("the ledger's rules contradict each other: {0}")]
    Rules(&'static str),
    /// No server fit for a ledger answers.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Whether keys may begin with it: 1 to 64 of `A-Z a-z 0-9 . _ - :`.
#[must_use]
pub fn is_namespace(text: &str) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(sound)
}

/// The account books of every project in Redis.
pub struct Redis {
    policy: Policy,
    names: Names,
    scripts: ArcSwap<Scripts>,
    link: Arc<Link>,
    today: ArcSwap<Today>,
    registered: Registered,
    calls: Gathered,
    /// Whether keys of a project may lie on two nodes for a while.
    splits: bool,
    clock: Option<Arc<dyn Clock>>,
}

impl Redis {
    /// A ledger at `url` (`redis://`, `redis+sentinel://`, `redis-cluster://`, each also as
    /// `rediss`). Nothing is connected yet.
    ///
    /// # Errors
    /// Says what is wrong with the URL, the options or the rules.
    pub fn open(url: &str, policy: Policy, options: Options) -> Result<Self, OpenError> {
        Self::build(url, policy, options, None)
    }

    /// A ledger whose scripts take the time from `clock` and not from the server. It is for tests
    /// that step the clock: the scripts of [`open`](Redis::open) know no way to be told the time.
    ///
    /// # Errors
    /// As [`open`](Redis::open).
    pub fn open_with_clock(url: &str, policy: Policy, options: Options, clock: impl Clock) -> Result<Self, OpenError> {
        Self::build(url, policy, options, Some(Arc::new(clock)))
    }

    fn build(url: &str, policy: Policy, options: Options, clock: Option<Arc<dyn Clock>>) -> Result<Self, OpenError> {
        policy.rules.check().map_err(OpenError::Rules)?;
        let target = Target::parse(url).map_err(OpenError::Url)?;
        if !is_namespace(&options.namespace) {
            return Err(OpenError::Namespace);
        }
        let names = Names::new(&options.namespace);
        let scripts = ArcSwap::from_pointee(Scripts::new(&policy, clock.is_some()));
        let today = ArcSwap::from_pointee(Today::at(&policy, LedgerTime::default()));
        let splits = target.kind == Kind::Cluster;
        let link = Link::new(Connector::new(target, options.clone()), &options);
        let calls = Gather::new();
        let registered = Registered::default();
        Ok(Self { policy, names, scripts, link, today, registered, calls, splits, clock })
    }

    /// Connects, which also checks that the servers are fit for a ledger.
    ///
    /// # Errors
    /// [`OpenError::Unavailable`] says why not; later calls try again.
    pub async fn connect(&self) -> Result<(), OpenError> {
        Ok(self.link.warm_up().await?)
    }

    /// Everything that can be said against the servers, each finding with what to do about it.
    ///
    /// # Errors
    /// They do not answer.
    pub async fn findings(&self) -> Result<Vec<String>, Unavailable> {
        self.link.findings(EXAMINED).await
    }

    /// The scripts, which hold the default allowance.
    fn scripts(&self) -> Arc<Scripts> {
        self.scripts.load_full()
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A number as scripts take it: none above 2^53 - 1 is exact there, and none need be.
fn bounded(number: u64) -> String {
    number.min(MAX_AMOUNT).to_string()
}

fn allowance(text: &str) -> Result<Allowance, Unavailable> {
    match text {
        "unlimited" => Ok(Allowance::Unlimited),
        bytes => bytes.parse().map(Allowance::Bytes).map_err(|_| nonsense("allowance")),
    }
}

#[async_trait]
impl Ledger for Redis {
    fn rules(&self) -> &Rules {
        &self.policy.rules
    }

    fn set_default_allowance(&self, allowance: Allowance) {
        let policy = Policy { allowance, ..self.policy.clone() };
        self.scripts.store(Arc::new(Scripts::new(&policy, self.clock.is_some())));
    }

    async fn identity(&self) -> Result<Option<String>, Unavailable> {
        let fresh = uuid::Uuid::now_v7().to_string();
        let key = self.names.identity();
        let value = self.send(self.link.deadline(), &self.scripts().identity, &[&key], vec![fresh.as_bytes()]).await?;
        Ok(Some(Answer::new(value)?.text()?))
    }

    async fn now(&self) -> Result<LedgerTime, Unavailable> {
        Ok(self.run_bare(&self.scripts().time, &[]).await?.now)
    }

    async fn reserve(&self, call: &Reserve) -> Reply<Admission> {
        let known = self.today.load().span.start;
        self.register(&call.project, known).await;
        let base = self.names.base(&call.project);
        let packed = Call::reserve(call, self.rules());
        let At { now, reply: Done::Reserve(admission) } = self.run_together(&base, packed).await? else {
            return Err(nonsense("admission"));
        };
        // A new day has begun: the project may have been taken off the list for its silence.
        self.register(&call.project, now).await;
        let no_account = matches!(admission, Admission::Stale | Admission::LinkRevoked | Admission::Settled);
        if no_account || call.size > MAX_AMOUNT {
            self.unregister(&call.project);
        }
        Ok(At { now, reply: admission })
    }

    async fn extend(&self, call: Extend<'_>) -> Reply<Extension> {
        let base = self.names.base(call.project);
        let arguments = |_: &DaySpan| vec![call.id.to_string(), bounded(call.grant), bounded(call.asked.0)];
        let (mut answer, _) = self.run_with(&self.scripts().extend, &base, arguments).await?;
        let reply = match answer.word.as_str() {
            "reserved" => {
                let lease = Lease { grant: answer.amount()?, day: answer.day()?, deadline: answer.time()? };
                Extension::Reserved(lease)
            }
            "ended" => Extension::Ended,
            _ => return Err(nonsense("extension")),
        };
        Ok(At { now: answer.now, reply })
    }

    async fn settle(&self, call: &Settle) -> Reply<Settlement> {
        let base = self.names.base(&call.project);
        let packed = Call::settle(call, self.rules());
        let At { now, reply: Done::Settle(settlement, unreserved) } = self.run_together(&base, packed).await? else {
            return Err(nonsense("settlement"));
        };
        if let (Settlement::Settled(charged), true) = (settlement, unreserved) {
            metrics().unreserved_entries.inc();
            tracing::error!(reservation = %call.id, charged, "the ledger had lost this reservation: data was lost");
        }
        Ok(At { now, reply: settlement })
    }

    async fn usage(&self, project: &ProjectId) -> Reply<Usage> {
        self.read_usage(project).await
    }

    async fn history(&self, project: &ProjectId, days: u32) -> Reply<Vec<DayUsage>> {
        self.read_history(project, days).await
    }

    async fn audit(
        &self,
        project: &ProjectId,
        day: Option<Day>,
        filter: &AuditFilter,
        from: Option<u64>,
        limit: usize,
    ) -> Reply<AuditPage> {
        self.read_audit(project, day, filter, from, limit).await
    }

    async fn verify(&self, project: &ProjectId, day: Option<Day>) -> Reply<Verification> {
        self.recount(project, day).await
    }

    async fn set_allowance(&self, project: &ProjectId, exception: Option<&Override>) -> Reply<()> {
        self.write_allowance(project, exception).await
    }

    async fn allowance(&self, project: &ProjectId) -> Reply<Option<Override>> {
        self.read_allowance(project).await
    }

    async fn record_link(&self, project: &ProjectId, link: &SignedLink) -> Reply<()> {
        self.write_link(project, link).await
    }

    async fn links(&self, project: &ProjectId, after: Option<LinkId>, limit: usize) -> Reply<Vec<SignedLink>> {
        self.read_links(project, after, limit).await
    }

    async fn revoke_link(&self, project: &ProjectId, id: LinkId) -> Reply<bool> {
        self.write_revocation(project, id).await
    }

    async fn adjust(&self, call: &Adjust) -> Reply<Adjustment> {
        self.write_adjustment(call).await
    }

    async fn sweep(&self) -> Reply<usize> {
        self.sweep_all().await
    }
}
