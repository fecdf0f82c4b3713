"""An admission that comes when most of its lease is over: nothing may be handed out on it."""

from conftest import ask_redis, until


def test_it_is_refused_and_given_back(folder, start, redis):
    folder.put("t1", "a", 1000)
    server = redis()
    service = start(folder.settings({"ledger": {"url": f"redis://127.0.0.1:{server.port}", "lease_seconds": 2}}))
    path = "/v1/trials/t1/artifacts/a/content"
    assert service.get(path)[0] == 200
    # Longer than three quarters of the lease, and shorter than an admission may take.
    ask_redis(server.port, "CLIENT", "PAUSE", "1700", "ALL")
    status, _, body = service.get(path)
    assert status == 503 and b"QUOTA_UNAVAILABLE" in body, body
    until("it is given back", lambda: service.json("/v1/quota")["open_reservations"] == 0)
    assert service.json("/v1/quota")["used_bytes"] == 1000
