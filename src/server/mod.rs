//! Wires the adapters into the service, listens, drains, stops.

mod check;
mod connect;
mod descriptors;
mod door;
mod io;
mod reload;
mod stop;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::door::{Door, Entry};
use self::reload::{Followed, Follower};
use crate::access::{Authenticator, Crowd, WatchedKeys};
use crate::archive::Archives;
use crate::artifact::key::Layout;
use crate::catalog::Catalog;
use crate::config::{Address, Config, Limits, Settings, Sources};
use crate::http::{self, Around, Front, Observers, Room};
use crate::ledger::{Ledger, SystemClock};
use crate::link::SigningKeys;
use crate::links::Links;
use crate::listing::Listing;
use crate::mcp;
use crate::quota::{Quota, Warnings};
use crate::read::Reads;
use crate::store::Store;
use crate::telemetry::health::Health;
use crate::telemetry::observed::{ObservedAccess, ObservedLedger, ObservedStore};
use crate::telemetry::{metrics, otlp};

pub use check::{Finding, Level, check};
pub use connect::{ConnectError, connect};
pub use stop::Stop;

/// How often silent projects are looked through for leases that ran out, and the ledger is asked
/// whether it is still the same.
const SWEEP: Duration = Duration::from_secs(5);

/// What the service stands on.
pub struct Adapters {
    /// Where the objects are.
    pub store: Arc<dyn Store>,
    /// Where artifacts lie in it.
    pub layout: Layout,
    /// The account books.
    pub ledger: Arc<dyn Ledger>,
    /// Who may ask.
    pub access: Arc<dyn Authenticator>,
    /// What signs links, if anything does.
    pub signing: Option<SigningKeys>,
}

/// The service, ready to take connections.
pub struct Server {
    routes: Arc<Around>,
    /// What connections beyond the cap get.
    turning_away: Arc<Around>,
    ledger: Arc<dyn Ledger>,
    links: Arc<Links>,
    health: Health,
    /// Sends the spans of traces.
    sending: Option<BoxFuture<'static, ()>>,
    tracker: TaskTracker,
    draining: CancellationToken,
    limits: Limits,
}

impl Server {
    /// Wires `adapters` as `config` says.
    #[must_use]
    pub fn new(adapters: Adapters, config: &Config) -> Self {
        let Adapters { store, layout, ledger, access, signing } = adapters;
        let (tracker, draining, health) = (TaskTracker::new(), CancellationToken::new(), Health::default());
        let store = Arc::new(ObservedStore::new(store, health.clone()));
        let ledger: Arc<dyn Ledger> = Arc::new(ObservedLedger::new(ledger, health.clone()));
        let access: Arc<dyn Authenticator> = Arc::new(ObservedAccess::new(access));
        let remembered = Duration::from_secs(config.store.cache_seconds);
        let catalog = Arc::new(Catalog::new(store, layout).remembering(remembered));
        let listing = Arc::new(Listing::new(Arc::clone(&catalog)));
        let archives = Arc::new(Archives::new(Arc::clone(&catalog), config.limits.archive_entries));
        let links = Arc::new(Links::new(
            Arc::clone(&access),
            Arc::clone(&catalog),
            Arc::clone(&ledger),
            Arc::new(SystemClock),
            signing,
            config.public_url.as_ref(),
        ));
        let reads = Reads::with_caps(catalog, Arc::clone(&ledger), tracker.clone(), config.timing(), config.caps());
        let warnings = Arc::new(Warnings::new(config.warn_at()));
        let reads = Arc::new(reads.with_warnings(Arc::clone(&warnings)));
        let quota = Arc::new(Quota::new(Arc::clone(&ledger), config.quota.reset_zone.clone(), warnings));
        let agents = mcp::Front::new(Arc::clone(&access), Arc::clone(&listing), Arc::clone(&reads), config);
        let agents = mcp::router(agents.with_links(Arc::clone(&links)));
        let people = Arc::new(Front {
            access,
            of_key: Crowd::new(config.limits.requests_per_key),
            of_project: Crowd::new(config.limits.requests_per_project),
            listing,
            reads,
            archives,
            links: Arc::clone(&links),
            quota,
            health: health.clone(),
            draining: draining.clone(),
        });
        let mut fronts = http::router(Arc::clone(&people)).merge(agents);
        if config.http.metrics_listen.is_none() {
            fronts = fronts.merge(http::metrics_routes());
        }
        let (spans, sending) = config.traces.endpoint.as_ref().map(otlp::start).unzip();
        let observers = Arc::new(Observers {
            spans,
            sample_percent: config.traces.sample_percent,
            trusted_proxies: config.http.networks(),
            warn_at: config.warn_at(),
        });
        let turning_away =
            Arc::new(Around::new(fronts.clone(), Arc::clone(&people), Room::None, Arc::clone(&observers)));
        let routes = Arc::new(Around::new(fronts, people, Room::UntilDraining(draining.clone()), observers));
        let sending = sending.map(FutureExt::boxed);
        let limits = config.limits.clone();
        Self { routes, turning_away, ledger, links, health, sending, tracker, draining, limits }
    }

    /// Serves `listener` until `stop`; then lets running answers finish within the drain time, cuts
    /// the rest, and returns when everything is settled, or that time is over.
    pub async fn serve(mut self, listener: TcpListener, stop: impl Into<Stop>) {
        let stop = stop.into();
        let sending = self.sending.take().map(tokio::spawn);
        let sweeper = tokio::spawn(sweep(Arc::clone(&self.ledger)));
        let graceful = GracefulShutdown::new();
        let door = Door::new(self.limits.connections);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = door.accept(&listener) => accepted,
                Some(_) = connections.join_next() => continue,
                () = stop.drain.cancelled() => break,
            };
            match accepted {
                Ok((stream, entry)) => {
                    let connection = self.connection(stream, &entry, graceful.watcher());
                    connections.spawn(async move {
                        metrics().connections.inc();
                        connection.await;
                        metrics().connections.dec();
                        drop(entry);
                    });
                }
                // Out of descriptors, most often: nothing helps but to wait for some to close.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        self.draining.cancel();
        metrics().draining.set(1);
        tracing::info!(connections = connections.len(), "stopping");
        let (answers, settles) = stop::shares(self.limits.drain_seconds);
        let end = Instant::now() + answers + settles;
        tokio::select! {
            drained = tokio::time::timeout(answers, graceful.shutdown()) => if drained.is_err() {
                tracing::warn!("the drain time is over: open answers are cut");
            },
            () = stop.cut.cancelled() => tracing::warn!("told again to stop: open answers are cut"),
        }
        connections.shutdown().await;
        sweeper.abort();
        self.tracker.close();
        let told_again = async {
            stop.cut.cancelled().await;
            tokio::time::sleep(stop::AT_ONCE).await;
        };
        tokio::select! {
            () = self.tracker.wait() => {}
            () = tokio::time::sleep_until(end) => {}
            () = told_again => {}
        }
        if !self.tracker.is_empty() {
            tracing::error!(
                unsettled = self.tracker.len(),
                "the ledger took no more settles: their leases will expire"
            );
        }
        // With the routes goes the last that hands over spans: what is left of them is sent.
        drop((self.routes, self.turning_away));
        if let Some(sending) = sending {
            let _ = tokio::time::timeout_at(end, sending).await;
        }
    }

    fn connection(&self, stream: TcpStream, entry: &Entry, watcher: Watcher) -> impl Future<Output = ()> + use<> {
        let head = Duration::from_secs(self.limits.head_seconds);
        let (routes, head) =
            if entry.served { (&self.routes, head) } else { (&self.turning_away, head.min(door::SPARE_HEAD)) };
        let mut http1 = hyper::server::conn::http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .keep_alive(entry.served)
            .max_buf_size(usize::try_from(self.limits.head_bytes.bytes()).unwrap_or(usize::MAX));
        let peer = stream.peer_addr().ok().map(|address| address.ip());
        let routes = Arc::clone(routes);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let routes = Arc::clone(&routes);
            async move { Ok::<_, Infallible>(routes.answer(request.map(Body::new), peer).await) }
        });
        let pace = io::Pace {
            patience: Duration::from_secs(self.limits.stall_seconds),
            quota: self.limits.least_rate.bytes().saturating_mul(self.limits.stall_seconds).max(1),
        };
        async move {
            // A head that goes out before its body must not wait for the peer's delayed ACK.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            let io = TokioIo::new(io::Impatient::new(stream, pace));
            if let Err(error) = watcher.watch(http1.serve_connection(io, service)).await {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
}

async fn sweep(ledger: Arc<dyn Ledger>) {
    let batch = ledger.rules().sweep_batch;
    loop {
        // Whether it answers shows by the sweep; who it is, is remembered where it is observed.
        let _ = ledger.identity().await;
        tokio::time::sleep(SWEEP).await;
        loop {
            match ledger.sweep().await {
                Ok(swept) if swept.reply >= batch => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "cannot look for leases that ran out");
                    break;
                }
            }
        }
    }
}

/// Serves as `settings` say until SIGTERM or SIGINT, following `sources`; `ready` is told the address
/// once it listens.
///
/// # Errors
/// [`ConnectError`] says which part cannot start, and why.
pub async fn run(sources: Sources, settings: Settings, ready: impl FnOnce(SocketAddr)) -> Result<(), ConnectError> {
    let config = settings.config.clone();
    let stop = stop_by_signals(&config)?;
    // Nobody is kept waiting by a service that cannot start.
    let connected = connect(&config).await?;
    let listener = listen(&config.listen).await?;
    serve(listener, connected, config, Some(Followed::new(sources, settings)), stop, ready).await
}

/// Listens on `address`.
///
/// # Errors
/// [`ConnectError::Listen`].
pub async fn listen(address: &Address) -> Result<TcpListener, ConnectError> {
    let failed = |source| ConnectError::Listen { address: address.clone(), source };
    TcpListener::bind(address.to_string()).await.map_err(failed)
}

/// As [`run`], on a listener that is there already, and with settings that do not change.
///
/// # Errors
/// As [`run`].
pub async fn run_on(listener: TcpListener, config: Config, ready: impl FnOnce(SocketAddr)) -> Result<(), ConnectError> {
    let stop = stop_by_signals(&config)?;
    let connected = connect(&config).await?;
    serve(listener, connected, config, None, stop, ready).await
}

async fn serve(
    listener: TcpListener,
    (adapters, keys): (Adapters, Option<Arc<WatchedKeys>>),
    mut config: Config,
    settings: Option<Followed>,
    stop: Stop,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ConnectError> {
    let failed = |source| ConnectError::Listen { address: config.listen.clone(), source };
    let address = listener.local_addr().map_err(failed)?;
    let metrics_listener = match &config.http.metrics_listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    config.limits.connections = descriptors::connections(config.limits.connections);
    let server = Server::new(adapters, &config);
    let follower = Follower {
        keys,
        health: server.health.clone(),
        ledger: Arc::clone(&server.ledger),
        links: Arc::clone(&server.links),
        settings,
    };
    tracing::info!(%address, "listening");
    let mut beside = JoinSet::new();
    beside.spawn(follower.run());
    if let Some(listener) = metrics_listener {
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "metrics");
        }
        beside.spawn(async move {
            if let Err(error) = axum::serve(listener, http::metrics_routes::<()>()).await {
                tracing::error!(%error, "no metrics are served any more");
            }
        });
    }
    ready(address);
    server.serve(listener, stop).await;
    beside.shutdown().await;
    tracing::info!("stopped");
    Ok(())
}

fn stop_by_signals(config: &Config) -> Result<Stop, ConnectError> {
    Stop::by_signals().map_err(|source| ConnectError::Listen { address: config.listen.clone(), source })
}
