//! Signed links: what they open, to whom, for how long; and that nothing tells their secret.

use artifactd::access::Preset;
use artifactd::access::keys::KeyFile;
use artifactd::artifact::{ArtifactName, Project, ProjectId, TrialId, WorkspaceId};
use artifactd::ledger::LinkId;
use artifactd::link::{Claims, SigningKeys};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::probe::Fault;
use super::process::Process;
use super::raw;
use super::service::{Options, PROJECT, Service, make_key};

const BODY: &[u8] = b"0123456789";
const MINT: &str = "/v1/trials/t1/artifacts/out~1%E5%A0%B1%E5%91%8A.txt/links";
const NAME: &str = "out/報告.txt";
const OLD: [u8; 32] = [b'o'; 32];
const NEW: [u8; 32] = [b'n'; 32];

fn secret_file(name: &str, secret: &[u8]) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().expect("scratch file");
    std::fs::write(file.path(), secret).expect("written");
    let setting = format!("{{ id = \"{name}\", secret_file = \"{}\" }}", file.path().display());
    (file, setting)
}

async fn service() -> Service {
    let (_file, old) = secret_file("old", &OLD);
    let settings = format!("public_url = \"https://files.example.com/a/\"\n[links]\nkeys = [{old}]");
    let files = [("t1", NAME, BODY), ("t1", "page.html", b"<script>" as &[u8])];
    Service::with(&files, Options { settings, ..Options::default() }).await
}

async fn minted(service: &Service, body: Value) -> Value {
    let answer = service.request(Method::POST, MINT, &service.keys.automation).json(&body).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(
        (answer.status(), &answer.headers()["cache-control"]),
        (StatusCode::CREATED, &"no-store".parse().expect("valid"))
    );
    answer.json().await.expect("JSON")
}

fn path(minted: &Value) -> String {
    let url = minted["url"].as_str().expect("a URL");
    url.strip_prefix("https://files.example.com/a").expect("begins with public_url").to_owned()
}

/// Follows a link as somebody without a key.
async fn follow(service: &Service, method: &str, path: &str, extra: &str) -> raw::Answer {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{extra}\r\n");
    raw::send(service.address, request.as_bytes()).await
}

fn code(answer: &raw::Answer) -> (u16, String) {
    (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_link_opens_one_file_without_a_key() {
    let service = service().await;
    let link = minted(&service, json!({"expires_in_seconds": 60})).await;
    let (url, id) = (path(&link), link["link_id"].as_str().expect("an id"));
    assert!(url.ends_with("/%E5%A0%B1%E5%91%8A.txt"), "{url}");

    let head = follow(&service, "HEAD", &url, "").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 0);

    let whole = follow(&service, "GET", &url, "X-Request-Id: r-1\r\n").await;
    assert_eq!((whole.status, &whole.body[..]), (200, BODY));
    assert_eq!(
        whole.header("content-disposition"),
        Some("attachment; filename=\"__.txt\"; filename*=UTF-8''%E5%A0%B1%E5%91%8A.txt")
    );
    assert_eq!(whole.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    assert_eq!(whole.header("referrer-policy"), Some("no-referrer"));
    let part = follow(&service, "GET", &url, "Range: bytes=3-5\r\n").await;
    assert_eq!((part.status, &part.body[..]), (206, &BODY[3..6]));
    let etag = format!("If-None-Match: {}\r\n", whole.header("etag").expect("an etag"));
    assert_eq!(follow(&service, "GET", &url, &etag).await.status, 304);
    assert_eq!(follow(&service, "GET", &url, "Range: bytes=10-\r\n").await.status, 416);
    // The name is decoration, and the disposition may be asked for.
    let other = url.replace("%E5%A0%B1%E5%91%8A.txt", "x?disposition=inline");
    let shown = follow(&service, "GET", &other, "").await;
    assert!(shown.header("content-disposition").expect("one").starts_with("inline;"));

    assert_eq!(service.settled().await, 23);
    let audit = service.json("/v1/quota/audit?channel=link").await;
    assert_eq!(audit["totals"], json!({"count": 3, "charged_bytes": 23}));
    let first = &audit["items"][2];
    for (field, want) in [
        ("link_id", json!(id)),
        ("key_id", json!("automation")),
        ("trial_id", json!("t1")),
        ("artifact", json!(NAME)),
        ("request_id", json!("r-1")),
        ("charged_bytes", json!(10)),
    ] {
        assert_eq!(first[field], want, "{field}");
    }
}

#[tokio::test]
async fn what_may_be_asked_of_a_mint() {
    let service = service().await;
    let before = jiff::Timestamp::now().as_second();
    for (body, life) in
        [(json!({}), 900), (json!({"expires_in_seconds": 60}), 60), (json!({"expires_in_seconds": 604_800}), 604_800)]
    {
        let link = minted(&service, body).await;
        let expires: jiff::Timestamp = link["expires_at"].as_str().expect("a time").parse().expect("RFC 3339");
        assert!((0..=20).contains(&(expires.as_second() - before - life)), "{life}");
    }
    let empty = service.request(Method::POST, MINT, &service.keys.read_only).send().await.expect("an answer");
    assert_eq!(empty.status(), 201);
    for (key, path, body, want) in [
        (&service.keys.read_only, MINT, "{\"expires_in_seconds\":59}", "INVALID_REQUEST"),
        (&service.keys.read_only, MINT, "{\"expires_in_seconds\":604801}", "INVALID_REQUEST"),
        (&service.keys.read_only, MINT, "{\"expires_in_seconds\":\"60\"}", "INVALID_REQUEST"),
        (&service.keys.read_only, MINT, "{\"expires_in\":60}", "INVALID_REQUEST"),
        (&service.keys.read_only, MINT, "[", "INVALID_REQUEST"),
        (&service.keys.read_only, MINT, &" ".repeat(5000), "REQUEST_TOO_LARGE"),
        (&service.keys.read_only, "/v1/trials/t1/artifacts/none/links", "", "ARTIFACT_NOT_FOUND"),
        (&service.keys.read_only, "/v1/trials/none/artifacts/a/links", "", "TRIAL_NOT_FOUND"),
        (&service.keys.foreign, MINT, "", "TRIAL_NOT_FOUND"),
        (&service.keys.viewer, MINT, "", "ACCESS_DENIED"),
        (&service.keys.operator, MINT, "", "PROJECT_REQUIRED"),
    ] {
        let answer = service.request(Method::POST, path, key).body(body.to_owned()).send().await.expect("an answer");
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], want, "{path} {body}");
    }
    assert_eq!(service.json("/v1/quota/audit").await["totals"]["count"], 0);
}

#[tokio::test]
async fn without_keys_or_a_public_url_there_are_none() {
    let (_file, old) = secret_file("old", &OLD);
    for settings in [String::new(), format!("[links]\nkeys = [{old}]"), "public_url = \"https://x\"".to_owned()] {
        let service = Service::with(&[("t1", NAME, BODY)], Options { settings, ..Options::default() }).await;
        let answer = service.request(Method::POST, MINT, &service.keys.read_only).send().await.expect("an answer");
        assert_eq!(answer.status(), 409);
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], "LINKS_DISABLED");
        assert_eq!(code(&follow(&service, "GET", "/v1/download/a.b/c", "").await), refused(403, "LINK_INVALID"));
        assert_eq!(service.json("/v1/links").await["items"], json!([]));
    }
}

#[tokio::test]
async fn links_are_listed_and_revoked() {
    let service = service().await;
    let mut links = Vec::new();
    for _ in 0..5 {
        links.push(minted(&service, json!({})).await);
    }
    let (mut ids, mut query) = (Vec::new(), "limit=2".to_owned());
    loop {
        let page = service.json(&format!("/v1/links?{query}")).await;
        ids.extend(page["items"].as_array().expect("items").iter().map(|item| item["link_id"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        query = format!("limit=2&cursor={next}");
    }
    assert_eq!(ids, links.iter().map(|link| link["link_id"].clone()).collect::<Vec<_>>());
    let item = &service.json("/v1/links?limit=1").await["items"][0];
    let want = json!({
        "link_id": links[0]["link_id"], "trial_id": "t1", "name": NAME, "key_id": "automation",
        "expires_at": links[0]["expires_at"],
    });
    assert_eq!(item, &want);
    for query in ["limit=0", "limit=101", "cursor=x"] {
        assert_eq!(service.get(&format!("/v1/links?{query}")).await.status(), 400, "{query}");
    }
    let foreign = service.request(Method::GET, "/v1/links", &service.keys.foreign).send().await.expect("an answer");
    assert_eq!(foreign.json::<Value>().await.expect("JSON")["items"], json!([]));

    let target = format!("/v1/links/{}", links[1]["link_id"].as_str().expect("an id"));
    let delete = async |target: &str, key: &str| {
        let answer = service.request(Method::DELETE, target, key).send().await.expect("an answer");
        answer.status().as_u16()
    };
    assert_eq!(delete(&target, &service.keys.foreign).await, 404);
    assert_eq!(delete(&target, &service.keys.viewer).await, 403);
    assert_eq!(follow(&service, "GET", &path(&links[1]), "").await.status, 200);
    assert_eq!(delete(&target, &service.keys.read_only).await, 204);
    assert_eq!(code(&follow(&service, "GET", &path(&links[1]), "").await), refused(410, "LINK_REVOKED"));
    assert_eq!(follow(&service, "GET", &path(&links[2]), "").await.status, 200);
    for unknown in ["/v1/links/none", "/v1/links/0192f0c1-2345-7abc-8def-0123456789ab"] {
        assert_eq!(delete(unknown, &service.keys.read_only).await, 404);
    }
    assert_eq!(service.json("/v1/links").await["items"].as_array().expect("items").len(), 4);
    assert_eq!(service.settled().await, 20);
}

#[tokio::test]
async fn a_revoked_link_reads_nothing_and_a_running_download_ends() {
    let service = service().await;
    let link = minted(&service, json!({})).await;
    service.store.set(Fault::StallAfter(4));
    let target = path(&link);
    let (running, ()) = tokio::join!(follow(&service, "GET", &target, ""), async {
        service.quota_until(|quota| quota["open_reservations"] == 1).await;
        let target = format!("/v1/links/{}", link["link_id"].as_str().expect("an id"));
        service.request(Method::DELETE, &target, &service.keys.read_only).send().await.expect("an answer");
        let (opens, bytes) = (service.store.opens(), service.store.bytes());
        assert_eq!(code(&follow(&service, "GET", &path(&link), "").await), refused(410, "LINK_REVOKED"));
        assert_eq!((service.store.opens(), service.store.bytes()), (opens, bytes));
        service.store.set(Fault::None);
    });
    assert_eq!((running.status, &running.body[..]), (200, BODY));
}

/// A token that the service never made, signed with its own key.
fn forged(change: impl FnOnce(&mut Claims)) -> String {
    let mut claims = Claims {
        project: Project {
            workspace: WorkspaceId::parse("default").expect("valid"),
            id: ProjectId::parse(PROJECT).expect("valid"),
        },
        trial: TrialId::parse("t1").expect("valid"),
        name: ArtifactName::parse(NAME).expect("valid"),
        etag: "\"x\"".into(),
        expires: u64::try_from(jiff::Timestamp::now().as_second()).expect("valid") + 600,
        link: LinkId::new(),
        issuer: "automation".into(),
    };
    change(&mut claims);
    let token = SigningKeys::new([("old".to_owned(), OLD)]).expect("valid").sign(&claims);
    format!("/v1/download/{token}/x")
}

#[tokio::test]
async fn what_a_link_dies_of() {
    let service = service().await;
    let live = path(&minted(&service, json!({})).await);
    let (head, name) = live.rsplit_once('/').expect("a name");
    let etag = follow(&service, "HEAD", &live, "").await.header("etag").expect("an etag").to_owned();
    let encoded = |at: usize| format!("{}%{:02X}{}/{name}", &head[..at], head.as_bytes()[at], &head[at + 1..]);
    let as_is = |claims: &mut Claims| claims.etag.clone_from(&etag);
    for (target, want) in [
        (format!("{}/{name}", &head[..head.len() - 1]), refused(403, "LINK_INVALID")),
        (format!("{head}A/{name}"), refused(403, "LINK_INVALID")),
        (encoded(20), refused(403, "LINK_INVALID")),
        ("/v1/download/./x".to_owned(), refused(403, "LINK_INVALID")),
        (format!("/v1/download/{}/x", "A".repeat(9000)), refused(403, "LINK_INVALID")),
        ("/v1/download/%00%FF/x".to_owned(), refused(403, "LINK_INVALID")),
        (head.to_owned(), refused(404, "NOT_FOUND")),
        (forged(|claims| claims.expires -= 601), refused(410, "LINK_EXPIRED")),
        (forged(|claims| claims.issuer = "nobody".into()), refused(410, "LINK_REVOKED")),
        (forged(|claims| claims.issuer = "viewer".into()), refused(410, "LINK_REVOKED")),
        (forged(|claims| claims.issuer = "foreign".into()), refused(410, "LINK_REVOKED")),
        (forged(|claims| claims.project.id = ProjectId::parse("other").expect("valid")), refused(410, "LINK_REVOKED")),
        (forged(|_| ()), refused(410, "LINK_STALE")),
        (forged(|claims| claims.name = ArtifactName::parse("gone").expect("valid")), refused(410, "LINK_STALE")),
        (forged(|claims| claims.trial = TrialId::parse("gone").expect("valid")), refused(410, "LINK_STALE")),
        // Signed, but never recorded: the ledger could not revoke it.
        (forged(as_is), refused(410, "LINK_REVOKED")),
    ] {
        assert_eq!(code(&follow(&service, "GET", &target, "").await), want, "{target}");
    }
    assert_eq!(service.settled().await, 0);

    service.put("t1", NAME, b"another!");
    for method in ["GET", "HEAD"] {
        assert_eq!(follow(&service, method, &live, "").await.status, 410, "{method}");
    }
    assert_eq!(code(&follow(&service, "GET", &live, "").await), refused(410, "LINK_STALE"));
}

#[tokio::test]
async fn a_link_dies_with_its_issuing_key() {
    let service = service().await;
    let file = service.scratch.path().join("keys.toml");
    let key = make_key(&file, "brief", PROJECT, Preset::ReadOnly);
    let mint = || service.request(Method::POST, MINT, &key).send();
    while mint().await.expect("an answer").status() != 201 {
        service.access.reload().await;
    }
    let link = path(&mint().await.expect("an answer").json().await.expect("JSON"));
    assert_eq!(follow(&service, "GET", &link, "").await.status, 200);
    KeyFile::new(&file).disable("brief").expect("disabled");
    service.access.reload().await;
    assert_eq!(code(&follow(&service, "GET", &link, "").await), refused(410, "LINK_REVOKED"));
    assert_eq!(follow(&service, "HEAD", &link, "").await.status, 410);
}

#[tokio::test]
async fn keys_are_rotated() {
    let (_files, settings): (Vec<_>, Vec<_>) =
        [("new", &NEW[..]), ("old", &OLD[..])].into_iter().map(|(name, secret)| secret_file(name, secret)).unzip();
    let settings = format!("public_url = \"https://files.example.com/a\"\n[links]\nkeys = [{}]", settings.join(", "));
    let service = Service::with(&[("t1", NAME, BODY)], Options { settings, ..Options::default() }).await;
    let link = path(&minted(&service, json!({})).await);
    let token = link.split('/').nth(3).expect("a token");
    let (new, old) = (
        SigningKeys::new([("new".into(), NEW)]).expect("valid"),
        SigningKeys::new([("old".into(), OLD)]).expect("valid"),
    );
    assert!(new.verify(token).is_ok() && old.verify(token).is_err(), "the first key signs");
    let by_the_old = format!("/v1/download/{}/x", old.sign(&new.verify(token).expect("valid")));
    assert_eq!(follow(&service, "GET", &by_the_old, "").await.status, 200, "both are believed");
    let unknown = SigningKeys::new([("new".into(), [b'x'; 32])]).expect("valid");
    let by_another = format!("/v1/download/{}/x", unknown.sign(&new.verify(token).expect("valid")));
    assert_eq!(code(&follow(&service, "GET", &by_another, "").await), refused(403, "LINK_INVALID"));
}

#[tokio::test]
async fn an_agent_gets_a_link_to_what_it_is_not_shown() {
    let (_file, old) = secret_file("old", &OLD);
    let settings = format!("public_url = \"https://files.example.com/a\"\n[links]\nkeys = [{old}]");
    let files = [("t1", "core.bin", &[0, 159, 146, 150, 0, 1][..])];
    let service = Service::with(&files, Options { settings, ..Options::default() }).await;
    let result = service.tool("envloop_trial_artifact_read", json!({"trial_id": "t1", "name": "core.bin"})).await;
    let text = result["content"][0]["text"].as_str().expect("text");
    let url = text.split_whitespace().find(|word| word.contains("/v1/download/")).expect("a link");
    let answer = follow(&service, "GET", url.strip_prefix("https://files.example.com/a").expect("the base"), "").await;
    assert_eq!((answer.status, &answer.body[..]), (200, files[0].2));
    assert_eq!(service.json("/v1/links").await["items"][0]["key_id"], "read-only");
}

/// Every line that the service can write, about every way in which a token can come in.
#[tokio::test]
async fn no_token_in_any_log_at_any_level() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir_all(at("store/demo/t1")).expect("folders");
    std::fs::write(at("store/demo/t1/a.txt"), BODY).expect("written");
    std::fs::write(at("link.key"), OLD).expect("written");
    let key = make_key(&at("keys.toml"), "reader", PROJECT, Preset::ReadOnly);
    let config = format!(
        "listen = \"127.0.0.1:0\"\npublic_url = \"http://files.example\"\n[store]\nurl = \"file://{0}/store\"\n\
         [ledger]\nurl = \"embedded://{0}/ledger.db\"\n[access]\nkeys_file = \"{0}/keys.toml\"\n\
         [links]\nkeys = [{{ id = \"one\", secret_file = \"{0}/link.key\" }}]\n\
         [log]\nformat = \"json\"\nfilter = \"trace\"\n",
        scratch.path().display()
    );
    std::fs::write(at("config.toml"), config).expect("settings");
    let process = Process::start(&at("config.toml"));
    let address = process.address;
    let mint = raw::request("POST", "/v1/trials/t1/artifacts/a.txt/links", &key, "Content-Length: 0\r\n");
    let link = raw::send(address, &mint).await.json();
    let target = link["url"].as_str().expect("a URL").strip_prefix("http://files.example").expect("the base");
    let token = target.split('/').nth(3).expect("a token");
    let expired = forged(|claims| claims.expires -= 601);
    for (method, target) in [
        ("GET", target.to_owned()),
        ("HEAD", target.to_owned()),
        ("POST", target.to_owned()),
        ("GET", expired.clone()),
        ("GET", target.replace("/a.txt", "x/a.txt")),
        ("GET", format!("/v1/download/{token}")),
        ("GET", format!("/v1/elsewhere/{token}")),
        ("GET", format!("{target}?disposition=nonsense")),
    ] {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = raw::send(address, request.as_bytes()).await;
        let text = answer.head + &String::from_utf8_lossy(&answer.body);
        assert!(!text.contains(token), "no error tells it: {text}");
    }
    let log = process.stop();
    assert!(log.contains("/v1/download/{token}/{filename}"), "requests are logged by their pattern");
    assert!(log.contains("\"level\":\"TRACE\"") || log.contains("\"level\":\"DEBUG\""), "{log}");
    for secret in
        [token, &token[..40], token.split('.').nth(1).expect("a MAC"), expired.split('/').nth(3).expect("one"), &key]
    {
        assert!(!log.contains(secret), "the log tells {secret}");
    }
}
