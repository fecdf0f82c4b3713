//! From the store's URL to the store.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use percent_encoding::percent_decode_str;
use url::Url;

use super::Store;
use super::local::Local;
use super::object::{BuildError, Objects};

/// How long stores are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until a connection stands. Default 3 s.
    pub connect: Duration,
    /// Until an answer has come, or the head of one with a body, retries included. Default 8 s.
    pub answer: Duration,
    /// How often an answer without a body is asked for again. Default 3.
    pub retries: usize,
    /// Between two chunks of a body, retries included. Default 60 s.
    pub stall: Duration,
    /// The least rate of a body, looked at once the store was waited for longer than `stall` in all.
    /// Default 1024 bytes a second.
    pub min_bytes_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            answer: Duration::from_secs(8),
            retries: 3,
            stall: Duration::from_secs(60),
            min_bytes_per_second: 1024,
        }
    }
}

/// A store and the prefix below which its keys are meant to lie, without slashes at its ends.
#[derive(Clone)]
pub struct Located {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The path of an object store's URL; empty for a directory, whose root is the path.
    pub prefix: String,
}

/// Why a URL leads to no store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is none of the kinds of URL that [`open`] knows.
    #[error("the store URL {0}")]
    Url(&'static str),
    /// The directory cannot be opened.
    #[error("the store's directory {path}: {source}; make it and let this user read it, or name another", path = .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The provider's settings do not suffice.
    #[error("the object store's settings: {0}")]
    Settings(#[from] BuildError),
}

/// Opens the store at `url`:
///
/// - `file:///dir`: a directory of this machine;
/// - `s3://bucket/prefix`: S3 and what speaks its protocol (`AWS_ACCESS_KEY_ID`,
///   `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` …);
/// - `gs://bucket/prefix`: Google Cloud Storage (`GOOGLE_SERVICE_ACCOUNT` …);
/// - `az://container/prefix`: Azure (`AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`,
///   `AZURE_STORAGE_USE_EMULATOR` …);
/// - `memory:///prefix`: an empty store that is gone with the process.
///
/// Directories are opened here; of object stores nothing is asked yet.
///
/// # Errors
/// [`OpenError`].
pub fn open(url: &str, limits: Limits) -> Result<Located, OpenError> {
    let url = Url::parse(url).map_err(|_| OpenError::Url("is not a URL, such as s3://bucket/prefix or file:///dir"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(OpenError::Url("has no query and no fragment; write '?' and '#' as %3F and %23"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
        return Err(OpenError::Url("has no user, password or port; they belong in the environment"));
    }
    let path = percent_decode_str(url.path());
    if url.scheme() == "file" {
        if url.host_str().is_some_and(|host| !host.is_empty()) {
            return Err(OpenError::Url("of a directory has no host: file:///dir"));
        }
        let bytes: Vec<u8> = path.collect();
        return directory(Path::new(OsStr::from_bytes(&bytes)));
    }
    let prefix =
        path.decode_utf8().map_err(|_| OpenError::Url("has a path that is UTF-8"))?.trim_matches('/').to_owned();
    let bucket = match (url.scheme(), url.host_str()) {
        ("memory", None | Some("")) => {
            return Ok(Located { store: Arc::new(Objects::memory(Arc::new(InMemory::new()))), prefix });
        }
        ("memory", Some(_)) => return Err(OpenError::Url("in memory has no host: memory:///prefix")),
        (scheme, Some(bucket)) if !bucket.is_empty() => format!("{scheme}://{bucket}"),
        _ => return Err(OpenError::Url("names a bucket: s3://bucket/prefix")),
    };
    let store = match url.scheme() {
        "s3" => Objects::s3_from_env(&bucket, limits)?,
        "gs" => Objects::gcs_from_env(&bucket, limits)?,
        "az" => Objects::azure_from_env(&bucket, limits)?,
        _ => return Err(OpenError::Url("begins with file, s3, gs, az or memory")),
    };
    Ok(Located { store: Arc::new(store), prefix })
}

/// Opens a directory of this machine.
///
/// # Errors
/// [`OpenError::Directory`].
pub fn directory(path: &Path) -> Result<Located, OpenError> {
    match Local::open(path) {
        Ok(store) => Ok(Located { store: Arc::new(store), prefix: String::new() }),
        Err(source) => Err(OpenError::Directory { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_lead_to_a_store() {
        for (url, prefix) in [
            ("memory:///", ""),
            ("memory://", ""),
            ("memory:///a/b/", "a/b"),
            ("memory:///100%25/a%20b", "100%/a b"),
            ("file:///tmp", ""),
            ("s3://bucket/some/prefix", "some/prefix"),
            ("s3://bucket", ""),
        ] {
            assert_eq!(
                open(url, Limits::default()).map(|located| located.prefix).map_err(|e| e.to_string()),
                Ok(prefix.to_owned()),
                "{url}"
            );
        }
    }

    #[test]
    fn urls_that_do_not() {
        for url in [
            "",
            "bucket/prefix",
            "/dir",
            "file://host/dir",
            "file:///no/such/directory",
            "file:///etc/passwd",
            "ftp://host/dir",
            "s3:///prefix",
            "s3://key:secret@bucket/prefix",
            "s3://bucket/a?b",
            "memory://host/a",
            "az://container",
        ] {
            assert!(open(url, Limits::default()).is_err(), "{url:?}");
        }
    }
}
