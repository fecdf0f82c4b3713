"""The end of a service: what can finish does, the rest is cut, everything is settled, in time."""

import json
import signal
import socket
import subprocess
import threading
import time

from conftest import answers, binary, end, environment, until

MIB = 1 << 20


def ask(service, name, window=8192):
    """Asks for a file through a small window, and reads nothing yet."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    host, port = service.host.rsplit(":", 1)
    sock.settimeout(60)
    sock.connect((host, int(port)))
    sock.sendall(f"GET /v1/trials/t1/artifacts/{name}/content HTTP/1.1\r\nHost: localhost\r\n"
                 f"Authorization: Bearer {service.key}\r\nConnection: close\r\n\r\n".encode())
    return sock


def read_all(sock, pause=0.0, piece=64 << 10, hurry=None):
    """The bytes of the body that arrive until the end, however that comes; without pauses once it has to hurry."""
    hurry = hurry or threading.Event()
    got = b""
    try:
        while chunk := sock.recv(piece):
            got += chunk
            hurry.wait(pause)
    except OSError:
        pass
    sock.close()
    return len(got.partition(b"\r\n\r\n")[2])


def books(folder):
    """What the account books say after the end, by a service of their own."""
    from conftest import Service

    service = Service(folder, folder.settings(), {})
    try:
        entries, cursor = [], ""
        while cursor is not None:
            page = service.json(f"/v1/quota/audit?limit=100{cursor and '&cursor=' + cursor}")
            entries += page["items"]
            cursor = page["next_cursor"]
        return entries, service.json("/v1/quota"), service.json("/v1/quota/audit/verify")
    finally:
        service.stop()


def test_fifty_slow_streams(folder, start):
    """25 of them can be read to the end in time, 25 cannot; a second request is refused meanwhile."""
    folder.put("t1", "small", 4 * MIB)
    folder.put("t1", "large", 64 * MIB)
    drain = 10
    service = start(folder.settings({"limits": {"drain_seconds": drain}}))
    can = [ask(service, "small") for _ in range(25)]
    cannot = [ask(service, "large") for _ in range(25)]
    until("50 reads", lambda: service.json("/v1/quota")["open_reservations"] == 50)
    begun = time.monotonic()
    service.signal()
    received, ended = {"small": [], "large": []}, threading.Event()
    readers = [threading.Thread(target=lambda s=s: received["small"].append(read_all(s, 0.001))) for s in can]
    readers += [threading.Thread(target=lambda s=s: received["large"].append(read_all(s, 0.5, 4096, ended))) for s in cannot]
    for reader in readers:
        reader.start()
    assert service.process.wait(drain + 10) == 0
    took = time.monotonic() - begun
    # What the system still holds of their answers is megabytes.
    ended.set()
    for reader in readers:
        reader.join()
    assert received["small"] == [4 * MIB] * 25
    assert all(0 < got < 64 * MIB for got in received["large"])
    assert took <= drain + 3, f"{took} s"
    assert "open answers are cut" in service.log() and "takes no more settles" not in service.log()
    entries, quota, sums = books(folder)
    assert sorted(entry["outcome"] for entry in entries) == ["aborted"] * 25 + ["completed"] * 25
    assert quota["reserved_bytes"] == 0 and sums["balanced"] and sums["leases"] == 0, sums
    cut = sum(entry["charged_bytes"] for entry in entries if entry["outcome"] == "aborted")
    assert cut >= sum(received["large"]) and quota["used_bytes"] == cut + 100 * MIB


def test_streams_that_end_are_not_waited_for_longer(folder, start):
    folder.put("t1", "small", 4 * MIB)
    service = start(folder.settings({"limits": {"drain_seconds": 60}}))
    sock = ask(service, "small")
    until("a read", lambda: service.json("/v1/quota")["open_reservations"] == 1)
    begun = time.monotonic()
    service.signal()
    assert read_all(sock) == 4 * MIB
    assert service.process.wait(30) == 0
    assert time.monotonic() - begun < 15


def test_while_draining_nobody_is_let_in(folder, start):
    folder.put("t1", "large", 64 * MIB)
    service = start(folder.settings({"limits": {"drain_seconds": 30}}))
    host, port = service.host.rsplit(":", 1)
    kept = socket.create_connection((host, int(port)), timeout=30)
    kept.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert kept.recv(4096).startswith(b"HTTP/1.1 200")
    stream = ask(service, "large")
    until("a read", lambda: service.json("/v1/quota")["open_reservations"] == 1)
    service.signal()
    until("it drains", lambda: "stopping" in service.log())
    assert kept.recv(4096) == b"", "a connection at rest is closed"
    until("nobody is let in", lambda: not answers(int(port)))
    assert service.process.poll() is None and len(stream.recv(4096)) > 0, "what runs goes on"
    service.signal()
    assert service.process.wait(10) == 0
    stream.close()


def test_told_twice_it_stops_at_once(folder, start):
    folder.put("t1", "large", 64 * MIB)
    service = start(folder.settings({"limits": {"drain_seconds": 600}}))
    streams = [ask(service, "large") for _ in range(10)]
    until("10 reads", lambda: service.json("/v1/quota")["open_reservations"] == 10)
    service.signal()
    until("it drains", lambda: "stopping" in service.log())
    assert service.process.poll() is None
    begun = time.monotonic()
    service.signal(signal.SIGINT)
    assert service.process.wait(10) == 0
    assert time.monotonic() - begun < 4
    entries, quota, sums = books(folder)
    assert [entry["outcome"] for entry in entries] == ["aborted"] * 10
    assert quota["reserved_bytes"] == 0 and sums["balanced"]
    [stream.close() for stream in streams]


def test_a_ledger_out_of_reach_does_not_prolong_the_end(folder, start, redis):
    folder.put("t1", "large", 64 * MIB)
    server = redis()
    drain = 5
    ledger = {"url": f"redis://127.0.0.1:{server.port}"}
    service = start(folder.settings({"ledger": ledger, "limits": {"drain_seconds": drain}}))
    stream = ask(service, "large")
    until("a read", lambda: service.json("/v1/quota")["open_reservations"] == 1)
    end(server)
    begun = time.monotonic()
    service.signal()
    assert service.process.wait(30) == 0
    took = time.monotonic() - begun
    assert took <= drain + 3, f"{took} s"
    assert "the ledger took no more settles" in service.log()
    stream.close()


def test_the_demo_stops_by_the_same_rules(tmp_path):
    command = [binary(), "demo", "--json", "--dir", str(tmp_path / "demo"), "--listen", "localhost:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    try:
        assert json.loads(process.stdout.readline())["url"].startswith("http://")
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.stdout.close()
        end(process)
