"""A ledger that lost what it held: the running service says so in log, metric and /readyz?verbose."""

import socket
import subprocess

from conftest import ask_redis, end, until

MIB = 1 << 20


def test_a_loss_is_noticed(folder, start, redis):
    folder.put("t1", "large", 64 * MIB)
    server = redis()
    ledger = {"url": f"redis://127.0.0.1:{server.port}", "lease_seconds": 3}
    service = start(folder.settings({"ledger": ledger}))
    assert service.json("/readyz") == {"status": "ready"}

    def part(name):
        return service.json("/readyz?verbose")["parts"][name]

    until("the ledger is known", lambda: part("ledger")["status"] == "ok")
    assert part("ledger")["lost_data_seconds_ago"] is None and part("store")["status"] == "unknown"
    with socket.create_connection(tuple(service.host.rsplit(":", 1)), timeout=30) as stream:
        stream.sendall(f"GET /v1/trials/t1/artifacts/large/content HTTP/1.1\r\nHost: localhost\r\n"
                       f"Authorization: Bearer {service.key}\r\n\r\n".encode())
        until("a read", lambda: service.json("/v1/quota")["open_reservations"] == 1)
        assert part("store")["status"] == "ok"
        ask_redis(server.port, "FLUSHALL")
        until("the loss", lambda: part("ledger")["lost_data_seconds_ago"] is not None)
        until("the lease", lambda: part("ledger")["lost_leases"] == 1)
        until("the charge", lambda: part("ledger")["unreserved_entries"] == 1)
    metrics = service.metrics()
    assert metrics["artifactd_ledger_losses_total"] == 1
    assert metrics["artifactd_lost_leases_total"] == 1 and metrics["artifactd_unreserved_entries_total"] == 1
    assert service.json("/readyz")["status"] == "ready", "an empty ledger is no reason to take no traffic"
    assert service.json("/v1/quota/audit")["items"][0]["outcome"] == "unreserved"
    log = service.stop()
    assert "the ledger lost what it held" in log and "the ledger had lost this reservation" in log


def test_a_restart_that_keeps_the_data_is_none(folder, start, redis):
    server = redis("--appendfsync", "always")
    service = start(folder.settings({"ledger": {"url": f"redis://127.0.0.1:{server.port}"}}))
    until("the ledger has a name", lambda: ask_redis(server.port, "EXISTS", "artifactd:1:identity") == "1")
    end(server)

    def status():
        service.get("/v1/quota")
        return service.json("/readyz?verbose")["parts"]["ledger"]["status"]

    until("its absence shows", lambda: status() == "failing")
    assert service.get("/readyz")[0] == 200, "every replica would leave the load balancer at once"
    quiet = subprocess.DEVNULL
    again = subprocess.Popen([*server.args], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        until("it is back", lambda: status() == "ok")
        count = 'artifactd_sweeps_total{result="ok"}'
        before = service.metrics().get(count, 0)
        # Each sweep follows a look at the name.
        until("it was looked at", lambda: service.metrics().get(count, 0) >= before + 2)
        assert service.metrics()["artifactd_ledger_losses_total"] == 0
    finally:
        end(again)
