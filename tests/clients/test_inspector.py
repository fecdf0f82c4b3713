"""The MCP Inspector's command line, which also lints what it gets, in both eras."""

import json
import os
import subprocess

import pytest

from conftest import NODE, npm

LAUNCHER = npm("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
READ = "envloop_trial_artifact_read"
PLOTS = "plot-training-loss__Qm7RtZ2"
OK, NEEDS_KEY, TOOL_ERROR = 0, 3, 5


def inspect(demo, home, era, *words, key=None):
    command = [
        NODE, LAUNCHER, "--cli", demo.url + "/v1/mcp", "--transport", "http", "--protocol-era", era,
        "--header", f"Authorization: Bearer {key or demo.keys['read_only']}",
        "-q", "--format", "json", "--stored-auth-only", *words,
    ]  # fmt: skip
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_the_tools_pass_its_lint(demo, tmp_path, era):
    result = inspect(demo, tmp_path, era, "--method", "tools/list", "--strict")
    assert (result.returncode, result.stderr) == (OK, ""), result
    assert READ in result.stdout


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call(demo, tmp_path, era):
    arguments = json.dumps({"trial_id": PLOTS, "name": "verifier/reward.txt"})
    result = inspect(demo, tmp_path, era, "--method", "tools/call", "--tool-name", READ, "--tool-args-json", arguments)
    assert (result.returncode, result.stderr) == (OK, ""), result
    assert "\\n0.6\\n" in result.stdout


def test_a_refusal(demo, tmp_path):
    arguments = json.dumps({"trial_id": PLOTS, "name": "none"})
    result = inspect(demo, tmp_path, "auto", "--method", "tools/call", "--tool-name", READ, "--tool-args-json", arguments)
    assert result.returncode == TOOL_ERROR, result
    assert "ARTIFACT_NOT_FOUND: " in result.stdout


def test_a_wrong_key(demo, tmp_path):
    result = inspect(demo, tmp_path, "auto", "--method", "tools/list", key="epk_" + "0" * 64)
    assert result.returncode == NEEDS_KEY, result
