//! A store's URL and the provider's usual environment variables are all that it takes.

use std::process::Command;

use artifactd::store::{Limits, open};

use crate::fixture::Fixture;
use crate::read;

/// Says to the process that this test starts again, with another environment, which URL to open.
const URL: &str = "ARTIFACTD_TEST_STORE_URL";

#[tokio::test]
async fn stores_are_opened_by_url_and_environment() {
    if let Ok(url) = std::env::var(URL) {
        let located = open(&url, Limits::default()).unwrap();
        assert_eq!(located.prefix, "some/prefix");
        let key = format!("{}/x", located.prefix);
        let page = located.store.list("some/prefix/", None, 10).await.unwrap();
        assert_eq!(page.objects[0].key, key);
        assert_eq!(read(&*located.store, &key).await.unwrap(), b"found");
        return;
    }
    let s3 = Fixture::s3().await;
    let gcs = Fixture::gcs().await;
    let azure = Fixture::azure().await;
    for fixture in [&s3, &gcs, &azure] {
        fixture.put("some/prefix/x", "found").await;
    }
    let address = |fixture: &Fixture| fixture.server().unwrap().url();
    opens(
        "s3://bucket/some/prefix",
        &[
            ("AWS_ENDPOINT_URL", &address(&s3)),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
        ],
    );
    opens(
        "gs://bucket/some/prefix/",
        &[("GOOGLE_BASE_URL", &address(&gcs)), ("GOOGLE_ALLOW_HTTP", "true"), ("GOOGLE_SKIP_SIGNATURE", "true")],
    );
    opens(
        "az://container/some/prefix",
        &[("AZURE_STORAGE_USE_EMULATOR", "true"), ("AZURITE_BLOB_STORAGE_URL", &address(&azure))],
    );
}

/// Runs this test in a process with nothing but these variables.
fn opens(url: &str, variables: &[(&str, &str)]) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "environment::stores_are_opened_by_url_and_environment"]).env_clear().env(URL, url);
    let output = again.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{url}: {text}");
}
