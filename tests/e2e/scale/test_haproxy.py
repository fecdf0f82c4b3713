"""docs/haproxy.cfg before three replicas: TLS, addresses, answers that are not buffered, and a restart of all."""

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time

import pytest

from conftest import certify, operations
from traffic import File, Traffic

MIB = 1 << 20
HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
DRAIN = 10
# A balancer of connections, which speaks the PROXY protocol; addresses of loopback stand for machines.
OUTER = "127.0.0.9"
CONTENT = "/v1/trials/t1/artifacts/{}/content"


class Installation:
    """Three replicas over one Redis and a directory, HAProxy before them."""

    def __init__(self, folder, redis, running):
        self.folder, self.running, self.server = folder, running, redis()
        self.replicas = [self.replica() for _ in range(3)]
        self.port = operations.free_port()
        self.certificate = folder.path / "artifactd.pem"
        certify(self.certificate)
        config = folder.path / "haproxy.cfg"
        config.write_text(self._shipped())
        checked = subprocess.run([HAPROXY, "-c", "-q", "-f", str(config)], capture_output=True, text=True, timeout=30)
        assert checked.returncode == 0 and not checked.stderr, checked.stderr
        self.log = folder.path / "haproxy.log"
        with open(self.log, "wb") as log:
            process = subprocess.Popen([HAPROXY, "-db", "-f", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        running.callback(operations.end, process)
        operations.until("it serves", lambda: operations.answers(self.port) and self.ask("/readyz")[0] == 200)

    def _shipped(self):
        """The example, with the addresses of this test, and a replica of each server's name."""
        text = (operations.ROOT / "docs/haproxy.cfg").read_text()
        for own, here in (("bind :443", f"bind 127.0.0.1:{self.port}"), ("192.0.2.0/24", OUTER),
                          ("/etc/haproxy/artifactd.pem", str(self.certificate))):
            assert own in text
            text = text.replace(own, here)
        for number, replica in enumerate(self.replicas, 1):
            text, found = re.subn(rf"server replica{number} \S+", f"server replica{number} {replica.host}", text)
            assert found == 1
        return text

    def replica(self, host="127.0.0.1:0", trusted=("127.0.0.1",)):
        config = self.folder.settings(
            {"ledger": {"url": f"redis://127.0.0.1:{self.server.port}"}, "limits": {"drain_seconds": DRAIN},
             "http": {"trusted_proxies": list(trusted)}}, listen=host)
        service = operations.Service(self.folder, config, {})
        self.running.callback(operations.end, service.process)
        return service

    @property
    def context(self):
        return ssl.create_default_context(cafile=self.certificate)

    def ask(self, path, headers=None, source="127.0.0.1"):
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=30, context=self.context,
                                                 source_address=(source, 0))
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.folder.key}"} | (headers or {}))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def client_of(self, request_id):
        """From where a replica says that a request came."""
        def line():
            lines = (line for replica in self.replicas for line in replica.lines())
            return next((line for line in lines if line.get("request_id") == request_id), None)

        return operations.until("a line in a log", line)["client"]


@pytest.fixture
def installation(tmp_path, redis, running):
    folder = operations.Folder(tmp_path)
    folder.put("t1", "a", b"hello")
    return Installation(folder, redis, running)


def test_tls_in_both_versions_of_http(installation):
    """And the path of a link is in no log."""
    assert installation.ask(CONTENT.format("a"))[2] == b"hello"
    url = f"https://localhost:{installation.port}{CONTENT.format('a')}?secret-in-the-query=1"
    command = ["curl", "--silent", "--http2", "--cacert", str(installation.certificate), "--write-out", "%{http_version}",
               "--header", f"Authorization: Bearer {installation.folder.key}", url]
    fetched = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert fetched.stdout == "hello2"
    log = operations.until("its log", lambda: (text := installation.log.read_text()).count(" GET 200 ") >= 2 and text)
    assert "secret" not in log and "artifacts" not in log


def test_the_log_shows_from_where_a_request_comes(installation):
    claims = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    path = CONTENT.format("a")
    assert installation.ask(path, {"X-Request-Id": "honest"}, source="127.0.0.2")[0] == 200
    assert installation.client_of("honest") == "127.0.0.2"
    assert installation.ask(path, claims | {"X-Request-Id": "made-up"}, source="127.0.0.2")[0] == 200
    assert installation.client_of("made-up") == "127.0.0.2"

    # Past the balancer: the replica believes no one that is not configured.
    replica = installation.replicas[0]
    host, port = replica.host.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=30, source_address=("127.0.0.3", 0))
    past = claims | {"X-Request-Id": "past", "Authorization": f"Bearer {replica.key}"}
    connection.request("GET", "/v1/me", headers=past)
    assert connection.getresponse().read()
    assert installation.client_of("past") == "127.0.0.3"

    # A replica that trusts nobody names the balancer.
    replica.stop(DRAIN + 5)
    installation.replicas[0] = installation.replica(replica.host, trusted=())
    for other in installation.replicas[1:]:
        other.stop(DRAIN + 5)
    headers = {"X-Request-Id": "untrusting"}
    operations.until("it is alone", lambda: installation.ask(path, headers, source="127.0.0.2")[0] == 200)
    assert installation.client_of("untrusting") == "127.0.0.1"


def through_proxy_protocol(installation, source, request_id):
    """A request behind a PROXY line; what comes back, or None if that is the end of the connection."""
    with socket.create_connection(("127.0.0.1", installation.port), timeout=30, source_address=(source, 0)) as sock:
        sock.sendall(b"PROXY TCP4 198.51.100.7 127.0.0.1 40000 443\r\n")
        try:
            with installation.context.wrap_socket(sock, server_hostname="localhost") as tls:
                head = f"GET /v1/me HTTP/1.1\r\nHost: x\r\nX-Request-Id: {request_id}\r\nConnection: close\r\n"
                tls.sendall(f"{head}Authorization: Bearer {installation.folder.key}\r\n\r\n".encode())
                return tls.recv(1 << 16)
        except (ssl.SSLError, OSError):
            return None


def test_the_proxy_protocol_is_for_the_configured_balancer_alone(installation):
    answer = through_proxy_protocol(installation, OUTER, "outer")
    assert answer and answer.startswith(b"HTTP/1.1 200 "), answer
    assert installation.client_of("outer") == "198.51.100.7"
    assert through_proxy_protocol(installation, "127.0.0.2", "stranger") is None
    assert not any("stranger" in replica.log() for replica in installation.replicas)


def read_from_files(service):
    """Bytes that the process has read, so far."""
    with open(f"/proc/{service.process.pid}/io", encoding="ascii") as counts:
        return next(int(line.split()[1]) for line in counts if line.startswith("rchar:")) >> 16


def test_what_a_client_does_not_take_is_not_charged(installation):
    """Nothing collects answers: what is on its way are the buffers of the kernel and one of HAProxy's."""
    installation.folder.put("t1", "large", 512 * MIB)
    connection = http.client.HTTPSConnection("localhost", installation.port, timeout=30, context=installation.context)
    connection.request("GET", CONTENT.format("large"), headers={"Authorization": f"Bearer {installation.folder.key}"})
    answer = connection.getresponse()
    assert answer.status == 200 and len(answer.read(MIB)) == MIB
    # It takes no more, until nothing moves any more.
    read, still = 0, 0
    while still < 5:
        time.sleep(0.1)
        now = sum(map(read_from_files, installation.replicas))
        still, read = (still + 1, now) if now == read else (0, now)
    assert sum(replica.metrics()["artifactd_reads_open"] for replica in installation.replicas) == 1
    connection.close()
    operations.until("it is settled", lambda: json.loads(installation.ask("/v1/quota")[2])["reserved_bytes"] == 0)
    used = json.loads(installation.ask("/v1/quota")[2])["used_bytes"]
    assert MIB <= used < 64 * MIB, used


class OverTls(Traffic):
    """Clients of HAProxy."""

    context = None

    def connect(self):
        return http.client.HTTPSConnection(*self.address, timeout=60, context=self.context)


def test_all_replicas_are_restarted_and_no_request_fails(installation):
    files = {name: File(size, name) for name, size in (("small.log", 16 << 10), ("log", MIB + 7))}
    for name, file in files.items():
        installation.folder.put("t1", name, file.content)
    traffic = OverTls(("localhost", installation.port), {"demo": installation.folder.key}, files)
    traffic.context = installation.context
    with traffic:
        for index, replica in enumerate(installation.replicas):
            since = time.monotonic()
            operations.until("reads in peace", lambda: traffic.since(since, "demo") >= 100, 60)
            replica.stop(DRAIN + 5)
            since = time.monotonic()
            operations.until("reads by the others", lambda: traffic.since(since, "demo") >= 100, 60)
            installation.replicas[index] = back = installation.replica(replica.host)
            operations.until("it has work again", lambda: back.metrics()["artifactd_connections_open"] > 1
                             and any(line.get("target") == "artifactd::access" and line["status"] == 200
                                     and "content" in line["route"] for line in back.lines()), 60)
    assert not [read for read in traffic.reads if read.wrong or not read.clean], "reads that failed"
    print(f"{len(traffic.reads)} reads")
    sums = json.loads(operations.until("all is settled", lambda: (body := installation.ask("/v1/quota/audit/verify")[2])
                                       and json.loads(body)["leases"] == 0 and body))
    assert sums["balanced"]
