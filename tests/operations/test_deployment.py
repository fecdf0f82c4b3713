"""What is shipped beside the binary fits it: dashboard, unit, compose file, image."""

import json
import re
import shutil
import subprocess

import yaml

from conftest import ROOT, binary, environment, until

FAMILY = re.compile(r"\b(?:artifactd|process)_[a-z_]+")
SERIES = ["_bucket", "_count", "_sum"]


def settings():
    """Every variable that the reference documents."""
    printed = subprocess.run([binary(), "config", "docs"], check=True, capture_output=True, text=True, timeout=30).stdout
    return set(re.findall(r"^- `(ARTIFACTD_[A-Z_]+)`$", printed, re.M))


def test_the_reference_is_the_page(folder):
    printed = subprocess.run([binary(), "config", "docs"], check=True, capture_output=True, text=True, timeout=30).stdout
    assert printed == (ROOT / "docs/configuration.md").read_text()


def exposition(folder, start):
    """What is exposed once a file was read, and another was not found."""
    folder.put("t1", "a", b"x")
    service = start()
    assert service.get("/v1/trials/t1/artifacts/a/content")[0] == 200
    assert service.get("/v1/trials/t1/artifacts/b/content")[0] == 404
    series = 'artifactd_reservation_age_seconds_count{outcome="completed"}'
    until("the reservation's end", lambda: service.metrics().get(series))
    return service.get("/metrics")[2].decode()


def test_every_metric_of_the_dashboard_exists_and_each_is_shown(folder, start):
    described = exposition(folder, start)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", described, re.M))
    exist = set(types) | {name + series for name, kind in types.items() if kind == "histogram" for series in SERIES}
    dashboard = json.loads((ROOT / "docs/grafana.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries += [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    named = {name for query in queries for name in FAMILY.findall(query)}
    assert len(queries) > 20 and not named - exist, named - exist
    unseen = {name for name in types if not any(name + series in named for series in ["", *SERIES])}
    assert not unseen, unseen
    for query in queries:
        assert query.count("(") == query.count(")") and query.count("{") == query.count("}"), query
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in dashboard["panels"]]
    assert len(places) == len(set(places)) and len({p["id"] for p in dashboard["panels"]}) == len(places)


def test_the_operations_page_names_what_exists(folder, start):
    described = exposition(folder, start)
    exist = set(re.findall(r"^# TYPE (\S+) ", described, re.M))
    page = (ROOT / "docs/operations.md").read_text()
    named = {name for name in FAMILY.findall(page)}
    assert named and not named - exist, named - exist
    assert not set(re.findall(r"ARTIFACTD_[A-Z]+(?:__[A-Z_]+)?", page)) - settings() - {"ARTIFACTD_CONFIG"}


def test_the_compose_file_sets_what_can_be_set(tmp_path):
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    variables = {name for name in services["artifactd"]["environment"] if name.startswith("ARTIFACTD_")}
    assert variables and not variables - settings()
    redis = services["redis"]["command"]
    assert redis[redis.index("--appendonly") + 1] == "yes" and redis[redis.index("--maxmemory-policy") + 1] == "noeviction"
    assert services["artifactd"]["read_only"] and services["artifactd"]["cap_drop"] == ["ALL"]
    # The key-making service of it is a command line that works.
    make = [word.replace("/etc/artifactd", str(tmp_path)) for word in services["keys"]["command"]]
    subprocess.run([binary(), *make], check=True, capture_output=True, env=environment(), timeout=30)
    assert (tmp_path / "keys.toml").exists()


def test_the_grace_periods_cover_the_drain_time():
    page = (ROOT / "docs/configuration.md").read_text()
    drain = int(re.search(r"### `drain_seconds`.*?default `(\d+)`", page, re.S)[1])
    unit = (ROOT / "docs/artifactd.service").read_text()
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1]) >= drain + 3
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert int(services["artifactd"]["stop_grace_period"].removesuffix("s")) >= drain + 3


def test_the_unit_is_one(tmp_path):
    unit = (ROOT / "docs/artifactd.service").read_text()
    if shutil.which("systemd-analyze"):
        copy = tmp_path / "artifactd.service"
        copy.write_text(re.sub(r"/usr/local/bin/artifactd", shutil.which("true"), unit))
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
        assert str(copy) not in checked.stderr and "artifactd.service" not in checked.stderr, checked.stderr
    commands = re.findall(r"/usr/local/bin/artifactd (\S+)", unit) + re.findall(r"^#   artifactd (\S+)", unit, re.M)
    listed = subprocess.run([binary(), "--help"], capture_output=True, text=True, timeout=30).stdout
    assert sorted(commands) == ["check-config", "serve"] and all(command in listed for command in commands)


def test_the_image_is_built_of_what_it_is_given(tmp_path):
    """The build's folder, as .dockerignore leaves it, holds all that cargo asks for."""
    linted = subprocess.run([str(ROOT / "target/venv/bin/hadolint"), str(ROOT / "Dockerfile")], capture_output=True, timeout=60)
    assert linted.returncode == 0, linted.stdout.decode()
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")]
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", dockerfile, re.M) for word in line.split()[:-1]]
    assert sorted(copied) == sorted(let_in)
    for name in copied:
        source = ROOT / name
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path / name)
    command = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    read = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert read.returncode == 0, read.stderr
    targets = json.loads(read.stdout)["packages"][0]["targets"]
    assert all((tmp_path / target["src_path"]).exists() for target in targets)
    # Files that the source includes at compile time come along, too.
    for source in (tmp_path / "src").rglob("*.rs"):
        for name in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', source.read_text()):
            assert (source.parent / name).exists(), f"{source}: {name}"
    final = dockerfile[dockerfile.rindex("FROM "):]
    assert re.search(r"^USER 10001", final, re.M) and "RUN" not in final and "HEALTHCHECK" in final
