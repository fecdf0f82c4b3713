"""Clients that count what they receive, read by read, under request ids of their own."""

import hashlib
import http.client
import itertools
import json
import random
import threading
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field

# Clients of each kind, for each project.
EACH = 2
PAUSE = 0.005
# A slow client takes so much at a time, and then rests.
SIP, REST = 256 << 10, 0.02
AFTER_A_FAILURE = 0.05


@dataclass(slots=True)
class Read:
    """One request, and what came of it."""

    id: str
    project: str
    kind: str
    begun: float
    ended: float = 0.0
    received: int = 0
    clean: bool = False
    refused: bool = False
    wrong: bool = False
    said: str = ""


@dataclass
class Traffic:
    """Threads that read until they are told to stop."""

    address: tuple
    keys: dict
    files: dict
    reads: list = field(default_factory=list)

    each, pause = EACH, PAUSE

    def kinds(self, project):
        """What clients of a project do."""
        return self._whole, self._slow, self._range, self._window

    def connect(self):
        return http.client.HTTPConnection(*self.address, timeout=60)

    def __enter__(self):
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(project, kind, seed))
            for project in self.keys for kind in self.kinds(project) for seed in range(self.each)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def since(self, moment, project):
        """Clean reads of a project that began since a moment."""
        recent = itertools.takewhile(lambda read: read.ended >= moment, reversed(list(self.reads)))
        return sum(read.clean and read.begun >= moment and read.project == project for read in recent)

    def _run(self, project, kind, seed):
        chance = random.Random(f"{project} {kind.__name__} {seed}")
        connection = self.connect()
        while not self._over.is_set():
            read = Read(f"r-{uuid.uuid4()}", project, kind.__name__, time.monotonic())
            for last in (connection.sock is None, True):
                try:
                    kind(connection, read, chance)
                    break
                except (OSError, http.client.HTTPException) as error:
                    read.said = repr(error)
                    connection.close()
                    # A balancer that takes a new configuration closes connections at rest, one of which may just
                    # have been used: every client repeats what went out on one and was not answered (RFC 9112, 9.3.1).
                    if last or read.received or not isinstance(error, ConnectionError):
                        break
            read.ended = time.monotonic()
            self.reads.append(read)
            self._over.wait(self.pause if read.clean else AFTER_A_FAILURE)
        connection.close()

    def _ask(self, connection, read, method, path, body=None, **headers):
        headers |= {"Authorization": f"Bearer {self.keys[read.project]}", "X-Request-Id": read.id}
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def _body(self, answer, read, rest=0):
        """The body as far as it comes; whether it is whole shows by its length."""
        parts = []
        while part := answer.read(SIP):
            parts.append(part)
            read.received += len(part)
            time.sleep(rest)
        body = b"".join(parts)
        if len(body) != int(answer.headers.get("Content-Length", len(body))):
            raise http.client.IncompleteRead(body)
        return body

    def _refusal(self, answer, read):
        body = answer.read()
        try:
            read.said = json.loads(body)["code"]
        except (ValueError, KeyError):
            read.said = f"{answer.status} of the balancer"
        read.refused = read.said == "DOWNLOAD_QUOTA_EXCEEDED"

    def _whole(self, connection, read, chance):
        self._download(connection, read, chance.choice(list(self.files)), 0)

    def _slow(self, connection, read, _):
        self._download(connection, read, max(self.files, key=lambda name: len(self.files[name].content)), REST)

    def _download(self, connection, read, name, rest):
        answer = self._ask(connection, read, "GET", f"/v1/trials/t1/artifacts/{name}/content")
        if answer.status != 200:
            return self._refusal(answer, read)
        body = self._body(answer, read, rest)
        read.clean = True
        read.wrong = hashlib.sha256(body).digest() != self.files[name].digest

    def _range(self, connection, read, chance):
        name = chance.choice(list(self.files))
        content = self.files[name].content
        first = chance.randrange(len(content))
        last = min(first + chance.choice([1, 4096, 1 << 20]), len(content)) - 1
        answer = self._ask(connection, read, "GET", f"/v1/trials/t1/artifacts/{name}/content", Range=f"bytes={first}-{last}")
        if answer.status != 206:
            return self._refusal(answer, read)
        body = self._body(answer, read)
        read.clean = True
        read.wrong = body != content[first:last + 1]

    def _window(self, connection, read, chance):
        name = chance.choice(list(self.files))
        content = self.files[name].content
        offset, size = chance.randrange(len(content) - 8192), chance.choice([512, 8192])
        result = self._call(connection, read, name=name, offset=offset, max_bytes=size)
        if result is None:
            return
        text = result["content"][0]["text"]
        read.received, read.clean = size, True
        read.wrong = content[offset:offset + size].decode() not in text

    def _call(self, connection, read, tool="envloop_trial_artifact_read", **arguments):
        """The result of a tool; None, and why, where it is an error."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": {"trial_id": "t1"} | arguments}}
        answer = self._ask(connection, read, "POST", "/v1/mcp", json.dumps(call), **{"Content-Type": "application/json"})
        if answer.status != 200:
            return self._refusal(answer, read)
        result = json.loads(answer.read())["result"]
        if not result["isError"]:
            return result
        read.said = result["content"][0]["text"].partition(":")[0]
        read.refused = read.said == "DOWNLOAD_QUOTA_EXCEEDED"
        return None


class File:
    """Lines that differ, so that no piece can be taken for another."""

    def __init__(self, size, seed):
        chance = random.Random(seed)
        block = "".join(f"{chance.getrandbits(248):062x}\n" for _ in range(1024))
        lines = (f"{number:08}{block[number * 63 % (63 * 1024):][:55]}\n" for number in range(size // 64 + 1))
        self.content = "".join(lines).encode()[:size]
        self.digest = hashlib.sha256(self.content).digest()


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def entries(service, key, days):
    """The lines of the audit that a key sees, by request id."""
    lines = defaultdict(list)
    for day in days:
        headers = {"Accept": "application/x-ndjson", "Authorization": f"Bearer {key}"}
        status, _, body = service.get(f"/v1/quota/audit?day={day}", headers)
        assert status == 200, body
        for line in body.splitlines():
            line = json.loads(line)
            lines[line.get("request_id")].append(line)
    return lines
