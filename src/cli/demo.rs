//! `artifactd demo`: one command to a service that can be tried.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tempfile::TempDir;

use super::{Failure, answer, note, run_service};
use crate::access::keys::{KeyFile, Secret};
use crate::artifact::{ArtifactName, Project, ProjectId, TrialId, WorkspaceId};
use crate::bytesize::parse_allowance;
use crate::config::{Address, Config};
use crate::demo::{BEST_EXAMPLE, DemoKeys, Paste, example, trials, write_sample};
use crate::server;
use crate::telemetry;

const WORKSPACE: &str = "default";
const PROJECT: &str = "demo";
/// Among how many trials the printed lines' one is chosen.
const TRIALS_LOOKED_AT: usize = 20;

/// Options of `artifactd demo`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Serve this folder of trials instead of a sample, such as a Harbor job folder; it is only read
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Keep sample, keys and account books here; without it they last as long as the demo
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: Address,
    /// What may be downloaded a day, such as "50 GiB" or unlimited
    #[arg(long, value_name = "BYTES", default_value = "50 GiB", value_parser = daily_bytes)]
    daily_bytes: String,
    /// Print one line of JSON instead, once the service listens
    #[arg(long)]
    json: bool,
}

fn daily_bytes(text: &str) -> Result<String, crate::bytesize::InvalidSize> {
    parse_allowance(text).map(|_| text.to_owned())
}

/// Everything that the service needs, written and at hand.
struct DemoPlan {
    /// The settings, also for `artifactd serve --config`.
    config: PathBuf,
    keys: DemoKeys,
    /// Sorted, at least one.
    trials: Vec<TrialId>,
    /// The trial and the file that the printed lines speak of.
    example: (TrialId, Option<ArtifactName>),
    json: bool,
    /// Removed with its content when the demo ends.
    _temporary: Option<TempDir>,
}

/// Prepares and serves until it is stopped.
///
/// # Errors
/// A folder cannot be read or written, or the service cannot start.
pub(super) fn run(options: Options) -> Result<(), Failure> {
    let plan = prepare(options)?;
    run_service(serve(plan))
}

async fn serve(plan: DemoPlan) -> Result<(), Failure> {
    let mut config = Config::load(Some(&plan.config), [])?;
    telemetry::start(&config.log)?;
    let listener = server::listen(&config.listen)
        .await
        .map_err(|error| format!("{error}; choose another address, such as --listen 127.0.0.1:0 for any free port"))?;
    let mut address = listener.local_addr()?;
    // Listening on every address is no address to call.
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let url = format!("http://{address}");
    // Links begin with it.
    config.public_url = Some(url.parse()?);
    // A reader who has left (a script that took its line) is no reason to stop.
    let ready = |_| announce(&plan, &url).unwrap_or_else(|error| note(&format!("demo: {error}")));
    server::run_on(listener, config, ready).await.map_err(Failure::from)
}

fn announce(plan: &DemoPlan, url: &str) -> Result<(), Failure> {
    if plan.json {
        let line = serde_json::json!({"url": url, "project": PROJECT, "keys": plan.keys, "trials": plan.trials});
        return answer(&format!("{line}\n"));
    }
    let (trial, name) = &plan.example;
    let paste = Paste { url, keys: &plan.keys, trial, name: name.as_ref() };
    let trials = plan.trials.len();
    let lines = paste.lines();
    answer(&format!(
        "artifactd serves {trials} trials of the project {PROJECT} at {url}\n\n{lines}\nStop with Ctrl-C.\n"
    ))
}

fn prepare(options: Options) -> Result<DemoPlan, Failure> {
    let (dir, temporary) = match &options.dir {
        Some(dir) => {
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| named(dir, &e))?;
            (dir.canonicalize()?, None)
        }
        None => {
            let temporary = tempfile::Builder::new().prefix("artifactd-demo-").tempdir()?;
            (temporary.path().canonicalize()?, Some(temporary))
        }
    };
    let say = |line: &str| note(&format!("demo: {line}"));
    let (root, trials) = match &options.store {
        Some(store) => own(store, &dir, &say)?,
        None => {
            say(&format!("the sample project lies in {}", dir.join("trials").display()));
            let root = dir.join("trials");
            let trials = write_sample(&root, &mut |line| say(line))?;
            (root, trials)
        }
    };
    let project = Project { workspace: WorkspaceId::parse(WORKSPACE)?, id: ProjectId::parse(PROJECT)? };
    let keys_file = dir.join("keys.toml");
    let keys = DemoKeys::keep(&KeyFile::new(&keys_file), &dir.join("demo-keys.json"), &project, Timestamp::now())?;
    let config = dir.join("config.toml");
    keep_link_key(&dir.join("link.key"))?;
    fs::write(&config, settings(&options, &root, &dir)?)?;
    let example = worth_showing(&root, &trials).ok_or("there is no trial")?;
    Ok(DemoPlan { config, keys, trials, example, json: options.json, _temporary: temporary })
}

/// The trials of a folder of one's own.
fn own(store: &Path, dir: &Path, say: &dyn Fn(&str)) -> Result<(PathBuf, Vec<TrialId>), Failure> {
    let root = store.canonicalize().map_err(|e| named(store, &e))?;
    if dir.starts_with(&root) {
        // Else the keys and the account books would be served with the trials.
        let dir = dir.display();
        return Err(format!("--dir {dir} must not lie inside --store {}; choose another --dir", root.display()).into());
    }
    let (trials, others) = trials(&root).map_err(|e| named(store, &e))?;
    if others > 0 {
        say(&format!(
            "{others} folders are left out: a trial's name is A-Z a-z 0-9 . _ : - and begins with a letter or digit"
        ));
    }
    if trials.is_empty() {
        return Err(
            format!("{} holds no trials: name the folder that has one folder per trial", store.display()).into()
        );
    }
    Ok((root, trials))
}

/// A trial and one of its files: among the first trials, one that was verified, else one with any
/// file, else the first.
fn worth_showing(root: &Path, trials: &[TrialId]) -> Option<(TrialId, Option<ArtifactName>)> {
    let examples = trials.iter().take(TRIALS_LOOKED_AT).map(|id| (id.clone(), example(&root.join(id.as_str()))));
    let rank = |(_, name): &(TrialId, Option<ArtifactName>)| match name {
        Some(name) if name.as_str() == BEST_EXAMPLE => 0,
        Some(_) => 1,
        None => 2,
    };
    examples.min_by_key(rank)
}

fn named(path: &Path, error: &std::io::Error) -> Failure {
    format!("{}: {error}", path.display()).into()
}

/// Makes the key that signs links, unless an earlier run did: links outlive a restart.
fn keep_link_key(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    // For its owner alone (mode 0600).
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(new, "{}", Secret::generate()?.expose())?;
    new.persist(path)?;
    Ok(())
}

/// The settings file, as `artifactd serve --config` reads it.
fn settings(options: &Options, root: &Path, dir: &Path) -> Result<String, Failure> {
    let store = url::Url::from_file_path(root).map_err(|()| format!("{} has no URL", root.display()))?;
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| format!("{} is not UTF-8", path.display()));
    let table = |pairs: &[(&str, &str)]| {
        toml::Value::Table(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect())
    };
    let link_key = table(&[("id", "demo"), ("secret_file", &text(&dir.join("link.key"))?)]);
    let settings = [
        ("listen", options.listen.to_string().into()),
        ("store", table(&[("url", store.as_str()), ("layout", "{trial}/"), ("single_project", PROJECT)])),
        ("ledger", table(&[("url", &format!("embedded://{}", text(&dir.join("ledger.db"))?))])),
        ("quota", table(&[("daily_bytes", &options.daily_bytes)])),
        ("access", table(&[("keys_file", &text(&dir.join("keys.toml"))?)])),
        ("links", toml::Value::Table([("keys".to_owned(), toml::Value::Array(vec![link_key]))].into_iter().collect())),
        ("log", table(&[("filter", "warn")])),
    ];
    let settings: toml::Table = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(toml::to_string(&settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dir: &Path, store: Option<&Path>) -> Options {
        Options {
            store: store.map(Path::to_owned),
            dir: Some(dir.to_owned()),
            listen: "127.0.0.1:0".parse().expect("an address"),
            daily_bytes: "1 GiB".into(),
            json: true,
        }
    }

    #[test]
    fn a_folder_of_ones_own_is_served_as_it_is() {
        let (dir, jobs) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let store = jobs.path().join("50% done");
        fs::create_dir_all(store.join("t__1/agent")).expect("made");
        fs::create_dir_all(store.join("t__2/verifier")).expect("made");
        fs::write(store.join("t__2/verifier/test-stdout.txt"), "ok").expect("written");
        let plan = prepare(options(dir.path(), Some(&store))).expect("prepared");
        assert_eq!(plan.trials.iter().map(TrialId::as_str).collect::<Vec<_>>(), ["t__1", "t__2"]);
        assert_eq!(plan.example.0.as_str(), "t__2", "the first trial has no file to show");
        let config = Config::load(Some(&plan.config), []).expect("settings");
        let url = url::Url::parse(&config.store.url).expect("a URL");
        assert_eq!(url.to_file_path(), Ok(store.canonicalize().expect("there")));
        assert_eq!(config.store.single_project.as_ref().map(ProjectId::as_str), Some(PROJECT));
        assert!(config.layout("").is_ok());
        assert!(config.signing_keys().expect("a secret").is_some());
        let link_key = fs::read(dir.path().join("link.key")).expect("written");
        assert_eq!(
            config.access.keys_file.as_deref(),
            Some(&*dir.path().canonicalize().expect("there").join("keys.toml"))
        );
        let again = prepare(options(dir.path(), Some(&store))).expect("prepared");
        assert_eq!(again.keys, plan.keys);
        assert_eq!(fs::read(dir.path().join("link.key")).expect("kept"), link_key);
    }

    #[test]
    fn folders_that_cannot_be_served_are_refused() {
        let jobs = tempfile::tempdir().expect("a folder");
        let state = tempfile::tempdir().expect("a folder");
        let refused = |dir: &Path, store: &Path| prepare(options(dir, Some(store))).err().expect("refused").to_string();
        assert!(refused(state.path(), &jobs.path().join("none")).contains("No such file"));
        assert!(refused(state.path(), jobs.path()).contains("holds no trials"));
        fs::create_dir(jobs.path().join("t__1")).expect("made");
        assert!(refused(&jobs.path().join("state"), jobs.path()).contains("must not lie inside"));
    }
}
