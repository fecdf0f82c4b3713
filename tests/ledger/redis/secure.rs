//! TLS, and users that may do no more than a ledger needs.

use std::path::Path;
use std::process::Command;

use artifactd::ledger::redis::{Options, Redis};
use artifactd::ledger::{Admission, Ledger};

use crate::redis::{Read, open, options};
use crate::servers::Server;
use crate::servers::redis::server;
use crate::support::{policy, project};

/// What docs/ledger.md tells operators to allow.
const USER: [&str; 14] = [
    "--user",
    "ledger",
    "on",
    ">s3cret@/",
    "~artifactd:*",
    "~t*",
    "resetchannels",
    "-@all",
    "+@read",
    "+@write",
    "+@scripting",
    "+info",
    "+time",
    "+@connection",
];

fn certificate(dir: &Path) -> Vec<u8> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::read(dir.join("cert.pem")).unwrap()
}

#[tokio::test]
async fn a_restricted_user_over_tls() {
    let pki = tempfile::tempdir().unwrap();
    let root = certificate(pki.path());
    let file = |name: &str| pki.path().join(name).display().to_string();
    let server = Server::start(|port, dir| {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--tls-port", &port.to_string(), "--tls-auth-clients", "no", "--dir"]).arg(dir);
        command.args(["--tls-cert-file", &file("cert.pem"), "--tls-key-file", &file("key.pem")]);
        command.args(["--bind", "127.0.0.1", "--appendonly", "yes", "--save", ""]).args(USER);
        command
    });
    let port = server.address.port();
    let options = Options { root_certificates: Some(root), require_durable: true, ..options() };
    let ledger = open(&format!("rediss://ledger:s3cret%40%2F@localhost:{port}"), options.clone());
    let admitted = Read::new().reserve(&ledger).await.unwrap();
    assert!(matches!(admitted, Admission::Reserved(..)));
    ledger.sweep().await.unwrap();
    assert!(ledger.verify(&project("p"), None).await.unwrap().reply.balanced());

    for (url, options, words) in [
        (format!("rediss://ledger:wrong@localhost:{port}"), options.clone(), "WRONGPASS"),
        (
            format!("rediss://ledger:s3cret%40%2F@localhost:{port}"),
            Options { root_certificates: None, ..options },
            "certificate",
        ),
    ] {
        let error = Redis::open(&url, policy(1), options).unwrap().connect().await.unwrap_err();
        let said = format!("{error:?}").to_lowercase();
        assert!(said.contains(&words.to_lowercase()) || said.contains("password"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[tokio::test]
async fn a_forgetful_server_is_refused_where_that_is_asked_for() {
    let forgetful = server(&["--appendonly", "no"]);
    let url = crate::servers::redis::url(forgetful.address.port());
    let strict = Redis::open(&url, policy(1), Options { require_durable: true, ..options() }).unwrap();
    let error = strict.connect().await.unwrap_err().to_string();
    assert!(error.contains("appendonly"), "{error}");
    assert!(Redis::open(&url, policy(1), options()).unwrap().connect().await.is_ok());
}
