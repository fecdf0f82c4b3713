//! One shared connection, bounded in its calls, replaced when it no longer serves.
//!
//! A connection is given up when it broke, when its server turned out to be a replica or to have lost
//! its master, and after several calls in a row that nobody answered. The call that found it broken is
//! repeated once on the next one: every script may be executed any number of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Options;
use super::connect::{Connection, Connector};
use super::scripts::Script;
use crate::ledger::Unavailable;

/// So many calls in a row without an answer, and the connection is given up.
const SILENT: u32 = 3;
/// The pause before the first attempt to connect again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

struct Live {
    connection: Connection,
    unanswered: AtomicU32,
}

/// When connecting may be tried again after it failed.
#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    lasts: Duration,
    failure: Option<RedisError>,
}

pub(super) struct Link {
    connector: Connector,
    response: Duration,
    places: Semaphore,
    live: ArcSwapOption<Live>,
    pause: Mutex<Pause>,
}

/// What an error means for the connection and the call.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Give the connection up, and repeat the call once on another.
    Replace,
    /// Send the script's text instead of its digest.
    Load,
    /// Nothing to be done: the call fails.
    Fail,
}

fn verdict(error: &RedisError) -> Verdict {
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::NoScript) => Verdict::Load,
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown) => Verdict::Replace,
        _ if error.is_unrecoverable_error() || error.is_connection_dropped() => Verdict::Replace,
        _ => Verdict::Fail,
    }
}

impl Link {
    pub(super) fn new(connector: Connector, options: &Options) -> Arc<Self> {
        Arc::new(Self {
            connector,
            response: options.response,
            places: Semaphore::new(options.in_flight),
            live: ArcSwapOption::empty(),
            pause: Mutex::default(),
        })
    }

    /// Until when a call that begins now is waited for, whatever happens.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.response
    }

    /// Until when a call of that deadline may wait for its turn: half of its time is for Redis to answer. A call sent
    /// with less would be given up, and count against a connection that answers.
    pub(super) fn last_turn(&self, deadline: Instant) -> Instant {
        deadline - self.response / 2
    }

    /// Runs a script. Waits until the deadline at the most, whatever happens.
    pub(super) async fn run(
        self: &Arc<Self>,
        deadline: Instant,
        script: &Script,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<Value, Unavailable> {
        let busy = |_| Unavailable("too many calls wait for Redis".into());
        let _place = timeout_at(deadline, self.places.acquire()).await.map_err(busy)?.expect("never closed");
        let by_digest = command("EVALSHA", &script.sha, keys, arguments);
        let mut by_text = None;
        let mut replaced = false;
        loop {
            let live = self.connected(deadline).await?;
            let command = by_text.as_ref().unwrap_or(&by_digest);
            let Ok(sent) = timeout_at(deadline, live.connection.clone().send(command)).await else {
                if live.unanswered.fetch_add(1, Relaxed) + 1 >= SILENT {
                    self.give_up(&live, "no call is answered");
                }
                return Err(Unavailable("Redis did not answer in time".into()));
            };
            let error = match sent {
                Ok(value) => {
                    live.unanswered.store(0, Relaxed);
                    return Ok(value);
                }
                Err(error) => error,
            };
            match verdict(&error) {
                Verdict::Load if by_text.is_none() => {
                    by_text = Some(self::command("EVAL", &script.code, keys, arguments));
                }
                Verdict::Replace => {
                    self.give_up(&live, &error.to_string());
                    if replaced {
                        return Err(Unavailable(error.into()));
                    }
                    replaced = true;
                }
                Verdict::Load | Verdict::Fail => return Err(Unavailable(error.into())),
            }
        }
    }

    /// Connects if there is no connection, whether or not anything is to be sent.
    pub(super) async fn warm_up(self: &Arc<Self>) -> Result<(), Unavailable> {
        self.establish().await.map(drop).map_err(|error| Unavailable(error.into()))
    }

    /// What can be said against the servers, as [`Connector::findings`]. Takes at most `patience`.
    pub(super) async fn findings(&self, patience: Duration) -> Result<Vec<String>, Unavailable> {
        let late = |_| Unavailable("Redis did not answer in time".into());
        let found = tokio::time::timeout(patience, self.connector.findings()).await.map_err(late)?;
        found.map_err(|error| Unavailable(error.into()))
    }

    async fn connected(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Live>, Unavailable> {
        if let Some(live) = self.live.load_full() {
            return Ok(live);
        }
        // A task of its own, so that connecting goes on for the next caller when this one gives up.
        let link = Arc::clone(self);
        let connecting = tokio::spawn(async move { link.establish().await });
        let late = |_| Unavailable("connecting to Redis takes too long".into());
        let ended = timeout_at(deadline, connecting).await.map_err(late)?;
        ended.map_err(|error| Unavailable(error.into()))?.map_err(|error| Unavailable(error.into()))
    }

    async fn establish(&self) -> Result<Arc<Live>, RedisError> {
        let mut pause = self.pause.lock().await;
        if let Some(live) = self.live.load_full() {
            return Ok(live);
        }
        if let (Some(until), Some(failure)) = (pause.until, &pause.failure)
            && Instant::now() < until
        {
            return Err(failure.clone());
        }
        match self.connector.connect().await {
            Ok(connection) => {
                *pause = Pause::default();
                let live = Arc::new(Live { connection, unanswered: AtomicU32::new(0) });
                self.live.store(Some(Arc::clone(&live)));
                tracing::info!("connected to Redis");
                Ok(live)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot connect to Redis");
                let lasts = (pause.lasts * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                *pause = Pause { until: Some(Instant::now() + lasts), lasts, failure: Some(error.clone()) };
                Err(error)
            }
        }
    }

    /// Lets go of a connection, unless another has taken its place already.
    fn give_up(&self, live: &Arc<Live>, why: &str) {
        let held = self.live.compare_and_swap(live, None);
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, live)) {
            tracing::warn!(why, "the connection to Redis is given up");
        }
    }
}

fn command(name: &str, script: &str, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
    let length = keys.iter().map(|key| key.len()).chain(arguments.iter().map(|argument| argument.len())).sum::<usize>();
    let mut command = Cmd::with_capacity(3 + keys.len() + arguments.len(), name.len() + script.len() + 20 + length);
    command.arg(name).arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind as Io};

    use super::*;

    #[test]
    fn errors_and_what_follows() {
        let server = |kind| RedisError::from((ErrorKind::Server(kind), "said so"));
        for (error, want) in [
            (server(ServerErrorKind::NoScript), Verdict::Load),
            (server(ServerErrorKind::ReadOnly), Verdict::Replace),
            (server(ServerErrorKind::MasterDown), Verdict::Replace),
            (Error::from(Io::ConnectionReset).into(), Verdict::Replace),
            (Error::from(Io::BrokenPipe).into(), Verdict::Replace),
            (server(ServerErrorKind::BusyLoading), Verdict::Fail),
            (server(ServerErrorKind::ClusterDown), Verdict::Fail),
            (server(ServerErrorKind::TryAgain), Verdict::Fail),
            (server(ServerErrorKind::ResponseError), Verdict::Fail),
        ] {
            assert_eq!(verdict(&error), want, "{error}");
        }
    }
}
