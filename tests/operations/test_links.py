"""Links in hostile hands. Tokens are made here by the format that src/link.rs tells, a second time."""

import base64
import hashlib
import hmac
import json
import socket
import time
import urllib.parse

import pytest

SECRET, OTHER = b"o" * 32, b"x" * 32


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def mac(payload, secret=SECRET, domain=b"artifactd link v1\n", by="sha256"):
    return encoded(hmac.digest(secret, domain + payload.encode(), by))


def signed(claims, secret=SECRET):
    payload = encoded(json.dumps(claims, ensure_ascii=False, separators=(",", ":")).encode())
    return f"{payload}.{mac(payload, secret)}"


class Links:
    """A service with two projects, and a link of each to a file of the same name."""

    def __init__(self, folder, start):
        folder.put("t1", "out/報告.txt", b"of demo")
        file = folder.path / "store/other/t1/out/報告.txt"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"of other")
        (folder.path / "link.key").write_bytes(SECRET)
        keys = [{"id": "one", "secret_file": str(folder.path / "link.key")}]
        sections = {"links": {"keys": keys}, "log": {"format": "json", "filter": "trace"}}
        self.other_key = folder.make_key("foreign", "--project", "other", "--preset", "read-only")
        self.service = start(folder.settings(sections, public_url="http://files.example.com"))
        self.id, self.token = self.mint(self.service.key)
        self.other_id, self.other = self.mint(self.other_key)

    def mint(self, key):
        path = "/v1/trials/t1/artifacts/out~1%E5%A0%B1%E5%91%8A.txt/links"
        status, _, body = self.service.get(path, key=key, method="POST", data=b"")
        assert status == 201, body
        link = json.loads(body)
        return link["link_id"], urllib.parse.urlsplit(link["url"]).path.split("/")[3]

    def follow(self, token, method="GET"):
        """What somebody without a key gets: status, code, all that tells refusals apart."""
        status, headers, body = self.service.get(f"/v1/download/{token}/x", {"Authorization": "-"}, method=method)
        if status < 400:
            return status, body, None
        problem = json.loads(body)
        problem.pop("request_id")
        shown = {name.lower(): value for name, value in headers.items() if name.lower() not in ("date", "x-request-id")}
        return status, problem["code"], (problem, shown)

    def raw(self, head):
        """Sends a head that no client library would, and reads until the service closes."""
        host, port = self.service.host.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as sock:
            sock.sendall(f"{head}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            while sock.recv(1 << 16):
                pass


@pytest.fixture
def links(folder, start):
    return Links(folder, start)


def hostile(links):
    """Tokens that the service never made, by what is wrong with them."""
    payload, signature = links.token.split(".")
    foreign_payload, foreign_signature = links.other.split(".")
    claims, foreign = json.loads(decoded(payload)), json.loads(decoded(foreign_payload))
    yield "another's MAC", f"{payload}.{foreign_signature}"
    yield "another's payload", f"{foreign_payload}.{signature}"
    for field in claims:
        changed = claims | {field: claims[field] + 1 if field == "expires" else f"{claims[field]}x"}
        yield f"{field} changed", f"{encoded(json.dumps(changed).encode())}.{signature}"
        yield f"{field} of the other project", f"{encoded(json.dumps(claims | {field: foreign[field]}).encode())}.{signature}"
        less = {name: value for name, value in claims.items() if name != field}
        yield f"without {field}", f"{encoded(json.dumps(less).encode())}.{signature}"
        yield f"without {field}, signed", signed(less)
    yield "a field more, signed", signed(claims | {"admin": True})
    yield "a field twice, signed", signed_text(decoded(payload)[:-1] + b',"project":"other"}')
    yield "another key's name, signed", signed(claims | {"key": "two"})
    yield "another secret", signed(claims, OTHER)
    yield "an empty secret", signed(claims, b"")
    yield "a MAC without its domain", f"{payload}.{mac(payload, domain=bytes())}"
    yield "SHA-1", f"{payload}.{mac(payload, by='sha1')}"
    yield "a plain hash", f"{payload}.{encoded(hashlib.sha256(payload.encode()).digest())}"
    yield "a MAC of zeros", f"{payload}.{encoded(bytes(32))}"
    yield "an empty MAC", f"{payload}."
    yield "no MAC", payload
    yield "two MACs", f"{links.token}.{signature}"
    yield "padding", f"{links.token}="
    yield "no JSON, signed", signed_text(b"\xff\xfe")
    yield "a number, signed", signed_text(b"7")
    yield "depth, signed", signed_text(b"[" * 3000)
    for name in ("../secret", "/etc/passwd", "a\\b", "", "a//b", "C:x", "a\0b"):
        yield f"the name {name!r}, signed", signed(claims | {"name": name})
    for field, value in (("project", "../other"), ("trial", ".."), ("trial", ""), ("workspace", "a/b"), ("link", "7")):
        yield f"the {field} {value!r}, signed", signed(claims | {field: value})
    for expires in (-1, 1.5, "9999999999", 2**64, None):
        yield f"the expiry {expires!r}, signed", signed(claims | {"expires": expires})
    for length in (1, 10, len(payload) - 1, len(payload) + 1, len(links.token) - 1):
        yield f"the first {length} characters", links.token[:length]
    yield "the last character missing from the payload", f"{payload[:-1]}.{signature}"
    yield "a character escaped", f"%{ord(payload[0]):02X}{links.token[1:]}"
    yield "another case", links.token.swapcase()


def signed_text(json_bytes):
    payload = encoded(json_bytes)
    return f"{payload}.{mac(payload)}"


def test_all_that_is_wrong_with_a_token_looks_the_same(links):
    assert links.follow(links.token)[:2] == (200, b"of demo")
    assert links.follow(links.other)[:2] == (200, b"of other")
    shown = {}
    for what, token in hostile(links):
        status, code, rest = links.follow(token)
        assert (status, code) == (403, "LINK_INVALID"), what
        shown[what] = rest
    first = next(iter(shown.values()))
    assert {what for what, rest in shown.items() if rest != first} == set(), "refusals that can be told apart"
    assert len(shown) > 70


def test_what_is_signed_and_dead_opens_nothing(links):
    claims = json.loads(decoded(links.token.split(".")[0]))
    foreign = json.loads(decoded(links.other.split(".")[0]))
    assert signed(claims) == links.token, "the format is as it is told"
    for change, want in [
        ({"expires": int(time.time()) - 1}, "LINK_EXPIRED"),
        ({"expires": 0}, "LINK_EXPIRED"),
        ({"etag": '"x"'}, "LINK_STALE"),
        ({"name": "gone"}, "LINK_STALE"),
        ({"issuer": "nobody"}, "LINK_REVOKED"),
        # Of each project, what the other's key asked for, and what the other's books have.
        ({"project": "other"}, "LINK_REVOKED"),
        ({"project": "other", "issuer": "foreign", "etag": foreign["etag"]}, "LINK_REVOKED"),
        ({"link": foreign["link"]}, "LINK_REVOKED"),
    ]:
        assert links.follow(signed(claims | change))[:2] == (410, want), change
    deleted = links.service.get(f"/v1/links/{links.other_id}", method="DELETE")[0]
    assert deleted == 404, "the other project's link is not this one's to revoke"
    assert links.follow(links.other)[0] == 200
    assert links.service.get(f"/v1/links/{links.id}", method="DELETE")[0] == 204
    for _ in range(3):
        assert links.follow(links.token)[:2] == (410, "LINK_REVOKED"), "revoked once, dead for good"
    assert links.follow(links.other)[0] == 200
    assert links.service.json("/v1/quota/audit/verify")["charged_bytes"] == 0


def test_no_token_is_logged_whatever_is_wrong_with_it(links):
    tokens = [token for _, token in hostile(links)] + [links.token, links.other]
    for token in tokens:
        links.follow(token)
    claims = json.loads(decoded(links.token.split(".")[0]))
    expired = signed(claims | {"expires": 1})
    links.follow(expired)
    for head in [
        "GET http://elsewhere.example/v1/download/{}/x HTTP/1.1",
        "GET /v1/download/{}/x/y HTTP/1.1",
        "GET /v1/download/{}/ HTTP/1.1",
        "GET /v1/download//{}/x HTTP/1.1",
        "GET //v1/download/{}/x HTTP/1.1",
        "GET /v1/download%2F{}/x HTTP/1.1",
        "GET /v1/download?token={} HTTP/1.1",
        "GET /v1/trials/{}/artifacts HTTP/1.1",
        "GET /v1/trials/t1/artifacts?cursor={} HTTP/1.1",
        "GET /v1/quota/audit?key_id={} HTTP/1.1",
        "DELETE /v1/links/{} HTTP/1.1",
        "OPTIONS /v1/download/{}/x HTTP/1.1",
        "CONNECT {}:443 HTTP/1.1",
        "{} / HTTP/1.1",
        "GET /v1/download/{}/x HTTP/0.7",
        "GET /v1/me HTTP/1.1\r\nAuthorization: Bearer {}",
        "GET /v1/me HTTP/1.1\r\nCookie: link={}",
        "GET /v1/me HTTP/1.1\r\nReferer: http://files.example.com/v1/download/{}/x",
        "GET /v1/me HTTP/1.1\r\nX-{}: 1",
        "GET /v1/download/{}/x HTTP/1.1\r\nIf-Range: x\r\nRange: bytes=0-1",
    ]:
        links.raw(head.format(links.token))
    log = links.service.stop()
    assert '"level":"TRACE"' in log or '"level":"DEBUG"' in log
    for token in [*tokens, expired]:
        for secret in token.split("."):
            assert len(secret) < 20 or secret not in log, token
