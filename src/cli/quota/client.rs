//! The service as its client sees it.

use std::io::Write;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use url::Url;

use super::Service;
use crate::cli::Failure;
use crate::request::{PROJECT_ID, WORKSPACE_ID};

/// The variable that holds the key, where no file does.
const KEY_VARIABLE: &str = "ARTIFACTD_KEY";
/// How long the service may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
}

impl Client {
    pub(super) fn new(service: &Service) -> Result<Self, Failure> {
        let mut base = service.url.clone();
        let web = matches!(base.scheme(), "http" | "https") && base.query().is_none() && base.fragment().is_none();
        if !web {
            return Err(format!("--url is {base}; it is such as https://artifacts.example.com").into());
        }
        base.set_path(&format!("{}/v1/", base.path().trim_end_matches('/')));
        let mut headers = HeaderMap::new();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key(service)?))
            .map_err(|_| "the key has characters that no key has")?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        let project = service.project.as_ref().map(|id| (PROJECT_ID, id.as_str()));
        let workspace = service.workspace.as_ref().map(|id| (WORKSPACE_ID, id.as_str()));
        for (name, value) in project.into_iter().chain(workspace) {
            headers.insert(name, HeaderValue::from_str(value)?);
        }
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(PATIENCE)
            .read_timeout(PATIENCE)
            .build()?;
        Ok(Self { http, base })
    }

    fn url(&self, path: &str, query: &[(&'static str, Option<String>)]) -> Result<Url, Failure> {
        let mut url = self.base.join(path)?;
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        Ok(url)
    }

    /// What lies at `path` below `/v1`.
    pub(super) async fn get(&self, path: &str, query: &[(&'static str, Option<String>)]) -> Result<Value, Failure> {
        json(accepted(self.http.get(self.url(path, query)?)).await?).await
    }

    /// Sends `body`; answers null where the service answers nothing.
    pub(super) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let mut request = self.http.request(method, self.url(path, &[])?);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        json(accepted(request).await?).await
    }

    /// Writes what lies at `path` to `out` as it comes.
    ///
    /// # Errors
    /// Also if it ends before it is whole: what was written is not all then.
    pub(super) async fn stream(
        &self,
        path: &str,
        query: &[(&'static str, Option<String>)],
        media_type: &'static str,
        mut out: impl Write,
    ) -> Result<(), Failure> {
        let request = self.http.get(self.url(path, query)?).header(ACCEPT, media_type);
        let mut response = accepted(request).await?;
        while let Some(chunk) = response.chunk().await? {
            out.write_all(&chunk)?;
        }
        Ok(out.flush()?)
    }
}

/// The answer to `request`, if it is a good one.
async fn accepted(request: RequestBuilder) -> Result<Response, Failure> {
    let response = request.send().await?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let problem = json(response).await.unwrap_or_default();
    let text = |name: &str| problem[name].as_str();
    match (text("code"), text("detail"), text("request_id")) {
        (Some(code), Some(detail), Some(id)) => Err(format!("{code}: {detail} (request {id})").into()),
        _ => Err(format!("the service answered {status}").into()),
    }
}

async fn json(response: Response) -> Result<Value, Failure> {
    let bytes = response.bytes().await?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("the service answered what is no JSON: {error}").into())
}

fn key(service: &Service) -> Result<String, Failure> {
    let key = match &service.key_file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => {
            let variable = std::env::vars_os().find(|(name, _)| name == KEY_VARIABLE);
            let none = || format!("no key: name a file that holds it with --key-file, or set {KEY_VARIABLE}");
            let (_, key) = variable.ok_or_else(none)?;
            key.into_string().map_err(|_| format!("{KEY_VARIABLE} is not UTF-8"))?
        }
    };
    Ok(key.trim().to_owned())
}
