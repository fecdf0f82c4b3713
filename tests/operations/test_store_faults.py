"""An S3 store that errs while it is read, behind the service as it runs: no client takes a wrong file for a
right one, and the charge is what went out.
"""

import io
import json
import os
import socket
import urllib.request
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

import faulty_s3
from conftest import Folder, Service, end, s3_server, until

MIB = 1 << 20
SIZE = MIB
# Every four bytes tell where they stand and of which version they are.
OLD, NEW = (b"".join((number | version << 31).to_bytes(4, "big") for number in range(SIZE // 4)) for version in (0, 1))
# Where the store cuts; the ends of a part.
MID = 400_000
FIRST, LAST = 100_001, 900_000
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
HEALED, CUT = "the right file", "a cut"
REFUSED = "STORE_UNAVAILABLE"


def put(url, content):
    # What urllib sends by default makes the server look for the fields of a form.
    request = urllib.request.Request(url, content, {"Content-Type": "application/octet-stream"}, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


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
    """A header field of the answer changed, or left out."""

    def fault(answer, _):
        value = change(answer.headers.pop(name)) if name in answer.headers else None
        if value is not None:
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


def packed(answer, _):
    answer.headers["content-encoding"] = "gzip"


def unguarded(answer, _):
    """The new version, whatever version was asked for."""
    answer.status, answer.body = 200, NEW
    answer.headers |= {"content-length": str(SIZE), "etag": '"new"'}
    answer.headers.pop("content-range", None)


# What the store does, what a whole read gets, what a part gets.
FAULTS = {
    "nothing": (None, HEALED, HEALED),
    "cuts once": (cut(MID, None), HEALED, HEALED),
    "cuts thrice": (cut(MID, 1000, 0, None), HEALED, HEALED),
    "cuts before the first byte, then never": (cut(0, None), HEALED, HEALED),
    "cuts, then answers nothing but cuts": (cut(MID, 0), CUT, CUT),
    "500 once": (first(status(500)), HEALED, HEALED),
    "503 once": (first(status(503)), HEALED, HEALED),
    "500 always": (status(500), REFUSED, REFUSED),
    "503 always": (status(503), REFUSED, REFUSED),
    "403": (status(403), REFUSED, REFUSED),
    "cuts, then 500 once": (then(MID, lambda answer, n: status(500)(answer, n) if n < 2 else None), HEALED, HEALED),
    "cuts, then 500": (then(MID, status(500)), CUT, CUT),
    "cuts, then 504": (then(MID, status(504)), CUT, CUT),
    "cuts, then 404": (then(MID, status(404)), CUT, CUT),
    "cuts, then 412": (then(MID, status(412)), CUT, CUT),
    "cuts, then begins anew": (then(MID, whole), CUT, CUT),
    "cuts, then goes on elsewhere": (then(MID, moved(-4)), CUT, CUT),
    "cuts, then goes on with another version": (then(MID, unguarded), CUT, CUT),
    "cuts, then runs over": (then(MID, longer), CUT, CUT),
    "sends more, and says so": (longer, "ARTIFACT_CHANGED", CUT),
    "sends more than it says": (runs_over, HEALED, HEALED),
    "sends chunks": (chunks(), REFUSED, REFUSED),
    "sends more in chunks": (chunks(more=b"more"), REFUSED, REFUSED),
    "sends less in chunks": (chunks(without=1), REFUSED, REFUSED),
    "sends another version": (unguarded, "ARTIFACT_CHANGED", REFUSED),
    "tells another part": (moved(4), HEALED, REFUSED),
    "sends the whole for a part": (whole, HEALED, REFUSED),
    "tells no part": (header("content-range", lambda _: None), HEALED, REFUSED),
    "tells a nonsense part": (header("content-range", lambda _: "bytes x-y/z"), HEALED, REFUSED),
    "tells another total": (
        header("content-range", lambda value: value.replace(f"/{SIZE}", f"/{SIZE + 1}")), HEALED, "ARTIFACT_CHANGED",
    ),
    "tells no version": (header("etag", lambda _: None), "ARTIFACT_CHANGED", "ARTIFACT_CHANGED"),
    "tells a weak version": (header("etag", lambda value: f"W/{value}"), "ARTIFACT_CHANGED", "ARTIFACT_CHANGED"),
    "packs it": (packed, "ARTIFACT_ENCODED", "ARTIFACT_ENCODED"),
}

# These take as long as the service is patient with a store: 20 s, and 60.
if "SOAK_SECONDS" in os.environ:
    FAULTS |= {
        "stalls once": (first(cut(MID, stalls=True)), HEALED, HEALED),
        "stalls": (cut(MID, 0, stalls=True), CUT, CUT),
        "never answers with a byte": (cut(0, stalls=True), CUT, CUT),
    }

# The second of three files of a trial, and whether its archive arrives whole.
ARCHIVES = {"cuts once": (cut(MID, None), True), "cuts, then 500": (then(MID, status(500)), False)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of every fault, all at once: (fault, part?) → the answer, its cost, how often the store was asked;
    and of every archive."""
    cases = {f"case-{number}-{part:d}": (name, part) for number, name in enumerate(FAULTS) for part in (False, True)}
    trials = {f"zip-{number}": name for number, name in enumerate(ARCHIVES)}

    def ask(service, case):
        if case in trials:
            return Got(service, f"/v1/trials/{case}/archive")
        extra = f"Range: bytes={FIRST}-{LAST}\r\n" if cases[case][1] else ""
        return Got(service, f"/v1/trials/t1/artifacts/{case}/content", extra)

    with ExitStack() as running:
        url = running.enter_context(s3_server(tmp_path_factory.mktemp("moto")))
        proxy = running.enter_context(faulty_s3.before(url))
        put(f"{url}/bucket", b"")
        for case, (name, _) in cases.items():
            put(f"{url}/bucket/demo/t1/{case}", OLD)
            proxy.faults[case] = FAULTS[name][0]
        for trial, name in trials.items():
            for file in ("a", f"b-{trial}", "c"):
                put(f"{url}/bucket/demo/{trial}/{file}", OLD)
            proxy.faults[f"b-{trial}"] = ARCHIVES[name][0]
        folder = Folder(tmp_path_factory.mktemp("service"))
        variables = KEYS | {"AWS_ENDPOINT_URL": proxy.url}
        service = Service(folder, folder.settings({"store": {"url": "s3://bucket"}}), variables)
        running.callback(end, service.process)
        with ThreadPoolExecutor(len(cases) + len(trials)) as pool:
            answers = dict(pool.map(lambda case: (case, ask(service, case)), [*cases, *trials]))
        sums = until("all is settled", lambda: (sums := service.json("/v1/quota/audit/verify"))["leases"] == 0 and sums)
        assert sums["balanced"] and sums["charged_bytes"] == sums["used_bytes"]
        entries = service.get("/v1/quota/audit", {"Accept": "application/x-ndjson"})[2].splitlines()
        costs = Counter()
        for entry in map(json.loads, entries):
            costs[entry["trial_id"] if entry["artifact"] == "*" else entry["artifact"]] += entry["charged_bytes"]
        assert sums["charged_bytes"] == sum(costs.values())
        lines = service.lines()
        for got in answers.values():
            got.log = [line for line in lines if line.get("request_id") == got.headers["x-request-id"]]
        return {(cases | trials)[case]: (got, costs[case], proxy.gets[case]) for case, got in answers.items()}


@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("name", FAULTS)
def test_what_a_client_gets_when_the_store(outcomes, name, part):
    want = FAULTS[name][1 + part]
    got, cost, asked = outcomes[name, part]
    right = OLD[FIRST : LAST + 1] if part else OLD
    assert asked, "the store was not asked"
    if want == HEALED:
        assert got.status == (206 if part else 200), got.body[:500]
        assert got.whole and got.body == right, "a wrong or a cut file"
    elif want == CUT:
        assert got.status == (206 if part else 200), got.body[:500]
        assert not got.whole, "a clean end"
        assert got.body == right[: len(got.body)], "what came before the cut is wrong"
    else:
        assert (json.loads(got.body)["code"], cost) == (want, 0)
        return
    assert cost == len(got.body), "the charge is what went out"


@pytest.mark.parametrize("name", [name for name, (_, whole, _) in FAULTS.items() if whole == CUT])
def test_the_log_says_why_it_was_cut_when_the_store(outcomes, name):
    got, cost, _ = outcomes[name, False]
    (why,) = [line for line in got.log if line.get("message") == "the answer was cut"]
    assert (why["level"], "STORE_UNAVAILABLE" in why["error"]) == ("ERROR", True)
    (line,) = [line for line in got.log if line.get("target") == "artifactd::access"]
    assert (line["status"], line["bytes"], line["charge"]) == (200, cost, cost), "the client stayed"


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_of_which_the_store(outcomes, name):
    got, cost, _ = outcomes[name]
    assert (got.status, got.whole, cost) == (200, ARCHIVES[name][1], len(got.body))
    if got.whole:
        with zipfile.ZipFile(io.BytesIO(got.body)) as opened:
            assert [opened.read(name) == OLD for name in opened.namelist()] == [True] * 3
    else:
        # The first file and what had come of the second, and no directory that would make it a sound archive.
        assert SIZE + MID <= cost < SIZE + MID + 1000 and b"PK\x01\x02" not in got.body
