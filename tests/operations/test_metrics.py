"""Metrics: Prometheus takes them, they say what happened, and no client makes a label."""

import http.client
import json
import subprocess
import urllib.parse
import urllib.request

from conftest import free_port, until


def test_prometheus_takes_them(folder, start):
    folder.put("t1", "a", b"x" * 1000)
    service = start()
    assert service.get("/v1/trials/t1/artifacts/a/content")[0] == 200
    assert service.get("/v1/trials/t1/artifacts/none/content")[0] == 404
    service.get("/v1/trials/t1/artifacts/a/content", key="epk_wrong")
    until("the settle", lambda: service.metrics().get('artifactd_charged_bytes_total{channel="http"}') == 1000)
    text = service.get("/metrics")[2]
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=30)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr.decode()
    metrics = service.metrics()
    content = 'route="/v1/trials/{trial_id}/artifacts/{artifact_id}/content",method="GET"'
    assert metrics[f'artifactd_requests_total{{{content},status="200"}}'] == 1
    assert metrics['artifactd_refusals_total{code="ARTIFACT_NOT_FOUND"}'] == 1
    assert metrics['artifactd_refusals_total{code="UNAUTHENTICATED"}'] == 1
    assert metrics['artifactd_ledger_call_seconds_count{call="reserve",result="ok"}'] == 1
    assert metrics['artifactd_store_call_seconds_count{call="stat",result="ok"}'] == 1
    assert metrics['artifactd_store_call_seconds_count{call="stat",result="not_found"}'] == 1
    assert metrics['artifactd_reservation_age_seconds_count{outcome="completed"}'] == 1
    assert metrics["artifactd_reads_open"] == 0
    assert metrics["process_open_fds"] > 5 and metrics["process_resident_memory_bytes"] > 1e6


def test_an_image_is_counted_by_its_verdict(folder, start):
    folder.put("t1", "a.png", b"\x89PNG\r\n\x1a\n and no more")
    service = start()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "envloop_trial_artifact_read", "arguments": {"trial_id": "t1", "name": "a.png"}}}
    headers = {"Content-Type": "application/json"}
    assert service.get("/v1/mcp", headers, method="POST", data=json.dumps(call).encode())[0] == 200
    verdicts = {name: value for name, value in service.metrics().items() if name.startswith("artifactd_verdicts_total")}
    assert verdicts.pop('artifactd_verdicts_total{verdict="sound"}') == 0
    assert list(verdicts.values()) == [1], verdicts


def test_they_have_a_listener_of_their_own_where_one_is_set(folder, start):
    port = free_port()
    service = start(folder.settings({"http": {"metrics_listen": f"localhost:{port}"}}))
    assert service.get("/metrics")[0] == 404
    own = service.metrics(f"http://127.0.0.1:{port}/metrics")
    assert own['artifactd_requests_total{route="-",method="GET",status="404"}'] == 1


def test_no_client_makes_a_label(folder, start):
    """Whatever is sent, the series are those that the program makes of it."""
    folder.put("t1", "a", b"x")
    service = start()
    mark = "MaRkEr"
    host, port = service.host.rsplit(":", 1)

    def send(method, target, headers):
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.getresponse().read()
        connection.close()

    everywhere = {"Host": f"{mark}.example", "Authorization": f"Bearer {mark}", "X-Request-Id": mark, "User-Agent": mark,
                  "X-Project-ID": mark, "X-Workspace-ID": mark, "Origin": f"https://{mark}.example", "Range": mark,
                  "traceparent": mark, "If-None-Match": mark, mark: mark, "Content-Type": mark}
    good = everywhere | {"Authorization": f"Bearer {service.key}", "Host": "localhost"}
    del good["X-Project-ID"], good["X-Workspace-ID"]
    quoted = urllib.parse.quote(f'{mark}"}} 1\n')
    for method in ["GET", "HEAD", "POST", "DELETE", "OPTIONS", mark]:
        for path in ["/", f"/{mark}", f"/{quoted}", "/v1/trials", f"/v1/trials/{mark}/artifacts", "/v1/mcp", "/metrics",
                     f"/v1/trials/t1/artifacts/{mark}/content", f"/v1/download/{mark}/{mark}", f"/v1/quota?{mark}={mark}"]:
            for headers in [everywhere, good]:
                send(method, path, headers)
    first = set(service.metrics())
    assert not [name for name in first if mark.lower() in name.lower()]
    # More of the same makes no further series.
    for number in range(20):
        send(f"{mark}{number}", f"/v1/trials/{mark}{number}/artifacts", good)
        send("GET", f"/{mark}{number}", everywhere)
        send("GET", f"/v1/trials/{mark}{number}/artifacts", good)
    new = set(service.metrics()) - first
    assert not new, new
