//! A connection whose client must take what it is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// What is expected of a client that is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// For so long altogether it may keep the service waiting …
    pub(super) patience: Duration,
    /// … until it has taken so many bytes; at least 1. Then its time begins anew.
    pub(super) quota: u64,
}

/// A stream that fails once its client falls behind the pace: one that takes nothing, or drips. Only
/// time counts in which the service waits for the client, so that a slow store is not held against
/// it. The deadline lives here because nobody polls the body of an answer while its client does not
/// read.
pub(super) struct Impatient {
    stream: TcpStream,
    pace: Pace,
    /// For how long the client kept the service waiting before, and what it has taken since it began.
    waited: Duration,
    taken: u64,
    /// Since when it does now, and when that is too long.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Impatient {
    pub(super) const fn new(stream: TcpStream, pace: Pace) -> Self {
        Self { stream, pace, waited: Duration::ZERO, taken: 0, waiting: None }
    }

    /// Judges what came of a write.
    fn judge(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = progress {
            if let Some((since, _)) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            if !self.waited.is_zero() {
                self.taken += written.as_ref().map_or(0, |bytes| *bytes as u64);
                if self.taken >= self.pace.quota {
                    (self.waited, self.taken) = (Duration::ZERO, 0);
                }
            }
            return Poll::Ready(written);
        }
        let left = self.pace.patience.saturating_sub(self.waited);
        let (_, too_long) = self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        ready!(too_long.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes too little")))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // A TCP stream holds nothing back and shuts down at once: neither ever waits for the client.

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    const CHUNK: usize = 64 << 10;

    /// A stream with small buffers, and its client.
    async fn pair(pace: Pace) -> (Impatient, TcpStream) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_send_buffer_size(4096).expect("set");
        socket.bind("127.0.0.1:0".parse().expect("valid")).expect("a free port");
        let listener: TcpListener = socket.listen(1).expect("it listens");
        let client = TcpSocket::new_v4().expect("a socket");
        client.set_recv_buffer_size(4096).expect("set");
        let address = listener.local_addr().expect("bound");
        let (client, accepted) = tokio::join!(client.connect(address), listener.accept());
        (Impatient::new(accepted.expect("accepted").0, pace), client.expect("connected"))
    }

    /// Writes until the client is given up; answers for how long.
    async fn given_up_after(mut stream: Impatient) -> Duration {
        let begun = Instant::now();
        loop {
            if let Err(error) = stream.write(&[7; CHUNK]).await {
                assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
                return begun.elapsed();
            }
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let patience = Duration::from_millis(200);
        let (stream, _client) = pair(Pace { patience, quota: 1 }).await;
        assert!(given_up_after(stream).await >= patience);
    }

    #[tokio::test]
    async fn a_client_that_drips_is_given_up_and_a_slow_one_is_not() {
        let patience = Duration::from_millis(400);
        for (quota, patient) in [(64 << 20, false), (1, true)] {
            let (stream, mut client) = pair(Pace { patience, quota }).await;
            let dripping = async {
                let mut some = [0; 16 << 10];
                loop {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    if client.read(&mut some).await.expect("bytes") == 0 {
                        break;
                    }
                }
            };
            let outcome = tokio::select! {
                waited = given_up_after(stream) => Some(waited),
                () = dripping => None,
                () = tokio::time::sleep(3 * patience) => None,
            };
            assert_eq!(outcome.is_none(), patient, "{outcome:?}");
        }
    }

    /// The client was slow once; what the service then takes its time for is not held against it.
    #[tokio::test]
    async fn time_in_which_nothing_is_written_does_not_count() {
        let patience = Duration::from_millis(300);
        let (mut stream, mut client) = pair(Pace { patience, quota: 1 << 30 }).await;
        let (written, read) = tokio::join!(stream.write_all(&[7; 4 * CHUNK]), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            client.read_exact(&mut [0; 4 * CHUNK]).await
        });
        written.expect("in time");
        read.expect("all of it");
        tokio::time::sleep(2 * patience).await;
        let mut last = [0; 100];
        let (written, read) = tokio::join!(stream.write_all(&[7; 100]), client.read_exact(&mut last));
        written.expect("the service was slow, not the client");
        read.expect("all of it");
    }
}
