"""aria2, Node, rclone, httpx and a browser, unchanged, over links of a demo."""

import hashlib
import json
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import httpx
import pytest

from browser import Browser

RUNS = "document.title = 'ran'; document.documentElement.setAttribute('data-ran', 'yes')"
FILES = {
    "large.bin": b"".join(number.to_bytes(4, "little") for number in range(5_000_000)),
    "out/報告 é.txt": "報告\n".encode(),
    "page.html": f"<!doctype html><title>still</title><p>text<script>{RUNS}</script><img src=x onerror=\"{RUNS}\">".encode(),
    "drawing.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{RUNS}\"><script>{RUNS}</script></svg>".encode(),
    "page.xhtml": f"<html xmlns='http://www.w3.org/1999/xhtml'><script>{RUNS}</script></html>".encode(),
    "named.png": f"<html><script>{RUNS}</script></html>".encode(),
    "named.txt": f"<html><script>{RUNS}</script></html>".encode(),
    "pixel.png": bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c49444154789c6360f8cf000003010100c9fe92ef0000000049454e44ae426082"
    ),
}


@pytest.fixture(scope="module")
def served(start_demo, tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    for name, content in FILES.items():
        path = store / "t__1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    demo = start_demo(store=store)
    # A young file has a weak validator, by which no download is resumed or split.
    deadline = time.monotonic() + 10
    path = "/v1/trials/t__1/artifacts/large.bin/content"
    while demo.get(path, headers={"Range": "bytes=0-0"})[1]["ETag"].startswith("W/"):
        assert time.monotonic() < deadline, "the validator stays weak"
        time.sleep(0.1)
    return demo


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def link(demo, name):
    path = f"/v1/trials/t__1/artifacts/{urllib.parse.quote(name.replace('/', '~1'), safe='')}/links"
    request = urllib.request.Request(demo.url + path, data=b"", method="POST")
    request.add_header("Authorization", f"Bearer {demo.keys['read_only']}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["url"]


def test_aria2_with_eight_connections(served, tmp_path):
    before = served.settled()["used_bytes"]
    command = ["aria2c", "-q", "-x8", "-s8", "-k1M", "-d", str(tmp_path), "-o", "got", link(served, "large.bin")]
    subprocess.run(command, check=True, timeout=120)
    assert (tmp_path / "got").read_bytes() == FILES["large.bin"]
    used = served.settled()["used_bytes"] - before
    # Connections that aria2 gives up in favour of others have had some of their bytes already.
    assert len(FILES["large.bin"]) <= used <= 2 * len(FILES["large.bin"])


def test_node_fetch(served):
    command = ["node", str(Path(__file__).with_name("fetch.mjs")), link(served, "large.bin")]
    got = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)
    content = FILES["large.bin"]
    assert got["status"] == [200, 206, 304]
    assert got["sha256"] == hashlib.sha256(content).hexdigest()
    assert got["part"] == content[10:20].hex()
    assert got["disposition"] == 'attachment; filename="large.bin"'


def test_rclone_copies_a_link(served, tmp_path):
    before = served.settled()["used_bytes"]
    command = ["rclone", "copyurl", "--auto-filename", "--header-filename", link(served, "out/報告 é.txt"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    assert (tmp_path / "報告 é.txt").read_bytes() == FILES["out/報告 é.txt"]
    assert served.settled()["used_bytes"] - before == len(FILES["out/報告 é.txt"])


def test_rclone_reads_in_parts_as_a_remote(served, tmp_path):
    content = FILES["large.bin"]
    command = ["rclone", "copyto", "--http-url", f"{served.url}/v1/trials/t__1/artifacts/large.bin/"]
    command += ["--http-headers", f"Authorization,Bearer {served.keys['read_only']}"]
    command += ["--multi-thread-cutoff", "1M", "--multi-thread-streams", "4", ":http:content", str(tmp_path / "got")]
    before = served.settled()["used_bytes"]
    subprocess.run(command, check=True, timeout=120)
    assert (tmp_path / "got").read_bytes() == content
    assert len(content) <= served.settled()["used_bytes"] - before <= 2 * len(content)


def test_httpx_goes_on_where_it_broke_off(served):
    content, target = FILES["large.bin"], link(served, "large.bin")
    with httpx.Client(timeout=60) as client:
        with client.stream("GET", target) as answer:
            etag, begun = answer.headers["ETag"], next(answer.iter_raw(1_000_000))
        rest = client.get(target, headers={"Range": f"bytes={len(begun)}-", "If-Range": etag})
        assert (rest.status_code, begun + rest.content) == (206, content)
        assert client.get(target, headers={"If-None-Match": etag}).status_code == 304
        assert client.head(target).headers["Content-Length"] == str(len(content))
    served.settled()


def test_a_browser_saves_a_link_under_its_name(served, browser):
    browser.show(link(served, "out/報告 é.txt"))
    begun = browser.wait_for("Browser.downloadWillBegin")
    assert begun["suggestedFilename"] == "報告 é.txt"
    browser.wait_for("Browser.downloadProgress", guid=begun["guid"], state="completed")
    assert (browser.downloads / "報告 é.txt").read_bytes() == FILES["out/報告 é.txt"]


@pytest.mark.parametrize("name", ["page.html", "drawing.svg", "page.xhtml", "named.png", "named.txt"])
def test_a_browser_runs_no_script_of_an_artifact(served, browser, name):
    # As hard as it can be asked for: shown in the window, at the service's own origin.
    browser.show(link(served, name) + "?disposition=inline")
    assert browser.evaluate("document.title") != "ran"
    assert browser.evaluate("document.documentElement.getAttribute('data-ran')") is None
    assert browser.evaluate("document.scripts.length") == 0
    if name != "named.png":
        assert "<script>" in browser.evaluate("document.body.innerText"), "it is shown as text"


def test_the_browser_would_have_run_them(browser, tmp_path):
    """Else the test before could not fail."""
    for name in ["page.html", "drawing.svg", "page.xhtml"]:
        path = tmp_path / name
        path.write_bytes(FILES[name])
        browser.show(path.as_uri())
        assert browser.evaluate("document.documentElement.getAttribute('data-ran')") == "yes", name


def test_a_browser_shows_images_and_text(served, browser):
    browser.show(link(served, "pixel.png") + "?disposition=inline")
    assert browser.evaluate("document.images[0].naturalWidth") == 1
    browser.show(link(served, "out/報告 é.txt") + "?disposition=inline")
    assert browser.evaluate("document.body.innerText").strip() == "報告"
