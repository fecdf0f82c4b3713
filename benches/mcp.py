"""What a `tools/call` costs beside two servers that do nothing for it: `mcp.py BINARY PEERS [SECONDS [ROUNDS]]`.

All answer a read of a short text file. `bare` is an axum handler that gives back the answer's bytes, `rmcp`
the official SDK with a tool that returns the text; artifactd finds the file, reserves and settles it in a
ledger on /dev/shm, and frames it. "envelope" is the call of a tool that there is not: HTTP, key and protocol.
The servers run on the first processor, the load (wrk) on the second; medians of interleaved rounds. What to
trust on a shared machine is the processor time for each call.
"""

import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from downloads import Artifactd, answers, free_port, processor_time

READ = "envloop_trial_artifact_read"
CONNECTIONS = 8


class Peer:
    key = "none"

    def __init__(self, binary, kind, text):
        self.port = free_port()
        command = ["taskset", "-c", "0", binary, kind, str(self.port), str(text)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        answers(self.port)


def headers(server):
    return {
        "Authorization": f"Bearer {server.key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }


def body(arguments, tool=READ):
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def call(server, arguments):
    """The bytes of one answer."""
    url = f"http://127.0.0.1:{server.port}/v1/mcp"
    request = urllib.request.Request(url, body(arguments).encode(), headers(server))
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def measure(server, script, seconds):
    """Calls a second, and processor time of the server for each, s."""
    url = f"http://127.0.0.1:{server.port}/v1/mcp"
    before = processor_time(server.process.pid)
    command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    used = processor_time(server.process.pid) - before
    assert "Non-2xx" not in told and "Socket errors" not in told, told
    calls, took = next(line for line in told.splitlines() if "requests in" in line).split(" requests in ")
    took = took.split("s,")[0]
    return int(calls) / float(took), used / int(calls)


def main():
    binary, peers = sys.argv[1:3]
    seconds, rounds = (int(argument) for argument in (sys.argv[3:] + ["3", "3"][len(sys.argv) - 3 :]))
    read = {"trial_id": "t1", "name": "reward.txt"}
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        scratch, servers = Path(scratch), {}
        trial = scratch / "store/demo/t1"
        trial.mkdir(parents=True)
        (trial / "reward.txt").write_text("1.0\n")
        try:
            servers["artifactd"] = Artifactd(binary, scratch / "store", scratch / "service", memory)
            result = json.loads(call(servers["artifactd"], read))["result"]
            assert not result["isError"] and "1.0" in result["content"][0]["text"], result
            (scratch / "text").write_text(result["content"][0]["text"])
            servers["bare"] = Peer(peers, "bare", scratch / "text")
            servers["rmcp"] = Peer(peers, "rmcp", scratch / "text")
            for peer in ("bare", "rmcp"):
                answer = json.loads(call(servers[peer], read))["result"]
                assert answer["content"] == result["content"], answer
            report(servers, scratch, {"read": body(read), "envelope": body(read, "none")}, seconds, rounds)
        finally:
            for server in servers.values():
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(60)


def report(servers, scratch, bodies, seconds, rounds):
    cases = {
        "bare axum handler": ("bare", "read"),
        "rmcp": ("rmcp", "read"),
        "artifactd, envelope": ("artifactd", "envelope"),
        "artifactd, metered read": ("artifactd", "read"),
    }
    taken = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (server, sent) in cases.items():
            lua = [f'wrk.method = "POST"; wrk.body = {json.dumps(bodies[sent])}']
            lua += [f"wrk.headers[{json.dumps(header)}] = {json.dumps(value)}" for header, value in headers(servers[server]).items()]
            script = scratch / "load.lua"
            script.write_text("\n".join(lua))
            taken[name].append(measure(servers[server], script, seconds))
    medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in taken.items()}
    floor = medians["bare axum handler"][1]
    print(f"{'tools/call, ' + str(CONNECTIONS) + ' connections':28}{'calls/s':>10}{'CPU us each':>14}{'of bare':>10}")
    for name, (rate, cpu) in medians.items():
        print(f"{name:28}{rate:10.0f}{cpu * 1e6:14.1f}{cpu / max(floor, 1e-9):10.2f}")


if __name__ == "__main__":
    assert shutil.which("taskset") and shutil.which("wrk")
    main()
