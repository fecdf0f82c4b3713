"""An S3 store that errs while it is read, behind the service as it runs: no client takes a wrong file for a
right one, and the charge is what went out.
"""

import io
import json
import socket
import time
import urllib.request
import zipfile

import pytest

import faulty_s3
from conftest import s3_server, until

MIB = 1 << 20
SIZE = 3 * MIB
# Every four bytes tell where they stand and of which version they are.
OLD, NEW = (b"".join((number | version << 31).to_bytes(4, "big") for number in range(SIZE // 4)) for version in (0, 1))
FIRST, LAST = 100_001, 2_500_000
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
HEALED, CUT, REPLACED = "the right file", "a cut", "the new file"
REFUSED = "STORE_UNAVAILABLE"


def put(url, name, content):
    request = urllib.request.Request(f"{url}/bucket/demo/t1/{name}", data=content, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """A bucket with the file `a`, and the proxy before it."""
    with s3_server(tmp_path_factory.mktemp("moto")) as url:
        bucket = urllib.request.Request(f"{url}/bucket", data=b"", method="PUT")
        urllib.request.urlopen(bucket, timeout=30).close()
        with faulty_s3.before(url) as proxy:
            proxy.behind = url
            yield proxy


@pytest.fixture
def service(s3, folder, start):
    s3.err()
    put(s3.behind, "a", OLD)
    return start(folder.settings({"store": {"url": "s3://bucket"}}), **KEYS, AWS_ENDPOINT_URL=s3.url)


class Got:
    """What came over the wire until the service closed."""

    def __init__(self, service, path, extra=""):
        host, port = service.host.rsplit(":", 1)
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {service.key}\r\n{extra}\r\n"
        data = bytearray()
        with socket.create_connection((host, int(port)), timeout=120) as sock:
            sock.sendall(request.encode())
            while some := sock.recv(1 << 18):
                data += some
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.body = body
        # What HTTP calls a complete answer (RFC 9112 §8): as much as was promised.
        self.whole = len(body) == int(self.headers["content-length"])


def charged(service):
    """The bytes used, once all is settled; the entries agree with them."""
    sums = until("all is settled", lambda: (sums := service.json("/v1/quota/audit/verify"))["leases"] == 0 and sums, 90)
    assert sums["balanced"] and sums["charged_bytes"] == sums["used_bytes"]
    return sums["used_bytes"]


def cut(*after, stalls=False):
    """The n-th answer is cut after so many bytes; further ones as the last."""

    def fault(answer, number):
        answer.cut, answer.stalls = after[min(number, len(after) - 1)], stalls

    return fault


def first(fault):
    """Only the first answer errs."""
    return lambda answer, number: fault(answer, number) if number == 0 else None


def then(begin, fault):
    """The first answer is cut after so many bytes; those that are to go on from there err."""
    return lambda answer, number: cut(begin)(answer, 0) if number == 0 else fault(answer, number)


def status(code, **headers):
    def fault(answer, _):
        answer.status, answer.body = code, b"<Error><Code>Told</Code></Error>"
        answer.headers = {"content-length": str(len(answer.body))} | headers

    return fault


def longer(answer, _):
    """More than was asked for, by its own account."""
    answer.body += b"more"
    answer.headers["content-length"] = str(len(answer.body))


def runs_over(answer, _):
    """More than its length says."""
    answer.body += b"more" * 1000


def chunks(more=b"", without=0):
    """Chunks, whose end says nothing of a length: more than there is, or less."""

    def fault(answer, _):
        answer.chunked = True
        answer.body = answer.body[: len(answer.body) - without] + more

    return fault


def header(name, change):
    """A header field changed, or left out."""

    def fault(answer, _):
        value = change(answer.headers.get(name, ""))
        if value is None:
            answer.headers.pop(name, None)
        else:
            answer.headers[name] = value

    return fault


def moved(by):
    """A part from elsewhere, which says so."""

    def change(value):
        span, total = value.removeprefix("bytes ").split("/")
        begin, end = map(int, span.split("-"))
        return f"bytes {begin + by}-{end + by}/{total}"

    return header("content-range", change)


def whole(answer, _):
    """All of the file, whatever part was asked for."""
    answer.status, answer.body = 200, OLD
    answer.headers["content-length"] = str(SIZE)
    answer.headers.pop("content-range", None)


def unguarded(answer, _):
    """The new version, whatever version was asked for."""
    answer.status, answer.body = 200, NEW
    answer.headers |= {"content-length": str(SIZE), "etag": '"new"'}
    answer.headers.pop("content-range", None)


# What the store does, what a whole read gets, what a part gets.
FAULTS = {
    "nothing": (None, HEALED, HEALED),
    "cuts once": (cut(MIB, None), HEALED, HEALED),
    "cuts thrice": (cut(MIB, 1000, 0, None), HEALED, HEALED),
    "cuts before the first byte, then never": (cut(0, None), HEALED, HEALED),
    "cuts, then answers nothing but cuts": (cut(MIB, 0), CUT, CUT),
    "500 once": (first(status(500)), HEALED, HEALED),
    "503 once": (first(status(503)), HEALED, HEALED),
    "500 always": (status(500), REFUSED, REFUSED),
    "503 always": (status(503), REFUSED, REFUSED),
    "403": (status(403), REFUSED, REFUSED),
    "cuts, then 500 once": (then(MIB, lambda answer, n: status(500)(answer, n) if n < 2 else None), HEALED, HEALED),
    "cuts, then 500": (then(MIB, status(500)), CUT, CUT),
    "cuts, then 504": (then(MIB, status(504)), CUT, CUT),
    "cuts, then 404": (then(MIB, status(404)), CUT, CUT),
    "cuts, then 412": (then(MIB, status(412)), CUT, CUT),
    "cuts, then begins anew": (then(MIB, whole), CUT, CUT),
    "cuts, then goes on elsewhere": (then(MIB, moved(-4)), CUT, CUT),
    "cuts, then goes on with another version": (then(MIB, unguarded), CUT, CUT),
    "cuts, then runs over": (then(MIB, longer), CUT, CUT),
    "sends more, and says so": (longer, "ARTIFACT_CHANGED", CUT),
    "sends more than it says": (runs_over, HEALED, HEALED),
    "sends chunks": (chunks(), REFUSED, HEALED),
    "sends more in chunks": (chunks(more=b"more"), REFUSED, CUT),
    "sends less in chunks": (chunks(without=1), REFUSED, CUT),
    "sends another version": (unguarded, "ARTIFACT_CHANGED", "ARTIFACT_CHANGED"),
    "tells another part": (moved(4), HEALED, REFUSED),
    "sends the whole for a part": (whole, HEALED, REFUSED),
    "tells no part": (header("content-range", lambda _: None), HEALED, REFUSED),
    "tells a nonsense part": (header("content-range", lambda value: value and "bytes x-y/z"), HEALED, REFUSED),
    "tells another total": (
        header("content-range", lambda value: value and value.replace(f"/{SIZE}", f"/{SIZE + 1}")), HEALED, "ARTIFACT_CHANGED",
    ),
    "tells no version": (header("etag", lambda _: None), "ARTIFACT_CHANGED", "ARTIFACT_CHANGED"),
    "tells a weak version": (header("etag", lambda value: f"W/{value}"), "ARTIFACT_CHANGED", "ARTIFACT_CHANGED"),
    "packs it": (header("content-encoding", lambda _: "gzip"), "ARTIFACT_ENCODED", "ARTIFACT_ENCODED"),
}


def judge(got, want, right, cost):
    """Holds an answer against what is wanted, and its cost against what came."""
    if want in (HEALED, REPLACED):
        assert got.status in (200, 206) and got.whole, (got.status, len(got.body))
        assert got.body == right, "the bytes are others"
    elif want == CUT:
        assert got.status in (200, 206) and not got.whole, (got.status, len(got.body))
        assert got.body == right[: len(got.body)], "what came before the cut is wrong"
    else:
        assert (json.loads(got.body)["code"], cost) == (want, 0)
        return
    assert cost == len(got.body)


@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("name", FAULTS)
def test_what_a_client_gets_when_the_store(service, s3, name, part):
    fault, *wants = FAULTS[name]
    s3.err(fault)
    extra = f"Range: bytes={FIRST}-{LAST}\r\n" if part else ""
    got = Got(service, "/v1/trials/t1/artifacts/a/content", extra)
    right = OLD[FIRST : LAST + 1] if part else OLD
    judge(got, wants[part], right, charged(service))
    assert s3.gets, "the store was asked"
