"""The official conformance suite of the protocol, both requirement sets, against the running service.

The baselines beside this file name every check that is not expected to pass, each with its reason; the
suite fails on any other failure, and on a line that passes after all.
"""

import subprocess

import pytest

from conftest import NODE, ROOT, npm
from proxy import adding_key

SUITE = npm("@modelcontextprotocol/conformance/dist/index.js")


def run(*words):
    return subprocess.run([NODE, SUITE, *words], cwd=ROOT / "target", capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_requirements(demo, revision, tmp_path):
    baseline = ROOT / f"tests/clients/conformance-{revision}.yml"
    with adding_key(demo.url, demo.keys["read_only"]) as url:
        result = run(
            "server", "--url", url + "/v1/mcp", "--requirements", revision,
            "--expected-failures", str(baseline), "-o", str(tmp_path),
        )  # fmt: skip
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
