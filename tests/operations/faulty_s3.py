"""A proxy before an S3 server that errs as a test says when an object's content is asked for."""

import http.client
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


@dataclass
class Answer:
    """An answer of the server behind, about to be passed on."""

    status: int
    headers: dict
    body: bytes
    # How many bytes of the body are sent before the connection is cut; all of them, and it lives on, if None.
    cut: int | None = None
    # Whether nothing more is sent after those, and the connection stays open.
    stalls: bool = False
    # Chunks instead of a length.
    chunked: bool = False


@dataclass
class Proxy:
    """What it does, and what it has seen."""

    url: str = ""
    # The last segment of an object's key → fault(answer, n), which changes the answer to the n-th GET of that
    # object; 0 is the first.
    faults: dict = field(default_factory=dict)
    # How often each has been asked for.
    gets: Counter = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)
    # Held while the server behind is asked.
    behind: Lock = field(default_factory=Lock)
    # Ends what stalls.
    over: Event = field(default_factory=Event)


@contextmanager
def before(server_url):
    """Yields a proxy before the server at this URL."""
    proxy = Proxy()
    target = urlsplit(server_url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = urlsplit(self.path)
            name = path.path.rsplit("/", 1)[-1]
            is_content = self.command == "GET" and "list-type" not in path.query
            fault = proxy.faults.get(name) if is_content else None
            with proxy.lock:
                number = proxy.gets[name]
                proxy.gets[name] += is_content
            # One at a time: what errs under load is to be the proxy alone.
            with proxy.behind, closing(http.client.HTTPConnection(target, timeout=60)) as upstream:
                upstream.request(self.command, self.path, body, dict(self.headers.items()))
                behind = upstream.getresponse()
                headers = {name.lower(): value for name, value in behind.getheaders() if name.lower() not in HOP_BY_HOP}
                answer = Answer(behind.status, headers, behind.read())
            if fault:
                fault(answer, number)
            self.send(answer)

        def send(self, answer):
            if answer.chunked:
                answer.headers.pop("content-length", None)
                answer.headers["transfer-encoding"] = "chunked"
            if answer.cut is not None:
                answer.headers["connection"] = "close"
                self.close_connection = True
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            body = answer.body[: answer.cut]
            if answer.chunked:
                body = f"{len(body):x}\r\n".encode() + body + b"\r\n" + (b"0\r\n\r\n" if answer.cut is None else b"")
            try:
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                if answer.stalls:
                    proxy.over.wait()
            except OSError:
                self.close_connection = True  # The service has seen enough.

        do_GET = do_HEAD = do_PUT = pass_on

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_):
            pass  # A connection that the other side has closed.

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    proxy.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield proxy
    finally:
        proxy.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
