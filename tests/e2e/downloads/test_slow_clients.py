"""Clients by the hundred that take a gigabyte in drips, or leave: what they cost, and what is left of them.

SLOW_CLIENTS says how many there are, and SOAK_SECONDS how long they go on; without it they go on in short.
"""

import json
import os
import selectors
import socket
import time
import urllib.parse

import operations
import pytest
import scale

CLIENTS = int(os.environ.get("SLOW_CLIENTS", "500"))
SECONDS = float(os.environ.get("SOAK_SECONDS", "0"))
GIB = 1 << 30
# What each takes before it stops, and how often it then takes a little: it has had frames of every size.
WARM_UP = 2 << 20
DRIPS = 5
# All of the process: what it needs for itself and for buffers that it lends, and what it holds for each of
# them. For a thousand that is 150 MB.
MEMORY = (62 << 20) + CLIENTS * (83 << 10)
# What TLS with the store takes beside: a record that has come in part, and one that was not read to its end.
TLS = CLIENTS * (16 << 10)


def memory(pid):
    """Resident bytes of a process: now."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))


def client(url, key):
    """One that has asked for the whole file through a small window."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    address = urllib.parse.urlsplit(url)
    sock.connect((address.hostname, address.port))
    path = "/v1/trials/t__1/artifacts/large.bin/content"
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    sock.setblocking(False)
    return sock


def take(clients, each):
    """Reads until every client has had `each` further bytes."""
    left = dict.fromkeys(clients, each)
    deadline = time.monotonic() + 300
    with selectors.DefaultSelector() as ready:
        for sock in clients:
            ready.register(sock, selectors.EVENT_READ)
        while left:
            assert time.monotonic() < deadline, f"{len(left)} clients still wait"
            for key, _ in ready.select(60):
                sock = key.fileobj
                got = len(sock.recv(min(left[sock], 64 << 10)))
                assert got, "an answer was cut"
                left[sock] -= got
                if not left[sock]:
                    del left[sock]
                    ready.unregister(sock)


def drip(service, key, bound=MEMORY):
    """What they do, with a service that has the large file and a small one."""
    idle = memory(service.process.pid)
    clients = []
    try:
        while len(clients) < CLIENTS:
            # Some at a time, so that none waits for its head as long as a store may take for one.
            come = [client(service.url, key) for _ in range(min(CLIENTS - len(clients), 50))]
            clients += come
            take(come, 1)
        take(clients, WARM_UP)
        assert json.loads(service.get("/v1/quota")[2])["open_reservations"] == CLIENTS
        most, slowest, drips, begun = 0, 0.0, 0, time.monotonic()
        while drips < DRIPS or time.monotonic() - begun < SECONDS:
            take(clients, 8 << 10)
            asked = time.monotonic()
            assert service.get("/v1/trials/t__1/artifacts/small.txt/content")[2] == b"small\n"
            assert service.get("/v1/me")[0] == 200
            slowest = max(slowest, time.monotonic() - asked)
            most = max(most, memory(service.process.pid))
            drips += 1
            time.sleep(min(SECONDS, 0.5))
        print(f"{CLIENTS} clients: {idle >> 20} MiB idle, {most >> 20} MiB, others wait {slowest * 1000:.0f} ms at most")
        assert most < bound
    finally:
        for sock in clients:
            sock.close()
    deadline = time.monotonic() + 60
    while (quota := json.loads(service.get("/v1/quota")[2]))["reserved_bytes"] > 0:
        assert time.monotonic() < deadline, f"still reserved: {quota}"
        time.sleep(0.02)
    assert quota["used_bytes"] >= CLIENTS * WARM_UP
    verified = json.loads(service.get("/v1/quota/audit/verify")[2])
    assert verified["balanced"] and verified["leases"] == 0
    audit = json.loads(service.get("/v1/quota/audit?outcome=aborted")[2])
    assert audit["totals"]["count"] == CLIENTS


def test_from_a_directory_they_cost_little_and_leave_nothing(start_demo, tmp_path):
    trial = tmp_path / "store/t__1"
    trial.mkdir(parents=True)
    with open(trial / "large.bin", "wb") as file:
        file.truncate(GIB)
    (trial / "small.txt").write_text("small\n")
    demo = start_demo(store=tmp_path / "store", daily_bytes="2 TiB")
    drip(demo, demo.keys["read_only"])


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_from_s3_they_cost_little_and_leave_nothing(scheme, folder, start, running):
    folder.put("t__1", "large.bin", GIB)
    folder.put("t__1", "small.txt", b"small\n")
    port = operations.free_port()
    # Its folders are buckets.
    tls = ""
    if scheme == "https":
        certificate = folder.path / "store.pem"
        scale.certify(certificate)
        tls = f"ssl; ssl_certificate {certificate}; ssl_certificate_key {certificate}"
    block = f"server {{ listen 127.0.0.1:{port} {tls}; location / {{ root {folder.path}; sendfile on; }} }}"
    objects = scale.Nginx(folder.path / "objects", block)
    # Its worker ends with it only if it ends in order.
    running.callback(operations.end, objects.process)
    running.callback(objects.process.wait, 30)
    running.callback(objects.process.terminate)
    operations.until("the store answers", lambda: operations.answers(port))
    settings = folder.settings({"store": {"url": "s3://store"}, "quota": {"daily_bytes": "2 TiB"}})
    service = start(
        settings,
        AWS_ENDPOINT_URL=f"{scheme}://127.0.0.1:{port}",
        AWS_ALLOW_HTTP="true",
        AWS_ALLOW_INVALID_CERTIFICATES="true",
        AWS_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )
    drip(service, service.key, MEMORY + TLS if tls else MEMORY)
