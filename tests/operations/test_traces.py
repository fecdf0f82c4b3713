"""Traces: seen by a receiver that decodes OTLP by the official definitions."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from conftest import free_port, until

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"


class Receiver(ThreadingHTTPServer):
    """Takes spans, and nothing that is no OTLP."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans, self.resources, self.faults = [], [], []
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def named(self, name):
        return until(f"a span {name}", lambda: next((span for span in self.spans if span.name == name), None))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if (self.path, self.headers["Content-Type"]) != ("/v1/traces", "application/x-protobuf"):
            self.server.faults.append((self.path, self.headers["Content-Type"]))
        request = ExportTraceServiceRequest.FromString(body)
        # Nothing was sent that the definitions do not know.
        if request.SerializeToString(deterministic=True) != ExportTraceServiceRequest.FromString(body).SerializeToString(
            deterministic=True
        ):
            self.server.faults.append("unknown fields")
        for resource in request.resource_spans:
            self.server.resources.append({a.key: a.value.string_value for a in resource.resource.attributes})
            for scope in resource.scope_spans:
                self.server.spans.extend(scope.spans)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.shutdown()
    server.thread.join()
    server.server_close()
    assert not server.faults


def attributes(span):
    return {a.key: a.value.int_value if a.value.HasField("int_value") else a.value.string_value for a in span.attributes}


def test_a_request_is_a_span_with_its_phases(folder, start, receiver):
    folder.put("t1", "a", b"x" * 1000)
    service = start(folder.settings({"traces": {"endpoint": receiver.url, "sample_percent": 0}}))
    sampled = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Request-Id": "r"}
    assert service.get("/v1/trials/t1/artifacts/a/content", sampled)[0] == 200
    # Neither of these is: the caller's trace is not recorded, and of others none is.
    assert service.get("/v1/trials", {"traceparent": f"00-{TRACE}-{CALLER}-00"})[0] == 200
    assert service.get("/v1/quota")[0] == 200
    span = receiver.named("GET /v1/trials/{trial_id}/artifacts/{artifact_id}/content")
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.kind) == (TRACE, CALLER, Span.SPAN_KIND_SERVER)
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.route": "/v1/trials/{trial_id}/artifacts/{artifact_id}/content",
        "http.response.status_code": 200,
        "artifactd.request_id": "r",
        "artifactd.key_id": "reader",
        "artifactd.charged_bytes": 1000,
    }
    assert service.access_line("r")["trace_id"] == TRACE
    service.stop()
    phases = [phase for phase in receiver.spans if phase.parent_span_id == span.span_id]
    assert [phase.name for phase in phases] == ["auth", "stat", "reserve", "store"]
    assert len(receiver.spans) == 1 + len(phases), "only the sampled request is told of"
    assert len({phase.span_id for phase in receiver.spans}) == len(receiver.spans)
    for phase in phases:
        assert phase.trace_id == span.trace_id and phase.kind == Span.SPAN_KIND_INTERNAL
        assert span.start_time_unix_nano <= phase.start_time_unix_nano <= phase.end_time_unix_nano
        assert phase.end_time_unix_nano <= span.end_time_unix_nano
    assert receiver.resources[0]["service.name"] == "artifactd" and receiver.resources[0]["service.version"]


def test_what_is_left_is_sent_at_the_stop(folder, start, receiver):
    service = start(folder.settings({"traces": {"endpoint": receiver.url, "sample_percent": 100}}))
    for _ in range(20):
        service.get("/v1/trials/none/artifacts")
    service.stop()
    spans = [span for span in receiver.spans if span.kind == Span.SPAN_KIND_SERVER]
    assert len(spans) == 20 and len({span.trace_id for span in spans}) == 20
    assert not any(span.parent_span_id for span in spans)
    assert all(span.status.code == Status.STATUS_CODE_UNSET for span in spans), "a 404 is no fault of the service's"


def test_a_collector_that_is_away_costs_nothing(folder, start):
    endpoint = f"http://127.0.0.1:{free_port()}"
    service = start(folder.settings({"traces": {"endpoint": endpoint, "sample_percent": 100}}))
    for _ in range(5):
        assert service.get("/v1/trials")[0] == 200
    until("dropped spans are counted", lambda: service.metrics()["artifactd_spans_dropped_total"] >= 5)
    assert service.get("/v1/trials")[0] == 200
    assert "the collector takes no traces" in service.stop()


def test_the_store_is_told_of_the_trace(folder, start, receiver):
    """The context goes on to the store, as another caller of the trace."""
    seen = []

    class Store(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers["traceparent"])
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    store = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=store.serve_forever)
    thread.start()
    try:
        sections = {"traces": {"endpoint": receiver.url, "sample_percent": 0}, "store": {"url": "s3://bucket"}}
        service = start(folder.settings(sections), AWS_ENDPOINT_URL=f"http://127.0.0.1:{store.server_address[1]}",
                        AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="s", AWS_REGION="us-east-1", AWS_ALLOW_HTTP="true")
        service.get("/v1/trials/t1/artifacts/a/content", {"traceparent": f"00-{TRACE}-{CALLER}-01"})
        span = receiver.named("GET /v1/trials/{trial_id}/artifacts/{artifact_id}/content")
        assert seen and set(seen) == {f"00-{TRACE}-{span.span_id.hex()}-01"}, seen
    finally:
        store.shutdown()
        thread.join()
        store.server_close()
