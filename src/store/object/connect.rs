//! Connecting to a provider: from its usual environment variables, or from a prepared builder.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use super::super::Limits;
use super::Objects;
use super::listing::Lister;
use super::shortcut::Shortcut;
use super::wire::Tapped;

/// A connection that stood idle this long is not used again: S3 closes its side after 20 s.
const POOL_IDLE: Duration = Duration::from_secs(15);
/// Retries of a body's requests in all: of its first answer, and of resumed ones.
const BODY_RETRIES: usize = 10;
/// A body that broke off is taken up again at any time within this.
const BODY_RETRY_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a store cannot be set up. Nothing was asked of it yet.
pub type BuildError = object_store::Error;

impl Objects {
    /// S3, or what speaks its protocol.
    ///
    /// # Errors
    /// The builder's settings are missing, contradictory or unreadable. `client` are its client
    /// options, on which times and retries are put; root certificates among them are not read, for nothing
    /// tells them.
    pub fn s3(builder: AmazonS3Builder, client: ClientOptions, limits: Limits) -> Result<Self, BuildError> {
        let (objects, bodies) = Self::remote(limits, |retry, read_timeout| {
            let builder = builder.clone().with_http_connector(Tapped { as_stored: false });
            builder.with_client_options(bounded(client.clone(), limits, read_timeout)).with_retry(retry).build()
        })?;
        let shortcut = Some(Shortcut::new(Arc::clone(bodies.credentials())));
        Ok(Self { shortcut, ..objects })
    }

    /// Google Cloud Storage.
    ///
    /// # Errors
    /// As [`s3`](Self::s3).
    pub fn gcs(builder: GoogleCloudStorageBuilder, client: ClientOptions, limits: Limits) -> Result<Self, BuildError> {
        Self::remote(limits, |retry, read_timeout| {
            let builder = builder.clone().with_http_connector(Tapped { as_stored: true });
            builder.with_client_options(bounded(client.clone(), limits, read_timeout)).with_retry(retry).build()
        })
        .map(|(objects, _)| objects)
    }

    /// Azure Blob Storage.
    ///
    /// # Errors
    /// As [`s3`](Self::s3).
    pub fn azure(builder: MicrosoftAzureBuilder, client: ClientOptions, limits: Limits) -> Result<Self, BuildError> {
        Self::remote(limits, |retry, read_timeout| {
            let builder = builder.clone().with_http_connector(Tapped { as_stored: false });
            builder.with_client_options(bounded(client.clone(), limits, read_timeout)).with_retry(retry).build()
        })
        .map(|(objects, _)| objects)
    }

    /// `s3://bucket`, with credentials and settings from the variables `AWS_*`.
    pub(in crate::store) fn s3_from_env(url: &str, limits: Limits) -> Result<Self, BuildError> {
        let client = client_options("AWS_", |key: AmazonS3ConfigKey| match key {
            AmazonS3ConfigKey::Client(key) => Some(key),
            _ => None,
        })?;
        Self::s3(AmazonS3Builder::from_env().with_url(url), client, limits)
    }

    /// `gs://bucket`, with credentials and settings from the variables `GOOGLE_*`.
    pub(in crate::store) fn gcs_from_env(url: &str, limits: Limits) -> Result<Self, BuildError> {
        let client = client_options("GOOGLE_", |key: GoogleConfigKey| match key {
            GoogleConfigKey::Client(key) => Some(key),
            _ => None,
        })?;
        Self::gcs(GoogleCloudStorageBuilder::from_env().with_url(url), client, limits)
    }

    /// `az://container`, with credentials and settings from the variables `AZURE_*`.
    pub(in crate::store) fn azure_from_env(url: &str, limits: Limits) -> Result<Self, BuildError> {
        let client = client_options("AZURE_", |key: AzureConfigKey| match key {
            AzureConfigKey::Client(key) => Some(key),
            _ => None,
        })?;
        Self::azure(MicrosoftAzureBuilder::from_env().with_url(url), client, limits)
    }

    /// With the store that bodies come from.
    fn remote<S: ObjectStore + PaginatedListStore + Display>(
        limits: Limits,
        build: impl Fn(RetryConfig, Duration) -> Result<S, BuildError>,
    ) -> Result<(Self, Arc<S>), BuildError> {
        let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
        let quick = RetryConfig { max_retries: limits.retries, retry_timeout: limits.answer, backoff: backoff.clone() };
        let long = RetryConfig { max_retries: BODY_RETRIES, retry_timeout: BODY_RETRY_TIME, backoff };
        let answers = Arc::new(build(quick, limits.answer)?);
        // A silent connection is replaced while there is time left to go on with another.
        let bodies = Arc::new(build(long, limits.stall / 3)?);
        let lister = Lister::remote(Arc::clone(&answers) as _, limits);
        let objects = Self { answers, bodies: Arc::clone(&bodies) as _, shortcut: None, lister, limits };
        Ok((objects, bodies))
    }
}

/// Puts our bounds on a client: none on the total time, which covers a body however long it is.
fn bounded(options: ClientOptions, limits: Limits, read_timeout: Duration) -> ClientOptions {
    options
        .with_timeout_disabled()
        .with_connect_timeout(limits.connect)
        .with_read_timeout(read_timeout)
        .with_pool_idle_timeout(POOL_IDLE)
}

/// The client options among a provider's environment variables: the builders read them, too, but
/// lose them when they are given others.
fn client_options<K: FromStr>(
    prefix: &str,
    client: impl Fn(K) -> Option<ClientConfigKey>,
) -> Result<ClientOptions, BuildError> {
    std::env::vars_os().try_fold(ClientOptions::new(), |options, (name, value)| {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { return Ok(options) };
        let key = Some(name)
            .filter(|name| name.starts_with(prefix))
            .and_then(|name| client(name.to_ascii_lowercase().parse().ok()?));
        match key {
            Some(key) => with_option(options, key, value),
            None => Ok(options),
        }
    })
}

/// Sets an option. What cannot be got back would be taken for one that is not set.
fn with_option(options: ClientOptions, key: ClientConfigKey, value: &str) -> Result<ClientOptions, BuildError> {
    let options = options.with_config(key, value);
    if options.get_config_value(&key).is_none() {
        let source = format!("{}: it has characters that a header cannot have", key.as_ref()).into();
        return Err(BuildError::Generic { store: "HTTP client", source });
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_set_or_refused() {
        for (key, value, taken) in [
            (ClientConfigKey::UserAgent, "someone/1 (x)", true),
            (ClientConfigKey::UserAgent, "some\none", false),
            (ClientConfigKey::UserAgent, "caf\u{e9}", false),
            (ClientConfigKey::ProxyUrl, "", true),
            // Whether it can be read is seen when the client is made.
            (ClientConfigKey::AllowHttp, "perhaps", true),
        ] {
            match with_option(ClientOptions::new(), key, value) {
                Ok(options) => assert!(taken && options.get_config_value(&key).as_deref() == Some(value), "{value:?}"),
                Err(error) => assert!(!taken && error.to_string().contains("user_agent"), "{error}"),
            }
        }
    }

    #[test]
    fn a_clients_total_time_is_not_bounded_and_its_silence_is() {
        let bounded = bounded(ClientOptions::new(), Limits::default(), Duration::from_secs(20));
        let of = |key| bounded.get_config_value(&key);
        assert_eq!(of(ClientConfigKey::Timeout), None);
        assert_eq!(of(ClientConfigKey::ReadTimeout).as_deref(), Some("20s"));
        assert_eq!(of(ClientConfigKey::ConnectTimeout).as_deref(), Some("3s"));
        assert_eq!(of(ClientConfigKey::PoolIdleTimeout).as_deref(), Some("15s"));
    }
}
