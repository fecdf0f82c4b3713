//! Against a platform of the tests, over HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::HeaderMap;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::*;

const LONG: Duration = Duration::from_secs(3600);
const PATIENT: Duration = Duration::from_secs(20);
/// Every answer is remembered, and stands in for those that do not come.
const REMEMBERING: Lives = Lives { fresh: LONG, refused: LONG, grace: LONG, pause: LONG };
/// Every request is a question; what was good stands in.
const FORGETTING: Lives = Lives { fresh: Duration::ZERO, refused: Duration::ZERO, grace: LONG, pause: Duration::ZERO };

/// How the platform behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    Refusing,
    Failing,
    Silent,
    Pointing,
    Endless,
    Lying,
}

struct Platform {
    mood: watch::Sender<Mood>,
    asked: AtomicUsize,
    elsewhere: AtomicUsize,
    last: Mutex<HeaderMap>,
    /// While this is set, answers wait for the notice.
    held: watch::Sender<bool>,
    arrived: Notify,
}

struct Bench {
    platform: Arc<Platform>,
    base: Url,
    task: JoinHandle<()>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn me(State(platform): State<Arc<Platform>>, request: Request) -> Response {
    platform.asked.fetch_add(1, Ordering::SeqCst);
    *platform.last.lock().unwrap() = request.headers().clone();
    platform.arrived.notify_one();
    platform.held.subscribe().wait_for(|held| !held).await.unwrap();
    let mood = *platform.mood.borrow();
    let project = request.headers().get(PROJECT_ID).map_or("p", |value| value.to_str().unwrap());
    match mood {
        Mood::Good | Mood::Lying => {
            let project = if mood == Mood::Lying { "another" } else { project };
            axum::Json(json!({
                "auth_method": "api_key",
                "workspace": {"workspace_id": "w", "name": "w"},
                "project": {"project_id": project, "workspace_id": "w", "name": "p"},
                "key_id": "k1", "kind": "personal", "capabilities": ["jobs.read", "artifacts.download"],
            }))
            .into_response()
        }
        Mood::Refusing => StatusCode::UNAUTHORIZED.into_response(),
        Mood::Failing => StatusCode::BAD_GATEWAY.into_response(),
        Mood::Silent => std::future::pending().await,
        Mood::Pointing => (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(),
        Mood::Endless => vec![b' '; MAX_ANSWER_BYTES + 1].into_response(),
    }
}

async fn elsewhere(State(platform): State<Arc<Platform>>) -> StatusCode {
    platform.elsewhere.fetch_add(1, Ordering::SeqCst);
    StatusCode::OK
}

impl Bench {
    async fn start(mood: Mood) -> Self {
        let platform = Arc::new(Platform {
            mood: watch::Sender::new(mood),
            asked: AtomicUsize::new(0),
            elsewhere: AtomicUsize::new(0),
            last: Mutex::default(),
            held: watch::Sender::new(false),
            arrived: Notify::new(),
        });
        let routes = Router::new().route("/base/v1/me", get(me)).route("/elsewhere", get(elsewhere));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/base/", listener.local_addr().unwrap()).parse().unwrap();
        let serving = axum::serve(listener, routes.with_state(Arc::clone(&platform)));
        let task = tokio::spawn(async move { serving.await.unwrap() });
        Self { platform, base, task }
    }

    fn upstream(&self, lives: Lives) -> Upstream {
        Upstream::new(&self.base, PATIENT, lives).unwrap()
    }

    fn asked(&self) -> usize {
        self.platform.asked.load(Ordering::SeqCst)
    }
}

fn with(key: &str, project: Option<&str>) -> Credentials {
    Credentials { key: Some(key.into()), workspace: project.map(|_| "w".into()), project: project.map(Into::into) }
}

async fn code(upstream: &Upstream, credentials: &Credentials) -> std::result::Result<String, &'static str> {
    let principal = upstream.authenticate(credentials).await;
    principal.map(|who| who.project().unwrap().id.to_string()).map_err(|error| error.kind().code())
}

#[tokio::test]
async fn the_platform_is_asked_with_the_callers_headers_and_its_answer_remembered() {
    let bench = Bench::start(Mood::Good).await;
    let upstream = bench.upstream(REMEMBERING);
    assert_eq!(code(&upstream, &with("one", Some("p"))).await.as_deref(), Ok("p"));
    {
        let last = bench.platform.last.lock().unwrap();
        assert_eq!(last["authorization"], "Bearer one");
        assert_eq!((&last[WORKSPACE_ID], &last[PROJECT_ID]), (&"w".parse().unwrap(), &"p".parse().unwrap()));
    }
    assert_eq!(code(&upstream, &with("one", Some("p"))).await.as_deref(), Ok("p"));
    assert_eq!(bench.asked(), 1);
    // Another project is another question, and so is another key.
    assert_eq!(code(&upstream, &with("one", Some("q"))).await.as_deref(), Ok("q"));
    assert_eq!(code(&upstream, &with("two", None)).await.as_deref(), Ok("p"));
    assert_eq!(bench.asked(), 3);
    assert!(!bench.platform.last.lock().unwrap().contains_key(PROJECT_ID));
    bench.platform.mood.send_replace(Mood::Refusing);
    for _ in 0..3 {
        assert_eq!(code(&upstream, &with("three", None)).await, Err("UNAUTHENTICATED"));
    }
    assert_eq!(bench.asked(), 4, "refusals are remembered, too");
}

#[tokio::test]
async fn those_who_ask_the_same_at_once_are_one_question() {
    const TOGETHER: usize = 40;
    let bench = Bench::start(Mood::Good).await;
    let upstream = Arc::new(bench.upstream(REMEMBERING));
    bench.platform.held.send_replace(true);
    let ask = || {
        let upstream = Arc::clone(&upstream);
        tokio::spawn(async move { code(&upstream, &with("one", None)).await })
    };
    let mut all: Vec<_> = (0..TOGETHER).map(|_| ask()).collect();
    bench.platform.arrived.notified().await;
    let waiting = || upstream.turns.lock().unwrap().values().map(|(_, waiting)| *waiting).sum::<usize>();
    for _ in 0..100_000 {
        if waiting() == TOGETHER {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!((waiting(), bench.asked()), (TOGETHER, 1));
    // The client whose turn it is may leave: another one asks.
    all.remove(0).abort();
    bench.platform.held.send_replace(false);
    for asked in all {
        assert_eq!(asked.await.unwrap().as_deref(), Ok("p"));
    }
    assert!(bench.asked() <= 2, "{}", bench.asked());
    assert!(upstream.turns.lock().unwrap().is_empty());
}

#[tokio::test]
async fn while_it_does_not_answer_what_was_good_stands_in_and_nothing_else() {
    for mood in [Mood::Failing, Mood::Pointing, Mood::Endless, Mood::Lying] {
        let bench = Bench::start(Mood::Good).await;
        let (forgetting, known) = (bench.upstream(FORGETTING), with("one", Some("p")));
        assert_eq!(code(&forgetting, &known).await.as_deref(), Ok("p"));
        bench.platform.mood.send_replace(mood);
        assert_eq!(code(&forgetting, &known).await.as_deref(), Ok("p"), "{mood:?}");
        assert_eq!(code(&forgetting, &with("two", Some("p"))).await, Err("ACCESS_UNAVAILABLE"), "{mood:?}");
        let strict = bench.upstream(Lives { grace: Duration::ZERO, ..FORGETTING });
        assert_eq!(code(&strict, &known).await, Err("ACCESS_UNAVAILABLE"), "{mood:?}");
        bench.platform.mood.send_replace(Mood::Good);
        let fresh = bench.upstream(Lives { pause: LONG, ..FORGETTING });
        assert_eq!(code(&fresh, &known).await.as_deref(), Ok("p"));
        bench.platform.mood.send_replace(mood);
        let before = bench.asked();
        for _ in 0..3 {
            assert_eq!(code(&fresh, &known).await.as_deref(), Ok("p"), "{mood:?}");
        }
        assert_eq!(bench.asked(), before + 1, "it is left in peace for the pause: {mood:?}");
        assert_eq!(bench.platform.elsewhere.load(Ordering::SeqCst), 0, "keys go to the platform alone");
    }
}

#[tokio::test]
async fn a_platform_that_is_silent_or_away_costs_no_more_than_the_patience() {
    let bench = Bench::start(Mood::Silent).await;
    let upstream = Upstream::new(&bench.base, Duration::from_millis(50), REMEMBERING).unwrap();
    assert_eq!(code(&upstream, &with("one", None)).await, Err("ACCESS_UNAVAILABLE"));
    assert_eq!(code(&upstream, &with("one", None)).await, Err("ACCESS_UNAVAILABLE"));
    assert_eq!(bench.asked(), 1);
    assert!(upstream.probe().await.is_err());
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", gone.local_addr().unwrap()).parse().unwrap();
    drop(gone);
    let upstream = Upstream::new(&base, PATIENT, REMEMBERING).unwrap();
    assert_eq!(code(&upstream, &with("one", None)).await, Err("ACCESS_UNAVAILABLE"));
}

#[tokio::test]
async fn what_no_platform_could_know_is_not_asked() {
    let bench = Bench::start(Mood::Good).await;
    let upstream = bench.upstream(REMEMBERING);
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    for key in ["", "a b", "a\r\nx-project-id: q", "é", &long] {
        assert_eq!(code(&upstream, &with(key, None)).await, Err("UNAUTHENTICATED"), "{key:?}");
    }
    assert_eq!(code(&upstream, &Credentials::default()).await, Err("UNAUTHENTICATED"));
    for project in ["", "p,p", "../q"] {
        assert_eq!(code(&upstream, &with("one", Some(project))).await, Err("INVALID_REQUEST"), "{project:?}");
    }
    assert_eq!(bench.asked(), 0);
}

#[tokio::test]
async fn the_probe_wants_a_refusal() {
    let bench = Bench::start(Mood::Refusing).await;
    let upstream = bench.upstream(REMEMBERING);
    assert_eq!(upstream.probe().await, Ok(()));
    assert!(!bench.platform.last.lock().unwrap().contains_key("authorization"));
    bench.platform.mood.send_replace(Mood::Good);
    assert!(upstream.probe().await.unwrap_err().contains("200"));
}

#[test]
fn no_two_requests_are_one_question() {
    let of = |key: &str, workspace: Option<&str>, project: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        question(&Credentials { key: Some(key.into()), workspace: own(workspace), project: own(project) })
    };
    let all = [
        of("ab", None, None),
        of("a", Some("b"), None),
        of("a", None, Some("b")),
        of("a", Some(""), Some("b")),
        of("", Some("ab"), None),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|other| other != one));
    }
}
