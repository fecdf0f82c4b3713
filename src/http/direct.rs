//! The way past the router, for what is asked most often: GET of an artifact's content by a path that names
//! it as it is. The pieces on the way are those that the router leads to.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use http::Method;
use http::request::Parts;

use super::Front;
use super::artifacts::{CONTENT, content_of};
use super::extract::{ArtifactPath, ContentParams};
use super::guarded::admit;
use crate::request::RequestId;
use crate::telemetry::metrics::Route;
use crate::telemetry::request::leads_to;

/// The trial and the artifact whose content is asked for; `None` where that is for the router to find out.
pub(super) fn names(request: &Parts) -> Option<(&str, &str)> {
    let plain = request.method == Method::GET && request.uri.query().is_none();
    let names = request.uri.path().strip_prefix("/v1/trials/").filter(|_| plain)?;
    let (trial, rest) = names.split_at(names.bytes().position(|byte| byte == b'/')?);
    let artifact = rest.strip_prefix("/artifacts/")?.strip_suffix("/content")?;
    let is_segment = |name: &str| !name.is_empty() && !name.bytes().any(|byte| matches!(byte, b'/' | b'%'));
    (is_segment(trial) && is_segment(artifact)).then_some((trial, artifact))
}

/// Answers with the content of what was [named](names).
pub(super) async fn answer(
    front: &Front,
    id: &RequestId,
    (trial, artifact): (&str, &str),
    request: &Parts,
) -> Response {
    static ROUTE: LazyLock<&Route> = LazyLock::new(|| Route::of(CONTENT));
    leads_to(*ROUTE);
    let (who, places) = match admit(front, request).await {
        Ok(admitted) => admitted,
        Err(refused) => return refused,
    };
    let content = async {
        let names = ArtifactPath::of(trial, artifact)?;
        content_of(front, &who, id, &names, &ContentParams::default(), request).await
    };
    places.held_by(content.await.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_router_need_not_be_asked_for() {
        let pattern = CONTENT.replace("{trial_id}", "t").replace("{artifact_id}", "a");
        for (method, uri, want) in [
            ("GET", &*pattern, Some(("t", "a"))),
            ("GET", "/v1/trials/t/artifacts/a~1b.txt/content", Some(("t", "a~1b.txt"))),
            ("GET", "http://host/v1/trials/t/artifacts/a/content", Some(("t", "a"))),
            ("HEAD", "/v1/trials/t/artifacts/a/content", None),
            ("POST", "/v1/trials/t/artifacts/a/content", None),
            ("GET", "/v1/trials/t/artifacts/a/content?disposition=inline", None),
            ("GET", "/v1/trials/t/artifacts/a/content?", None),
            ("GET", "/v1/trials/t/artifacts/a%20b/content", None),
            ("GET", "/v1/trials/t/artifacts/a/content/", None),
            ("GET", "/v1/trials/t/artifacts/a/b/content", None),
            ("GET", "/v1/trials/t/artifacts//content", None),
            ("GET", "/v1/trials//artifacts/a/content", None),
            ("GET", "//v1/trials/t/artifacts/a/content", None),
            ("GET", "/v1/trials/t/artifacts/a/Content", None),
            ("GET", "/v1/trials/t/artifacts/a", None),
            ("GET", "/v1/trials/t/archive", None),
        ] {
            let request = http::Request::builder().method(method).uri(uri).body(()).expect("a request");
            assert_eq!(names(&request.into_parts().0), want, "{method} {uri}");
        }
    }
}
