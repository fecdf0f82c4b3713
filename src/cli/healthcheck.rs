//! `artifactd healthcheck`: for container images, which have no curl.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Failure;
use crate::config::Address;

const TIMEOUT: Duration = Duration::from_secs(3);
const PATH: &str = "/healthz";

/// Options of `artifactd healthcheck`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where the service listens; an unspecified address (0.0.0.0) means this machine
    #[arg(long, value_name = "ADDR", env = "ARTIFACTD_LISTEN", default_value = "127.0.0.1:8080")]
    listen: Address,
}

/// Asks once.
///
/// # Errors
/// No answer within three seconds, or another than 200.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let address = &options.listen;
    let status = ask_any(address).map_err(|error| format!("{address}{PATH} does not answer: {error}"))?;
    if status.starts_with(b"HTTP/1.") && status.ends_with(b" 200") {
        return Ok(());
    }
    Err(format!("{address}{PATH} answered {:?}", String::from_utf8_lossy(&status)).into())
}

/// Asks at each address that a name stands for, until one answers.
fn ask_any(address: &Address) -> io::Result<[u8; 12]> {
    let mut failure = None;
    for mut address in address.resolve()? {
        if address.ip().is_unspecified() {
            let loopback = if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
            address.set_ip(loopback);
        }
        match ask(address) {
            Ok(status) => return Ok(status),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// The beginning of the answer: "HTTP/1.1 200" is all that matters.
fn ask(address: SocketAddr) -> io::Result<[u8; 12]> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_200_is_healthy() {
        for (answer, healthy) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 503 Service Unavailable\r\n\r\n", false),
            ("nonsense", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
            let listen = listener.local_addr().expect("bound");
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut request = [0; 256];
                let length = stream.read(&mut request).expect("a request");
                stream.write_all(answer.as_bytes()).expect("sent");
                String::from_utf8_lossy(&request[..length]).into_owned()
            });
            assert_eq!(run(&Options { listen: listen.into() }).is_ok(), healthy, "{answer}");
            assert!(server.join().expect("served").starts_with("GET /healthz HTTP/1.1\r\n"));
        }
        // Nobody listens here any more.
        let listen = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("bound");
        let error = run(&Options { listen: listen.into() }).expect_err("nobody answers").to_string();
        assert!(error.contains(&listen.to_string()), "{error}");
    }
}
