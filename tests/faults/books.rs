//! Where the account books are: on disk, or in Redis in each of its forms.

use crate::servers::Server;
use crate::servers::redis::{Sentinels, cluster, cluster_url, ports, server, url};

/// The servers of a ledger, stopped with it.
pub(crate) enum Books {
    Embedded,
    Redis(Server),
    Sentinels(Sentinels),
    Cluster(Vec<Server>),
}

impl Books {
    pub(crate) fn embedded() -> Self {
        Self::Embedded
    }

    pub(crate) fn redis() -> Self {
        Self::Redis(server(&[]))
    }

    pub(crate) fn sentinels() -> Self {
        Self::Sentinels(Sentinels::start())
    }

    /// Three masters with a replica each.
    pub(crate) fn cluster() -> Self {
        Self::Cluster(cluster(1))
    }

    /// `ledger.url` of a service whose scratch directory that is.
    pub(crate) fn url(&self, scratch: &std::path::Path) -> String {
        match self {
            Self::Embedded => format!("embedded://{}/ledger.db", scratch.display()),
            Self::Redis(server) => url(server.address.port()),
            Self::Sentinels(sentinels) => sentinels.url(),
            Self::Cluster(nodes) => cluster_url(&ports(nodes)),
        }
    }

    /// Services that share the books.
    pub(crate) const fn replicas(&self) -> usize {
        if matches!(self, Self::Embedded) { 1 } else { 2 }
    }

    /// The ports of all servers that hold books.
    pub(crate) fn ports(&self) -> Vec<u16> {
        match self {
            Self::Embedded => Vec::new(),
            Self::Redis(server) => vec![server.address.port()],
            Self::Sentinels(sentinels) => vec![sentinels.master.address.port()],
            Self::Cluster(nodes) => ports(nodes),
        }
    }
}
