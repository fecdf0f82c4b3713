use super::*;

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
    let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(Some(file.path()), pairs)
}

#[test]
fn defaults_are_what_the_documentation_says() {
    let config = load(LEAST, &[]).expect("valid");
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.quota.daily_bytes, Allowance::Bytes(50 << 30));
    assert_eq!(config.warn_at().percent(), 80);
    assert_eq!(config.policy().expect("valid").rules.lease_ms, 30_000);
    assert_eq!(config.policy().expect("valid").rules.credit_bytes, 8 << 20);
    assert!(config.layout("").is_ok());
}

#[test]
fn the_environment_comes_after_the_file() {
    let config = load(
        LEAST,
        &[
            ("ARTIFACTD_LISTEN", "127.0.0.1:9"),
            ("ARTIFACTD_QUOTA__DAILY_BYTES", "1 MiB"),
            ("ARTIFACTD_LEDGER__LEASE_SECONDS", "7"),
            ("ARTIFACTD_HTTP__ALLOWED_HOSTS", "[\"a.example\"]"),
            ("ARTIFACTD_LOG__FORMAT", "json"),
            ("OTHER", "x"),
        ],
    )
    .expect("valid");
    assert_eq!(config.listen.port(), 9);
    assert_eq!(config.quota.daily_bytes, Allowance::Bytes(1 << 20));
    assert_eq!(config.ledger.lease_seconds, 7);
    assert_eq!(config.http.allowed_hosts, ["a.example"]);
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn what_is_wrong_is_named() {
    for (toml, environment, words) in [
        ("", &[][..], "store"),
        (&format!("{LEAST}\n[quota]\ndaily = 3"), &[], "daily"),
        (&format!("{LEAST}\n[quota]\ndaily_bytes = \"lots\""), &[], "amount of bytes"),
        (&format!("{LEAST}\n[quota]\nwarn_percent = 0"), &[], "quota.warn_percent is 0; it is from 1 to 100"),
        (&format!("{LEAST}\n[quota]\nwarn_percent = 101"), &[], "quota.warn_percent is 101"),
        (&format!("{LEAST}\n[quota]\nreset_zone = \"Mars/Olympus\""), &[], "reset_zone"),
        (&format!("{LEAST}\n[limits]\nconnections = 0"), &[], "limits.connections is 0"),
        (LEAST, &[("ARTIFACTD_LEDGER__CREDIT", "1")], "ledger.credit is 1"),
        (LEAST, &[("ARTIFACTD_NOPE", "1")], "nope"),
        (LEAST, &[("ARTIFACTD_LISTEN__X", "1")], "expected"),
        ("listen = ", &[], "TOML"),
        (&format!("public_url = \"mailto:a@b\"\n{LEAST}"), &[], "public_url is mailto:a@b"),
        (&format!("{LEAST}\n[http]\nallowed_hosts = [\"https://a.example\"]"), &[], "allowed_hosts has"),
        (&format!("{LEAST}\n[http]\nallowed_hosts = [\"a.example:x\"]"), &[], "allowed_hosts has"),
        (&format!("{LEAST}\n[http]\nallowed_hosts = [\"*\"]"), &[], "allowed_hosts has"),
        (&format!("{LEAST}\n[http]\nallowed_hosts = [\"\"]"), &[], "allowed_hosts has"),
        (&format!("{LEAST}\n[http]\nallowed_origins = [\"app.example\"]"), &[], "allowed_origins has"),
        (&format!("{LEAST}\n[http]\nallowed_origins = [\"https://a.example/x\"]"), &[], "allowed_origins has"),
        (&format!("{LEAST}\n[http]\nallowed_origins = [\"*\"]"), &[], "allowed_origins has"),
        (&format!("{LEAST}\n[log]\nfilter = \"a=b=c\""), &[], "log.filter"),
        (&format!("{LEAST}\n[log]\nfilter = \"inof\""), &[], "log.filter"),
    ] {
        let error = load(toml, environment).expect_err(words).to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
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
}

#[test]
fn a_start_without_settings_says_where_they_come_from() {
    let error = Config::load(None, []).expect_err("nothing").to_string();
    assert!(error.contains("no settings file") && error.contains("store"), "{error}");
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
    let config = load(&LEAST.replace("[ledger]", "layout = \"{trial}/\"\n[ledger]"), &[]).expect("valid");
    assert!(config.layout("").expect_err("refused").to_string().contains("store.layout"));
}
