"""artifactd as an operator runs it: the binary, a settings file, signals, real servers beside it.

ARTIFACTD_BIN names another binary than target/debug/artifactd.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30


def binary():
    path = Path(os.environ.get("ARTIFACTD_BIN", ROOT / "target/debug/artifactd"))
    assert path.exists(), f"{path} is not built"
    return str(path)


def environment(**more):
    """The variables of this process that are no settings, and those of a test."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ARTIFACTD_", "AWS_"))}
    return own | {name: str(value) for name, value in more.items()}


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def until(what, ready, seconds=PATIENCE):
    """Waits for a truthy answer, and gives it."""
    deadline = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
    return found


def end(process):
    """Kills what still runs, by its id."""
    if process.poll() is None:
        process.kill()
    process.wait()


class Folder:
    """A folder with a store, keys and settings."""

    def __init__(self, path):
        self.path = path
        (path / "store").mkdir()
        self.key = self.make_key("reader")

    def put(self, trial, name, content):
        file = self.path / "store/demo" / trial / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, int):
            with open(file, "wb") as sparse:
                sparse.truncate(content)
        else:
            file.write_bytes(content)

    def make_key(self, key_id, *options):
        options = options or ("--project", "demo", "--preset", "read-only")
        command = [binary(), "keys", "create", "--json", "--key-id", key_id, "--keys-file", str(self.path / "keys.toml")]
        made = subprocess.run([*command, *options], check=True, capture_output=True, env=environment(), timeout=30)
        return json.loads(made.stdout)["key"]

    def settings(self, sections=None, **top):
        """Writes the settings file; `sections` go on top of what a start needs. Answers its path."""
        table = {
            "store": {"url": f"file://{self.path}/store"},
            "ledger": {"url": f"embedded://{self.path}/ledger.db"},
            "access": {"keys_file": str(self.path / "keys.toml")},
            "log": {"format": "json"},
        }
        for name, values in (sections or {}).items():
            table[name] = table.get(name, {}) | values
        lines = [f"{name} = {json.dumps(value)}" for name, value in ({"listen": "127.0.0.1:0"} | top).items()]
        for name, values in table.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {toml(value)}" for key, value in values.items()]
        file = self.path / "artifactd.toml"
        file.write_text("\n".join(lines) + "\n")
        return file


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


class Service:
    """A running artifactd."""

    def __init__(self, folder, config, env):
        self.folder, self.key = folder, folder.key
        self.log_file = folder.path / f"log-{time.monotonic_ns()}"
        with open(self.log_file, "wb") as log:
            command = [binary(), "serve", "--config", str(config)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log, env=environment(**env))
        self.host = until("the service listens", self._listening)
        self.url = f"http://{self.host}"

    def _listening(self):
        assert self.process.poll() is None, self.log_file.read_text()
        return next((line["address"] for line in self.lines() if line.get("message") == "listening"), None)

    def log(self):
        return self.log_file.read_text()

    def lines(self):
        lines = [line for line in self.log().split("\n")[:-1] if line.startswith("{")]
        return [json.loads(line) for line in lines]

    def access_line(self, request_id):
        def found():
            lines = (line for line in self.lines() if line.get("target") == "artifactd::access")
            return next((line for line in lines if line["request_id"] == request_id), None)

        return until("a line in the log", found)

    def get(self, path, headers=None, key=None, method="GET", data=None):
        """Sends a request, as (status, headers, bytes); errors are answers too."""
        request = urllib.request.Request(self.url + path, headers=headers or {}, method=method, data=data)
        if "Authorization" not in (headers or {}):
            request.add_header("Authorization", f"Bearer {key or self.key}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def json(self, path):
        return json.loads(self.get(path)[2])

    def metrics(self, url=None):
        """The samples by name and labels."""
        if url:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                text = answer.read().decode()
        else:
            text = self.get("/metrics")[2].decode()
        samples = (line.rsplit(" ", 1) for line in text.split("\n") if line and not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self, seconds=PATIENCE):
        """Stops it in order; answers everything it logged."""
        self.signal()
        assert self.process.wait(seconds) == 0
        return self.log()


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture
def start(folder):
    """start(config, NAME=VALUE…): the service of `folder`, with further variables."""
    with ExitStack() as running:

        def begin(config=None, **env):
            service = Service(folder, config or folder.settings(), env)
            running.callback(end, service.process)
            return service

        yield begin


def ask_redis(port, *words):
    command = ["redis-cli", "-p", str(port), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


@pytest.fixture
def redis(tmp_path):
    """redis(*options): a Redis server with AOF and without eviction unless options say else."""
    with ExitStack() as running:

        def begin(*options):
            port = free_port()
            home = tmp_path / f"redis-{port}"
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(home)]
            command += ["--appendonly", "yes", "--maxmemory-policy", "noeviction", *options]
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
            running.callback(end, process)
            until("Redis answers", lambda: answers(port))
            process.port = port
            return process

        yield begin


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


@pytest.fixture
def moto(tmp_path):
    """An S3 server that checks no signatures; its URL."""
    with s3_server(tmp_path) as url:
        yield url


@contextmanager
def s3_server(folder):
    """Runs moto, which logs into `folder`; gives its URL."""
    port = free_port()
    with open(folder / "moto.log", "wb") as log:
        command = [str(ROOT / "target/venv/bin/python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until("moto listens", lambda: answers(port), 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        end(process)
