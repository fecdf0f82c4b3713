"""Servers of a whole installation: those of the operations tests, a Redis Cluster, nginx."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

OPERATIONS = Path(__file__).parents[2] / "operations/conftest.py"
SPEC = importlib.util.spec_from_file_location("operations", OPERATIONS)
operations = importlib.util.module_from_spec(SPEC)
sys.modules["operations"] = operations
SPEC.loader.exec_module(operations)

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CLUSTER = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-require-full-coverage", "no"]
redis = operations.redis


@pytest.fixture
def running():
    """Ends, at the end, what was put into it."""
    with ExitStack() as stack:
        yield stack


class Cluster:
    """Three masters with a replica each, with append-only files."""

    def __init__(self, start):
        self.start, self.nodes = start, {}
        for _ in range(6):
            self._add()
        addresses = [f"127.0.0.1:{port}" for port in self.nodes]
        self._cli("--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes")
        operations.until("the cluster", lambda: all(map(self.is_whole, self.nodes)), 60)
        operations.until("its replicas", lambda: len(self.masters()) == 3 and all(map(self._is_followed, self.masters())), 60)

    @property
    def url(self):
        return "redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.nodes)

    def is_whole(self, port):
        info = self._cli("-p", str(port), "CLUSTER", "INFO")
        return "cluster_state:ok" in info and "cluster_slots_ok:16384" in info

    def masters(self):
        return [port for port, node in self.nodes.items() if node.poll() is None and "role:master" in self._replication(port)]

    def kill_master_of(self, key):
        """Kills the master that holds a key; answers its port once another has its place."""
        slot = int(self._cli("-p", str(next(iter(self.nodes))), "CLUSTER", "KEYSLOT", key))
        port = next(port for port in self.masters() if self._holds(port, slot))
        operations.end(self.nodes.pop(port))
        operations.until("a failover", lambda: all(map(self.is_whole, self.nodes)) and len(self.masters()) == 3)
        return port

    def heal(self):
        """A new replica in the place of the one that became a master."""
        alone = next(port for port in self.masters() if not self._is_followed(port))
        master = self._cli("-p", str(alone), "CLUSTER", "MYID").strip()
        node = self._add()
        self._cli("--cluster", "add-node", f"127.0.0.1:{node.port}", f"127.0.0.1:{alone}",
                  "--cluster-slave", "--cluster-master-id", master)
        operations.until("a replica", lambda: self._is_followed(alone))

    def _add(self):
        node = self.start(*CLUSTER, "--cluster-port", str(operations.free_port()))
        self.nodes[node.port] = node
        return node

    def _holds(self, port, slot):
        own = next(line for line in self._cli("-p", str(port), "CLUSTER", "NODES").splitlines() if "myself" in line)
        ranges = [part.split("-") for part in own.split()[8:] if "[" not in part]
        return any(int(part[0]) <= slot <= int(part[-1]) for part in ranges)

    def _is_followed(self, port):
        return "state=online" in self._replication(port)

    def _replication(self, port):
        return self._cli("-p", str(port), "INFO", "replication")

    @staticmethod
    def _cli(*words):
        done = subprocess.run(["redis-cli", *words], capture_output=True, text=True, timeout=60)
        return done.stdout


class Nginx:
    """nginx with a configuration in its http block, which may change while it runs."""

    def __init__(self, folder, block):
        folder.mkdir()
        self.folder = folder
        self.write(block)
        command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def write(self, block):
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = " ".join(f"{name}_temp_path {self.folder}/{name};" for name in
                             ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(
            f"{user} daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log;\n"
            f"events {{ worker_connections 4096; }}\nhttp {{ access_log off; {temporary}\n{block}\n}}\n")

    def reload(self, block):
        self.write(block)
        self.process.send_signal(signal.SIGHUP)


def certify(file):
    """Writes a key, and a certificate of localhost by it, into one file."""
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    both = ["-keyout", str(file), "-out", str(file)]
    subprocess.run([*command, *subject, *both], check=True, capture_output=True, timeout=30)


def shipped(port, hosts):
    """docs/nginx.conf, listening at a port, before these replicas."""
    text = (operations.ROOT / "docs/nginx.conf").read_text()
    text = text.replace("listen 8080;", f"listen 127.0.0.1:{port};")
    servers = re.compile(r"(?:    server (\S+) max_fails=0;\n)+")
    assert servers.search(text)
    return servers.sub("".join(f"    server {host} max_fails=0;\n" for host in hosts), text)
