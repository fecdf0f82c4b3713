//! Names and addresses that could never work, or never match what a client sends.

use url::Url;

use super::{Address, Config, ConfigError, invalid};
use crate::request::forwarded::Network;

/// Judges the names in `config`.
///
/// # Errors
/// [`ConfigError`] names the setting.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let fixed = |address: &Address| !address.to_string().ends_with(":0");
    if config.http.metrics_listen.as_ref().is_some_and(|address| fixed(address) && *address == config.listen) {
        return Err(invalid("http.metrics_listen is the address of listen; give it another port, or leave it out"));
    }
    for host in &config.http.allowed_hosts {
        if !is_host(host) {
            return Err(invalid(format!(
                "http.allowed_hosts has {host:?}; it holds names, or names with a port, such as files.example.com"
            )));
        }
    }
    for origin in &config.http.allowed_origins {
        let bare = Url::parse(origin).is_ok_and(|url| url.path() == "/");
        if !is_web(origin) || !bare || origin.contains('*') {
            return Err(invalid(format!(
                "http.allowed_origins has {origin:?}; it holds origins, such as https://app.example.com"
            )));
        }
    }
    for network in &config.http.trusted_proxies {
        if let Err(rule) = network.parse::<Network>() {
            return Err(invalid(format!("http.trusted_proxies has {network:?}; it holds {rule}")));
        }
    }
    config.access.source().map(drop)
}

/// A URL of HTTP with nothing behind its path and no password in it.
pub(super) fn is_web(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

fn is_host(host: &str) -> bool {
    let parsed = Url::parse(&format!("http://{host}/")).ok();
    let said = parsed.as_ref().and_then(Url::host_str).unwrap_or_default();
    // What follows the name can only be a port.
    let rest = host.to_ascii_lowercase().strip_prefix(said).map(str::to_owned);
    let port = |rest: &String| rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    !said.is_empty() && rest.is_some_and(|rest| rest.is_empty() || port(&rest)) && !host.contains('*')
}
