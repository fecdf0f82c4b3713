//! One error type: what went wrong in the caller's terms, and, for the log alone, why.

use std::fmt;

use crate::access::Capability;
use crate::ledger::{At, Refusal};

/// The outcome of an operation of the service.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// The closed list of what can go wrong. Its [`code`](Kind::code) is the contract with clients.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the codes; `code` and the API documentation say what each means")]
pub enum Kind {
    Unauthenticated,
    /// The key lacks a capability.
    AccessDenied(Capability),
    ProjectAccessDenied,
    HostDenied,
    OriginDenied,
    ProjectRequired,
    TrialNotFound,
    ArtifactNotFound,
    LinkNotFound,
    NotFound,
    InvalidRequest,
    InvalidCursor,
    InvalidLimit,
    InvalidName,
    MethodNotAllowed,
    RequestTooLarge,
    ArchiveTooLarge,
    UnsupportedMediaType,
    HeadersTooLarge,
    ArtifactChanged,
    ArtifactNotReady,
    ArtifactEncoded,
    LinkInvalid,
    LinkExpired,
    LinkRevoked,
    LinkStale,
    LinksDisabled,
    AdjustmentConflict,
    PreconditionFailed,
    /// The artifact's length in bytes.
    RangeNotSatisfiable(u64),
    /// The refusal, and the ledger's time when it was made.
    DownloadQuotaExceeded(Box<At<Refusal>>),
    TooManyRequests,
    /// The process is full; another replica may not be.
    Overloaded,
    QuotaUnavailable,
    StoreUnavailable,
    AccessUnavailable,
    ShuttingDown,
    InternalError,
}

impl Kind {
    /// The stable code that clients match on.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::AccessDenied(_) => "ACCESS_DENIED",
            Self::ProjectAccessDenied => "PROJECT_ACCESS_DENIED",
            Self::HostDenied => "HOST_DENIED",
            Self::OriginDenied => "ORIGIN_DENIED",
            Self::ProjectRequired => "PROJECT_REQUIRED",
            Self::TrialNotFound => "TRIAL_NOT_FOUND",
            Self::ArtifactNotFound => "ARTIFACT_NOT_FOUND",
            Self::LinkNotFound => "LINK_NOT_FOUND",
            Self::NotFound => "NOT_FOUND",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::InvalidCursor => "INVALID_CURSOR",
            Self::InvalidLimit => "INVALID_LIMIT",
            Self::InvalidName => "INVALID_NAME",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::RequestTooLarge => "REQUEST_TOO_LARGE",
            Self::ArchiveTooLarge => "ARCHIVE_TOO_LARGE",
            Self::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
            Self::HeadersTooLarge => "HEADERS_TOO_LARGE",
            Self::ArtifactChanged => "ARTIFACT_CHANGED",
            Self::ArtifactNotReady => "ARTIFACT_NOT_READY",
            Self::ArtifactEncoded => "ARTIFACT_ENCODED",
            Self::LinkInvalid => "LINK_INVALID",
            Self::LinkExpired => "LINK_EXPIRED",
            Self::LinkRevoked => "LINK_REVOKED",
            Self::LinkStale => "LINK_STALE",
            Self::LinksDisabled => "LINKS_DISABLED",
            Self::AdjustmentConflict => "ADJUSTMENT_CONFLICT",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::RangeNotSatisfiable(_) => "RANGE_NOT_SATISFIABLE",
            Self::DownloadQuotaExceeded(_) => "DOWNLOAD_QUOTA_EXCEEDED",
            Self::TooManyRequests => "TOO_MANY_REQUESTS",
            Self::Overloaded => "OVERLOADED",
            Self::QuotaUnavailable => "QUOTA_UNAVAILABLE",
            Self::StoreUnavailable => "STORE_UNAVAILABLE",
            Self::AccessUnavailable => "ACCESS_UNAVAILABLE",
            Self::ShuttingDown => "SHUTTING_DOWN",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }

    /// The HTTP status that goes with the code.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::Unauthenticated => 401,
            Self::AccessDenied(_)
            | Self::ProjectAccessDenied
            | Self::HostDenied
            | Self::OriginDenied
            | Self::LinkInvalid => 403,
            Self::ProjectRequired
            | Self::InvalidRequest
            | Self::InvalidCursor
            | Self::InvalidLimit
            | Self::InvalidName => 400,
            Self::TrialNotFound | Self::ArtifactNotFound | Self::LinkNotFound | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTooLarge | Self::ArchiveTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::HeadersTooLarge => 431,
            Self::ArtifactChanged
            | Self::ArtifactNotReady
            | Self::ArtifactEncoded
            | Self::LinksDisabled
            | Self::AdjustmentConflict => 409,
            Self::LinkExpired | Self::LinkRevoked | Self::LinkStale => 410,
            Self::PreconditionFailed => 412,
            Self::RangeNotSatisfiable(_) => 416,
            Self::DownloadQuotaExceeded(_) | Self::TooManyRequests => 429,
            Self::Overloaded
            | Self::QuotaUnavailable
            | Self::StoreUnavailable
            | Self::AccessUnavailable
            | Self::ShuttingDown => 503,
            Self::InternalError => 500,
        }
    }
}

/// An error in the caller's terms: a [`Kind`] and a sentence that says what to do next. The source
/// is for the log; no answer shows it.
pub struct Error {
    kind: Kind,
    message: String,
    source: Option<Source>,
}

impl Error {
    /// An error of `kind`; `message` is shown to the caller and says what to do next.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A fault of the service itself. The caller gets the request id and no detail.
    pub fn internal(source: impl Into<Source>) -> Self {
        Self::new(Kind::InternalError, "The service failed; report the request id to its operator.").with_source(source)
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The sentence for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("code", &self.kind.code())
            .field("message", &self.message)
            .field("source", &self.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_and_their_statuses() {
        for (kind, code, number) in [
            (Kind::Unauthenticated, "UNAUTHENTICATED", 401),
            (Kind::AccessDenied(Capability::JobsRead), "ACCESS_DENIED", 403),
            (Kind::ProjectAccessDenied, "PROJECT_ACCESS_DENIED", 403),
            (Kind::HostDenied, "HOST_DENIED", 403),
            (Kind::OriginDenied, "ORIGIN_DENIED", 403),
            (Kind::ProjectRequired, "PROJECT_REQUIRED", 400),
            (Kind::TrialNotFound, "TRIAL_NOT_FOUND", 404),
            (Kind::ArtifactNotFound, "ARTIFACT_NOT_FOUND", 404),
            (Kind::LinkNotFound, "LINK_NOT_FOUND", 404),
            (Kind::NotFound, "NOT_FOUND", 404),
            (Kind::InvalidRequest, "INVALID_REQUEST", 400),
            (Kind::InvalidCursor, "INVALID_CURSOR", 400),
            (Kind::InvalidLimit, "INVALID_LIMIT", 400),
            (Kind::InvalidName, "INVALID_NAME", 400),
            (Kind::MethodNotAllowed, "METHOD_NOT_ALLOWED", 405),
            (Kind::RequestTooLarge, "REQUEST_TOO_LARGE", 413),
            (Kind::ArchiveTooLarge, "ARCHIVE_TOO_LARGE", 413),
            (Kind::UnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", 415),
            (Kind::HeadersTooLarge, "HEADERS_TOO_LARGE", 431),
            (Kind::ArtifactChanged, "ARTIFACT_CHANGED", 409),
            (Kind::ArtifactNotReady, "ARTIFACT_NOT_READY", 409),
            (Kind::ArtifactEncoded, "ARTIFACT_ENCODED", 409),
            (Kind::LinkInvalid, "LINK_INVALID", 403),
            (Kind::LinkExpired, "LINK_EXPIRED", 410),
            (Kind::LinkRevoked, "LINK_REVOKED", 410),
            (Kind::LinkStale, "LINK_STALE", 410),
            (Kind::LinksDisabled, "LINKS_DISABLED", 409),
            (Kind::AdjustmentConflict, "ADJUSTMENT_CONFLICT", 409),
            (Kind::PreconditionFailed, "PRECONDITION_FAILED", 412),
            (Kind::RangeNotSatisfiable(0), "RANGE_NOT_SATISFIABLE", 416),
            (Kind::TooManyRequests, "TOO_MANY_REQUESTS", 429),
            (Kind::Overloaded, "OVERLOADED", 503),
            (Kind::QuotaUnavailable, "QUOTA_UNAVAILABLE", 503),
            (Kind::StoreUnavailable, "STORE_UNAVAILABLE", 503),
            (Kind::AccessUnavailable, "ACCESS_UNAVAILABLE", 503),
            (Kind::ShuttingDown, "SHUTTING_DOWN", 503),
            (Kind::InternalError, "INTERNAL_ERROR", 500),
        ] {
            assert_eq!((kind.code(), kind.status()), (code, number));
        }
    }
}
