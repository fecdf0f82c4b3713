"""Many more connections than the cap: those that are in notice little, the others are told at once."""

import asyncio
import http.client
import json
import multiprocessing
import socket
import statistics
import time

from conftest import until

CAP = 32
# Clients that are in before the others come, and how often each asks.
REGULARS, ASKED = 8, 60
CROWD = 10 * CAP
# Refused connections that are open at one time.
SPARE = 64
PATH = "/v1/trials/t1/artifacts/a/content"
MIB = 1 << 20


def memory(service):
    lines = open(f"/proc/{service.process.pid}/status").read().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) << 10


def regulars(service):
    """Asks over connections that are kept; answers how long the answers took."""

    def one():
        connection = http.client.HTTPConnection(service.host, timeout=60)
        connection.connect()
        return connection

    connections, took = [one() for _ in range(REGULARS)], []

    def ask_all():
        for _ in range(ASKED):
            for connection in connections:
                begun = time.monotonic()
                connection.request("GET", PATH, headers={"Authorization": f"Bearer {service.key}"})
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (200, b"x" * 1000)
                took.append(time.monotonic() - begun)
        return took

    ask_all.close = lambda: [connection.close() for connection in connections]
    # The first request of each sees that it is in.
    for connection in connections:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    return ask_all


def crowd(host, key, over, answers):
    """A process of CROWD clients, each of which asks, and when it is refused comes again."""
    address, port = host.rsplit(":", 1)
    head = f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    seen = []

    async def client():
        while not over.is_set():
            begun = time.monotonic()
            reader, writer = await asyncio.open_connection(address, port)
            try:
                while not over.is_set():
                    writer.write(head)
                    lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
                    headers = dict(line.split(": ", 1) for line in lines[1:] if line)
                    body = await reader.readexactly(int(headers["content-length"]))
                    status = int(lines[0].split()[1])
                    code = json.loads(body)["code"] if status != 200 else None
                    seen.append((status, code, headers.get("retry-after"), headers.get("connection"),
                                 time.monotonic() - begun))
                    await asyncio.sleep(0.2)
                    if status != 200:
                        break
                    begun = time.monotonic()
            finally:
                writer.close()

    async def all_of_them():
        await asyncio.gather(*(client() for _ in range(CROWD)))

    asyncio.run(asyncio.wait_for(all_of_them(), 120))
    answers.put(seen)


class Crowd:
    def __init__(self, service):
        context = multiprocessing.get_context("fork")
        self.over, self.answers = context.Event(), context.Queue()
        self.process = context.Process(target=crowd, args=(service.host, service.key, self.over, self.answers), daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def seen(self):
        self.over.set()
        seen = self.answers.get(timeout=120)
        self.process.join(30)
        return seen

    def __exit__(self, *_):
        if self.process.is_alive():
            self.process.kill()


def test_ten_times_more_connections_than_the_cap(folder, start):
    folder.put("t1", "a", b"x" * 1000)
    service = start(folder.settings({"limits": {"connections": CAP}}))
    ask_all = regulars(service)
    calm = statistics.median(ask_all())
    sizes = []
    for _ in range(3):
        with Crowd(service) as others:
            until("it is full", lambda: service.metrics()["artifactd_connections_open"] >= CAP)
            crowded = statistics.median(ask_all())
            open_now = service.metrics()["artifactd_connections_open"]
            # Whoever looks after the service is let in, on connections of their own.
            assert all(service.get(path)[0] == 200 for path in ("/healthz", "/readyz", "/metrics"))
            seen = others.seen()
        sizes.append(memory(service))
        print(f"calm {calm * 1e3:.1f} ms, crowded {crowded * 1e3:.1f} ms, {open_now:.0f} open, {sizes[-1] / MIB:.1f} MiB")
        assert open_now <= CAP + SPARE
        # Generous: the crowd and the service share the cores.
        assert crowded < 20 * max(calm, 0.002), f"{crowded} s instead of {calm} s"
        let_in = [answer for answer in seen if answer[0] == 200]
        refused = [answer for answer in seen if answer[0] != 200]
        assert let_in and len(refused) > CROWD / 2
        assert {answer[:4] for answer in refused} == {(503, "OVERLOADED", "1", "close")}
        # At once: nobody waits for a place until some time is over.
        slowest = max(answer[4] for answer in refused)
        print(f"{len(let_in)} let in, {len(refused)} refused, the slowest after {slowest:.2f} s")
        assert slowest < 5
    assert sizes[-1] - sizes[0] < 8 * MIB, sizes
    refusals = service.metrics()['artifactd_refusals_total{code="OVERLOADED"}']
    assert refusals >= len(refused) and "the request failed" not in service.log()
    ask_all.close()
    until("there is room again", lambda: service.get(PATH)[0] == 200)
    until("all is settled", lambda: service.json("/v1/quota")["reserved_bytes"] == 0)
    assert service.json("/v1/quota/audit/verify")["balanced"]


def test_connections_that_rest_keep_nobody_out_who_is_in(folder, start):
    """They say nothing: the first take the places that are left, the others wait and give way by turns."""
    folder.put("t1", "a", b"x" * 1000)
    service = start(folder.settings({"limits": {"connections": CAP}}))
    ask_all = regulars(service)
    host, port = service.host.rsplit(":", 1)
    calm = statistics.median(ask_all())
    resting = [socket.create_connection((host, int(port)), timeout=60) for _ in range(CROWD)]
    crowded = statistics.median(ask_all())
    assert crowded < 20 * max(calm, 0.002), f"{crowded} s instead of {calm} s"
    # One that comes last gets its turn, though nobody before it has said a word.
    last = http.client.HTTPConnection(service.host, timeout=60)
    last.request("GET", "/readyz")
    assert last.getresponse().status == 200
    [connection.close() for connection in resting]
    ask_all.close()
