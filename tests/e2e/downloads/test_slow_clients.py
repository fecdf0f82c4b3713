"""Clients by the hundred that take a gigabyte in drips, or leave: what they cost, and what is left of them.

SLOW_CLIENTS says how many there are.
"""

import json
import os
import selectors
import socket
import time
import urllib.parse

CLIENTS = int(os.environ.get("SLOW_CLIENTS", "500"))
GIB = 1 << 30
# What each takes before it stops, and how often it then takes a little: it has had frames of every size.
WARM_UP = 2 << 20
DRIPS = 5
# All of the process: what it needs for itself and for buffers that it lends, and what it holds for each of
# them. For a thousand that is 150 MB.
MEMORY = (62 << 20) + CLIENTS * (83 << 10)


def memory(pid):
    """Resident bytes of a process: now."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))


def client(demo):
    """One that has asked for the whole file through a small window."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    address = urllib.parse.urlsplit(demo.url)
    sock.connect((address.hostname, address.port))
    path = "/v1/trials/t__1/artifacts/large.bin/content"
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {demo.keys['read_only']}\r\n\r\n".encode())
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


def test_many_slow_clients_cost_little_and_leave_nothing(start_demo, tmp_path):
    trial = tmp_path / "store/t__1"
    trial.mkdir(parents=True)
    with open(trial / "large.bin", "wb") as file:
        file.truncate(GIB)
    (trial / "small.txt").write_text("small\n")
    demo = start_demo(store=tmp_path / "store", daily_bytes="2 TiB")
    idle = memory(demo.process.pid)
    clients = [client(demo) for _ in range(CLIENTS)]
    try:
        take(clients, WARM_UP)
        assert demo.quota()["open_reservations"] == CLIENTS
        most, slowest = 0, 0.0
        for _ in range(DRIPS):
            take(clients, 8 << 10)
            begun = time.monotonic()
            assert demo.get("/v1/trials/t__1/artifacts/small.txt/content")[2] == b"small\n"
            assert demo.get("/v1/me")[0] == 200
            slowest = max(slowest, time.monotonic() - begun)
            most = max(most, memory(demo.process.pid))
        print(f"{CLIENTS} clients: {idle >> 20} MiB idle, {most >> 20} MiB, others wait {slowest * 1000:.0f} ms at most")
        assert most < MEMORY
    finally:
        for sock in clients:
            sock.close()
    used = demo.settled(60)["used_bytes"]
    assert used >= CLIENTS * WARM_UP
    verified = json.loads(demo.get("/v1/quota/audit/verify")[2])
    assert verified["balanced"] and verified["leases"] == 0
    audit = json.loads(demo.get("/v1/quota/audit?outcome=aborted")[2])
    assert audit["totals"]["count"] == CLIENTS
