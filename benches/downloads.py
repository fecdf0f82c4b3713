"""Whole downloads beside nginx, in one run: `downloads.py BINARY [--stores ...] [--sizes ...] [--connections ...]`.

The servers run on the first processor, the load (wrk) on the second, and so do a Redis and the store of
objects (nginx with a directory, which speaks as much S3 as reads need). Rates and processor time are medians of
interleaved rounds; what to trust on a shared machine are the ratios, above all those of processor time,
which are the services' alone.

artifactd meters every download: in Redis, or in its embedded ledger, which "on disk" waits for the disk and "in
memory" (/dev/shm) does not. Beside it runs the same service over a ledger that keeps nothing (`unmetered.rs`):
what it is better by is the price of metering. Over S3, nginx is a proxy with 8 buffers of 256 KiB.

Every download is of the same file, which artifactd then keeps open from one to the next, as one nginx of these does;
only "many" are 5,000 files of 1 KiB in turn, each of them opened anew.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SIZES = {"many": 1 << 10, "1KiB": 1 << 10, "64KiB": 64 << 10, "1MiB": 1 << 20, "64MiB": 64 << 20, "1GiB": 1 << 30}
SPARSE = "1GiB"
MANY, FILES, IN_TURN = "many", 5000, Path(__file__).with_name("many.lua")
TICKS = os.sysconf("SC_CLK_TCK")
SERVER, LOAD = ["taskset", "-c", "0"], ["taskset", "-c", "1"]
AGAINST = ("nginx sendfile", "nginx without", "nginx proxy", "unmetered", "unmetered over S3")


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
    """One worker; `location` says what of."""

    def __init__(self, folder, name, http, location, processor=SERVER):
        self.port = free_port()
        # As root it drops its rights, and then could not read the files.
        user = "user root;" if os.getuid() == 0 else ""
        configuration = folder / f"nginx-{name}.conf"
        configuration.write_text(
            f"""{user} daemon off; worker_processes 1; pid {folder}/nginx-{name}.pid; error_log /dev/null;
            events {{ worker_connections 1024; }}
            http {{
                access_log off; default_type application/octet-stream; keepalive_requests 1000000000;
                output_buffers 2 128k; tcp_nopush on; tcp_nodelay on; {http}
                server {{ listen 127.0.0.1:{self.port}; location / {{ {location} }} }}
            }}"""
        )
        command = [*processor, "/usr/sbin/nginx", "-c", str(configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        answers(self.port)

    def target(self, name):
        return [f"http://127.0.0.1:{self.port}/bucket/demo/t1/{name}"]


def of_files(root, folder, sendfile, processor=SERVER, more=""):
    name = f"{sendfile}-{processor[-1]}{'-open' if more else ''}"
    return Nginx(folder, name, f"sendfile {sendfile}; {more}", f"root {root};", processor)


def of_objects(folder, store):
    """A proxy of the store, tuned for bulk."""
    http = f"upstream store {{ server 127.0.0.1:{store.port}; keepalive 128; keepalive_requests 1000000000; }}"
    location = """proxy_pass http://store; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_buffers 8 256k; proxy_buffer_size 256k; proxy_busy_buffers_size 512k; proxy_max_temp_file_size 0;"""
    return Nginx(folder, "proxy", http, location)


class Redis:
    def __init__(self):
        self.port = free_port()
        command = [*LOAD, "redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        answers(self.port)


class Artifactd:
    """`serve` is the command line up to its settings file."""

    def __init__(self, binary, serve, folder, store, ledger, environment):
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
            {store}
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
        command = [*SERVER, *serve, str(configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        answers(self.port)

    def target(self, name):
        path = f"/v1/trials/t1/artifacts/{name}/content"
        return ["-H", f"Authorization: Bearer {self.key}", f"http://127.0.0.1:{self.port}{path}"]


def unmetered():
    """Builds the service without books; its program."""
    command = ["cargo", "build", "--locked", "--release", "--bench", "unmetered", "--message-format", "json"]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    made = [json.loads(line) for line in told.splitlines()]
    return next(it["executable"] for it in made if it.get("executable") and it["target"]["name"] == "unmetered")


def measure(server, name, size, connections, seconds):
    """Downloads a second, and processor time of the server for each, s."""
    before = processor_time(server.process.pid)
    command = [*LOAD, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s"]
    command += server.target(name)
    if name == MANY:
        command += ["-s", str(IN_TURN), "--", str(FILES)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    used = processor_time(server.process.pid) - before
    assert "Non-2xx" not in told, told
    # By bytes, since a large download may not end within the time.
    amount, unit = re.search(r", ([\d.]+)(B|KB|MB|GB|TB) read", told).groups()
    received = float(amount) * 1024 ** ["B", "KB", "MB", "GB", "TB"].index(unit)
    took = float(re.search(r"requests in ([\d.]+)s", told)[1])
    downloads = received / size if size > 4096 else float(re.search(r"(\d+) requests in", told)[1])
    # Nothing may have come through where the machine has too much to do.
    return downloads / took, used / downloads if downloads else math.inf


def fill(folder, sizes):
    folder.mkdir(parents=True)
    for name in sizes:
        if name == MANY:
            for number in range(1, FILES + 1):
                (folder / f"{MANY}-{number}").write_bytes(os.urandom(SIZES[MANY]))
            continue
        with open(folder / name, "wb") as file:
            if name == SPARSE:
                file.truncate(SIZES[name])
            else:
                file.write(os.urandom(1 << 10) * (SIZES[name] >> 10))


def start(options, scratch, memory, servers):
    """Adds to `servers`; those whose names begin with a hash only serve others."""
    root, bare = scratch / "root", options.unmetered or unmetered()
    fill(root / "bucket/demo/t1", options.sizes)

    def artifactd(name, store, ledger, serve=(options.binary, "serve", "--config"), environment={}):
        folder = scratch / name.replace(" ", "-")
        servers[name] = Artifactd(options.binary, serve, folder, store, ledger, environment)

    in_memory = iter(f"embedded://{memory}/{number}.db" for number in range(9))
    if "local" in options.stores:
        local = f'url = "file://{root}/bucket"'
        servers["nginx sendfile"] = of_files(root, scratch, "on")
        servers["nginx without"] = of_files(root, scratch, "off")
        kept = "open_file_cache max=1000; open_file_cache_valid 1s;"
        servers["nginx, files kept open"] = of_files(root, scratch, "on", more=kept)
        artifactd("unmetered", local, next(in_memory), serve=(bare,))
        servers["# Redis"] = redis = Redis()
        artifactd("in Redis", local, f"redis://127.0.0.1:{redis.port}")
        artifactd("in memory", local, next(in_memory))
        artifactd("on disk", local, f"embedded://{scratch}/ledger.db")
    if "s3" in options.stores:
        servers["# objects"] = objects = of_files(root, scratch, "on", LOAD)
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{objects.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
        }
        s3 = 'url = "s3://bucket"'
        servers["nginx proxy"] = of_objects(scratch, objects)
        artifactd("unmetered over S3", s3, next(in_memory), (bare,), environment)
        artifactd("in memory over S3", s3, next(in_memory), environment=environment)
        looking = f"{s3}\ncache_seconds = 0"
        artifactd("in memory over S3, looking", looking, next(in_memory), environment=environment)


def report(servers, options):
    for name in options.sizes:
        size = SIZES[name]
        for connections in options.connections:
            taken = {server: [] for server in servers}
            for _ in range(options.rounds):
                for server, runs in taken.items():
                    runs.append(measure(servers[server], name, size, connections, options.seconds))
            medians = {server: [statistics.median(column) for column in zip(*runs)] for server, runs in taken.items()}
            load = "load " + " ".join(f"{load:.1f}" for load in os.getloadavg())
            print(f"\n{name}, {connections} at once; {load}\n{'':28}downloads/s     MB/s  CPU us each")
            for server, (rate, cpu) in medians.items():
                print(f"{server:28}{rate:>11.1f}{rate * size / 1e6:>9.0f}{cpu * 1e6:>13.1f}{against(server, medians)}")


def against(server, medians):
    """Its rate and its processor time as shares of those of the others of its kind."""
    over_s3 = [name.endswith(("proxy", "S3", "looking")) for name in (server, *AGAINST)]
    if server.startswith("nginx"):
        return ""
    told = ""
    for other, fits in zip(AGAINST, over_s3[1:]):
        if other in medians and other != server and fits == over_s3[0]:
            (rate, cpu), (others_rate, others_cpu) = medians[server], medians[other]
            told += f"  {rate / others_rate:.2f} / {cpu / max(others_cpu, 1e-9):.2f} of {other}"
    return told


def main():
    arguments = argparse.ArgumentParser(description="Whole downloads beside nginx")
    arguments.add_argument("binary")
    arguments.add_argument("--unmetered", help="the service without books; built if not named")
    arguments.add_argument("--stores", nargs="+", choices=["local", "s3"], default=["local", "s3"])
    arguments.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    arguments.add_argument("--connections", nargs="+", type=int, default=[1, 16, 64])
    arguments.add_argument("--seconds", type=int, default=1, help="of each measurement")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    servers = {}
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        try:
            start(options, Path(scratch), memory, servers)
            print("Of each: downloads a second, and processor time of the service alone; then its rate / its")
            print("processor time as shares of those of the others.")
            report({name: server for name, server in servers.items() if not name.startswith("#")}, options)
        finally:
            for server in reversed(servers.values()):
                server.process.send_signal(signal.SIGTERM)
            for server in servers.values():
                server.process.wait(60)


if __name__ == "__main__":
    assert shutil.which("taskset") and shutil.which("wrk")
    main()
