"""What operators change in the books is told in the log: by whom, what, until when, why, in place of what."""

import json
import subprocess

from conftest import until


def changes(service):
    return [line for line in service.lines() if line.get("target") == "artifactd::changes"]


def told(line):
    """A line of the log without what every line has."""
    return {name: value for name, value in line.items() if name not in ("timestamp", "level", "target")}


def change(service, method, path, body=None, request_id="r-1"):
    headers = {"Content-Type": "application/json", "X-Request-Id": request_id}
    data = json.dumps(body).encode() if body is not None else None
    return service.get(f"/v1/projects/demo/{path}", headers, key=service.operator, method=method, data=data)


def begin(folder, start, **sections):
    """A service with an operator."""
    operator = folder.make_key("chief", "--kind", "operator")
    service = start(folder.settings(sections))
    service.operator = operator
    return service


def test_an_allowance_that_is_set_replaced_and_cleared(folder, start):
    service = begin(folder, start)
    first = {"daily_bytes": "2 GiB", "until": "2999-01-01T00:00:00Z", "reason": 'a "larger" évaluation'}
    assert change(service, "PUT", "allowance", first, "one")[0] == 200
    assert change(service, "PUT", "allowance", {"daily_bytes": "unlimited", "reason": "still larger"}, "two")[0] == 200
    assert change(service, "DELETE", "allowance", request_id="three")[0] == 204
    assert change(service, "DELETE", "allowance", request_id="four")[0] == 204
    common = {"outcome": "done", "project": "demo", "by": "chief"}
    was = {"replaced_daily_bytes": str(2 << 30), "replaced_until": "2999-01-01T00:00:00Z", "replaced_by": "chief",
           "replaced_reason": 'a "larger" évaluation'}
    assert list(map(told, changes(service))) == [
        common | {"change": "allowance set", "request_id": "one", "daily_bytes": str(2 << 30),
                  "until": "2999-01-01T00:00:00Z", "reason": 'a "larger" évaluation'},
        common | {"change": "allowance set", "request_id": "two", "daily_bytes": "unlimited", "reason": "still larger"} | was,
        common | {"change": "allowance cleared", "request_id": "three", "replaced_daily_bytes": "unlimited",
                  "replaced_by": "chief", "replaced_reason": "still larger"},
        common | {"change": "allowance cleared", "request_id": "four"},
    ]


def test_a_correction(folder, start):
    service = begin(folder, start)
    day = service.json("/v1/quota")["day"]
    fix = {"adjustment_id": "fix-1", "day": day, "bytes": -5000, "reason": "a crash"}
    assert change(service, "POST", "adjustments", fix, "one")[0] == 200
    assert list(map(told, changes(service))) == [{
        "change": "day corrected", "outcome": "done", "project": "demo", "by": "chief", "request_id": "one", "day": day,
        "adjustment_id": "fix-1", "bytes": -5000, "applied_bytes": 0, "reason": "a crash"}]


def test_what_changes_nothing_is_not_told(folder, start):
    service = begin(folder, start)
    assert change(service, "PUT", "allowance", {"daily_bytes": 1, "reason": " "})[0] == 400
    assert change(service, "PUT", "allowance", {"daily_bytes": 1, "until": "2001-01-01T00:00:00Z", "reason": "late"})[0] == 400
    fix = {"adjustment_id": "fix-1", "day": "2001-01-01", "bytes": 1, "reason": "a crash"}
    assert change(service, "POST", "adjustments", fix)[0] == 400
    service.operator = service.key
    assert change(service, "PUT", "allowance", {"daily_bytes": 1, "reason": "mine"})[0] == 403
    assert not changes(service)


def test_these_lines_pass_whatever_the_filter_is(folder, start):
    """Whoever wants a quiet log still learns who changed the books."""
    service = begin(folder, start, log={"format": "json", "filter": "off,artifactd::server=info,artifactd::changes=off"})
    assert change(service, "PUT", "allowance", {"daily_bytes": 1, "reason": "less"})[0] == 200
    assert [line["reason"] for line in changes(service)] == ["less"]
    assert not [line for line in service.lines() if line["target"] == "artifactd::access"]


def test_a_change_that_the_ledger_did_not_confirm_may_be_one(folder, start, redis):
    """A Redis that is full answers questions, and takes no change."""
    server = redis()
    service = begin(folder, start, ledger={"url": f"redis://127.0.0.1:{server.port}"})
    until("the ledger", lambda: service.get("/v1/quota")[0] == 200)
    subprocess.run(["redis-cli", "-p", str(server.port), "CONFIG", "SET", "maxmemory", "1"], check=True, capture_output=True)
    assert change(service, "PUT", "allowance", {"daily_bytes": 1, "reason": "less"})[0] == 503
    line, = changes(service)
    assert (line["change"], line["outcome"], line["daily_bytes"]) == ("allowance set", "unknown", "1")
