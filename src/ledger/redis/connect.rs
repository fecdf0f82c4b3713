//! Making connections: to one server, to the master that Sentinels name, to a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::io::tcp::{TcpSettings, socket2};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, Value,
};

use super::Options;
use super::health;
use super::target::{Host, Kind, Target};

/// How long the operating system waits for data to be acknowledged before it gives a connection up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// How long an idle connection goes unprobed.
const IDLE: Duration = Duration::from_secs(15);
/// How often the client of a cluster follows a redirection or tries another node for one call.
const CLUSTER_RETRIES: u32 = 8;

/// A connection that many calls share.
#[derive(Clone)]
pub(super) enum Connection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Server(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}

/// Makes connections to a target.
#[derive(Debug)]
pub(super) struct Connector {
    target: Target,
    options: Options,
}

impl Connector {
    pub(super) fn new(target: Target, options: Options) -> Self {
        Self { target, options }
    }

    /// Connects, and refuses a server that cannot keep the promise of a ledger.
    pub(super) async fn connect(&self) -> RedisResult<Connection> {
        let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        // Several Sentinels and nodes may be asked in turn, each for the time-out of a connection.
        let most = self.options.connect * (2 + u32::try_from(self.target.hosts.len()).unwrap_or(u32::MAX).min(8));
        tokio::time::timeout(most, self.connect_at_all()).await.map_err(late)?
    }

    async fn connect_at_all(&self) -> RedisResult<Connection> {
        match &self.target.kind {
            Kind::Single => self.server(&self.target.hosts[0]).await,
            Kind::Sentinel(name) => {
                let master = self.ask_sentinels(name).await?;
                self.server(&master).await
            }
            Kind::Cluster => self.cluster().await,
        }
    }

    async fn server(&self, host: &Host) -> RedisResult<Connection> {
        let mut connection = self.open(host, self.login()).await?;
        let info: String = redis::cmd("INFO").query_async(&mut connection).await?;
        health::check(&host.to_string(), &info, self.options.require_durable)?;
        Ok(Connection::Server(connection))
    }

    /// Everything that can be said against the servers that hold the books, each with its server.
    pub(super) async fn findings(&self) -> RedisResult<Vec<String>> {
        let infos = match &self.target.kind {
            Kind::Single => vec![self.info_of(&self.target.hosts[0]).await?],
            Kind::Sentinel(name) => vec![self.info_of(&self.ask_sentinels(name).await?).await?],
            Kind::Cluster => {
                let mut connection = self.cluster_client()?.get_async_connection().await?;
                let routing = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                let infos = connection.route_command(redis::cmd("INFO"), routing).await?;
                redis::from_redis_value::<BTreeMap<String, String>>(infos)?.into_iter().collect()
            }
        };
        let of_one = |(server, info): (String, String)| {
            health::findings(&info).into_iter().map(move |finding| format!("{server}: {finding}"))
        };
        Ok(infos.into_iter().flat_map(of_one).collect())
    }

    async fn info_of(&self, host: &Host) -> RedisResult<(String, String)> {
        let mut connection = self.open(host, self.login()).await?;
        Ok((host.to_string(), redis::cmd("INFO").query_async(&mut connection).await?))
    }

    async fn open(&self, host: &Host, login: RedisConnectionInfo) -> RedisResult<MultiplexedConnection> {
        let info = self.info(host)?.set_redis_settings(login);
        let client = match self.certificates().filter(|_| self.target.tls) {
            Some(certificates) => Client::build_with_tls(info, certificates)?,
            None => Client::open(info)?,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.connect))
            // Calls are timed where they are made.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(self.options.in_flight);
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// The address of the master, from the first Sentinel that knows it.
    async fn ask_sentinels(&self, name: &str) -> RedisResult<Host> {
        let mut failure = RedisError::from((ErrorKind::EmptySentinelList, "no Sentinel is named"));
        for sentinel in &self.target.hosts {
            match self.ask_sentinel(sentinel, name).await {
                Ok(master) => return Ok(master),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn ask_sentinel(&self, sentinel: &Host, name: &str) -> RedisResult<Host> {
        let ask = async {
            let mut connection = self.open(sentinel, RedisConnectionInfo::default()).await?;
            redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query_async(&mut connection).await
        };
        let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        let answer: Option<(String, u16)> = tokio::time::timeout(self.options.connect, ask).await.map_err(late)??;
        let unknown = || RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "no such master", name.to_owned()));
        answer.map(|(name, port)| Host { name, port }).ok_or_else(unknown)
    }

    async fn cluster(&self) -> RedisResult<Connection> {
        let client = self.cluster_client()?;
        let mut connection = client.get_async_connection().await?;
        self.check_masters(&mut connection).await?;
        Ok(Connection::Cluster(connection))
    }

    /// Masters that do not answer are not waited for: the others serve their projects meanwhile.
    async fn check_masters(&self, connection: &mut ClusterConnection) -> RedisResult<()> {
        let routing = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let asked = connection.route_command(redis::cmd("INFO"), routing);
        let Ok(Ok(infos)) = tokio::time::timeout(self.options.connect, asked).await else {
            tracing::warn!("not every master of the Redis cluster answers: their settings are not checked");
            return Ok(());
        };
        let infos: BTreeMap<String, String> = redis::from_redis_value(infos)?;
        for (node, info) in infos {
            health::check(&node, &info, self.options.require_durable)?;
        }
        Ok(())
    }

    fn cluster_client(&self) -> RedisResult<ClusterClient> {
        let nodes = self.target.hosts.iter().map(|host| Ok(self.info(host)?.set_redis_settings(self.login())));
        let nodes = nodes.collect::<RedisResult<Vec<_>>>()?;
        let mut builder: ClusterClientBuilder = ClusterClient::builder(nodes)
            .connection_timeout(self.options.connect)
            .response_timeout(self.options.response)
            .retries(CLUSTER_RETRIES)
            .tcp_settings(tcp());
        if let Some(certificates) = self.certificates().filter(|_| self.target.tls) {
            builder = builder.certs(certificates);
        }
        builder.build()
    }

    fn info(&self, host: &Host) -> RedisResult<ConnectionInfo> {
        let (name, port) = (host.name.clone(), host.port);
        let address = if self.target.tls {
            ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(name, port)
        };
        Ok(address.into_connection_info()?.set_tcp_settings(tcp()))
    }

    fn login(&self) -> RedisConnectionInfo {
        let mut login = RedisConnectionInfo::default().set_db(self.target.db);
        if let Some(user) = &self.target.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.target.password {
            login = login.set_password(password);
        }
        login
    }

    fn certificates(&self) -> Option<TlsCertificates> {
        let root_cert = self.options.root_certificates.clone()?;
        Some(TlsCertificates { client_tls: None, root_cert: Some(root_cert) })
    }
}

fn tcp() -> TcpSettings {
    let keepalive = socket2::TcpKeepalive::new().with_time(IDLE).with_interval(IDLE / 3).with_retries(3);
    TcpSettings::default().set_nodelay(true).set_keepalive(keepalive).set_user_timeout(UNACKNOWLEDGED)
}
