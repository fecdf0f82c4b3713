"""All that clients do, at once and for long: what the service holds for it is given back.

SOAK_SECONDS: for how long; some 20 seconds without it. At most some 2,400: beyond 100,000 lines of a project the
audit rolls lines up, and no longer says what each read was charged.
"""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections import Counter, defaultdict

import pytest

from conftest import operations
from mixture import Mixture, png
from traffic import File, entries, today

MIB = 1 << 20
SECONDS = float(os.environ.get("SOAK_SECONDS", 20))
# A run so short is not waited for until Redis has forgotten it.
SHORT = 300
PROJECTS = ["p0", "p1"]
SCARCE, SCARCE_BYTES = "scarce", 100 * MIB
STALL = 5
# A machine that has much else to do is no fault of the ledger's.
LEDGER_SECONDS = 10
# So long an ended reservation is remembered, and a link: a minute longer than it lives.
ENDED, LINK = 300, 15 * 60 + 60
KEY_PAUSE = 5
# What may be resident after the load beyond what was after the warm-up. An allocator keeps some of what it had.
MEMORY = 24 * MIB
# And of the rest. A thread for what blocks ends when it has had nothing to do for ten seconds, but they take turns, and
# the key file is looked at all the time: there may be as many as there are clients.
MORE = {"files": 0, "tasks": 0, "threads": 32}
# Kinds whose clean reads arrive whole: they are charged what arrived.
WHOLE = {"_whole", "_slow", "_range", "_archive", "_link"}
AWS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}


class Soak:
    """A service over Redis, and what is seen of it from outside."""

    def __init__(self, folder, start, redis, bucket):
        self.folder, self.server = folder, redis()
        self.files = {name: File(size, name) for name, size in
                      (("small.log", 16 << 10), ("log", MIB + 7), ("large.log", 20 * MIB + 1))}
        self.others = {"shot.png": png(), "core.bin": bytes(range(256)) * 300}
        self.keys = {p: folder.make_key(p, "--project", p, "--preset", "read-only") for p in [*PROJECTS, SCARCE]}
        self.operator = folder.make_key("operator", "--kind", "operator")
        self._fill(bucket)
        (folder.path / "link.key").write_text("k" * 32)
        sections = {
            "ledger": {"url": f"redis://127.0.0.1:{self.server.port}", "timeout_ms": 1000 * LEDGER_SECONDS,
                       "require_durable": True},
            "links": {"keys": [{"id": "one", "secret_file": str(folder.path / "link.key")}]},
            "limits": {"stall_seconds": STALL, "admission_seconds": LEDGER_SECONDS},
            "quota": {"daily_bytes": "100 TiB"},
        } | ({"store": {"url": "s3://bucket"}} if bucket else {})
        config = folder.settings(sections, public_url="http://files.example.com")
        self.service = start(config, **(AWS | {"AWS_ENDPOINT_URL": bucket} if bucket else {}))
        self.keys_made = 0
        scarce = json.dumps({"daily_bytes": SCARCE_BYTES, "reason": "a test"}).encode()
        put = self.service.get(f"/v1/projects/{SCARCE}/allowance", method="PUT", data=scarce, key=self.operator)
        assert put[0] == 200, put

    def _fill(self, bucket):
        contents = {name: file.content for name, file in self.files.items()} | self.others
        if bucket:
            self._put(f"{bucket}/bucket", b"")
        for project in self.keys:
            for name, content in contents.items():
                if bucket:
                    self._put(f"{bucket}/bucket/{project}/t1/{name}", content)
                else:
                    path = self.folder.path / "store" / project / "t1" / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)

    @staticmethod
    def _put(url, content):
        request = urllib.request.Request(url, method="PUT", data=content)
        request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=access/20260101/us-east-1/s3/aws4_request")
        request.add_header("Content-Type", "application/octet-stream")
        urllib.request.urlopen(request, timeout=30).close()

    def traffic(self):
        host, port = self.service.host.rsplit(":", 1)
        return Mixture((host, int(port)), self.keys, self.files, others=self.others, scarce=SCARCE, stall=STALL)

    def held(self):
        """What the process and its Redis hold now."""
        with open(f"/proc/{self.service.process.pid}/status", encoding="ascii") as status:
            threads = next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
        samples = self.service.metrics()

        def total(name):
            return sum(value for sample, value in samples.items() if sample.startswith(name))

        return {
            "memory": samples["process_resident_memory_bytes"], "files": samples["process_open_fds"],
            "tasks": samples["artifactd_tasks_alive"], "threads": threads, "reads": samples["artifactd_reads_open"],
            "keys": int(self.redis("DBSIZE")),
            "redis": int(self.redis("INFO", "memory").split("used_memory:")[1].split()[0]),
            "requests": total("artifactd_requests_total"), "bytes": total("artifactd_answer_bytes_total"),
        }

    def look(self, when):
        held = self.held()
        print("{:>9}: {memory:.0f} B resident, {files:.0f} files, {tasks:.0f} tasks, {threads} threads, {reads:.0f} reads open; "
              "Redis {keys} keys, {redis} B; {requests:.0f} requests, {bytes:.0f} B answered".format(when, **held), flush=True)
        return held

    def quiet(self):
        """Nobody asks any more: waits until all is settled, and connections and spare threads have gone."""
        for project in self.keys:
            operations.until("nothing is reserved", lambda: self.account(project)["reserved_bytes"] == 0, 60)
        operations.until("connections close", lambda: self.service.metrics()["artifactd_connections_open"] <= 1, 60)

    def account(self, project):
        return json.loads(self.service.get("/v1/quota", key=self.keys[project])[2])

    def redis(self, *words):
        command = ["redis-cli", "-p", str(self.server.port), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def lasting(self):
        """Keys by their time to live in seconds, -1 without an end."""
        each = "for _, key in ipairs(redis.call('KEYS', '*')) do all[#all + 1] = redis.call('TTL', key) .. ' ' .. key end"
        script = f"local all = {{}} {each} return all"
        lines = self.redis("EVAL", script, "0").splitlines()
        return {key: int(ttl) for ttl, key in (line.split(" ", 1) for line in lines if line)}

    def change_keys(self):
        """A key that is made, used and withdrawn, each in force by SIGHUP."""
        name = f"passing-{self.keys_made}"
        self.keys_made += 1
        key = self.folder.make_key(name, "--project", "p0", "--preset", "read-only")
        self.service.signal(signal.SIGHUP)
        operations.until("the key is known", lambda: self.service.get("/v1/me", key=key)[0] == 200)
        command = [operations.binary(), "keys", "disable", "--keys-file", str(self.folder.path / "keys.toml"), name]
        subprocess.run(command, check=True, capture_output=True, env=operations.environment(), timeout=30)
        self.service.signal(signal.SIGHUP)
        operations.until("the key is gone", lambda: self.service.get("/v1/me", key=key)[0] == 401)

    def load(self, seconds):
        """Mixed load, with a look every now and then; answers what clients saw."""
        begun = time.monotonic()
        looks = iter(sorted({seconds * part / 6 for part in range(1, 7)}))
        due = next(looks)
        with self.traffic() as traffic:
            while (passed := time.monotonic() - begun) < seconds:
                self.change_keys()
                if passed >= due:
                    self.look(f"{passed:.0f} s")
                    due = next(looks, seconds)
                time.sleep(min(KEY_PAUSE, max(0, seconds - passed)))
            self.look(f"{time.monotonic() - begun:.0f} s")
        return traffic.reads


@pytest.mark.timeout(SECONDS + SECONDS / 4 + ENDED + 300)
@pytest.mark.parametrize("store", ["directory", "s3"])
def test_what_a_mixed_load_takes_is_given_back(store, request, folder, start, redis):
    seconds = SECONDS if store == "directory" else min(SECONDS, 60)
    soak = Soak(folder, start, redis, request.getfixturevalue("moto") if store == "s3" else None)
    days = {today()}
    soak.look("start")
    reads = soak.load(min(60, max(seconds / 4, 3 * STALL)))
    soak.quiet()
    before = soak.look("warm")
    reads += soak.load(seconds)
    soak.quiet()
    days.add(today())
    for what, more in MORE.items():
        operations.until(f"{what} return", lambda: soak.held()[what] <= before[what] + more, 60)
    after = soak.look("after")
    grown = after["memory"] - before["memory"]
    print(f"{grown / MIB:+.1f} MiB, {len(reads)} rounds of clients, {soak.keys_made} keys made and withdrawn")
    judge_reads(soak, reads, sorted(days))
    judge_keys(soak, sorted(days))
    assert grown < MEMORY
    assert "the request failed" not in soak.service.log() and "panic" not in soak.service.log()
    soak.service.stop()


def judge_reads(soak, reads, days):
    """Nothing that clients saw was wrong, and all that they counted was charged."""
    counts = Counter((read.kind, "clean" if read.clean else read.said) for read in reads)
    print(*(f"{number:7} {kind} {said}" for (kind, said), number in sorted(counts.items())), sep="\n")
    assert not [read for read in reads if read.wrong], "what arrived is not what is there"
    assert not [read for read in reads if not (read.clean or read.refused)], "reads that failed, though nothing was wrong"
    assert any(read.refused for read in reads) and len({read.kind for read in reads}) == len(soak.traffic().kinds("p0"))
    of_projects = defaultdict(list)
    for read in reads:
        of_projects[read.project].append(read)
    for project, own in of_projects.items():
        env = {"ARTIFACTD_URL": soak.service.url, "ARTIFACTD_KEY": soak.keys[project]}
        for day in days:
            command = [operations.binary(), "quota", "verify", "--day", day]
            verified = subprocess.run(command, capture_output=True, env=operations.environment(**env), timeout=120)
            assert verified.returncode == 0, verified
        lines = entries(soak.service, soak.keys[project], days)
        charges = {id: sum(line["charged_bytes"] for line in of_one) for id, of_one in lines.items()}
        outcomes = Counter(line["outcome"] for of_one in lines.values() for line in of_one)
        received, charged = sum(read.received for read in own), sum(charges.values())
        print(f"{project}: {received} B received, {charged} B charged, {dict(outcomes)}")
        assert charged >= received and soak.account(project)["open_reservations"] == 0
        for read in own:
            charge = charges.get(read.id, 0)
            assert charge >= read.received, (read, lines.get(read.id))
            if read.clean and read.kind in WHOLE:
                assert charge == read.received, (read, lines.get(read.id))
        assert not {"expired", "unreserved", "corrected", "failed"} & set(outcomes), outcomes
        assert project == SCARCE or outcomes["aborted"] > 0
        assert project != SCARCE or charged <= SCARCE_BYTES


def judge_keys(soak, days):
    """Redis keeps the books of the days, and forgets what only mattered at its time."""
    books = {f"{day}:{what}" for day in days for what in ("account", "lines", "due")} | {"days"}
    books = {f"artifactd:1:{{{project}}}:{name}" for project in soak.keys for name in books}
    endless = {"artifactd:1:identity", "artifactd:1:projects", f"artifactd:1:{{{SCARCE}}}:allowance"}

    def passing(what, keys):
        return {key: ttl for key, ttl in keys.items() if f"}}:{what}:" in key}

    found = soak.lasting()
    lists = {f"artifactd:1:{{{project}}}:{what}" for project in soak.keys for what in ("links", "links:expiry")}
    ended, links = passing("id", found), passing("link", found)
    assert set(found) <= books | endless | lists | set(ended) | set(links), "keys that nobody has told of"
    assert {key for key, ttl in found.items() if ttl < 0} <= endless, "keys without an end"
    assert ended and all(0 <= ttl <= ENDED for ttl in ended.values())
    assert links and all(0 <= found[key] <= LINK for key in [*links, *lists & set(found)])
    if SECONDS >= SHORT:
        operations.until("Redis forgets", lambda: not passing("id", soak.lasting()), ENDED + 30)
        soak.look("forgotten")
