//! What an object store's refusals mean.

use object_store::{Attribute, Error, GetResult};

use super::super::StoreError;
use super::wire::Notes;

/// Why a good answer is still not one to serve.
pub(super) fn of_answer(result: &GetResult, notes: &Notes) -> Option<StoreError> {
    of_headers(result.attributes.get(&Attribute::ContentEncoding).map(AsRef::as_ref), notes)
}

/// As [`of_answer`], of one with this Content-Encoding.
pub(super) fn of_headers(content_encoding: Option<&str>, notes: &Notes) -> Option<StoreError> {
    let encoding = content_encoding.or(notes.stored_encoding.as_deref()).unwrap_or_default();
    // `aws-chunked` speaks of how an upload travelled; some stores keep it.
    let encoded = |coding: &str| !matches!(coding, "" | "identity" | "aws-chunked");
    if encoding.split(',').any(|coding| encoded(coding.trim().to_ascii_lowercase().as_str())) {
        return Some(StoreError::Encoded(encoding.to_owned()));
    }
    notes.archived.then_some(StoreError::NotReady)
}

/// What an error of the client, and the code in the answer that it came from, mean.
pub(super) fn of_error(error: Error, notes: &Notes) -> StoreError {
    match notes.code.as_deref() {
        Some("InvalidObjectState" | "BlobArchived" | "BlobBeingRehydrated") => return StoreError::NotReady,
        // The bucket is missing, not the object.
        Some("NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted") => {
            return StoreError::unavailable(error);
        }
        _ => {}
    }
    match error {
        Error::NotFound { .. } => StoreError::NotFound,
        Error::Precondition { .. } | Error::NotModified { .. } => StoreError::Changed,
        // The range lay within the size that was asked about, so that size is no longer.
        _ if notes.status == Some(416) => StoreError::Changed,
        error => StoreError::unavailable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(status: u16, code: Option<&str>) -> Notes {
        Notes { status: Some(status), code: code.map(str::to_owned), ..Notes::default() }
    }

    #[test]
    fn refusals_and_their_meaning() {
        let source = || Box::new(std::io::Error::other("test")) as Box<_>;
        let missing = || Error::NotFound { path: String::new(), source: source() };
        let denied = || Error::PermissionDenied { path: String::new(), source: source() };
        let exists = || Error::AlreadyExists { path: String::new(), source: source() };
        let generic = || Error::Generic { store: "test", source: source() };
        let unmet = || Error::Precondition { path: String::new(), source: source() };
        let shown = |error| format!("{error:?}").chars().take(8).collect::<String>();
        for (error, notes, expected) in [
            (missing(), notes(404, None), "NotFound"),
            (missing(), notes(404, Some("NoSuchKey")), "NotFound"),
            (missing(), notes(404, Some("NoSuchBucket")), "Unavaila"),
            (missing(), notes(404, Some("ContainerNotFound")), "Unavaila"),
            (unmet(), notes(412, None), "Changed"),
            (generic(), notes(416, Some("InvalidRange")), "Changed"),
            (denied(), notes(403, Some("InvalidObjectState")), "NotReady"),
            (denied(), notes(403, Some("AccessDenied")), "Unavaila"),
            (exists(), notes(409, Some("BlobArchived")), "NotReady"),
            (generic(), notes(500, None), "Unavaila"),
        ] {
            assert_eq!(shown(of_error(error, &notes)), expected, "{notes:?}");
        }
    }
}
