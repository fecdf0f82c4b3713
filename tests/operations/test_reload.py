"""What a running service follows: keys, the allowance, the keys of links; and what waits for a restart."""

import json
import signal
import subprocess
import urllib.parse

from conftest import binary, environment, until

SECONDS = 10


def mint(service):
    status, _, body = service.get("/v1/trials/t1/artifacts/a/links", {"Content-Type": "application/json"}, method="POST",
                                  data=b"{}")
    assert status == 201, body
    return urllib.parse.urlsplit(json.loads(body)["url"]).path


def test_allowance_links_and_keys_are_followed(folder, start):
    folder.put("t1", "a", b"hello")
    for name in ["old", "new"]:
        (folder.path / name).write_text(name * 16)

    def settings(daily, keys, **limits):
        links = [{"id": key, "secret_file": str(folder.path / key)} for key in keys]
        return folder.settings({"quota": {"daily_bytes": daily}, "links": {"keys": links}, "limits": limits},
                               public_url="http://files.example.com")

    service = start(settings("1 GiB", ["old"]))
    first = mint(service)
    assert service.json("/v1/quota")["daily_bytes"] == 1 << 30, service.json("/v1/quota")

    settings("2 GiB", ["new", "old"])
    until("the allowance", lambda: service.json("/v1/quota")["daily_bytes"] == 2 << 30, SECONDS)
    second = mint(service)
    assert service.get(first)[0] == service.get(second)[0] == 200

    settings("2 GiB", ["new"])
    until("the key is gone", lambda: service.get(first)[0] == 403, SECONDS)
    assert service.get(second)[0] == 200

    # The content of a secret's file counts, too.
    (folder.path / "new").write_text("x" * 32)
    until("the secret is another", lambda: service.get(second)[0] == 403, SECONDS)
    assert service.get(mint(service))[0] == 200

    # What is wrong is said, and changes nothing.
    good = (folder.path / "artifactd.toml").read_text()
    (folder.path / "artifactd.toml").write_text(good.replace("2 GiB", "lots"))
    until("the alarm", lambda: "the settings cannot be used" in service.log(), SECONDS)
    assert service.json("/v1/quota")["daily_bytes"] == 2 << 30
    metrics = service.metrics()
    assert metrics['artifactd_settings_reads_total{result="failed"}'] == 1
    assert metrics['artifactd_settings_reads_total{result="ok"}'] == 4, metrics
    (folder.path / "artifactd.toml").write_text(good)
    until("all is well", lambda: "the settings can be read again" in service.log(), SECONDS)

    # What needs a restart is named, once.
    settings("3 GiB", ["new"], streams=7, head_seconds=9)
    until("the allowance", lambda: service.json("/v1/quota")["daily_bytes"] == 3 << 30, SECONDS)
    line = until("the warning", lambda: next((line for line in service.lines() if "settings" in line), None))
    assert line["settings"] == "limits.head_seconds, limits.streams" and "restart" in line["message"]
    service.signal(signal.SIGHUP)
    until("SIGHUP", lambda: "SIGHUP" in service.log())
    assert sum("settings" in line for line in service.lines()) == 1


def test_a_withdrawn_key_is_refused_within_two_seconds(folder, start):
    service = start()
    assert service.get("/v1/me")[0] == 200
    command = [binary(), "keys", "disable", "--keys-file", str(folder.path / "keys.toml"), "reader"]
    folder.make_key("other")
    subprocess.run(command, check=True, capture_output=True, env=environment(), timeout=30)
    until("it is refused", lambda: service.get("/v1/me")[0] == 401, SECONDS)
    (folder.path / "keys.toml").write_text("]")
    until("the metric", lambda: service.metrics()["artifactd_key_file_unusable"] == 1, SECONDS)
    parts = service.json("/readyz?verbose")["parts"]
    assert parts["key_file"]["status"] == "failing", parts
