"""How fast a demo on this machine hands out files: `reads.py BINARY`.

Whole downloads of the 50 MB log on 1 and 8 connections, and windows of it by MCP calls one after
another. Client and service share the machine, so this compares builds, and says little of networks.
"""

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

TRIAL, NAME, SIZE = "train-tokenizer__w9LkP4d", "agent/train.log", 50_000_000
DOWNLOADS = 40
WINDOWS = 500


def download(host, key, times):
    connection = http.client.HTTPConnection(host, timeout=60)
    path = f"/v1/trials/{TRIAL}/artifacts/{NAME.replace('/', '~1')}/content"
    buffer = bytearray(1 << 20)
    for _ in range(times):
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        received = 0
        while got := answer.readinto(buffer):
            received += got
        assert received == SIZE, received


def windows(host, key, times):
    connection = http.client.HTTPConnection(host, timeout=60)
    taken = []
    for number in range(times):
        arguments = {"trial_id": TRIAL, "name": NAME, "offset": number * 99_991, "max_bytes": 4096}
        params = {"name": "envloop_trial_artifact_read", "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        begin = time.perf_counter()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/mcp", body, headers)
        answer = json.loads(connection.getresponse().read())
        taken.append(time.perf_counter() - begin)
        assert "result" in answer and not answer["result"].get("isError"), answer
    return sorted(taken)


def main():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.argv[1], "demo", "--json", "--dir", folder, "--listen", "127.0.0.1:0"]
        command += ["--daily-bytes", "unlimited"]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            demo = json.loads(service.stdout.readline())
            host, key = urlsplit(demo["url"]).netloc, demo["keys"]["read_only"]
            for connections in (1, 8):
                share = DOWNLOADS // connections
                threads = [threading.Thread(target=download, args=(host, key, share)) for _ in range(connections)]
                begin = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                rate = share * connections * SIZE / (time.perf_counter() - begin) / 1e6
                print(f"whole downloads, {connections} connection(s): {rate:8.0f} MB/s")
            taken = windows(host, key, WINDOWS)
            middle, late = taken[len(taken) // 2] * 1e3, taken[len(taken) * 99 // 100] * 1e3
            print(f"windows of 4 KiB by MCP:          {middle:8.2f} ms in the middle, {late:.2f} ms at 99 %")
        finally:
            service.terminate()
            service.wait(30)


if __name__ == "__main__":
    main()
