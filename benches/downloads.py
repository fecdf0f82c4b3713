"""Whole downloads of local files beside nginx, in one run: `downloads.py BINARY [SECONDS [ROUNDS]]`.

The servers run on the first processor, the load (wrk) on the second. Rates and processor time are
medians of interleaved rounds; what to trust on a shared machine are the ratios, above all those of
processor time, which are the services' alone. artifactd meters every download: in a Redis on the second
processor, or in its embedded ledger, which "on disk" waits for the disk and "in memory" (/dev/shm) does not.
"""

import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = {"1 KiB": 1 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20, "1 GiB sparse": 1 << 30}
CONNECTIONS = (1, 16)
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server does not listen")


def processor_time(pid):
    """Seconds that a process and its children have used."""
    total = 0
    for child in [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


class Nginx:
    def __init__(self, root, folder, sendfile):
        self.port = free_port()
        # As root it drops its rights, and then could not read the files.
        user = "user root;" if os.getuid() == 0 else ""
        configuration = folder / f"nginx-{sendfile}.conf"
        configuration.write_text(
            f"""{user} daemon off; worker_processes 1; pid {folder}/nginx-{sendfile}.pid; error_log /dev/null;
            events {{ worker_connections 1024; }}
            http {{
                access_log off; default_type application/octet-stream; keepalive_requests 1000000000;
                sendfile {sendfile}; output_buffers 2 128k; tcp_nopush on; tcp_nodelay on;
                server {{ listen 127.0.0.1:{self.port}; root {root}; }}
            }}"""
        )
        command = ["taskset", "-c", "0", "/usr/sbin/nginx", "-c", str(configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        answers(self.port)

    def target(self, name):
        return [f"http://127.0.0.1:{self.port}/demo/t1/{name}"]


class Redis:
    def __init__(self):
        self.port = free_port()
        command = ["taskset", "-c", "1", "redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        answers(self.port)


class Artifactd:
    def __init__(self, binary, root, folder, ledger):
        self.port = free_port()
        folder.mkdir()
        keys = folder / "keys.toml"
        command = [binary, "keys", "create", "--keys-file", str(keys), "--project", "demo", "--preset", "read-only"]
        made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.key = re.search(r"epk_[0-9a-f]{64}", made)[0]
        configuration = folder / "config.toml"
        configuration.write_text(
            f"""listen = "127.0.0.1:{self.port}"
            [store]
            url = "file://{root}"
            [ledger]
            url = "{ledger}"
            [quota]
            daily_bytes = "unlimited"
            [access]
            keys_file = "{keys}"
            [log]
            filter = "warn"
            """
        )
        command = ["taskset", "-c", "0", binary, "serve", "--config", str(configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        answers(self.port)

    def target(self, name):
        path = f"/v1/trials/t1/artifacts/{name}/content"
        return ["-H", f"Authorization: Bearer {self.key}", f"http://127.0.0.1:{self.port}{path}"]


def measure(server, name, size, connections, seconds):
    """Downloads a second, and processor time of the server for each, s."""
    before = processor_time(server.process.pid)
    command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s"]
    told = subprocess.run([*command, *server.target(name)], check=True, capture_output=True, text=True).stdout
    used = processor_time(server.process.pid) - before
    assert "Non-2xx" not in told, told
    # By bytes, since a large download may not end within the time.
    amount, unit = re.search(r", ([\d.]+)(B|KB|MB|GB|TB) read", told).groups()
    received = float(amount) * 1024 ** ["B", "KB", "MB", "GB", "TB"].index(unit)
    took = float(re.search(r"requests in ([\d.]+)s", told)[1])
    downloads = received / size if size > 4096 else float(re.search(r"(\d+) requests in", told)[1])
    return downloads / took, used / downloads


def main():
    binary = sys.argv[1]
    seconds, rounds = (int(argument) for argument in (sys.argv[2:] + ["2", "3"][len(sys.argv) - 2 :]))
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        scratch, servers = Path(scratch), {}
        root = scratch / "store"
        (root / "demo/t1").mkdir(parents=True)
        for name, size in SIZES.items():
            with open(root / "demo/t1" / name.replace(" ", ""), "wb") as file:
                if "sparse" in name:
                    file.truncate(size)
                else:
                    file.write(os.urandom(1 << 10) * (size >> 10))
        try:
            servers["nginx sendfile"] = Nginx(root, scratch, "on")
            servers["nginx without"] = Nginx(root, scratch, "off")
            servers["Redis"] = redis = Redis()
            servers["artifactd in Redis"] = Artifactd(binary, root, scratch / "redis", f"redis://127.0.0.1:{redis.port}")
            servers["artifactd in memory"] = Artifactd(binary, root, scratch / "memory", f"embedded://{memory}/ledger.db")
            servers["artifactd on disk"] = Artifactd(binary, root, scratch / "disk", f"embedded://{scratch}/ledger.db")
            report({name: server for name, server in servers.items() if name != "Redis"}, seconds, rounds)
        finally:
            for server in reversed(servers.values()):
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(60)


def report(servers, seconds, rounds):
    head = "".join(f"{name:>34}" for name in servers)
    print(f"{'':24}{head}\n{'file, connections':24}" + "   downloads/s  MB/s  CPU us/each".rjust(34) * len(servers))
    for title, size in SIZES.items():
        for connections in CONNECTIONS:
            taken = {name: [] for name in servers}
            for _ in range(rounds):
                for name, server in servers.items():
                    taken[name].append(measure(server, title.replace(" ", ""), size, connections, seconds))
            medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in taken.items()}
            line = "".join(
                f"{rate:>14.1f}{rate * size / 1e6:>8.0f}{cpu * 1e6:>12.1f}" for rate, cpu in medians.values()
            )
            print(f"{title + ', ' + str(connections):24}{line}")
            for name in (name for name in servers if name.startswith("artifactd")):
                ratios = [
                    f"{medians[name][0] / medians[other][0]:.2f} of its rate, "
                    f"{medians[name][1] / max(medians[other][1], 1e-9):.2f} of its CPU"
                    for other in ("nginx sendfile", "nginx without")
                ]
                print(f"    {name}: against sendfile {ratios[0]}; without {ratios[1]}", flush=True)


if __name__ == "__main__":
    assert shutil.which("taskset") and shutil.which("wrk")
    main()
