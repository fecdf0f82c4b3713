//! Clients that download and count what reaches them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::scene::{File, Scene};

/// Clients that download at once.
pub(crate) const CLIENTS: usize = 8;
/// How long anything may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long a client waits for the next bytes: more than any fault lasts.
const NEXT_BYTES: Duration = Duration::from_secs(20);

/// How a client downloads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    Whole,
    /// It leaves after so many thousandths of the file.
    Leaves(u64),
    /// It takes its time.
    Slow,
}

/// How the clients of a test are: most take all, some leave, some are slow.
pub(crate) fn mixed(_: usize) -> Manner {
    match rand::rng().random_range(0..16) {
        0..12 => Manner::Whole,
        12..15 => Manner::Leaves(rand::rng().random_range(0..1000)),
        _ => Manner::Slow,
    }
}

/// A download as its client saw it.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    /// The id that it sent, which the audit shows.
    pub(crate) request: String,
    pub(crate) size: u64,
    /// 0 if nobody answered.
    pub(crate) status: u16,
    /// Bytes of the file that arrived.
    pub(crate) received: u64,
    pub(crate) ended: Instant,
}

impl Read {
    pub(crate) fn whole(&self) -> bool {
        self.status == 200 && self.received == self.size
    }
}

/// What the clients share.
struct Shared {
    addresses: Vec<SocketAddr>,
    key: String,
    files: Vec<File>,
    manner: fn(usize) -> Manner,
    stop: AtomicBool,
    begun: AtomicUsize,
    served: AtomicUsize,
    unavailable: AtomicUsize,
    cut: AtomicUsize,
    reads: Mutex<Vec<Read>>,
}

/// Clients at work, until they are stopped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: Mutex<JoinSet<()>>,
}

impl Load {
    /// Eight clients, each of which downloads one file after the other from any of the services.
    pub(crate) fn start(scene: &Scene, manner: fn(usize) -> Manner) -> Self {
        let shared = Shared {
            addresses: scene.addresses(),
            key: scene.key.clone(),
            files: scene.files.clone(),
            manner,
            stop: AtomicBool::new(false),
            begun: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            unavailable: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
            reads: Mutex::default(),
        };
        let load = Self { shared: Arc::new(shared), clients: Mutex::default() };
        for _ in 0..CLIENTS {
            let shared = Arc::clone(&load.shared);
            load.clients.lock().unwrap().spawn(async move {
                while !shared.stop.load(SeqCst) {
                    if shared.download(None).await != 200 {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            });
        }
        load
    }

    /// One more client, which takes the largest file slowly.
    pub(crate) fn slow_client(&self) {
        let shared = Arc::clone(&self.shared);
        self.clients.lock().unwrap().spawn(async move {
            shared.download(Some(Manner::Slow)).await;
        });
    }

    /// Downloads that began to arrive.
    pub(crate) fn served(&self) -> usize {
        self.shared.served.load(SeqCst)
    }

    /// Answers that there is no ledger.
    pub(crate) fn unavailable(&self) -> usize {
        self.shared.unavailable.load(SeqCst)
    }

    /// Downloads that ended early though their client stayed, and services that nobody reached.
    pub(crate) fn cut(&self) -> usize {
        self.shared.cut.load(SeqCst)
    }

    /// Waits until so many downloads were served.
    pub(crate) async fn until(&self, served: usize) {
        self.wait("downloads", || self.served() >= served).await;
    }

    /// Waits until so many further downloads were served.
    pub(crate) async fn goes_on(&self, served: usize) {
        self.until(self.served() + served).await;
    }

    /// Waits until something is so.
    pub(crate) async fn wait(&self, what: &str, so: impl Fn() -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !so() {
            assert!(Instant::now() < give_up, "waited in vain for {what}: {} served", self.served());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the clients, each after its present download; answers all that was downloaded.
    pub(crate) async fn stop(self) -> Vec<Read> {
        self.shared.stop.store(true, SeqCst);
        let mut clients = self.clients.into_inner().unwrap();
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        std::mem::take(&mut *self.shared.reads.lock().unwrap())
    }
}

impl Shared {
    async fn download(&self, manner: Option<Manner>) -> u16 {
        let n = self.begun.fetch_add(1, SeqCst);
        let manner = manner.unwrap_or_else(|| (self.manner)(n));
        let file = match manner {
            // Longer than a lease lasts.
            Manner::Slow => self.files.last().unwrap(),
            _ => &self.files[n % (self.files.len() - 1)],
        };
        let request = format!("{}-{n}", uuid::Uuid::now_v7().simple());
        let address = self.addresses[rand::rng().random_range(0..self.addresses.len())];
        let served = || {
            self.served.fetch_add(1, SeqCst);
        };
        let (status, received) = get(address, &self.key, file, &request, manner, served).await;
        let stayed = !matches!(manner, Manner::Leaves(_));
        let read = Read { request, size: file.size, status, received, ended: Instant::now() };
        if status == 503 {
            self.unavailable.fetch_add(1, SeqCst);
        } else if stayed && !read.whole() {
            self.cut.fetch_add(1, SeqCst);
        }
        self.reads.lock().unwrap().push(read);
        status
    }
}

/// Downloads one file; answers the status, 0 if there is none, and the bytes of the file that came.
pub(crate) async fn get(
    address: SocketAddr,
    key: &str,
    file: &File,
    request: &str,
    manner: Manner,
    served: impl FnOnce(),
) -> (u16, u64) {
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nX-Request-Id: {request}\r\n\
         Connection: close\r\n\r\n",
        file.path
    );
    let Ok(mut stream) = connect(address, manner).await else { return (0, 0) };
    if stream.write_all(head.as_bytes()).await.is_err() {
        return (0, 0);
    }
    let mut buffer = vec![0; 64 << 10];
    let mut head = Vec::new();
    let split = loop {
        match next(&mut stream, &mut buffer).await {
            0 => return (0, 0),
            n => head.extend_from_slice(&buffer[..n]),
        }
        if let Some(split) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break split + 4;
        }
    };
    let status = std::str::from_utf8(&head[9..12]).unwrap().parse().unwrap();
    if status != 200 {
        return (status, 0);
    }
    served();
    let mut received = (head.len() - split) as u64;
    let leaves_at = if let Manner::Leaves(thousandths) = manner { file.size * thousandths / 1000 } else { u64::MAX };
    while received < leaves_at {
        match next(&mut stream, &mut buffer).await {
            0 => break,
            n => received += n as u64,
        }
        if matches!(manner, Manner::Slow) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    (status, received)
}

async fn connect(address: SocketAddr, manner: Manner) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if matches!(manner, Manner::Slow) {
        socket.set_recv_buffer_size(64 << 10)?;
    }
    socket.connect(address).await
}

/// The next bytes; 0 at the end, however it comes.
async fn next(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    timeout(NEXT_BYTES, stream.read(buffer)).await.expect("the service goes on or ends").unwrap_or(0)
}
