//! Wires the adapters into the service, listens, drains, stops.

mod connect;
mod descriptors;
mod io;

use std::io::Result as IoResult;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::{Authenticator, WatchedKeys};
use crate::archive::Archives;
use crate::artifact::key::Layout;
use crate::catalog::Catalog;
use crate::config::{Config, Limits};
use crate::http::{self, Front};
use crate::ledger::{Ledger, SystemClock};
use crate::link::SigningKeys;
use crate::links::Links;
use crate::listing::Listing;
use crate::mcp;
use crate::quota::{Quota, Warnings};
use crate::read::Reads;
use crate::store::Store;

pub use connect::{ConnectError, connect};

/// How often silent projects are looked through for leases that ran out.
const SWEEP: Duration = Duration::from_secs(5);
/// How long settles may take once everything else has stopped.
const LAST_SETTLES: Duration = Duration::from_secs(10);

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
    routes: Router,
    ledger: Arc<dyn Ledger>,
    tracker: TaskTracker,
    draining: CancellationToken,
    limits: Limits,
}

impl Server {
    /// Wires `adapters` as `config` says.
    #[must_use]
    pub fn new(adapters: Adapters, config: &Config) -> Self {
        let Adapters { store, layout, ledger, access, signing } = adapters;
        let (tracker, draining) = (TaskTracker::new(), CancellationToken::new());
        let catalog = Arc::new(Catalog::new(store, layout));
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
        let people = Front { access, listing, reads, archives, links, quota, draining: draining.clone() };
        let people = http::router(Arc::new(people));
        let routes = http::around(people.merge(agents), draining.clone());
        Self { routes, ledger, tracker, draining, limits: config.limits.clone() }
    }

    /// Serves `listener` until `stop`; then lets running answers finish within the drain time, cuts
    /// the rest, and returns when everything is settled.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let sweeper = tokio::spawn(sweep(Arc::clone(&self.ledger)));
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listener, &places) => accepted,
                Some(_) = connections.join_next() => continue,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, place)) => {
                    let connection = self.connection(stream, graceful.watcher());
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
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
        tracing::info!(connections = connections.len(), "stopping");
        let drain = Duration::from_secs(self.limits.drain_seconds);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!("the drain time is over: open answers are cut");
        }
        connections.shutdown().await;
        sweeper.abort();
        self.tracker.close();
        if tokio::time::timeout(LAST_SETTLES, self.tracker.wait()).await.is_err() {
            tracing::error!(
                unsettled = self.tracker.len(),
                "the ledger took no more settles: their leases will expire"
            );
        }
    }

    fn connection(&self, stream: TcpStream, watcher: Watcher) -> impl Future<Output = ()> + use<> {
        let mut http1 = hyper::server::conn::http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(self.limits.head_seconds))
            .max_buf_size(usize::try_from(self.limits.head_bytes.bytes()).unwrap_or(usize::MAX));
        let service = TowerToHyperService::new(self.routes.clone());
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

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> IoResult<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn sweep(ledger: Arc<dyn Ledger>) {
    let batch = ledger.rules().sweep_batch;
    loop {
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

/// Serves as `config` says until SIGTERM or SIGINT; `ready` is told the address once it listens.
///
/// # Errors
/// [`ConnectError`] says which part cannot start, and why.
pub async fn run(config: Config, ready: impl FnOnce(SocketAddr)) -> Result<(), ConnectError> {
    let stop = stop_signal(&config)?;
    // Nobody is kept waiting by a service that cannot start.
    let connected = connect(&config).await?;
    let listener = listen(config.listen).await?;
    serve(listener, connected, config, stop, ready).await
}

/// Listens on `address`.
///
/// # Errors
/// [`ConnectError::Listen`].
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ConnectError> {
    TcpListener::bind(address).await.map_err(|source| ConnectError::Listen { address, source })
}

/// As [`run`], on a listener that is there already.
///
/// # Errors
/// As [`run`].
pub async fn run_on(listener: TcpListener, config: Config, ready: impl FnOnce(SocketAddr)) -> Result<(), ConnectError> {
    let stop = stop_signal(&config)?;
    let connected = connect(&config).await?;
    serve(listener, connected, config, stop, ready).await
}

async fn serve(
    listener: TcpListener,
    (adapters, keys): (Adapters, Arc<WatchedKeys>),
    mut config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ConnectError> {
    let address = listener.local_addr().map_err(|source| ConnectError::Listen { address: config.listen, source })?;
    config.limits.connections = descriptors::connections(config.limits.connections);
    let server = Server::new(adapters, &config);
    tracing::info!(%address, "listening");
    let watched = tokio::spawn(follow(keys));
    ready(address);
    server.serve(listener, stop).await;
    watched.abort();
    tracing::info!("stopped");
    Ok(())
}

/// Follows the key file, and reads it again at once on SIGHUP.
async fn follow(keys: Arc<WatchedKeys>) {
    let hangup = async {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
        while hangup.recv().await.is_some() {
            keys.reload().await;
        }
    };
    tokio::join!(keys.watch(), hangup);
}

fn stop_signal(config: &Config) -> Result<CancellationToken, ConnectError> {
    let on = |kind| signal(kind).map_err(|source| ConnectError::Listen { address: config.listen, source });
    let (mut terminate, mut interrupt) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(stop)
}
