//! What went wrong with a request, in the kinds by which `object_store` tries again.

use std::error::Error;
use std::io;

use object_store::client::{HttpError, HttpErrorKind};

/// What the client itself finds.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The store's address is not one of TLS.
    #[error("the store's URL is plain http, which has to be allowed (allow_http)")]
    PlainHttp,
    /// A request names no host.
    #[error("the store's URL has no host")]
    NoHost,
    /// Nothing came for too long.
    #[error("the store has sent nothing for too long")]
    Silence,
}

/// The error of a request or of a body, with its kind.
pub(super) fn of(error: impl Error + Send + Sync + 'static) -> HttpError {
    HttpError::new(kind(&error).unwrap_or(HttpErrorKind::Unknown), error)
}

/// The error of a connection that does not stand.
pub(super) fn of_connecting(error: Box<dyn Error + Send + Sync>) -> HttpError {
    let kind = kind(&*error).filter(|kind| *kind == HttpErrorKind::Timeout).unwrap_or(HttpErrorKind::Connect);
    HttpError::new_boxed(kind, error)
}

/// Whether the connection was lost before there was an answer.
pub(super) fn is_lost(error: &HttpError) -> bool {
    matches!(error.kind(), HttpErrorKind::Request | HttpErrorKind::Interrupted)
}

/// The same kinds as `object_store` finds for its own client, but that a request which never left is one
/// to send again, too.
fn kind(error: &(dyn Error + 'static)) -> Option<HttpErrorKind> {
    let causes = || std::iter::successors(Some(error), |cause| (**cause).source());
    let kinds = || causes().filter_map(kind_of_cause);
    kinds().find(|kind| *kind == HttpErrorKind::Timeout).or_else(|| kinds().next())
}

fn kind_of_cause(cause: &(dyn Error + 'static)) -> Option<HttpErrorKind> {
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        let lost = error.is_closed() || error.is_canceled() || error.is_incomplete_message();
        return (lost || error.is_body_write_aborted()).then_some(HttpErrorKind::Request);
    }
    match cause.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::TimedOut => Some(HttpErrorKind::Timeout),
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(HttpErrorKind::Interrupted),
        _ => None,
    }
}
