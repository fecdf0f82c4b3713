"""The demo as a newcomer meets it: what it prints is pasted into a shell; README's commands are run."""

import json
import os
import re
import signal
import subprocess
import tomllib
from contextlib import contextmanager

import pytest

from conftest import ROOT, STOP_SECONDS, binary


@contextmanager
def printing_demo(folder, *options):
    """Runs a demo for people; yields the lines it printed when it listened."""
    with open(folder / "log", "wb") as log:
        command = [binary(), "demo", "--listen", "127.0.0.1:0", *options]
        # Its own temporary folders go below ours, so that what stays behind can be seen.
        environment = os.environ | {"TMPDIR": str(folder)}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Stop with"):
                break
        assert lines and lines[-1].startswith("Stop with"), (folder / "log").read_text()
        yield "".join(lines)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_SECONDS) == 0
        process.stdout.close()


def sections(text):
    """The printed blocks, by the words of their headings."""
    found = re.findall(r"^# (.+)\n((?:.+\n)+)", text, re.MULTILINE)
    assert found
    return dict(found)


def paste(block, folder):
    environment = os.environ | {"PATH": f"{ROOT / 'target/venv-el/bin'}:{os.environ['PATH']}", "TMPDIR": str(folder)}
    command = ["bash", "-euo", "pipefail", "-c", block]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=60).stdout


def test_what_is_printed_works_when_pasted(tmp_path):
    with printing_demo(tmp_path) as text:
        (trials,) = tmp_path.glob("artifactd-demo-*/trials")
        blocks = sections(text)
        listing = json.loads(paste(blocks["The files of a trial, with curl"], tmp_path))
        names = {item["name"] for item in listing["items"]}
        assert "verifier/test-stdout.txt" in names

        (trial,) = re.findall(r"el trail artifact list (\S+)", text)
        want = (trials / trial / "verifier/test-stdout.txt").read_bytes()
        assert paste(blocks["One file"], tmp_path) == want

        paste(blocks["The same with el (pip install envloop-cli==1.7.0)"], tmp_path)
        assert (tmp_path / trial / "verifier/test-stdout.txt").read_bytes() == want

        answer = json.loads(paste(blocks["What an agent does, with curl"], tmp_path))
        assert answer["id"] == 1 and not answer["result"].get("isError"), answer
        assert want.decode().splitlines()[0] in answer["result"]["content"][0]["text"]

        quota = json.loads(paste(blocks["What it cost"], tmp_path))
        assert quota["used_bytes"] >= len(want)

        codex = tomllib.loads(blocks["Codex: into ~/.codex/config.toml"])["mcp_servers"]["envloop"]
        key = re.search(r"read-only +(epk_[0-9a-f]{64})\n", text)[1]
        assert codex["url"].endswith("/v1/mcp") and codex["http_headers"] == {"Authorization": f"Bearer {key}"}
        claude = blocks["Claude Code"]
        assert codex["url"] in claude and key in claude
    assert not list(tmp_path.glob("artifactd-demo-*")), "the temporary folder goes with the demo"


def test_a_folder_of_ones_own_is_served_and_not_written(start_demo, tmp_path):
    job = tmp_path / "my job"
    (job / "task__1234567/agent").mkdir(parents=True)
    (job / "task__1234567/agent/log.txt").write_bytes(b"hello\n")
    (job / "not a trial").mkdir()
    (job / "result.json").write_text("{}")
    before = sorted(p.relative_to(job) for p in job.rglob("*"))
    demo = start_demo(store=job)
    assert demo.trials == ["task__1234567"]
    status, _, body = demo.get("/v1/trials/task__1234567/artifacts/agent~1log.txt/content")
    assert (status, body) == (200, b"hello\n")
    assert sorted(p.relative_to(job) for p in job.rglob("*")) == before


def test_a_second_run_has_the_same_keys_and_books(start_demo, tmp_path):
    first = start_demo(dir=tmp_path)
    path = f"/v1/trials/{first.trials[0]}/artifacts/result.json/content"
    size = len(first.get(path)[2])
    used = first.settled()["used_bytes"]
    assert used == size > 0
    first.process.terminate()
    assert first.process.wait(STOP_SECONDS) == 0
    second = start_demo(dir=tmp_path)
    assert (second.keys, second.trials) == (first.keys, first.trials)
    assert second.settled()["used_bytes"] == used


def test_an_address_in_use_is_said(demo, tmp_path):
    taken = demo.url.removeprefix("http://")
    command = [binary(), "demo", "--json", "--dir", str(tmp_path), "--listen", taken]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and result.stdout == ""
    assert "--listen 127.0.0.1:0" in result.stderr, result.stderr


def test_healthcheck_tells_up_from_down(start_demo):
    demo = start_demo()
    command = [binary(), "healthcheck", "--listen", demo.url.removeprefix("http://")]
    assert subprocess.run(command, timeout=30).returncode == 0
    demo.process.terminate()
    assert demo.process.wait(STOP_SECONDS) == 0
    assert subprocess.run(command, timeout=30, stderr=subprocess.DEVNULL).returncode == 1


@pytest.mark.parametrize(
    "options, say",
    [
        (["--store", "{tmp}/none"], "No such file"),
        (["--store", "{tmp}"], "holds no trials"),
        (["--daily-bytes", "plenty"], "an amount of bytes"),
        (["--listen", "nowhere"], "--listen"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path, options, say):
    command = [binary(), "demo", "--json", *(option.format(tmp=tmp_path) for option in options)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and result.stdout == ""
    assert say in result.stderr, result.stderr


def test_readmes_commands_and_settings(tmp_path):
    text = (ROOT / "README.md").read_text()
    (tmp_path / "data").mkdir()
    example = re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1]
    example = example.replace("s3://bucket/prefix", f"file://{tmp_path}/data")
    example = example.replace("/var/lib/artifactd/ledger.db", f"{tmp_path}/ledger.db")
    (tmp_path / "artifactd.toml").write_text(example)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARTIFACTD_")}
    for line in re.findall(r"^target/release/artifactd (.+)$", text, re.MULTILINE):
        if not line.startswith("serve"):
            command = [binary(), *line.split()]
            subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=30)
    assert (tmp_path / "keys.toml").stat().st_mode & 0o777 == 0o600
    targets = re.findall(r"^make ([a-z]+)", text, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert targets and all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
