"""Keys that a platform knows: another artifactd plays the platform."""

import json
import shutil
import signal
import subprocess

import pytest

from conftest import Folder, Service, binary, end, environment, until

CONTENT = "/v1/trials/t1/artifacts/a/content"


@pytest.fixture
def platform(tmp_path_factory):
    """A platform with the key `reader` of the project demo."""
    folder = Folder(tmp_path_factory.mktemp("platform"))
    service = Service(folder, folder.settings(), {})
    yield service
    end(service.process)


@pytest.fixture
def upstream(folder, start, platform):
    """upstream(**access): the service, asking the platform."""
    folder.put("t1", "a", b"content")

    def begin(**access):
        config = folder.settings(with_links(folder), public_url="http://127.0.0.1")
        text = config.read_text().replace(f'keys_file = "{folder.path}/keys.toml"', "")
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {"upstream": platform.url, **access}.items())
        config.write_text(text.replace("[access]\n", "[access]\n" + lines))
        service = start(config)
        service.key = platform.key
        return service

    return begin


def with_links(folder):
    """Sections of settings that make links."""
    (folder.path / "link.key").write_text("linksecretlinksecretlinksecretlinksecret")
    return {"links": {"keys": [{"id": "k", "secret_file": str(folder.path / "link.key")}]}}


def path_of(link):
    return json.loads(link)["url"].removeprefix("http://127.0.0.1")


def code(answer):
    status, _, body = answer
    return status, json.loads(body).get("code")


def test_the_platform_says_who_asks(platform, upstream):
    service = upstream(upstream_fresh_seconds=0)
    assert service.get(CONTENT, {"X-Request-Id": "good"})[::2] == (200, b"content")
    assert service.access_line("good")["key_id"] == "reader"
    assert service.json("/v1/me") == platform.json("/v1/me")
    assert code(service.get(CONTENT, key="epk_" + "0" * 64)) == (401, "UNAUTHENTICATED")
    assert code(service.get(CONTENT, {"X-Project-ID": "other"})) == (403, "PROJECT_ACCESS_DENIED")
    # A key that the platform disables is refused at the next question.
    subprocess.run(
        [binary(), "keys", "disable", "--keys-file", str(platform.folder.path / "keys.toml"), "reader"],
        check=True, capture_output=True, env=environment(), timeout=30,
    )  # fmt: skip
    until("the key is refused", lambda: service.get(CONTENT)[0] == 401)
    assert platform.key not in service.log()


def test_links_live_an_hour_at_most_and_outlive_the_platform(platform, upstream):
    service = upstream()

    def mint(seconds):
        body = json.dumps({"expires_in_seconds": seconds}).encode()
        return service.get("/v1/trials/t1/artifacts/a/links", method="POST", data=body)

    assert code(mint(3601)) == (400, "INVALID_REQUEST")
    status, _, body = mint(3600)
    assert status == 201, body
    end(platform.process)
    assert service.get(path_of(body), {"Authorization": ""})[::2] == (200, b"content")


def test_a_link_that_was_made_to_live_longer_is_void(folder, start, upstream):
    folder.put("t1", "a", b"content")
    before = start(folder.settings(with_links(folder), public_url="http://127.0.0.1"))
    links = []
    for seconds in (7200, 1800):
        body = json.dumps({"expires_in_seconds": seconds}).encode()
        links.append(path_of(before.get("/v1/trials/t1/artifacts/a/links", method="POST", data=body)[2]))
    assert [before.get(path)[0] for path in links] == [200, 200]
    before.stop()
    service = upstream()
    assert code(service.get(links[0])) == (410, "LINK_REVOKED")
    assert service.get(links[1])[0] == 200


def test_an_outage_is_bridged_for_the_grace_and_then_said(platform, upstream):
    service = upstream(upstream_fresh_seconds=0, upstream_grace_seconds=4, upstream_timeout_ms=500)
    assert service.get(CONTENT)[0] == 200
    # It takes connections and answers nothing.
    platform.signal(signal.SIGSTOP)
    assert service.get(CONTENT)[0] == 200, "what it last said is good for a while"
    status, headers, body = service.get(CONTENT, key="epk_" + "1" * 64)
    assert (status, json.loads(body)["code"]) == (503, "ACCESS_UNAVAILABLE")
    assert headers["Retry-After"] == "1"
    until("the grace is over", lambda: code(service.get(CONTENT + "?")) == (503, "ACCESS_UNAVAILABLE")
          if service.get("/v1/me")[0] != 200 else None)
    assert service.get("/readyz")[0] == 200, "no reason to take replicas out"
    platform.signal(signal.SIGCONT)
    until("the platform is asked again", lambda: service.get(CONTENT)[0] == 200)
    assert "the platform does not say whose keys these are" in service.log()


def test_check_config_asks_it(platform, folder):
    def check(url):
        config = folder.settings()
        config.write_text(config.read_text().replace(f'keys_file = "{folder.path}/keys.toml"', f'upstream = "{url}"'))
        command = [binary(), "check-config", "--config", str(config)]
        return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)

    shutil.rmtree(folder.path / "store")
    (folder.path / "store/demo/t1").mkdir(parents=True)
    good = check(platform.url)
    assert "answers for keys" in good.stdout + good.stderr
    for url, words in [(platform.url + "/nowhere", "404"), ("http://127.0.0.1:1", "cannot be asked")]:
        bad = check(url)
        said = bad.stdout + bad.stderr
        assert bad.returncode != 0 and words in said and "access.upstream" in said, said


def test_the_log_has_the_clients_address_by_trusted_proxies_alone(folder, start):
    forged = {"X-Forwarded-For": "6.6.6.6, 198.51.100.1"}
    for trusted, client in [([], "127.0.0.1"), (["127.0.0.0/8"], "198.51.100.1")]:
        service = start(folder.settings({"http": {"trusted_proxies": trusted}}))
        service.get("/v1/me", forged | {"X-Request-Id": "forwarded"})
        assert service.access_line("forwarded")["client"] == client
        service.stop()
