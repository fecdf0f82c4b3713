use super::*;
use crate::bytesize::ByteSize;
use crate::ledger::Allowance;

const LEAST: &str = r#"
    [store]
    url = "file:///data"
    [ledger]
    url = "embedded:///ledger.db"
    [access]
    keys_file = "keys.toml"
"#;

fn load(toml: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let file = tempfile::NamedTempFile::new().expect("scratch file");
    std::fs::write(file.path(), toml).expect("written");
    Config::load(Some(file.path()), pairs(environment))
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn defaults_are_what_the_documentation_says() {
    let config = load(LEAST, &[]).expect("valid");
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.quota.daily_bytes, Allowance::Bytes(50 << 30));
    assert_eq!(config.warn_at().percent(), 80);
    assert_eq!(config.policy().expect("valid").rules, crate::ledger::Rules::default());
    assert_eq!(config.caps(), Caps::default());
    assert_eq!(config.timing(), Timing::default());
    let redis = crate::ledger::redis::Options::default();
    assert_eq!(config.ledger.namespace, redis.namespace);
    assert_eq!(u128::from(config.ledger.timeout_ms), redis.response.as_millis());
    assert_eq!(config.ledger.in_flight, redis.in_flight);
    assert!(config.layout("").is_ok());
}

/// `UPDATE_GOLDEN=1 cargo test --lib` writes it.
#[test]
fn the_reference_is_what_is_printed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
    let printed = reference::markdown();
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says whether files are written")]
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &printed).expect("written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("docs/configuration.md"), printed);
}

#[test]
fn every_setting_is_documented_and_its_variable_sets_it() {
    for setting in SECTIONS.iter().flat_map(|section| section.settings) {
        let name = setting.name();
        assert!(!setting.about.concat().trim().is_empty(), "{name}");
        assert!(setting.variable().ends_with(&setting.key.to_uppercase()), "{name}");
        // What cannot be read is refused by this name: the variable leads here.
        if matches!(setting.form, setting::Form::Number { .. } | setting::Form::Bytes { .. } | setting::Form::Flag) {
            let error = load(LEAST, &[(&setting.variable(), "nonsense")]).expect_err(&name).to_string();
            assert!(error.contains(&format!("{name} is \"nonsense\"; it is ")), "{error}");
        }
    }
}

#[test]
fn the_environment_comes_after_the_file_and_flags_after_both() {
    let environment = [
        ("ARTIFACTD_LISTEN", "localhost:9"),
        ("ARTIFACTD_QUOTA__DAILY_BYTES", "1 MiB"),
        ("ARTIFACTD_LEDGER__LEASE_SECONDS", "7"),
        ("ARTIFACTD_LEDGER__REQUIRE_DURABLE", "true"),
        ("ARTIFACTD_QUOTA__RETENTION_DAYS", "7"),
        ("ARTIFACTD_QUOTA__AUDIT_ENTRIES", "1000"),
        ("ARTIFACTD_HTTP__ALLOWED_HOSTS", "[\"a.example\"]"),
        ("ARTIFACTD_HTTP__ALLOWED_ORIGINS", "https://a.example, https://b.example"),
        ("ARTIFACTD_LINKS__KEYS", "[{ id = \"k\", secret_file = \"f\" }]"),
        ("ARTIFACTD_LOG__FORMAT", "json"),
        ("ARTIFACTD_LIMITS__STREAMS", "5"),
        // A text is taken as it is, though it looks like something else.
        ("ARTIFACTD_STORE__SINGLE_PROJECT", "123"),
        ("ARTIFACTD_LEDGER__NAMESPACE", "true"),
        // What Kubernetes says of a service of this name.
        ("ARTIFACTD_PORT", "tcp://10.0.0.1:80"),
        ("ARTIFACTD_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("ARTIFACTD_SERVICE_HOST", "10.0.0.1"),
        ("ARTIFACTD_SERVICE_PORT_HTTP", "80"),
        ("OTHER", "x"),
    ];
    let file = tempfile::NamedTempFile::new().expect("scratch file");
    std::fs::write(file.path(), LEAST).expect("written");
    let flags = pairs(&[("limits.streams", "6")]);
    let sources = Sources::new(Some(file.path().to_owned()), pairs(&environment), flags);
    let settings = sources.read().expect("valid");
    let config = &settings.config;
    assert_eq!(config.listen.to_string(), "localhost:9");
    assert_eq!(config.quota.daily_bytes, Allowance::Bytes(1 << 20));
    assert_eq!(config.ledger.lease_seconds, 7);
    let rules = config.policy().expect("valid").rules;
    assert_eq!((rules.retention_days, rules.max_entries), (7, 1000));
    assert!(config.ledger.require_durable);
    assert_eq!(config.http.allowed_hosts, ["a.example"]);
    assert_eq!(config.http.allowed_origins, ["https://a.example", "https://b.example"]);
    assert_eq!(config.links.keys[0].id, "k");
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.limits.streams, 6);
    assert_eq!(config.store.single_project.as_ref().map(crate::artifact::ProjectId::as_str), Some("123"));
    assert_eq!(config.ledger.namespace, "true");

    std::fs::write(file.path(), format!("{LEAST}\n[limits]\nhead_seconds = 5\nstreams = 9\n")).expect("written");
    let changed = sources.read().expect("valid");
    let names: Vec<_> = settings.differences(&changed).into_iter().map(setting::Setting::name).collect();
    assert_eq!(names, ["limits.head_seconds"], "streams is set by the flag");
}

/// Every wrong setting is refused by its name, with what to write instead, and without secrets.
#[test]
fn what_is_wrong_is_named() {
    let with = |more: &str| format!("{LEAST}\n{more}");
    let instead = |line: &str, other: &str| LEAST.replace(line, other);
    let file: [(String, &[&str]); 50] = [
        (String::new(), &["store.url is missing", "ARTIFACTD_STORE__URL"]),
        (
            instead("keys_file = \"keys.toml\"", ""),
            &["access.keys_file is missing", "ARTIFACTD_ACCESS__KEYS_FILE", "or set access.upstream"],
        ),
        (
            instead("keys_file", "upstream = \"https://platform.example\"\n    keys_file"),
            &["access.keys_file and access.upstream are both set", "take one of them out"],
        ),
        (
            instead("keys_file = \"keys.toml\"", "upstream = \"platform.example\""),
            &["access.upstream is \"platform.example\"", "https://platform.example.com"],
        ),
        (with("upstream_grace_seconds = 9999"), &["access.upstream_grace_seconds is 9999", "seconds from 0 to 3600"]),
        (with("[http]\ntrusted_proxies = [\"10.0.0.1/8\"]"), &["http.trusted_proxies has", "10.0.0.0/8"]),
        (with("[http]\ntrusted_proxies = [\"proxy.internal\"]"), &["http.trusted_proxies has", "10.0.0.0/8"]),
        (instead("url = \"embedded:///ledger.db\"", ""), &["ledger.url is missing", "ARTIFACTD_LEDGER__URL"]),
        (instead("url = \"file:///data\"", "url = \"\""), &["store.url is empty", "s3://bucket/prefix"]),
        (instead("url = \"file:///data\"", "url = 3"), &["store.url is 3", "s3://bucket/prefix"]),
        (instead("keys_file = \"keys.toml\"", "keys_file = [\"a\"]"), &["access.keys_file is", "the path of a file"]),
        ("listen = ".to_owned(), &["line 1 is no TOML", "quoted"]),
        (with("[quota]\ndaily_bytes = \"1 GB\"\ndaily_bytes = 2"), &["line 11 is no TOML", "duplicate"]),
        (format!("listen = \"8080\"\n{LEAST}"), &["listen is \"8080\"", "host:port"]),
        (format!("listen = \"localhost\"\n{LEAST}"), &["listen is \"localhost\"", "localhost:8080"]),
        (format!("listen = 8080\n{LEAST}"), &["listen is 8080", "host:port"]),
        (
            format!("store = \"file:///data\"\n{}", instead("[store]\n    url = \"file:///data\"", "")),
            &["store is a section", "[store]"],
        ),
        (format!("public_url = \"files.example.com\"\n{LEAST}"), &["public_url is \"files.example.com\"", "https://"]),
        (
            format!("public_url = \"https://u:hunter2@files.example.com\"\n{LEAST}"),
            &["public_url is something with an @", "https://artifacts.example.com"],
        ),
        (format!("public_url = \"ftp://files.example.com\"\n{LEAST}"), &["public_url is", "https://"]),
        (instead("[ledger]", "layout = \"{trial}/\"\n[ledger]"), &["store.layout", "single_project"]),
        (instead("[ledger]", "layout = \"{projekt}/{trial}/\"\n[ledger]"), &["store.layout", "{project} and {trial}"]),
        (instead("[ledger]", "single_project = \"a/b\"\n[ledger]"), &["store.single_project is \"a/b\"", "project id"]),
        (
            instead("[access]", "url_file = \"f\"\n[access]"),
            &["ledger.url and ledger.url_file are both set", "take one of them out"],
        ),
        (
            instead("url = \"embedded:///ledger.db\"", "url_file = \"/nowhere/url\""),
            &["ledger.url_file /nowhere/url", "holds the URL alone"],
        ),
        (
            instead("url = \"embedded:///ledger.db\"", "url = [\"redis://:hunter2@h\"]"),
            &["ledger.url is something else", "redis://host:6379"],
        ),
        (instead("[access]", "namespace = \"a b\"\n[access]"), &["ledger.namespace is \"a b\"", "1 to 64"]),
        (instead("[access]", "timeout_ms = 1\n[access]"), &["ledger.timeout_ms is 1", "milliseconds from 50 to 60000"]),
        (instead("[access]", "lease_seconds = 0\n[access]"), &["ledger.lease_seconds is 0", "seconds from 1 to 3600"]),
        (
            instead("[access]", "lease_seconds = \"30s\"\n[access]"),
            &["ledger.lease_seconds is \"30s\"", "a whole number of seconds"],
        ),
        (instead("[access]", "credit = 1\n[access]"), &["ledger.credit is 1", "from 64 KiB to 1 GiB"]),
        (
            instead("[access]", "require_durable = \"yes\"\n[access]"),
            &["ledger.require_durable is \"yes\"", "true or false"],
        ),
        (with("[quota]\ndaily = 3"), &["quota.daily is no setting", "`artifactd config docs`"]),
        (with("[quota]\ndaily_byte = 3"), &["quota.daily_byte is no setting", "did you mean quota.daily_bytes?"]),
        (with("[quota]\ndaily_bytes = \"lots\""), &["quota.daily_bytes is \"lots\"", "unlimited"]),
        (with("[quota]\ndaily_bytes = -1"), &["quota.daily_bytes is -1", "unlimited"]),
        (with("[quota]\nreset_zone = \"Mars/Olympus\""), &["quota.reset_zone is \"Mars/Olympus\"", "Europe/Berlin"]),
        (with("[quota]\nwarn_percent = 0"), &["quota.warn_percent is 0", "percent from 1 to 100"]),
        (with("[limits]\nconnections = 0"), &["limits.connections is 0", "from 1 to 1000000"]),
        (with("[limits]\nhead_bytes = \"1 MB\"\nstreams = -4"), &["limits.streams is -4", "from 1 to 1000000"]),
        (with("[limits]\nhead_bytes = \"2 MiB\""), &["limits.head_bytes is \"2 MiB\"", "from 8 KiB to 1 MiB"]),
        (with("[limit]\nstreams = 4"), &["limit is no setting", "`artifactd config docs`"]),
        (with("[quota]\nstreams = 4"), &["quota.streams is no setting", "did you mean limits.streams?"]),
        (with("[http]\nallowed_hosts = [\"https://a.example\"]"), &["http.allowed_hosts has", "names with a port"]),
        (with("[http]\nallowed_hosts = \"a.example\""), &["http.allowed_hosts is \"a.example\"", "a list of names"]),
        (with("[http]\nallowed_origins = [\"app.example\"]"), &["http.allowed_origins has", "https://app.example.com"]),
        (
            with("[http]\nmetrics_listen = \"127.0.0.1:8080\""),
            &["http.metrics_listen is the address of listen", "another port"],
        ),
        (with("[links]\nkeys = [\"secret\"]"), &["links.keys is something else", "secret_file"]),
        (with("[log]\nfilter = \"inof\""), &["log.filter", "TARGET=LEVEL"]),
        (with("[traces]\nsample_percent = 101"), &["traces.sample_percent is 101", "percent from 0 to 100"]),
    ];
    let variables: [(&str, &str, &[&str]); 6] = [
        ("ARTIFACTD_LEDGER__CREDIT", "1", &["ARTIFACTD_LEDGER__CREDIT: ledger.credit is \"1\"", "from 64 KiB"]),
        ("ARTIFACTD_NOPE", "1", &["ARTIFACTD_NOPE: nope is no setting", "`artifactd config docs`"]),
        ("ARTIFACTD_LISTEN__X", "1", &["listen.x is no setting", "did you mean listen?"]),
        ("ARTIFACTD_LIMITS__STREAMS", "many", &["limits.streams is \"many\"", "a whole number from 1"]),
        ("ARTIFACTD_LEDGER__URL", "", &["ledger.url is empty", "redis://host:6379"]),
        ("ARTIFACTD_LINKS__KEYS", "hunter2", &["links.keys is something else", "secret_file"]),
    ];
    let refusals = file.iter().map(|(toml, words)| (toml.clone(), vec![], *words));
    let refusals =
        refusals.chain(variables.iter().map(|(name, value, words)| (LEAST.to_owned(), vec![(*name, *value)], *words)));
    let mut unclear = Vec::new();
    for (toml, environment, words) in refusals {
        let error = load(&toml, &environment).map_or_else(|error| error.to_string(), |_| "taken".to_owned());
        // The setting, and at least one word of what to do.
        assert!(words.len() >= 2, "{words:?}");
        let twice = error.contains("store.url is 3") && error.contains("missing");
        if twice || error.contains("hunter2") || !words.iter().all(|word| error.contains(word)) {
            unclear.push(format!("{words:?}: {error}"));
        }
    }
    assert!(unclear.is_empty(), "{unclear:#?}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let error = load("[quota]\ndaily_bytes = 0.5\n[limits]\nstreams = 0\n", &[("ARTIFACTD_X", "1")]);
    let error = error.expect_err("wrong").to_string();
    assert_eq!(error.lines().count(), 4, "{error}");
}

#[test]
fn a_broken_line_is_not_shown() {
    let error = load("[ledger]\nurl = \"redis://:hunter2@host\" x", &[]).expect_err("wrong").to_string();
    assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
}

#[test]
fn names_that_clients_send_are_taken() {
    let config = format!(
        "public_url = \"https://files.example.com/base/\"\n{LEAST}\n[http]\n\
         allowed_hosts = [\"A.example\", \"a.example:8443\", \"10.0.0.1:80\", \"[::1]:1\", \"a_b\"]\n\
         allowed_origins = [\"https://a.example\", \"http://b.example:3000/\"]\n\
         [log]\nfilter = \"warn,artifactd=debug,hyper=off\""
    );
    load(&config, &[]).expect("valid");
    for (section, value) in [
        ("allowed_hosts", "a.example:x"),
        ("allowed_hosts", "*"),
        ("allowed_hosts", ""),
        ("allowed_origins", "https://a.example/x"),
        ("allowed_origins", "*"),
    ] {
        let error = load(&format!("{LEAST}\n[http]\n{section} = [\"{value}\"]"), &[]).expect_err(value).to_string();
        assert!(error.contains(&format!("http.{section} has \"{value}\"")), "{error}");
    }
}

#[test]
fn a_start_without_settings_says_where_they_come_from() {
    let error = Config::load(None, []).expect_err("nothing").to_string();
    assert!(error.contains("no settings file") && error.contains("store.url"), "{error}");
}

#[test]
fn the_ledgers_url_comes_from_a_file_and_is_not_shown() {
    let file = tempfile::NamedTempFile::new().expect("scratch file");
    std::fs::write(file.path(), "redis://:hunter2@host\n").expect("written");
    let line = format!("url_file = \"{}\"", file.path().display());
    let config = load(&LEAST.replace("url = \"embedded:///ledger.db\"", &line), &[]).expect("valid");
    assert_eq!(config.ledger.url(), "redis://:hunter2@host");
    assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
    std::fs::write(file.path(), "\n").expect("written");
    let error = load(&LEAST.replace("url = \"embedded:///ledger.db\"", &line), &[]).expect_err("empty");
    assert!(error.to_string().contains("holds no URL"), "{error}");
}

#[test]
fn amounts_are_texts_or_numbers() {
    let config = load(&format!("{LEAST}\n[limits]\nhead_bytes = 16384\nleast_rate = \"1 KiB\""), &[]).expect("valid");
    assert_eq!(config.limits.head_bytes, ByteSize::new(16 << 10).expect("small"));
    assert_eq!(config.limits.least_rate.bytes(), 1 << 10);
}

#[test]
fn signing_keys_come_from_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let secret = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
        format!("{{ id = \"{name}\", secret_file = \"{}\" }}", dir.path().join(name).display())
    };
    let (new, old) = (secret("new", &"n".repeat(32)), secret("old", &format!("{}\r\n", "o".repeat(32))));
    let short = secret("short", &format!("{}\n", "s".repeat(31)));
    let missing = "{ id = \"m\", secret_file = \"/nowhere/m\" }";
    let keys = |keys: &str| {
        let config = load(&format!("{LEAST}\n[links]\nkeys = [{keys}]"), &[]).expect("settings");
        config.signing_keys().map(|keys| format!("{keys:?}")).map_err(|error| error.to_string())
    };
    assert_eq!(keys(""), Ok("None".into()));
    assert_eq!(keys(&format!("{new}, {old}")), Ok("Some([\"new\", \"old\"])".into()));
    assert!(keys(&short).expect_err("refused").contains("links.keys: the secret of the signing key short has"));
    assert!(keys(missing).expect_err("refused").contains("/nowhere/m"));
}

#[test]
fn the_layout_follows_single_project() {
    let alone = LEAST.replace("[ledger]", "single_project = \"p\"\n[ledger]");
    assert!(load(&alone, &[]).expect("valid").layout("").is_ok());
}
