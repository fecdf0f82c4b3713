//! `artifactd quota` as users run it: the real binary against a real service.

use std::process::Output;

use artifactd::ledger::Allowance;
use serde_json::{Value, json};
use tokio::process::Command;

use super::super::service::{Options, Service};

async fn with_a_read() -> Service {
    let options = Options { daily: Allowance::Bytes(10_000), ..Options::default() };
    let service = Service::with(&[("t1", "logs/a.txt", &[b'a'; 2000])], options).await;
    let answer = service.get("/v1/trials/t1/artifacts/logs~1a.txt/content").await;
    answer.bytes().await.expect("bytes");
    service.settled().await;
    service
}

impl Service {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_artifactd"));
        command.env_clear().env("ARTIFACTD_URL", format!("http://{}", self.address)).arg("quota").args(arguments);
        command
    }

    async fn quota(&self, key: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        done(self.command(arguments).env("ARTIFACTD_KEY", key).output().await.expect("it runs"))
    }
}

fn done(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn the_owner_sees_the_account() {
    let service = with_a_read().await;
    let key = &service.keys.read_only;
    for (arguments, code, words) in [
        (&["show"][..], 0, &["project    demo", "1.9 KiB  (2000 bytes), 20 %", "9.7 KiB  (10000 bytes)"][..]),
        (&["history", "--days", "2"], 0, &["DAY", "1.9 KiB"]),
        (&["audit"], 0, &["completed", "t1 logs/a.txt", "1 in all, charged 1.9 KiB"]),
        (&["audit", "--channel", "mcp"], 0, &["0 in all, charged 0 B"]),
        (&["audit", "--by", "key,trial"], 0, &["KEY", "TRIAL", "read-only", "t1"]),
        (&["audit", "--export", "csv"], 0, &["at,id,outcome", "\"logs/a.txt\""]),
        (&["audit", "--export", "ndjson"], 0, &["\"artifact\":\"logs/a.txt\""]),
        (&["verify"], 0, &["balanced    yes"]),
        (&["check", "8000"], 0, &["admitted"]),
        (&["check", "8001"], 1, &["refused: spent; ask again in"]),
        (&["check", "10 GiB"], 1, &["refused: too_large; waiting does not help"]),
        (&["allowance", "show", "--project", "demo"], 0, &["demo has the default allowance."]),
    ] {
        let (got, out, err) = service.quota(key, arguments).await;
        assert_eq!(got, Some(code), "{arguments:?}: {out}{err}");
        for words in words {
            assert!(out.contains(words), "{arguments:?}: {out}");
        }
    }
    let (_, out, _) = service.quota(key, &["show", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON"), service.json("/v1/quota").await);
}

#[tokio::test]
async fn an_operator_changes_it() {
    let service = with_a_read().await;
    let set = ["allowance", "set", "5 KiB", "--project", "demo", "--until", "2999-01-01T00:00:00Z", "--reason", "less"];
    let day = service.json("/v1/quota").await["day"].as_str().expect("a day").to_owned();
    let adjust =
        ["adjust", "--project", "demo", "--id", "a", "--day", &day, "--bytes", "-1 KiB", "--reason", "a crash"];
    let other = ["adjust", "--project", "demo", "--id", "a", "--day", &day, "--bytes", "1", "--reason", "a crash"];
    for (arguments, code, words) in [
        (&set[..], 0, "set by     operator"),
        (&["show", "--project", "demo"], 0, "allowance  5.0 KiB"),
        (&adjust, 0, "charged    -1.0 KiB"),
        (&adjust, 0, "charged    -1.0 KiB"),
        (&other, 2, "ADJUSTMENT_CONFLICT"),
        (&["audit", "--project", "demo", "--outcome", "adjusted"], 0, "a crash"),
        (&["allowance", "clear", "--project", "demo"], 0, "The default allowance is in force."),
        (&["allowance", "clear"], 2, "--project"),
        (&["show"], 2, "PROJECT_REQUIRED"),
    ] {
        let (got, out, err) = service.quota(&service.keys.operator, arguments).await;
        assert_eq!(got, Some(code), "{arguments:?}: {out}{err}");
        assert!(out.contains(words) || err.contains(words), "{arguments:?}: {out}{err}");
    }
    assert_eq!(service.json("/v1/quota").await["used_bytes"], 2000 - 1024);
}

#[tokio::test]
async fn books_that_do_not_balance_are_exit_code_1_and_no_answer_is_2() {
    let mut service = with_a_read().await;
    let books = rusqlite::Connection::open(service.scratch.path().join("ledger.db")).expect("the books");
    books.execute("UPDATE account SET used = used + 1", []).expect("spoilt");
    let (code, out, err) = service.quota(&service.keys.read_only, &["verify"]).await;
    assert!(code == Some(1) && out.contains("balanced    NO") && err.contains("do not balance"), "{code:?} {out}{err}");

    for key in ["epk_wrong", "a\nb"] {
        assert_eq!(service.quota(key, &["verify"]).await.0, Some(2));
    }
    let unset = done(service.command(&["verify"]).output().await.expect("it runs"));
    assert!(unset.0 == Some(2) && unset.2.contains("ARTIFACTD_KEY"), "{unset:?}");
    let file = service.scratch.path().join("key");
    std::fs::write(&file, format!("{}\n", service.keys.read_only)).expect("written");
    let by_file = service.command(&["history", "--json", "--key-file"]).arg(&file).output().await.expect("it runs");
    let by_file = done(by_file);
    assert_eq!(by_file.0, Some(0), "{by_file:?}");
    assert_eq!(serde_json::from_str::<Value>(&by_file.1).expect("JSON")["zone"], json!("UTC"));
    // Options that mean nothing are no answer either; and then there is nobody to ask.
    assert_eq!(service.quota("k", &["check", "many"]).await.0, Some(2));
    service.stop().await;
    let (code, _, err) = service.quota("epk_any", &["verify"]).await;
    assert!(code == Some(2) && !err.is_empty(), "{code:?} {err}");
}
