"""The official Python and TypeScript MCP clients, old and new, unchanged, against the running service."""

import base64
import json
import re
import select
import subprocess
import unicodedata

import pytest

from conftest import NODE, ROOT

DRIVER = ROOT / "tests/clients/mcp_driver.py"
NODE_DRIVER = ROOT / "tests/clients/mcp_driver.mjs"
LIST = "envloop_trial_artifacts_list"
READ = "envloop_trial_artifact_read"
PLOTS = "plot-training-loss__Qm7RtZ2"
WIDE = "translate-readme__Hn5cV8s"
ODD = "rename-files__T2yBq6M"
LOG = "train-tokenizer__w9LkP4d"
ANSWER_SECONDS = 60


class Client:
    """A client in its own process."""

    def __init__(self, demo, venv, mode, key=None):
        if venv == "npm":
            command = [NODE, NODE_DRIVER, ROOT / "target/npm/node_modules"]
        else:
            command = [ROOT / "target" / venv / "bin/python", DRIVER]
        command += [demo.url + "/v1/mcp", key or demo.keys["read_only"], mode]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.rest = b""

    def line(self):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_SECONDS)
            piece = self.process.stdout.read(1 << 20) if ready else b""
            if not piece:
                self.process.kill()
                raise AssertionError(f"the client gave up: {self.process.stderr.read().decode()[-2000:]}")
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def call(self, tool, **arguments):
        self.process.stdin.write(json.dumps([tool, arguments]).encode() + b"\n")
        return self.line()

    def read(self, trial, name, **more):
        result = self.call(READ, trial_id=trial, name=name, **more)
        assert not result["isError"], result
        assert "structuredContent" not in result
        return result["content"]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()


@pytest.fixture(
    scope="module",
    params=[
        ("venv", "auto", "2.3.0", "2026-07-28"),
        ("venv", "legacy", "2.3.0", "2025-11-25"),
        ("venv-mcp1", "-", "1.30.0", "2025-11-25"),
        ("venv-mcp1-10", "-", "1.10.1", "2025-06-18"),
        ("venv-mcp1-9", "-", "1.9.4", "2025-03-26"),
        ("npm", "sdk", "1.32.2", "2025-11-25"),
        ("npm", "default", "2.4.0", "2025-11-25"),
        ("npm", "auto", "2.4.0", "2026-07-28"),
    ],
    ids=lambda param: f"{param[0]}-{param[2]}-{param[3]}",
)
def client(request, demo):
    venv, mode, version, protocol = request.param
    client = Client(demo, venv, mode)
    try:
        client.about = client.line()
        assert (client.about["client"], client.about["protocol"]) == (version, protocol)
        yield client
    finally:
        client.close()


def only_text(content):
    (block,) = content
    assert block["type"] == "text"
    return block["text"]


def window(text):
    """(offset, length, total, next_offset) and the content, the frame taken off."""
    first, last = text.splitlines()[0], text.splitlines()[-1]
    numbers = re.findall(r"\b(offset|length|total|next_offset)=(\d+)", first)[:4]
    assert numbers == re.findall(r"\b(offset|length|total|next_offset)=(\d+)", last)[:4]
    head, nonce, content = re.fullmatch(
        r"(.*?)\n<<<content ([0-9a-f]{32})>>>\n(.*)\n<<<end of content \2>>>\n[^\n]*", text, re.DOTALL
    ).groups()
    assert "untrusted data" in head
    return tuple(int(value) for _, value in numbers), content


def test_the_tools(client):
    assert [tool["name"] for tool in client.about["tools"]] == [LIST, READ]
    for tool in client.about["tools"]:
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["annotations"]["readOnlyHint"] is True
        assert "outputSchema" not in tool


def test_a_trial_is_listed_page_by_page(client, demo):
    got, cursor = [], None
    for _ in range(100):
        more = {"cursor": cursor} if cursor else {}
        result = client.call(LIST, trial_id=ODD, limit=5, **more)
        page = result["structuredContent"]
        assert json.loads(only_text(result["content"])) == page
        got += [(item["name"], item["size"]) for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    folder = demo.samples / ODD
    files = {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    assert got == sorted(files.items(), key=lambda file: file[0].encode())


@pytest.mark.parametrize("max_bytes", [None, 7, 40960])
def test_a_text_is_read_in_windows_to_its_end(client, demo, max_bytes):
    name = "artifacts/app/README.all.md"
    file = (demo.samples / WIDE / name).read_bytes()
    assert any(unicodedata.east_asian_width(c) == "W" for c in file.decode())
    if max_bytes == 7:
        file = file[:600].decode(errors="ignore").encode()
    at, got = 0, ""
    for _ in range(1000):
        (offset, length, total, following), content = window(
            only_text(client.read(WIDE, name, offset=at, **({"max_bytes": max_bytes} if max_bytes else {})))
        )
        assert (offset, offset + length) == (at, following) and following > at
        got += content
        at = following
        if at >= len(file):
            break
    assert total == (demo.samples / WIDE / name).stat().st_size
    assert got.encode()[: len(file)] == file


def test_the_tail_of_a_large_log_costs_head_and_window(client, demo):
    name = "agent/train.log"
    path = demo.samples / LOG / name
    before = demo.settled()["used_bytes"]
    (offset, length, total, following), content = window(only_text(client.read(LOG, name, offset=-4096)))
    assert total == following == path.stat().st_size > 10_000_000
    with path.open("rb") as file:
        file.seek(offset)
        assert content.encode() == file.read()
    charged = demo.settled()["used_bytes"] - before
    assert 4096 + length <= charged <= 4096 + length + 6


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("loss.png", "image/png"), ("loss.jpg", "image/jpeg"), ("loss.gif", "image/gif"), ("attention.webp", "image/webp")],
)
def test_an_image_arrives_byte_for_byte(client, demo, name, media_type):
    name = "artifacts/app/plots/" + name
    image, caption = client.read(PLOTS, name)
    assert (image["type"], image["mimeType"]) == ("image", media_type)
    assert base64.b64decode(image["data"], validate=True) == (demo.samples / PLOTS / name).read_bytes()
    assert caption["type"] == "text" and media_type in caption["text"] and name in caption["text"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("artifacts/app/bundle.zip", "media_type=application/zip"),
        ("artifacts/app/plots/truncated.png", "truncated"),
        ("artifacts/app/plots/timeline.png", "too_many_pixels"),
    ],
)
def test_what_cannot_be_shown_is_described(client, demo, name, why):
    text = only_text(client.read(PLOTS, name))
    size = (demo.samples / PLOTS / name).stat().st_size
    assert why in text and f"size={size} " in text
    assert f"el trail artifact download {PLOTS} DIR" in text
    path = re.search(r"GET \S*?(/v1/\S+)", text).group(1)
    assert demo.get(path)[2] == (demo.samples / PLOTS / name).read_bytes()


def test_a_page_that_is_named_as_an_image_is_text(client, demo):
    name = "artifacts/app/plots/report.png"
    _, content = window(only_text(client.read(PLOTS, name, max_bytes=40960)))
    assert content.encode() == (demo.samples / PLOTS / name).read_bytes()


def test_refusals_are_texts_for_the_model(client):
    for arguments, begins in [
        ({"trial_id": PLOTS, "name": "nothing"}, "ARTIFACT_NOT_FOUND: "),
        ({"trial_id": "nothing", "name": "x"}, "TRIAL_NOT_FOUND: "),
        ({"trial_id": PLOTS, "name": "../x"}, "INVALID_NAME: "),
        ({"trial_id": PLOTS, "name": "trial.log", "max_bytes": 0}, "INVALID_REQUEST: max_bytes is 0"),
    ]:
        result = client.call(READ, **arguments)
        assert result["isError"] and only_text(result["content"]).startswith(begins)


@pytest.mark.parametrize(("venv", "mode"), [("venv", "auto"), ("venv-mcp1", "-"), ("npm", "sdk")])
def test_a_wrong_key_is_turned_away(demo, venv, mode):
    client = Client(demo, venv, mode, key="epk_" + "0" * 64)
    try:
        with pytest.raises(AssertionError, match="the client gave up"):
            client.line()
    finally:
        client.close()


def test_a_spent_allowance_is_a_text_that_describes_the_file(start_demo):
    demo = start_demo(daily_bytes="1 MiB")
    client = Client(demo, "venv", "auto")
    try:
        client.line()
        result = client.call(READ, trial_id=LOG, name="agent/train.log")
        text = only_text(result["content"])
        size = (demo.samples / LOG / "agent/train.log").stat().st_size
        assert result["isError"] and text.startswith("DOWNLOAD_QUOTA_EXCEEDED: ")
        assert f"size={size} " in text and "reason=too_large" in text
        assert demo.settled()["used_bytes"] == 0
    finally:
        client.close()
