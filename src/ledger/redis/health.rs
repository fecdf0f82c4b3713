//! What a Redis must be for the promise of a ledger, read from its `INFO`.

use redis::{ErrorKind, RedisError, RedisResult};

/// Reads one field of an `INFO` text.
fn field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Why a server cannot be used at all.
fn unusable(info: &str) -> Option<&'static str> {
    let major = field(info, "redis_version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if major.is_some_and(|major| major < 7) {
        return Some("it is older than Redis 7.0");
    }
    (field(info, "role") == Some("slave")).then_some("it is a replica")
}

/// What a server may lose, and by which setting.
fn weaknesses(info: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if field(info, "aof_enabled") == Some("0") {
        found.push("appendonly is off: a restart forgets charges; set appendonly yes");
    }
    if field(info, "aof_last_write_status").is_some_and(|status| status != "ok") {
        found.push("its append-only file cannot be written: see its log and its disk");
    }
    match field(info, "maxmemory_policy") {
        None | Some("noeviction") => {}
        Some(_) => {
            found.push("maxmemory-policy is not noeviction: charges may be evicted; set maxmemory-policy noeviction")
        }
    }
    found
}

/// What is worth a second thought, though it is no fault of the server's.
fn advice(info: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    // The field is there only where a number is set.
    let replicas = field(info, "connected_slaves").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    if replicas > 0 && field(info, "min_slaves_good_slaves").is_none() {
        found.push(
            "min-replicas-to-write is not set: a master that lost its replicas takes charges that a failover \
             forgets; set min-replicas-to-write 1",
        );
    }
    found
}

/// Everything that can be said against a usable server.
pub(super) fn findings(info: &str) -> Vec<&'static str> {
    unusable(info).into_iter().chain(weaknesses(info)).chain(advice(info)).collect()
}

/// Refuses a server that cannot be used, or, if `require_durable`, one that may lose charges; warns
/// of the latter otherwise.
pub(super) fn check(server: &str, info: &str, require_durable: bool) -> RedisResult<()> {
    let refuse = |why: &str| {
        RedisError::from((
            ErrorKind::InvalidClientConfig,
            "this Redis cannot hold the ledger",
            format!("{server}: {why}"),
        ))
    };
    if let Some(why) = unusable(info) {
        return Err(refuse(why));
    }
    for weakness in weaknesses(info) {
        if require_durable {
            return Err(refuse(weakness));
        }
        tracing::warn!(server, weakness, "this Redis may lose what the ledger was told");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
                        aof_last_write_status:ok\r\nrole:master\r\n";

    #[test]
    fn replicas_that_nobody_waits_for_are_named() {
        let lone = format!("{GOOD}connected_slaves:0\r\n");
        let pair = format!("{GOOD}connected_slaves:1\r\n");
        let careful = format!("{pair}min_slaves_good_slaves:1\r\n");
        assert!(findings(&lone).is_empty() && findings(&careful).is_empty());
        assert!(findings(&pair)[0].contains("min-replicas-to-write"));
        assert_eq!(findings(&GOOD.replace("aof_enabled:1", "aof_enabled:0")).len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(unusable(GOOD).is_none() && weaknesses(GOOD).is_empty());
        for (was, is, words) in [("7.0.15", "6.2.1", "older"), ("role:master", "role:slave", "replica")] {
            let info = GOOD.replace(was, is);
            assert!(check("s", &info, false).unwrap_err().to_string().contains(words), "{words}");
        }
        for (was, is, words) in [
            ("aof_enabled:1", "aof_enabled:0", "appendonly"),
            ("status:ok", "status:err", "file"),
            ("noeviction", "allkeys-lru", "evicted"),
        ] {
            let info = GOOD.replace(was, is);
            assert!(check("s", &info, true).unwrap_err().to_string().contains(words), "{words}");
            assert!(check("s", &info, false).is_ok(), "{words}");
        }
    }
}
