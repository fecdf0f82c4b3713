"""All that clients do, in good order and in bad: what is not the traffic of the scale test already."""

import base64
import http.client
import io
import json
import random
import struct
import urllib.parse
import zipfile
import zlib

from traffic import Traffic

CONTENT = "/v1/trials/t1/artifacts/{}/content"
# What a client that stalls takes before it does.
FIRST = 64 << 10
# Nobody turns more pages than for so many items. Agents are given a link with each description: there are many.
MANY = 200


def png(side=200):
    """A picture in which no line is like another."""
    chance = random.Random(side)
    lines = b"".join(b"\0" + chance.randbytes(3 * side) for _ in range(side))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    parts = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


class Surprise(http.client.HTTPException):
    """An answer that is another than the right one."""


def expect(right, *what):
    if not right:
        raise Surprise(*what)


class Mixture(Traffic):
    """Kinds beside those that read: `others` are files that are no lines of text, by name; clients of the
    project `scarce` only download; who says nothing for `stall` seconds is cut."""

    each, pause = 1, 0.2

    def __init__(self, *args, others, scarce, stall):
        super().__init__(*args)
        self.others, self.scarce, self.stall = others, scarce, stall

    def kinds(self, project):
        if project == self.scarce:
            return self._whole, self._range
        return (*super().kinds(project), self._listing, self._aborted, self._stalled, self._link, self._image,
                self._metadata, self._archive, self._refused, self._books)

    def _json(self, connection, read, path, want=200, method="GET", body=None, **headers):
        answer = self._ask(connection, read, method, path, body, **headers)
        content = answer.read()
        expect(answer.status == want, path, answer.status, content)
        return json.loads(content) if content else None

    def _result(self, connection, read, *tool, **arguments):
        result = self._call(connection, read, *tool, **arguments)
        expect(result is not None, read.said)
        return result

    def _pages(self, connection, read, path):
        items, cursor = [], None
        while True:
            more = f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""
            page = self._json(connection, read, path + more)
            items += page["items"]
            if not (cursor := page["next_cursor"]) or len(items) >= MANY:
                return items

    def _listing(self, connection, read, chance):
        items = self._pages(connection, read, f"/v1/trials/t1/artifacts?limit={chance.choice([1, 2, 100])}")
        called = self._result(connection, read, "envloop_trial_artifacts_list")["structuredContent"]["items"]
        sizes = {name: len(file.content) for name, file in self.files.items()}
        want = sorted((sizes | {name: len(content) for name, content in self.others.items()}).items())
        for listing in (items, called):
            read.wrong |= [(item["name"], item["size"]) for item in listing] != want
        trials = self._pages(connection, read, "/v1/trials?limit=1")
        read.wrong |= [item["trial_id"] for item in trials] != ["t1"]
        read.clean = True

    def _aborted(self, connection, read, chance):
        """One that has seen enough."""
        name, file = max(self.files.items(), key=lambda file: len(file[1].content))
        answer = self._ask(connection, read, "GET", CONTENT.format(name))
        expect(answer.status == 200, answer.status)
        part = answer.read(chance.randrange(len(file.content)))
        connection.close()
        self._took(read, part, file.content)

    def _stalled(self, connection, read, _):
        """One that stops to read, and is cut."""
        name, file = max(self.files.items(), key=lambda file: len(file[1].content))
        answer = self._ask(connection, read, "GET", CONTENT.format(name))
        expect(answer.status == 200, answer.status)
        part = answer.read(FIRST)
        self._over.wait(2 * self.stall)
        connection.close()
        self._took(read, part, file.content)

    @staticmethod
    def _took(read, part, content):
        read.received, read.clean, read.wrong = len(part), True, content[:len(part)] != part

    def _link(self, connection, read, chance):
        """Minted, listed, followed without a key, whole or in part, and often revoked."""
        name = chance.choice(list(self.files))
        content = self.files[name].content
        body = json.dumps({"expires_in_seconds": chance.choice([60, 900])})
        made = self._json(connection, read, f"/v1/trials/t1/artifacts/{name}/links", 201, "POST", body,
                          **{"Content-Type": "application/json"})
        path = urllib.parse.urlsplit(made["url"]).path
        listed = self._pages(connection, read, "/v1/links?limit=100")
        expect(len(listed) >= MANY or any(link["link_id"] == made["link_id"] for link in listed), "not listed", made["link_id"])
        first = chance.choice([0, chance.randrange(len(content))])
        connection.request("GET", path, headers={"X-Request-Id": read.id} | ({"Range": f"bytes={first}-"} if first else {}))
        answer = connection.getresponse()
        expect(answer.status == (206 if first else 200), answer.status)
        read.wrong = self._body(answer, read) != content[first:]
        if chance.random() < 0.7:
            self._json(connection, read, f"/v1/links/{made['link_id']}", 204, "DELETE")
            expect(self._json(connection, read, path, 410)["code"] == "LINK_REVOKED", "not revoked")
        read.clean = True

    def _image(self, connection, read, _):
        content = self.others["shot.png"]
        blocks = self._result(connection, read, name="shot.png")["content"]
        image = next(block for block in blocks if block["type"] == "image")
        self._took(read, base64.b64decode(image["data"]), content)
        read.wrong |= read.received != len(content)

    def _metadata(self, connection, read, _):
        """What is neither text nor an image is described."""
        text = self._result(connection, read, name="core.bin")["content"][0]["text"]
        item = self._json(connection, read, "/v1/trials/t1/artifacts/core.bin")
        read.wrong = item["size"] != len(self.others["core.bin"]) or "core.bin" not in text
        read.clean = True

    def _archive(self, connection, read, _):
        answer = self._ask(connection, read, "GET", "/v1/trials/t1/archive?prefix=s")
        expect(answer.status == 200, answer.status)
        want = {name: file.content for name, file in self.files.items()} | self.others
        with zipfile.ZipFile(io.BytesIO(self._body(answer, read))) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        read.wrong = found != {name: content for name, content in want.items() if name.startswith("s")}
        read.clean = True

    def _refused(self, connection, read, chance):
        small = CONTENT.format("small.log")
        status, method, path, headers = chance.choice([
            (401, "GET", "/v1/trials", {"Authorization": f"Bearer epk_{chance.randbytes(32).hex()}"}),
            (404, "GET", CONTENT.format(f"none-{chance.random()}"), {}),
            (404, "GET", f"/v1/trials/none-{chance.random()}/artifacts", {}),
            (416, "GET", small, {"Range": "bytes=999999999-"}),
            (412, "GET", small, {"If-Match": '"another"'}),
            (403, "GET", small, {"X-Project-ID": "another"}),
            (403, "GET", f"/v1/download/{chance.randbytes(60).hex()}.x/x", {}),
            (403, "PUT", f"/v1/projects/{read.project}/allowance", {}),
            (400, "GET", "/v1/trials?limit=0", {}),
            (405, "PUT", small, {}),
            (415, "POST", "/v1/mcp", {"Content-Type": "text/plain"}),
        ])
        headers = {"Authorization": f"Bearer {self.keys[read.project]}", "X-Request-Id": read.id} | headers
        connection.request(method, path, b"{}" if method != "GET" else None, headers)
        answer = connection.getresponse()
        answer.read()
        expect(answer.status == status, method, path, answer.status)
        read.clean = True

    def _books(self, connection, read, chance):
        """The account, and the audit page by page."""
        account = self._json(connection, read, "/v1/quota")
        self._json(connection, read, "/v1/quota/check?bytes=1")
        self._json(connection, read, "/v1/quota/history?days=7")
        # All of a day is much to read.
        if chance.random() < 0.05:
            self._json(connection, read, "/v1/quota/audit?group_by=channel")
            expect(self._json(connection, read, "/v1/quota/audit/verify")["balanced"], "not balanced")
        entries = self._pages(connection, read, "/v1/quota/audit?limit=50")
        read.wrong = account["used_bytes"] < 0 or len({entry["id"] for entry in entries}) != len(entries)
        read.clean = True
