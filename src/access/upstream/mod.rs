//! Keys that a platform knows: who asks is what its `GET /v1/me` says of the caller's own headers.
//!
//! ```text
//! request ─► remembered? ─► one question at a time of the same headers ─► GET {platform}/v1/me
//!               │ good for seconds, refusals too                          │ 200, 401, 403: remembered
//!               └ while the platform does not answer: what was good,      └ all else: no answer
//!                 for the grace; then 503 ACCESS_UNAVAILABLE
//! ```
//!
//! Keys are neither kept nor logged: answers are remembered by a digest of the three headers. An
//! answer that is not whole and to the point counts as none ([`answer`]).

mod answer;
mod memory;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, StatusCode};
use reqwest::Client;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex as Turn, Semaphore};
use tokio::time::Instant;
use url::Url;

use super::{Authenticator, Capability, Credentials, KeyKind, Principal};
use crate::artifact::{InvalidId, Project, ProjectId, WorkspaceId};
use crate::error::{Error, Kind, Result};
use crate::request::{PROJECT_ID, WORKSPACE_ID};
use answer::Answer;
use memory::{Advice, Memory};

pub use answer::Refusal;
pub use memory::Lives;

/// The longest key that is asked about, bytes.
const MAX_KEY_BYTES: usize = 4096;
/// The longest answer, bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Answers that are remembered.
const MAX_REMEMBERED: usize = 20_000;
/// Questions under way at once; further ones wait.
const MAX_QUESTIONS: usize = 64;
/// How long a link lives at most whose issuing key cannot be asked about, s.
const LINK_LIFE_SECONDS: u64 = 3600;
/// How often a platform that does not answer is logged.
const REMIND: Duration = Duration::from_secs(10);

/// A digest of what a request brought along.
type Question = [u8; 32];
/// Those who ask, or wait for who does, by question; and how many they are.
type Turns = HashMap<Question, (Arc<Turn<()>>, usize)>;

/// Asks a platform who a request is.
pub struct Upstream {
    client: Client,
    me: Url,
    patience: Duration,
    memory: Mutex<Memory<Question>>,
    turns: Mutex<Turns>,
    places: Semaphore,
    logged: Mutex<Option<Instant>>,
}

impl Upstream {
    /// Asks the platform at `base`, which may be silent for `patience`; answers live as `lives` say.
    ///
    /// # Errors
    /// If there can be no client on this machine: no certificates, say.
    pub fn new(base: &Url, patience: Duration, lives: Lives) -> std::result::Result<Self, reqwest::Error> {
        let mut me = base.clone();
        me.set_path(&format!("{}/v1/me", base.path().trim_end_matches('/')));
        // A key is sent to the platform and to nobody that it points to.
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(patience).build()?;
        Ok(Self {
            client,
            me,
            patience,
            memory: Mutex::new(Memory::new(lives, MAX_REMEMBERED)),
            turns: Mutex::default(),
            places: Semaphore::new(MAX_QUESTIONS),
            logged: Mutex::default(),
        })
    }

    /// Whether the platform answers: a question without a key has to be refused.
    ///
    /// # Errors
    /// What it does instead.
    pub async fn probe(&self) -> std::result::Result<(), String> {
        let asked = self.client.get(self.me.clone()).header(ACCEPT, "application/json").send();
        match asked.await.map_err(|error| said(&error))?.status() {
            StatusCode::UNAUTHORIZED => Ok(()),
            other => Err(format!("it answers a request without a key with {other}, not 401: is that its API?")),
        }
    }

    fn advice(&self, question: &Question) -> Advice {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).look(question, Instant::now())
    }

    /// Asks, unless somebody else does with the same headers: then takes what that one is told.
    async fn ask_in_turn(&self, question: &Question, credentials: &Credentials) -> Advice {
        let turn = TurnOf::take(&self.turns, *question);
        let _mine = turn.lock.lock().await;
        let advice = self.advice(question);
        if advice != Advice::Ask {
            return advice;
        }
        match self.ask(credentials).await {
            Ok(answer) => {
                let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.answered(question, answer.clone(), Instant::now());
                Advice::Take(answer)
            }
            Err(fault) => self.go_without(question, &fault),
        }
    }

    /// What can be said without an answer.
    fn go_without(&self, question: &Question, fault: &str) -> Advice {
        let now = Instant::now();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| now.saturating_duration_since(at) >= REMIND) {
            *logged = Some(now);
            tracing::error!(fault, "the platform does not say whose keys these are: known ones are good for a while");
        }
        drop(logged);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.unanswered(question, now)
    }

    async fn ask(&self, credentials: &Credentials) -> std::result::Result<Result<Principal, Refusal>, String> {
        let _place = self.places.acquire().await.map_err(|error| error.to_string())?;
        let mut request = self.client.get(self.me.clone()).header(ACCEPT, "application/json");
        let bearer = credentials.key.as_ref().map(|key| format!("Bearer {key}"));
        for (name, value) in [
            (AUTHORIZATION, bearer.as_ref()),
            (WORKSPACE_ID, credentials.workspace.as_ref()),
            (PROJECT_ID, credentials.project.as_ref()),
        ] {
            let Some(value) = value else { continue };
            let mut value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(|error| said(&error))?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| said(&error))? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(format!("an answer of more than {MAX_ANSWER_BYTES} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        match answer::judge(response.status(), &body, credentials) {
            Answer::Known(principal) => Ok(Ok(principal)),
            Answer::Refused(refusal) => Ok(Err(refusal)),
            Answer::Useless(fault) => Err(fault),
        }
    }
}

/// An error without the URL, which may hold what is nobody's business, and with its causes.
fn said(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    let what = if error.is_timeout() { "no answer in time" } else { "it cannot be asked" };
    format!("{what}{text}")
}

/// What the three headers are, without keeping the key. Lengths stand before texts, so that no two
/// requests are one question.
fn question(credentials: &Credentials) -> Question {
    let mut digest = Sha256::new();
    for part in [&credentials.key, &credentials.workspace, &credentials.project] {
        let length = part.as_ref().map_or(u64::MAX, |text| text.len() as u64);
        digest.update(length.to_be_bytes());
        digest.update(part.as_deref().unwrap_or_default());
    }
    digest.finalize().into()
}

/// Refuses what no platform has to be asked about.
fn presentable(credentials: &Credentials) -> Result<()> {
    let key = credentials.key.as_deref().unwrap_or_default();
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Refusal::UnknownKey.error());
    }
    let malformed = |name: &str, rule: InvalidId| Error::new(Kind::InvalidRequest, format!("{name}: {rule}."));
    if let Some(text) = &credentials.workspace {
        WorkspaceId::parse(text).map_err(|rule| malformed("X-Workspace-ID", rule))?;
    }
    if let Some(text) = &credentials.project {
        ProjectId::parse(text).map_err(|rule| malformed("X-Project-ID", rule))?;
    }
    Ok(())
}

#[async_trait]
impl Authenticator for Upstream {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        presentable(credentials)?;
        let question = question(credentials);
        let mut advice = self.advice(&question);
        if advice == Advice::Ask {
            let asked = tokio::time::timeout(self.patience, self.ask_in_turn(&question, credentials)).await;
            advice = asked.unwrap_or_else(|_| self.go_without(&question, "no answer in time"));
        }
        match advice {
            Advice::Take(answer) => answer.map_err(Refusal::error),
            Advice::Ask | Advice::Unavailable => Err(Error::new(
                Kind::AccessUnavailable,
                "The platform that knows the keys does not answer; try again shortly.",
            )),
        }
    }

    /// The platform answers for keys, and nobody has this one: the link itself is the proof that it
    /// was good within the hour.
    async fn still(&self, key_id: &str, project: &Project) -> Result<Principal> {
        Ok(Principal {
            key_id: key_id.to_owned(),
            kind: KeyKind::Project,
            project: Some(project.clone()),
            capabilities: [Capability::JobsRead, Capability::ArtifactsDownload].into(),
        })
    }

    fn link_life_seconds(&self) -> u64 {
        LINK_LIFE_SECONDS
    }
}

/// A place among those who have the same question.
struct TurnOf<'a> {
    turns: &'a Mutex<Turns>,
    question: Question,
    lock: Arc<Turn<()>>,
}

impl<'a> TurnOf<'a> {
    fn take(turns: &'a Mutex<Turns>, question: Question) -> Self {
        let mut all = turns.lock().unwrap_or_else(PoisonError::into_inner);
        let (lock, waiting) = all.entry(question).or_default();
        *waiting += 1;
        Self { turns, question, lock: Arc::clone(lock) }
    }
}

impl Drop for TurnOf<'_> {
    fn drop(&mut self) {
        let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, waiting)) = all.get_mut(&self.question) {
            *waiting -= 1;
            if *waiting == 0 {
                all.remove(&self.question);
            }
        }
    }
}

#[cfg(test)]
mod tests;
