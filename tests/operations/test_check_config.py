"""What `artifactd check-config` finds out: each fault by its setting and with what to do about it."""

import os
import shutil
import subprocess

import pytest

from conftest import binary, environment, free_port

SECRET = "hunter2"


def check(config, *options, **env):
    """Runs it; answers the exit code and everything that it printed, which shows no secret."""
    command = [binary(), "check-config", "--config", str(config), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**env), timeout=60)
    printed = done.stdout + done.stderr
    assert SECRET not in printed
    return done.returncode, printed


def test_sound_settings_are_said_to_be_sound(folder):
    folder.put("t1", "a", b"hello")
    code, printed = check(folder.settings())
    assert code == 0, printed
    lines = printed.strip().split("\n")
    assert [line.split()[0] for line in lines] == ["ok"] * len(lines)
    assert {line.split()[1] for line in lines} == {"config", "listen", "keys", "links", "store", "ledger"}


def test_a_running_service_is_no_fault(folder, start):
    folder.put("t1", "a", b"hello")
    start()
    code, printed = check(folder.settings())
    assert code == 0 and "in use by another process" in printed, printed


CASES = {
    "no setting": ({"limits": {"conections": 5}}, ["limits.conections is no setting", "did you mean limits.connections?"]),
    "out of bounds": ({"limits": {"streams": 0}}, ["limits.streams is 0", "it is a whole number from 1"]),
    "no such host": ({"http": {"metrics_listen": "nowhere.invalid:1"}},
                     ["http.metrics_listen nowhere.invalid:1: ", "write an IP address"]),
    "no key file": ({"access": {"keys_file": "/nowhere/keys.toml"}},
                    ["access.keys_file: /nowhere/keys.toml", "`artifactd keys create --keys-file`"]),
    "no secret": ({"links": {"keys": [{"id": "k", "secret_file": "/nowhere/k"}]}},
                  ["links.keys: secret_file /nowhere/k", "head -c 32 /dev/urandom"]),
    "no directory": ({"store": {"url": "file:///nowhere"}}, ["store.url: the store's directory /nowhere", "make it"]),
    "no scheme": ({"store": {"url": "ftp://host/dir"}},
                  ["store.url: ", "the store URL begins with file, s3, gs, az or memory"]),
    "a password in a store": ({"store": {"url": f"s3://key:{SECRET}@bucket"}},
                              ["store.url: ", "they belong in the environment"]),
    "no ledger": ({"ledger": {"url": "sqlite:///ledger.db"}}, ["ledger.url is ", "embedded:///path/ledger.db, redis://"]),
    "no ledger's directory": ({"ledger": {"url": "embedded:///nowhere/ledger.db"}},
                              ["ledger.url /nowhere/ledger.db: ", "its directory must be there"]),
    "an unwritable directory": ({"ledger": {"url": "embedded:///proc/ledger.db"}},
                                ["ledger.url /proc/ledger.db: ", "be writable for this user"]),
    "no ledger's file": ({"ledger": {"url": "embedded:///etc/passwd"}},
                         ["ledger.url /etc/passwd: the file is not a ledger", "a file of its own"]),
    "no master": ({"ledger": {"url": f"redis+sentinel://:{SECRET}@h:1"}},
                  ["ledger.url: ", "lacks the master's name: redis+sentinel://host,host/name"]),
    "no certificates": ({"ledger": {"url": "rediss://h", "ca_file": "/nowhere/ca"}},
                        ["ledger.ca_file /nowhere/ca", "certificates as PEM"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_named_with_its_remedy(folder, case):
    folder.put("t1", "a", b"hello")
    sections, words = CASES[case]
    code, printed = check(folder.settings(sections))
    assert code == 1, printed
    faults = [line for line in printed.split("\n") if line.startswith("fault")]
    assert len(faults) == 1 and all(word in faults[0] for word in words), printed


def test_every_fault_is_said_at_once(folder):
    sections = {"access": {"keys_file": "/nowhere/k"}, "store": {"url": "file:///nowhere"}, "ledger": {"url": "x://y"}}
    code, printed = check(folder.settings(sections))
    assert code == 1 and printed.count("\nfault") == 3 and "3 findings" in printed, printed


def test_warnings_fail_where_they_are_asked_to(folder):
    secret = folder.path / "link.key"
    secret.write_text("s" * 32)
    config = folder.settings({"links": {"keys": [{"id": "k", "secret_file": str(secret)}]}})
    code, printed = check(config)
    assert code == 0 and "public_url is not" in printed and "is empty: is its path right?" in printed, printed
    assert check(config, "--strict")[0] == 1
    assert check(config, "--set", "limits.streams=0")[0] == 1
    assert check(config, "--no-such-flag")[0] == 2


def of_redis(folder, redis, url="redis://127.0.0.1:{}", **more):
    folder.put("t1", "a", b"hello")
    return folder.settings({"ledger": {"url": url.format(redis if isinstance(redis, int) else redis.port)} | more})


def test_a_durable_redis_is_sound(folder, redis):
    code, printed = check(of_redis(folder, redis()), "--strict")
    assert code == 0 and "Redis answers, and runs scripts" in printed, printed


@pytest.mark.parametrize(
    "options, words",
    [
        (["--appendonly", "no"], "appendonly is off: a restart forgets charges; set appendonly yes"),
        (["--maxmemory-policy", "allkeys-lru"], "set maxmemory-policy noeviction"),
    ],
)
def test_a_redis_that_may_lose_charges_is_named(folder, redis, options, words):
    server = redis(*options)
    code, printed = check(of_redis(folder, server))
    assert code == 0 and f"warning  ledger  127.0.0.1:{server.port}: " in printed and words in printed, printed
    code, printed = check(of_redis(folder, server, require_durable=True))
    assert code == 1 and "fault    ledger" in printed and words in printed, printed


def test_replicas_that_nobody_waits_for_are_named(folder, redis):
    master = redis()
    replica = redis("--replicaof", "127.0.0.1", str(master.port))
    words = "min-replicas-to-write is not set"
    for _ in range(200):
        code, printed = check(of_redis(folder, master))
        if words in printed:
            break
    assert code == 0 and words in printed, printed
    code, printed = check(of_redis(folder, replica))
    assert code == 1 and "it is a replica" in printed, printed


def test_a_redis_out_of_reach_is_a_fault(folder, redis):
    code, printed = check(of_redis(folder, free_port()))
    assert code == 1 and "no read is served until it answers; check ledger.url" in printed, printed
    server = redis("--requirepass", SECRET)
    for url in ["redis://127.0.0.1:{}", "redis://:wrong@127.0.0.1:{}"]:
        code, printed = check(of_redis(folder, server, url))
        assert code == 1 and "the password" in printed, printed
    code, printed = check(of_redis(folder, server, f"redis://:{SECRET}@127.0.0.1:{{}}"), "--strict")
    assert code == 0, printed


def test_clocks_that_differ_are_named(folder, redis):
    faketime = shutil.which("faketime")
    assert faketime, "tests/debian-packages.sh installs it"
    config = of_redis(folder, redis())
    command = [faketime, "-f", "+1h", binary(), "check-config", "--config", str(config)]
    env = environment(FAKETIME_DONT_FAKE_MONOTONIC=1)
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    printed = done.stdout + done.stderr
    assert done.returncode == 0 and "its clock and this machine's differ by 3" in printed and "NTP" in printed, printed


def test_a_missing_bucket_is_named(folder, moto):
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    config = folder.settings({"store": {"url": "s3://missing/prefix"}})
    code, printed = check(config, AWS_ENDPOINT_URL=moto, **keys)
    assert code == 1 and "s3://missing/prefix has no such bucket: make it" in printed, printed
    code, printed = check(config, AWS_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}", **keys)
    assert code == 1 and "check the endpoint (AWS_ENDPOINT_URL)" in printed, printed


def test_the_reference_is_printed():
    printed = subprocess.run([binary(), "config", "docs"], check=True, capture_output=True, text=True, timeout=30).stdout
    for setting in ["archive_entries", "least_rate", "streams", "project_streams", "metrics_listen", "drain_seconds"]:
        assert f"### `{setting}`" in printed
    assert "ARTIFACTD_LIMITS__LEAST_RATE" in printed


def test_names_are_resolved(folder, start):
    folder.settings()
    service = start(folder.settings(listen="localhost:0"))
    assert service.get("/healthz")[0] == 200
    port = service.host.rsplit(":", 1)[1]
    command = [binary(), "healthcheck", "--listen", f"localhost:{port}"]
    assert subprocess.run(command, env=environment(), timeout=30).returncode == 0
    assert os.path.exists(folder.path / "ledger.db")
