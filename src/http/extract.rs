//! What handlers take from a request, with our own errors.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::headers::Disposition;
use super::problem::Problem;
use crate::access::Principal;
use crate::artifact::{ArtifactName, InvalidId, ProjectId, TrialId};
use crate::error::{Error, Kind, Result};
use crate::listing::ListQuery;
use crate::request::RequestId;

/// Every handler of a route that needs a key may take it, once.
impl<S: Sync> FromRequestParts<S> for Principal {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let principal = parts.extensions.remove::<Self>();
        principal.ok_or_else(|| Error::internal("the route needs no key").into())
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let known = parts.extensions.get::<Self>().cloned();
        Ok(known.unwrap_or_else(|| Self::of(&parts.headers)))
    }
}

/// The parameters of a path of other things than trials and artifacts.
pub(super) struct PathOf<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(parameters) = Path::<T>::from_request_parts(parts, state).await.map_err(|e| bad_path(&e))?;
        Ok(Self(parameters))
    }
}

/// The project of the path.
pub(super) struct ProjectPath(pub(super) ProjectId);

impl<S: Send + Sync> FromRequestParts<S> for ProjectPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathOf(project) = PathOf::<String>::from_request_parts(parts, state).await?;
        Ok(Self(ProjectId::parse(&project).map_err(invalid_id)?))
    }
}

/// The trial of the path.
pub(super) struct TrialPath(pub(super) TrialId);

impl<S: Send + Sync> FromRequestParts<S> for TrialPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathOf(trial) = PathOf::<String>::from_request_parts(parts, state).await?;
        Ok(Self(TrialId::parse(&trial).map_err(invalid_id)?))
    }
}

/// The trial and the artifact of the path. Percent-encoding is undone once, by the router.
pub(super) struct ArtifactPath(pub(super) TrialId, pub(super) ArtifactName);

impl<S: Send + Sync> FromRequestParts<S> for ArtifactPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathOf((trial, id)) = PathOf::<(String, String)>::from_request_parts(parts, state).await?;
        Self::of(&trial, &id)
    }
}

impl ArtifactPath {
    /// The trial and the artifact of these segments.
    pub(super) fn of(trial: &str, id: &str) -> Result<Self, Problem> {
        let trial = TrialId::parse(trial).map_err(invalid_id)?;
        Ok(Self(trial, ArtifactName::from_artifact_id(id).map_err(invalid_id)?))
    }
}

/// The query string. Unknown parameters are ignored, as clients and proxies add their own.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // serde_urlencoded would put U+FFFD for what is no UTF-8, and ask for another name.
        let query = parts.uri.query().unwrap_or_default();
        if percent_encoding::percent_decode_str(query).decode_utf8().is_err() {
            return Err(Error::new(Kind::InvalidRequest, "The query is percent-encoded UTF-8.").into());
        }
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(bad_query(&rejection)),
        }
    }
}

/// The parameters of a listing, as text: what is wrong with them is said by the listing.
#[derive(Deserialize)]
pub(super) struct ListParams {
    limit: Option<String>,
    cursor: Option<String>,
    prefix: Option<String>,
}

impl ListParams {
    pub(super) fn into_query(self) -> ListQuery {
        let limit = self.limit.as_deref().map(limit_of);
        ListQuery { limit, cursor: self.cursor, prefix: self.prefix }
    }
}

/// A `limit` parameter. What is no number is out of bounds.
pub(super) fn limit_of(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// What a download may ask for beside its bytes.
#[derive(Default, Deserialize)]
pub(super) struct ContentParams {
    disposition: Option<String>,
}

impl ContentParams {
    pub(super) fn disposition(&self) -> Result<Disposition> {
        match self.disposition.as_deref() {
            None | Some("attachment") => Ok(Disposition::Attachment),
            Some("inline") => Ok(Disposition::Inline),
            Some(_) => Err(Error::new(Kind::InvalidRequest, "disposition is attachment or inline.")),
        }
    }
}

fn invalid_id(error: InvalidId) -> Problem {
    Error::new(Kind::InvalidName, format!("{error}.")).into()
}

fn bad_path(rejection: &PathRejection) -> Problem {
    Error::new(Kind::InvalidName, "The path is percent-encoded UTF-8.").with_source(rejection.to_string()).into()
}

fn bad_query(rejection: &QueryRejection) -> Problem {
    Error::new(Kind::InvalidRequest, "A query parameter is malformed or given twice.")
        .with_source(rejection.to_string())
        .into()
}
