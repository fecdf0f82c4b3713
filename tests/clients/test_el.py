"""envloop-cli 1.7.0, unchanged, against the running service."""

import json
import os
import re
import subprocess

import pytest

from conftest import ROOT

EL = ROOT / "target/venv-el/bin/el"
ODD = "rename-files__T2yBq6M"
STEPS = "build-and-deploy__J4fXe1u"
WIDE = "translate-readme__Hn5cV8s"


@pytest.fixture
def el(tmp_path):
    """el(demo, "trail", "list", …) runs the client in a home of its own."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)

    def run(demo, *words, key=None, **variables):
        environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "ENVLOOP_HOME": str(home),
            "ENVLOOP_BASE_URL": demo.url,
            "ENVLOOP_API_KEY": key or demo.keys["read_only"],
            **variables,
        }
        return subprocess.run(
            [EL, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

    return run


def files(folder):
    """Name and bytes of every file below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def ok(result):
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout


def refused(result, code, status):
    """el shows the code, its own explanation and the status, and exits with 1."""
    assert (result.returncode, result.stdout) == (1, ""), result
    first = result.stderr.splitlines()[0]
    assert first.startswith(code + ": ") and first.endswith(f"(HTTP {status})"), result.stderr
    return first


def test_listing_shows_every_file(demo, el):
    lines = ok(el(demo, "trail", "artifact", "list", STEPS)).splitlines()
    assert re.split(r"\s{2,}", lines[0]) == ["ARTIFACT ID", "NAME", "SIZE"]
    rows = [re.split(r"\s{2,}", line) for line in lines[1:] if line]
    want = files(demo.samples / STEPS)
    assert rows == [[name.replace("/", "~1"), name, str(len(want[name]))] for name in sorted(want)]


def test_paging_by_limit_and_cursor_repeats_and_skips_nothing(demo, el):
    names, cursor = [], None
    for _ in range(20):
        more = ["--cursor", cursor] if cursor else []
        page = json.loads(ok(el(demo, "trail", "artifact", "list", ODD, "--limit", "5", "--json", *more)))
        assert len(page["items"]) <= 5
        names += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert cursor is None
    assert names == sorted(files(demo.samples / ODD), key=str.encode)


def test_the_next_page_that_el_suggests_is_there(demo, el):
    first = ok(el(demo, "trail", "artifact", "list", ODD, "--limit", "5"))
    suggestion = next(line for line in first.splitlines() if line.startswith("Next page: el "))
    second = ok(el(demo, *suggestion.removeprefix("Next page: el ").split()))
    assert second.splitlines()[1:6] != first.splitlines()[1:6]


@pytest.mark.parametrize("trial", [ODD, STEPS, WIDE])
def test_a_trial_arrives_byte_for_byte_and_costs_its_bytes(start_demo, el, tmp_path, trial):
    demo = start_demo()
    into = tmp_path / "downloaded"
    answer = json.loads(ok(el(demo, "trail", "artifact", "download", trial, str(into))))
    want = files(demo.samples / trial)
    assert files(into) == want
    assert answer["skipped"] == []
    assert {item["name"] for item in answer["downloaded"]} == set(want)
    quota = demo.settled()
    assert quota["used_bytes"] == sum(map(len, want.values()))
    assert quota["open_reservations"] == 0


def test_other_questions(demo, el):
    lines = ok(el(demo, "trail", "list")).splitlines()
    assert lines[0] == "TRIAL ID" and lines[1:] == demo.trials
    assert "Check: access_confirmed" in ok(el(demo, "auth", "status", "--check")).splitlines()
    limits = json.loads(ok(el(demo, "limit", "get")))
    assert limits["project_id"] == demo.project
    assert limits["limits"]["downloads"]["daily_bytes"] == 50 << 30


def test_a_wrong_key(demo, el):
    wrong = "epk_" + "0" * 64
    for words in (["trail", "list"], ["trail", "artifact", "list", ODD], ["limit", "get"]):
        refused(el(demo, *words, key=wrong), "UNAUTHENTICATED", 401)
    status = el(demo, "auth", "status", "--check", key=wrong)
    assert status.returncode == 1
    assert status.stdout.splitlines()[-1] == "Check: authentication_rejected"
    assert status.stderr.startswith("UNAUTHENTICATED: ")


def test_a_key_that_may_not_download(demo, el, tmp_path):
    key = demo.make_key("--capability", "jobs.read")
    ok(el(demo, "trail", "artifact", "list", ODD, key=key))
    into = tmp_path / "downloaded"
    refused(el(demo, "trail", "artifact", "download", ODD, str(into), key=key), "ACCESS_DENIED", 403)
    assert files(into) == {}


def test_a_disabled_key(demo, el):
    key = demo.make_key("--preset", "read-only", "--key-id", "short-lived")
    ok(el(demo, "trail", "list", key=key))
    demo.disable_key("short-lived", key)
    refused(el(demo, "trail", "list", key=key), "UNAUTHENTICATED", 401)


def test_an_unknown_trial(demo, el, tmp_path):
    refused(el(demo, "trail", "artifact", "list", "none__0000000"), "TRIAL_NOT_FOUND", 404)
    into = str(tmp_path / "downloaded")
    refused(el(demo, "trail", "artifact", "download", "none__0000000", into), "TRIAL_NOT_FOUND", 404)


def test_a_foreign_project(demo, el):
    refused(el(demo, "trail", "list", ENVLOOP_PROJECT_ID="other"), "PROJECT_ACCESS_DENIED", 403)
    ok(el(demo, "trail", "list", ENVLOOP_WORKSPACE_ID="default", ENVLOOP_PROJECT_ID=demo.project))


def test_a_personal_key_needs_both_headers(demo, el):
    key = demo.make_key("--kind", "personal", "--grant", f"default/{demo.project}:read-only")
    refused(el(demo, "trail", "list", key=key), "PROJECT_REQUIRED", 400)
    both = {"ENVLOOP_WORKSPACE_ID": "default", "ENVLOOP_PROJECT_ID": demo.project}
    ok(el(demo, "trail", "list", key=key, **both))
    refused(el(demo, "trail", "list", key=key, **both | {"ENVLOOP_PROJECT_ID": "x"}), "PROJECT_ACCESS_DENIED", 403)


def test_wrong_cursors_and_limits(demo, el):
    refused(el(demo, "trail", "artifact", "list", ODD, "--cursor", "bogus"), "INVALID_CURSOR", 400)
    for limit in ("0", "101"):
        refused(el(demo, "trail", "artifact", "list", ODD, "--limit", limit), "INVALID_LIMIT", 400)


def test_a_spent_allowance(start_demo, el, tmp_path):
    demo = start_demo(daily_bytes="3 kB")
    want = files(demo.samples / ODD)
    assert sum(map(len, want.values())) > 3000, "the allowance ends within the trial"
    into = tmp_path / "downloaded"
    # el does not know the code and shows its kind by the status.
    result = el(demo, "trail", "artifact", "download", ODD, str(into))
    first = refused(result, "HTTP_ERROR", 429)
    assert "rate limit" in first
    got = files(into)
    assert got and all(want[name] == bytes_ for name, bytes_ in got.items()), "whole files or none"
    assert demo.settled()["used_bytes"] == sum(map(len, got.values())) <= 3000
