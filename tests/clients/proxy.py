"""A reverse proxy on loopback that adds a key to every request, for clients that cannot send one."""

import http.client
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@contextmanager
def adding_key(url, key):
    """Yields the address of a proxy to `url`. Every header but Authorization is passed on, Host included."""
    target = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            upstream = http.client.HTTPConnection(target, timeout=60)
            try:
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in HOP_BY_HOP | {"authorization"}:
                        upstream.putheader(name, value)
                upstream.putheader("Authorization", f"Bearer {key}")
                upstream.putheader("Content-Length", str(len(body)))
                upstream.endheaders(body)
                answer = upstream.getresponse()
                answered = answer.read()
            finally:
                upstream.close()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answered)))
            self.end_headers()
            try:
                self.wfile.write(answered)
            except ConnectionError:
                pass  # The client has seen enough.

        do_GET = do_POST = do_DELETE = do_OPTIONS = do_PUT = pass_on

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
