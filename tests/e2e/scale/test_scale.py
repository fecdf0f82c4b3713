"""Three replicas behind nginx over one Redis Cluster and one store, while parts of them are killed.

SOAK_SECONDS: for how long, at least; one round of all faults without it. At most some 3,000: beyond 100,000
lines of a project the audit rolls lines up, and no longer says what each read was charged.
"""

import json
import os
import signal
import time
from collections import Counter

from conftest import Cluster, Nginx, operations, shipped
from traffic import File, Traffic, entries, today

MIB = 1 << 20
PROJECTS = ["p0", "p1", "p2", "p3"]
# Of the project that has less than its clients ask for.
SCARCE, SCARCE_BYTES = "p3", 400 * MIB
LEASE, ADMISSION, SWEEP = 5, 10, 5
DRAIN = 10
# For so long, and so often of each project, it is read in peace before the next fault.
PEACE_SECONDS, PEACE_READS = 5, 50
# What a fault may disturb: reads that ended so shortly before that their settles were on their way, and
# those that began before everything had found its way to what is left.
BEFORE, AFTER = 2, 3


class Installation:
    """The servers, and when what they do was disturbed."""

    def __init__(self, folder, redis, running):
        self.folder, self.running = folder, running
        self.files = {name: File(size, name) for name, size in
                      (("small.log", 16 << 10), ("log", MIB + 7), ("large.log", 20 * MIB + 1))}
        for project in PROJECTS:
            for name, file in self.files.items():
                path = folder.path / "bucket" / project / "t1" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.content)
        self.keys = {p: folder.make_key(p, "--project", p, "--preset", "read-only") for p in PROJECTS}
        self.operator = folder.make_key("operator", "--kind", "operator")
        self.cluster = Cluster(redis)
        self.store_port, self.port = operations.free_port(), operations.free_port()
        self._nginx("store", f"server {{ listen 127.0.0.1:{self.store_port}; root {folder.path}; }}", self.store_port)
        self.replicas = [self.replica() for _ in range(3)]
        self.balancer = self._nginx("balancer", self._block(), self.port)
        self.disturbed = []

    def _nginx(self, name, block, port):
        nginx = Nginx(self.folder.path / f"nginx-{name}", block)
        # Its workers end with it only if it ends in order.
        self.running.callback(operations.end, nginx.process)
        self.running.callback(nginx.process.wait, 30)
        self.running.callback(nginx.process.terminate)
        operations.until("nginx listens", lambda: operations.answers(port))
        return nginx

    def _block(self):
        return shipped(self.port, [replica.host for replica in self.replicas])

    def replica(self, host="127.0.0.1:0"):
        config = self.folder.settings(
            {"store": {"url": "s3://bucket"}, "ledger": {"url": self.cluster.url, "lease_seconds": LEASE},
             "quota": {"daily_bytes": "1 TiB"}, "limits": {"drain_seconds": DRAIN}, "log": {"format": "json"}},
            listen=host)
        env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.store_port}", "AWS_ACCESS_KEY_ID": "a",
               "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        service = operations.Service(self.folder, config, env)
        self.running.callback(operations.end, service.process)
        return service

    def disturb(self, harm):
        begun = time.monotonic()
        harm()
        self.disturbed.append((begun - BEFORE, time.monotonic() + AFTER))

    def is_disturbed(self, read):
        return any(read.begun <= until and read.ended >= since for since, until in self.disturbed)

    def kill_a_replica(self):
        """In the middle of a long read."""
        victim = self.replicas.pop(0)
        operations.until("a long read", lambda: all(victim.metrics()["artifactd_reads_open"] for _ in range(10)))
        victim.signal(signal.SIGKILL)
        victim.process.wait(30)

    def add_a_replica(self):
        self.replicas.append(self.replica())
        self.balancer.reload(self._block())
        operations.until("it has work", lambda: self._reads_of(self.replicas[-1]))

    def restart_all(self):
        """One after another, each when the one before is back."""
        for index, replica in enumerate(self.replicas):
            replica.stop(DRAIN + 10)
            self.replicas[index] = self.replica(replica.host)

    def kill_a_master(self):
        self.cluster.kill_master_of("{p0}")

    @staticmethod
    def _reads_of(replica):
        samples = replica.metrics()
        return sum(value for name, value in samples.items() if name.startswith("artifactd_reservation_age_seconds_count"))


def ask(installation, path, project, **more):
    """An answer of a replica about a project, to its own key."""
    status, _, body = installation.replicas[-1].get(path, key=installation.keys[project], **more)
    assert status == 200, body
    return body


def test_nothing_is_wrong_or_lost_while_parts_are_killed_and_added(tmp_path, redis, running):
    installation = Installation(operations.Folder(tmp_path), redis, running)
    scarce = json.dumps({"daily_bytes": SCARCE_BYTES, "reason": "a test"}).encode()
    put = installation.replicas[0].get(f"/v1/projects/{SCARCE}/allowance", method="PUT", data=scarce, key=installation.operator)
    assert put[0] == 200, put
    days, over = {today()}, time.monotonic() + float(os.environ.get("SOAK_SECONDS", 0))
    with Traffic(("127.0.0.1", installation.port), installation.keys, installation.files) as traffic:

        def peace():
            since = max([time.monotonic(), *(until for _, until in installation.disturbed)])
            operations.until("reads in peace", lambda: time.monotonic() > since + PEACE_SECONDS and all(
                traffic.since(since, project) >= PEACE_READS for project in PROJECTS if project != SCARCE), 120)

        while True:
            peace()
            installation.disturb(installation.kill_a_replica)
            peace()
            installation.add_a_replica()
            peace()
            installation.restart_all()
            peace()
            installation.disturb(installation.kill_a_master)
            peace()
            if time.monotonic() >= over:
                break
            installation.cluster.heal()
    days.add(today())
    judge(installation, traffic.reads, sorted(days))


def judge(installation, reads, days):
    counts = Counter((read.kind, "clean" if read.clean else read.said) for read in reads)
    print(*(f"{number:7} {kind} {said}" for (kind, said), number in sorted(counts.items())), sep="\n")
    wrong = [read for read in reads if read.wrong]
    assert not wrong, f"{wrong}: bytes that are not the file's"
    failed = [read for read in reads if not (read.clean or read.refused)]
    undisturbed = [read for read in failed if not installation.is_disturbed(read)]
    assert not undisturbed, f"{undisturbed}: reads that failed though nothing was killed: a rolling restart and a new replica included"
    assert any(read.refused for read in reads if read.project == SCARCE)

    # A lease, and what it took to be admitted, after the last call: nothing is reserved (I7).
    for project in PROJECTS:
        operations.until("nothing is reserved", lambda: json.loads(ask(installation, "/v1/quota", project))["reserved_bytes"] == 0,
                         LEASE + ADMISSION + 3 * SWEEP)
    exact, expired = 0, 0
    for project in PROJECTS:
        for day in days:
            sums = json.loads(ask(installation, f"/v1/quota/audit/verify?day={day}", project))
            assert sums["balanced"] and sums["leases"] == sums["reserved_bytes"] == 0, sums
        lines = entries(installation.replicas[-1], installation.keys[project], days)
        outcomes = Counter(line["outcome"] for of_one in lines.values() for line in of_one)
        print(project, dict(outcomes))
        expired += outcomes["expired"]
        for read in (read for read in reads if read.project == project):
            own = lines.get(read.id, [])
            charged = sum(line["charged_bytes"] for line in own)
            assert charged >= read.received, (read, own)
            if read.clean and read.kind != "_window" and not installation.is_disturbed(read):
                assert charged == read.received and [line["outcome"] for line in own] == ["completed"], (read, own)
                exact += 1
        known = sum(line["charged_bytes"] for of_one in lines.values() for line in of_one)
        unreserved = sum(line["charged_bytes"] for of_one in lines.values() for line in of_one if line["outcome"] == "unreserved")
        if project == SCARCE and len(days) == 1:
            assert known <= SCARCE_BYTES + unreserved, "more than the allowance was admitted"
    print(f"{len(reads)} reads, {exact} of them charged exactly what arrived, {len(failed)} cut or failed by a fault")
    assert exact > len(reads) / 4 and expired > 0
