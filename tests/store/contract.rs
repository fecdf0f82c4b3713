//! What every store does alike. Each case has a prefix to itself.

use std::time::SystemTime;

use artifactd::store::{ETag, Page, Stat, Store, StoreError};

use crate::fixture::Fixture;
use crate::{drain, read};

/// Names of every kind that is allowed, in the order of their bytes.
const NAMES: &[&str] = &[
    " leading space",
    "#",
    "%41",
    "+",
    "..x",
    ".hidden",
    "100%",
    "A",
    "C colon: later",
    "[1]{2}",
    "a b",
    "a&b<c>'\"",
    "a+b",
    "a-b/x",
    "a.txt",
    "a/b",
    "a/b.d/e",
    "a0",
    "agent/log.txt",
    "agent/trajectory.json",
    "cafe\u{301}",
    "caf\u{e9}",
    "core#1",
    "literal-%3D",
    "q?x=1",
    "semi;colon,comma*star",
    "trailing space ",
    "x~1y",
    "~#|",
    "日本/語",
    "🙂",
];

#[tokio::test]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&Fixture::memory()).await;
}

#[tokio::test]
async fn a_directory_keeps_the_contract() {
    keeps_the_contract(&Fixture::directory()).await;
}

#[tokio::test]
async fn s3_keeps_the_contract() {
    keeps_the_contract(&Fixture::s3().await).await;
}

/// Google's listings and objects look like S3's, so an S3 server serves them.
#[tokio::test]
async fn google_keeps_the_contract() {
    keeps_the_contract(&Fixture::gcs().await).await;
}

#[tokio::test]
async fn azure_keeps_the_contract() {
    keeps_the_contract(&Fixture::azure().await).await;
}

async fn keeps_the_contract(fixture: &Fixture) {
    names_come_out_as_they_went_in(fixture).await;
    listings_are_sorted_and_paged_alike(fixture).await;
    a_prefix_is_plain_text(fixture).await;
    what_no_client_may_see_is_counted(fixture).await;
    every_range_is_exact(fixture).await;
    another_version_is_refused(fixture).await;
    what_does_not_exist(fixture).await;
    an_empty_object_is_an_object(fixture).await;
    folders_are_paged(fixture).await;
}

/// Two stats of one version: a young file's validator is weak, and grows strong.
fn same(a: &Stat, b: &Stat) -> bool {
    a.size == b.size && a.modified == b.modified && a.etag.weak_eq(&b.etag)
}

fn keys(page: &Page) -> Vec<&str> {
    page.objects.iter().map(|object| object.key.as_str()).collect()
}

/// Every page from `after` on: the keys, the skipped ones, the number of pages.
async fn pages(store: &dyn Store, prefix: &str, after: Option<&str>, limit: usize) -> (Vec<String>, u64, usize) {
    let (mut all, mut skipped, mut after) = (Vec::new(), 0, after.map(str::to_owned));
    for pages in 1..1000 {
        let page = store.list(prefix, after.as_deref(), limit).await.unwrap();
        assert!(page.objects.len() <= limit, "a page of {} instead of {limit}", page.objects.len());
        skipped += page.skipped;
        all.extend(page.objects.into_iter().map(|object| object.key));
        match page.next {
            None => return (all, skipped, pages),
            next => after = next,
        }
    }
    panic!("no end of pages");
}

async fn put_names(fixture: &Fixture, prefix: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for name in NAMES {
        let key = format!("{prefix}{name}");
        fixture.put(&key, name).await;
        keys.push(key);
    }
    if fixture.is_flat() {
        let key = format!("{prefix}a");
        fixture.put(&key, "a").await;
        keys.push(key);
    }
    keys.sort_unstable();
    keys
}

async fn names_come_out_as_they_went_in(fixture: &Fixture) {
    let store = &*fixture.store;
    let expected = put_names(fixture, "names/").await;
    let page = store.list("names/", None, 100).await.unwrap();
    assert_eq!(keys(&page), expected);
    assert_eq!((page.next, page.skipped), (None, 0));
    for listed in &page.objects {
        let stat = store.stat(&listed.key).await.unwrap_or_else(|e| panic!("{}: {e}", listed.key));
        assert!(same(&stat, &listed.stat), "{}: {stat:?} is listed as {:?}", listed.key, listed.stat);
        let content = read(store, &listed.key).await.unwrap();
        assert_eq!(String::from_utf8(content).unwrap(), listed.key["names/".len()..]);
        let age = SystemTime::now().duration_since(stat.modified).map_or(0, |age| age.as_secs());
        assert!(age < 600, "modified {:?}", stat.modified);
    }
}

async fn listings_are_sorted_and_paged_alike(fixture: &Fixture) {
    let store = &*fixture.store;
    let expected = put_names(fixture, "paged/").await;
    for limit in [1, 2, 3, 7, expected.len() - 1, expected.len(), expected.len() + 1] {
        let (all, _, pages) = pages(store, "paged/", None, limit).await;
        assert_eq!(all, expected, "limit {limit}");
        assert!(pages <= expected.len().div_ceil(limit) + 1, "{pages} pages of {limit}");
    }
    for (i, key) in expected.iter().enumerate() {
        let page = store.list("paged/", Some(key), 3).await.unwrap();
        let end = expected.len().min(i + 4);
        assert_eq!(keys(&page), expected[i + 1..end], "after {key}");
        // A cursor need not be the key of an object.
        let page = store.list("paged/", Some(&format!("{key}\u{20}")), 1).await.unwrap();
        assert_eq!(keys(&page).first().copied(), expected.get(i + 1).map(String::as_str), "after {key} and a blank");
    }
    assert_eq!(keys(&store.list("paged/", Some("paged"), 1).await.unwrap()), expected[..1]);
    assert_eq!(keys(&store.list("paged/", Some("zzz"), 1).await.unwrap()), [""; 0]);
    assert_eq!(keys(&store.list("paged/", None, 0).await.unwrap()), expected[..1], "a limit of 0 counts as 1");
}

async fn a_prefix_is_plain_text(fixture: &Fixture) {
    let store = &*fixture.store;
    for name in ["agent/a", "agent/b", "agents", "ag", "b"] {
        fixture.put(&format!("prefix/{name}"), "x").await;
    }
    for (prefix, expected) in [
        ("prefix/ag", &["prefix/ag", "prefix/agent/a", "prefix/agent/b", "prefix/agents"][..]),
        ("prefix/agent", &["prefix/agent/a", "prefix/agent/b", "prefix/agents"]),
        ("prefix/agent/", &["prefix/agent/a", "prefix/agent/b"]),
        ("prefix/agent/b", &["prefix/agent/b"]),
        ("prefix/agent/b/", &[]),
        ("prefix/none/", &[]),
        ("none", &[]),
        ("prefix/../prefix/", &[]),
        ("prefix//", &[]),
        ("/prefix/", &[]),
        ("/pre", &[]),
    ] {
        let (all, skipped, _) = pages(store, prefix, None, 2).await;
        assert_eq!((all, skipped), (expected.iter().map(ToString::to_string).collect(), 0), "{prefix}");
    }
    let page = store.list("prefix/ag", Some("prefix/agent/a"), 9).await.unwrap();
    assert_eq!(keys(&page), ["prefix/agent/b", "prefix/agents"]);
}

async fn what_no_client_may_see_is_counted(fixture: &Fixture) {
    let store = &*fixture.store;
    let unfit = fixture.put_unfit("unfit/").await;
    assert!(unfit > 0);
    let good: Vec<_> = ["0", "b", "blue", "marker.txt", "z"].map(|name| format!("unfit/{name}")).into();
    for key in &good {
        fixture.put(key, "x").await;
    }
    for limit in [1, 2, 3, 100] {
        let (all, skipped, _) = pages(store, "unfit/", None, limit).await;
        assert_eq!((all, skipped), (good.clone(), unfit), "limit {limit}");
    }
}

async fn every_range_is_exact(fixture: &Fixture) {
    let store = &*fixture.store;
    let content: Vec<u8> = (0..600_000_u32).map(|i| i.to_le_bytes()[(i % 3) as usize]).collect();
    fixture.put("ranges/x", &content).await;
    let stat = store.stat("ranges/x").await.unwrap();
    assert_eq!(stat.size, 600_000);
    for range in [0..600_000, 0..1, 599_999..600_000, 1..600_000, 0..262_144, 262_143..262_145, 100_000..500_000] {
        let opened = store.open("ranges/x", &stat, range.clone()).await.unwrap();
        assert!(same(&opened.stat, &stat));
        let expected =
            content.iter().skip(range.start.try_into().unwrap()).take((range.end - range.start).try_into().unwrap());
        assert!(drain(opened.body).await.unwrap().iter().eq(expected), "{range:?}");
    }
}

async fn another_version_is_refused(fixture: &Fixture) {
    let store = &*fixture.store;
    for (old, new) in [("one", "another"), ("another", "a"), ("same", "size")] {
        fixture.put("versions/x", old).await;
        let stat = store.stat("versions/x").await.unwrap();
        fixture.put("versions/x", new).await;
        for range in [0..stat.size, 0..1] {
            let result = store.open("versions/x", &stat, range).await;
            assert!(matches!(result, Err(StoreError::Changed)), "{old} became {new}: {result:?}");
        }
        assert_eq!(read(store, "versions/x").await.unwrap(), new.as_bytes());
    }
    // A validator that only looks alike is another one.
    let stat = store.stat("versions/x").await.unwrap();
    let other = Stat { etag: ETag::strong("other"), ..stat };
    assert!(matches!(store.open("versions/x", &other, 0..1).await, Err(StoreError::Changed)));
}

async fn what_does_not_exist(fixture: &Fixture) {
    let store = &*fixture.store;
    fixture.put("missing/folder/x", "x").await;
    let stat = store.stat("missing/folder/x").await.unwrap();
    for key in [
        "missing/y",
        "missing/folder",
        "missing/folder/",
        "missing/folder/x/",
        "missing/folder/x/y",
        "missing//folder/x",
        "missing/./folder/x",
        "missing/folder/../folder/x",
        "/missing/folder/x",
        "missing/folder/x\0",
        "missing\\folder",
        "../etc/passwd",
        "/etc/passwd",
        "",
        ".",
        "..",
    ] {
        let result = store.stat(key).await;
        assert!(matches!(result, Err(StoreError::NotFound)), "{key:?}: {result:?}");
        // What is gone is no longer the version either: some stores look at the precondition first.
        let result = store.open(key, &stat, 0..1).await;
        assert!(matches!(result, Err(StoreError::NotFound | StoreError::Changed)), "{key:?}: {result:?}");
    }
}

async fn an_empty_object_is_an_object(fixture: &Fixture) {
    fixture.put("empty/x", "").await;
    assert_eq!(fixture.store.stat("empty/x").await.unwrap().size, 0);
    let page = fixture.store.list("empty/", None, 10).await.unwrap();
    assert_eq!((keys(&page), page.objects[0].stat.size), (vec!["empty/x"], 0));
}

async fn folders_are_paged(fixture: &Fixture) {
    let store = &*fixture.store;
    let expected = ["a-b", "a.x", "a", "a0", "b__x:1", "é"];
    for name in expected {
        fixture.put(&format!("folders/{name}/inner/file"), "x").await;
        fixture.put(&format!("folders/{name}/file"), "x").await;
    }
    for file in ["0", "a.file", "zz"] {
        fixture.put(&format!("folders/{file}"), "x").await;
    }
    for limit in 1..=expected.len() + 1 {
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..20 {
            let page = store.folders("folders/", after.as_deref(), limit).await.unwrap();
            assert!(page.names.len() <= limit);
            all.extend(page.names);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(all, expected, "limit {limit}");
    }
    for (i, name) in expected.iter().enumerate() {
        let page = store.folders("folders/", Some(name), 10).await.unwrap();
        assert_eq!(page.names, expected[i + 1..], "after {name}");
    }
    assert_eq!(store.folders("folders/a/", None, 10).await.unwrap().names, ["inner"]);
    assert_eq!(store.folders("folders/a/inner/", None, 10).await.unwrap().names, [""; 0]);
    assert_eq!(store.folders("/folders/", None, 10).await.unwrap().names, [""; 0]);
    assert_eq!(store.folders("no-folders/", None, 10).await.unwrap().names, [""; 0]);
    assert!(store.folders("", None, 100).await.unwrap().names.contains(&"folders".to_owned()));
}
