//! Who gets in: so many connections are served, some more are told that there is no room, the rest wait.

use std::io::Result as IoResult;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections beyond the cap that are answered at one time, each once: enough that whoever asks one
/// thing and goes never waits, and few enough that they cost the others nothing.
pub(super) const SPARE: usize = 64;

/// How long the head of a request may take on such a connection: it is no place to rest on.
pub(super) const SPARE_HEAD: Duration = Duration::from_secs(1);

/// What a connection is let in for, and its place until this is dropped.
pub(super) struct Entry {
    /// Whether it is served; if not, it is told that there is no room.
    pub(super) served: bool,
    _place: OwnedSemaphorePermit,
}

/// Counts those who are in.
pub(super) struct Door {
    places: Arc<Semaphore>,
    spare: Arc<Semaphore>,
}

impl Door {
    /// At most `connections` are served at once.
    pub(super) fn new(connections: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(connections)), spare: Arc::new(Semaphore::new(SPARE)) }
    }

    /// The next connection. May be dropped at any time: nobody is lost.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) async fn accept(&self, listener: &TcpListener) -> IoResult<(TcpStream, Entry)> {
        let (served, place) = tokio::select! {
            biased;
            place = Arc::clone(&self.places).acquire_owned() => (true, place),
            spare = Arc::clone(&self.spare).acquire_owned() => (false, spare),
        };
        let place = place.expect("the semaphores are never closed");
        let (stream, _) = listener.accept().await?;
        if !served && let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            // It became free while nobody came.
            return Ok((stream, Entry { served: true, _place: place }));
        }
        Ok((stream, Entry { served, _place: place }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn some_beyond_the_cap_are_turned_away_and_the_rest_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let door = Door::new(1);
        let next = async || {
            let _client = TcpStream::connect(address).await.expect("the system takes it");
            door.accept(&listener).await.expect("accepted").1
        };
        let first = next().await;
        assert!(first.served);
        let mut away = Vec::new();
        for _ in 0..SPARE {
            away.push(next().await);
        }
        assert!(away.iter().all(|entry| !entry.served));
        let waiting = tokio::time::timeout(Duration::from_millis(50), next()).await;
        assert!(waiting.is_err(), "one more waits");
        drop(first);
        assert!(next().await.served, "a place that is given back");
    }

    #[tokio::test]
    async fn a_place_that_becomes_free_while_nobody_comes_is_taken_by_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let door = Door::new(1);
        let _client = TcpStream::connect(address).await.expect("the system takes it");
        let first = door.accept(&listener).await.expect("accepted").1;
        let come = async {
            tokio::task::yield_now().await;
            drop(first);
            TcpStream::connect(address).await.expect("the system takes it")
        };
        let (entry, _client) = tokio::join!(door.accept(&listener), come);
        assert!(entry.expect("accepted").1.served);
    }
}
