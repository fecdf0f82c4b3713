"""Downloads by programs that people use, unchanged: curl, wget, Python requests; and what opens a ZIP."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
import zipfile

import pytest
import requests

UNPACK = {
    "unzip": lambda archive: [["unzip", "-tqq", archive]],
    "7z": lambda archive: [["7z", "t", "-bso0", "-bsp0", archive]],
    "bsdtar": lambda archive: [["bsdtar", "-tf", archive], ["bsdtar", "-xOf", archive]],
}


@pytest.fixture(scope="module")
def served(start_demo, tmp_path_factory):
    """A demo over one trial: a large file, an empty one, names of every kind."""
    store = tmp_path_factory.mktemp("store")
    trial = store / "t__1"
    content = b"".join(number.to_bytes(4, "little") for number in range(2_000_000))
    for name, data in {
        "large.bin": content,
        "empty": b"",
        "log.txt": b"a line\n" * 1000,
        "agent/100%.txt": b"percent",
        "agent/日本 é.txt": "語".encode(),
        "agent/it's \"quoted\".txt": b"quotes",
        "page.html": b"<script>document.title='ran'</script>",
    }.items():
        path = trial / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    demo = start_demo(store=store)
    demo.trial = trial
    deadline = time.monotonic() + 10
    # A young file has a weak validator, by which no download is resumed.
    while demo.get("/v1/trials/t__1/artifacts/large.bin/content", headers={"Range": "bytes=0-0"})[1]["ETag"].startswith("W/"):
        assert time.monotonic() < deadline, "the validator stays weak"
        time.sleep(0.1)
    return demo


def url(demo, name):
    artifact_id = name.replace("~", "~0").replace("/", "~1")
    return f"{demo.url}/v1/trials/t__1/artifacts/{urllib.parse.quote(artifact_id, safe='')}/content"


def link(demo, name, seconds=60):
    body = json.dumps({"expires_in_seconds": seconds}).encode()
    request = urllib.request.Request(url(demo, name).removesuffix("content") + "links", data=body, method="POST")
    request.add_header("Authorization", f"Bearer {demo.keys['read_only']}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 201
        return json.loads(answer.read())["url"]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, timeout=60, **options).stdout


def auth(demo):
    return f"Authorization: Bearer {demo.keys['read_only']}"


def test_curl(served, tmp_path):
    want = (served.trial / "large.bin").read_bytes()
    curl = ["curl", "-sSf", "-H", auth(served)]
    part = tmp_path / "part.bin"
    part.write_bytes(want[:3_000_000])
    before = served.settled()["used_bytes"]
    run(*curl, "-C", "-", "-o", part, url(served, "large.bin"))
    assert part.read_bytes() == want
    assert served.settled()["used_bytes"] - before == len(want) - 3_000_000
    assert run(*curl, "-r", "5-14", url(served, "large.bin")) == want[5:15]
    assert run(*curl, "-r", "-7", url(served, "large.bin")) == want[-7:]
    assert run(*curl, "--compressed", url(served, "log.txt")) == (served.trial / "log.txt").read_bytes()
    run("curl", "-sSfOJ", link(served, "log.txt"), cwd=tmp_path)
    assert (tmp_path / "log.txt").read_bytes() == (served.trial / "log.txt").read_bytes()


def test_wget_goes_on_where_it_was_cut(served, tmp_path):
    want = (served.trial / "large.bin").read_bytes()
    (tmp_path / "large.bin").write_bytes(want[:1_234_567])
    run("wget", "-q", "-c", link(served, "large.bin"), cwd=tmp_path)
    assert (tmp_path / "large.bin").read_bytes() == want
    # What is there whole is not fetched again.
    before = served.settled()["used_bytes"]
    run("wget", "-q", "-c", link(served, "large.bin"), cwd=tmp_path)
    assert served.settled()["used_bytes"] == before


def test_what_was_replaced_is_not_gone_on_with(served, tmp_path):
    """curl and wget ask for the rest without saying of what: their link tells them."""
    old, new = b"old" * 100_000, b"new" * 100_000
    file, part = served.trial / "replaced.bin", tmp_path / "replaced.bin"
    file.write_bytes(old)
    target = link(served, "replaced.bin")
    part.write_bytes(old[:1000])
    file.write_bytes(new)
    before = served.settled()["used_bytes"]
    for command in (["curl", "-sSf", "-C", "-", "-o", part, target], ["wget", "-q", "-c", target]):
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode != 0, command[0]
        assert part.read_bytes() == old[:1000], command[0]
    assert served.settled()["used_bytes"] == before
    file.unlink()


def test_requests(served):
    want = (served.trial / "large.bin").read_bytes()
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {served.keys['read_only']}"
        whole = session.get(url(served, "large.bin"), timeout=30)
        assert (whole.status_code, whole.content) == (200, want)
        etag = whole.headers["ETag"]
        same = session.get(url(served, "large.bin"), headers={"If-None-Match": etag}, timeout=30)
        assert (same.status_code, same.content) == (304, b"")
        part = session.get(url(served, "large.bin"), headers={"Range": "bytes=10-19", "If-Range": etag}, timeout=30)
        assert (part.status_code, part.content) == (206, want[10:20])
        with session.get(url(served, "large.bin"), stream=True, timeout=30) as answer:
            next(answer.iter_content(1000))
        assert session.get(url(served, "empty"), timeout=30).content == b""
    unicode_name = requests.get(link(served, "agent/日本 é.txt"), timeout=30)
    assert unicode_name.text == "語" and "filename*=UTF-8''%E6%97%A5" in unicode_name.headers["Content-Disposition"]


def test_a_python_reader_finds_every_file_of_the_trial(served, tmp_path):
    archive = tmp_path / "t.zip"
    archive.write_bytes(served.get("/v1/trials/t__1/archive")[2])
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        files = sorted(path for path in served.trial.rglob("*") if path.is_file())
        assert sorted(opened.namelist()) == [str(path.relative_to(served.trial)) for path in files]
        for path in files:
            assert opened.read(str(path.relative_to(served.trial))) == path.read_bytes()


@pytest.mark.parametrize("program", UNPACK)
def test_an_archive_is_opened_by(served, tmp_path, program):
    archive = tmp_path / "t.zip"
    archive.write_bytes(served.get("/v1/trials/t__1/archive")[2])
    for command in UNPACK[program](str(archive)):
        run(*command)


def test_an_archive_is_unpacked_while_it_arrives(served, tmp_path):
    archive = served.get("/v1/trials/t__1/archive")[2]
    run("bsdtar", "-xf", "-", "-C", str(tmp_path), input=archive)
    for path in served.trial.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(served.trial)).read_bytes() == path.read_bytes()
