//! The other ends of connections.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A sound answer.
pub(super) fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// What a peer does once it has sent what it was told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Waits for the next request.
    Listens,
    /// Says no more and keeps the connection.
    Stalls,
    Closes,
}

/// A server that answers every request with what a script makes of its head.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Which connection brought it, counted from 0.
    pub(super) connection: usize,
    /// The host that TLS was asked for.
    pub(super) server_name: Option<String>,
    pub(super) head: String,
}

type Script = dyn Fn(&Seen) -> (Vec<u8>, Then) + Send + Sync;

impl Peer {
    pub(super) async fn plain(script: impl Fn(&Seen) -> (Vec<u8>, Then) + Send + Sync + 'static) -> Self {
        Self::start(None, script).await
    }

    pub(super) async fn tls(
        identity: &Identity,
        script: impl Fn(&Seen) -> (Vec<u8>, Then) + Send + Sync + 'static,
    ) -> Self {
        Self::start(Some(identity.acceptor()), script).await
    }

    async fn start(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Seen) -> (Vec<u8>, Then) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, all): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let (script, all, tls) = (Arc::clone(&script), Arc::clone(&all), tls.clone());
                tokio::spawn(async move {
                    let Some(tls) = tls else { return serve(stream, connection, None, &*script, &all).await };
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let name = stream.get_ref().1.server_name().map(str::to_owned);
                    serve(stream, connection, name, &*script, &all).await;
                });
                connection += 1;
            }
        });
        Self { address, seen, task }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("unpoisoned").clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    server_name: Option<String>,
    script: &Script,
    all: &Mutex<Vec<Seen>>,
) {
    loop {
        let Some(head) = head(&mut stream).await else { return };
        let seen = Seen { connection, server_name: server_name.clone(), head };
        all.lock().expect("unpoisoned").push(seen.clone());
        let (reply, then) = script(&seen);
        if let Some(to) = seen.head.strip_prefix("CONNECT ").filter(|_| then == Then::Listens) {
            let to = to.split_whitespace().next().expect("an authority");
            let mut onward = TcpStream::connect(to).await.expect("it is there");
            stream.write_all(&reply).await.expect("taken");
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
            return;
        }
        // A client that has read enough may have gone.
        if stream.write_all(&reply).await.is_err() || then == Then::Closes {
            let _ = stream.shutdown().await;
            return;
        }
        if then == Then::Stalls {
            // Ends when the client does.
            let _ = stream.read_u8().await;
            return;
        }
    }
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// A server for `localhost`, and its certificate, which nobody else vouches for.
pub(super) struct Identity {
    pub(super) certificate: String,
    key: String,
}

impl Identity {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(&folder)
            .output()
            .expect("openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let read = |name: &str| std::fs::read_to_string(Path::join(folder.path(), name)).expect("made");
        Self { certificate: read("cert.pem"), key: read("key.pem") }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<_, _>>();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain.expect("certificates"), key);
        TlsAcceptor::from(Arc::new(config.expect("they belong together")))
    }
}
