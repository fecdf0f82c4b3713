"""The log: one line a request with where its time went, and no secret at any level."""

import base64
import json
import urllib.parse

import pytest

from conftest import until


def test_a_request_is_one_line_with_its_phases(folder, start):
    folder.put("t1", "a", b"x" * 1000)
    folder.put("t1", "a.png", b"\x89PNG\r\n\x1a\n and no more")
    service = start()
    content = "/v1/trials/t1/artifacts/a/content"
    assert service.get(content, {"X-Request-Id": "whole"})[0] == 200
    line = service.access_line("whole")
    assert (line["key_id"], line["method"], line["status"]) == ("reader", "GET", 200)
    assert line["route"] == "/v1/trials/{trial_id}/artifacts/{artifact_id}/content"
    assert (line["bytes"], line["charge"]) == (1000, 1000)
    phases = ["auth_ms", "stat_ms", "reserve_ms", "store_ms"]
    assert all(line[phase] > 0 for phase in phases) and line["verdict_ms"] == 0, line
    assert sum(line[phase] for phase in phases) <= line["ms"], line

    assert service.get(content, {"X-Request-Id": "part", "Range": "bytes=0-9"})[0] == 206
    line = service.access_line("part")
    assert (line["status"], line["bytes"], line["charge"]) == (206, 10, 10)

    assert service.get(content, {"X-Request-Id": "refused"}, key="nobody")[0] == 401
    line = service.access_line("refused")
    assert (line["key_id"], line["status"], line["charge"], line["reserve_ms"]) == ("", 401, 0, 0)

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "envloop_trial_artifact_read", "arguments": {"trial_id": "t1", "name": "a.png"}}}
    headers = {"Content-Type": "application/json", "X-Request-Id": "image"}
    assert service.get("/v1/mcp", headers, method="POST", data=json.dumps(call).encode())[0] == 200
    line = service.access_line("image")
    assert line["charge"] == 20 and line["verdict_ms"] > 0 and line["store_ms"] > 0, line
    targets = [line["request_id"] for line in service.lines() if line.get("target") == "artifactd::access"]
    assert sorted(targets) == sorted(set(targets))


@pytest.mark.parametrize("where", ["embedded", "redis", "s3"])
def test_no_secret_is_logged_at_trace_level(folder, start, request, where):
    """Every secret there is goes through a service that logs all it can, also where none belongs."""
    folder.put("t1", "a", b"content of the file")
    link_secret = "linksecretlinksecretlinksecretlinksecret"
    (folder.path / "link.key").write_text(link_secret)
    other = folder.make_key("other")
    sections = {"log": {"filter": "trace", "format": "json"},
                "links": {"keys": [{"id": "k", "secret_file": str(folder.path / "link.key")}]}}
    secrets = {"key": folder.key, "another key": other, "link secret": link_secret, "foreign": "foreignbearersecret"}
    env = {}
    if where == "redis":
        secrets["redis password"] = "redispasswordsecret"
        server = request.getfixturevalue("redis")("--requirepass", secrets["redis password"])
        sections["ledger"] = {"url": f"redis://:{secrets['redis password']}@127.0.0.1:{server.port}"}
    if where == "s3":
        secrets["store secret"] = "storesecretaccesskey"
        url = request.getfixturevalue("moto")
        env = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": secrets["store secret"], "AWS_REGION": "us-east-1",
               "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}
        sections["store"] = {"url": "s3://bucket"}
        put(url + "/bucket", b"")
        put(url + "/bucket/demo/t1/a", b"content of the file")
    service = start(folder.settings(sections, public_url="http://files.example.com"), **env)
    key = secrets["key"]
    assert service.get("/v1/trials/t1/artifacts/a/content")[0] == 200
    status, _, body = service.get("/v1/trials/t1/artifacts/a/links", {"Content-Type": "application/json"}, method="POST",
                                  data=b"{}")
    assert status == 201, body
    link = urllib.parse.urlsplit(json.loads(body)["url"]).path
    secrets["link token"] = link.split("/")[3]
    secrets["the token's signature"] = secrets["link token"].split(".")[1]
    assert service.get(link, {"Authorization": "-"})[0] == 200
    service.get(link[:-30] + "x", {"Authorization": "-"})
    # A bearer of another make has no form that it could be known by: it is sent where bearers belong.
    for value in [secrets["foreign"], f"Bearer {secrets['foreign']}", f"Token {secrets['foreign']}"]:
        service.get("/v1/trials", {"Authorization": value})
        service.get("/v1/mcp", {"Authorization": value, "Content-Type": "application/json"}, method="POST", data=b"{}")
    for wrong in [key, other, secrets["link token"]]:
        quoted = urllib.parse.quote(wrong)
        for path in [f"/v1/trials/{quoted}/artifacts", f"/v1/trials/t1/artifacts/{quoted}/content", f"/{quoted}",
                     f"/v1/trials?key={quoted}", f"/v1/trials?limit={quoted}", f"/v1/trials?cursor={quoted}",
                     f"/v1/quota/audit?day={quoted}", f"/v1/quota/audit?key_id={quoted}", f"/v1/download/{quoted}/a",
                     f"/v1/links/{quoted}"]:
            service.get(path)
        for header in ["X-Request-Id", "X-Project-ID", "X-Workspace-ID", "traceparent", "Range", "If-None-Match",
                       "User-Agent", "Cookie", "X-Api-Key", "Origin", "MCP-Protocol-Version"]:
            service.get("/v1/trials", {header: wrong[:120]})
            service.get("/v1/mcp", {header: wrong[:120], "Content-Type": "application/json"}, method="POST", data=b"{}")
        basic = base64.b64encode(f"u:{wrong}".encode()).decode()
        for value in [wrong, f"Bearer {wrong}", f"bearer  {wrong}", f"Basic {basic}", f"Bearer {wrong}x"]:
            service.get("/v1/trials", {"Authorization": value})
        call = {"jsonrpc": "2.0", "id": wrong, "method": "tools/call",
                "params": {"name": wrong, "arguments": {"trial_id": wrong, "name": wrong}}}
        for tool in [wrong, "envloop_trial_artifact_read"]:
            call["params"]["name"] = tool
            service.get("/v1/mcp", {"Content-Type": "application/json"}, method="POST", data=json.dumps(call).encode())
    until("the settles", lambda: service.json("/v1/quota")["open_reservations"] == 0)
    log = service.stop()
    assert '"level":"DEBUG"' in log and len(log) > 10_000, "it logs all it can"
    shown = {name: [line for line in log.split("\n") if secret in line][:3] for name, secret in secrets.items()}
    assert not any(shown.values()), {name: lines for name, lines in shown.items() if lines}


def put(url, content):
    import urllib.request

    request = urllib.request.Request(url, method="PUT", data=content)
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=access/20260101/us-east-1/s3/aws4_request")
    urllib.request.urlopen(request, timeout=30).close()


def test_an_id_that_may_be_a_key_is_another_in_answer_and_audit(folder, start):
    folder.put("t1", "a", b"x")
    service = start()
    _, headers, _ = service.get("/v1/trials/t1/artifacts/a/content", {"X-Request-Id": service.key})
    assert headers["X-Request-Id"] != service.key and len(headers["X-Request-Id"]) == 36
    until("the entry", lambda: service.json("/v1/quota/audit")["items"])
    assert service.json("/v1/quota/audit")["items"][0]["request_id"] == headers["X-Request-Id"]
