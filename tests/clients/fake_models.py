"""Model interfaces on loopback that play a script: they call the tools it names, one after the other,
and keep what comes back. What they are given is what a model would see.
"""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread


class FakeModel:
    """What to call, and what came of it."""

    def __init__(self, script):
        self.script = script  # [(tool, arguments)]
        self.results = []  # What the model was given for each call, so far.
        self.tools = {}  # The tools that it was offered, by name.
        self.system = ""  # What it was told before the conversation.
        self.strays = []  # Requests that it does not know.
        self.lock = Lock()
        self.url = None

    def next_call(self, results):
        """The call to make once these results are there, or nothing."""
        with self.lock:
            if len(results) >= len(self.results):
                self.results = results
        return self.script[len(results)] if len(results) < len(self.script) else None

    @contextmanager
    def listening(self):
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.answer(*model.answer(self.path, json.loads(body or b"{}")))

            def do_GET(self):
                self.answer(*model.answer(self.path, {}))

            def do_HEAD(self):
                self.answer(200, "application/json", "")

            def answer(self, status, media_type, text):
                body = text.encode()
                self.send_response_only(status)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def stray(self, path):
        self.strays.append(path)
        return 404, "application/json", "{}"


def events(*data):
    """Server-sent events, each named by its type."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in data)


class FakeMessages(FakeModel):
    """The interface that Claude Code speaks."""

    def answer(self, path, body):
        path = path.split("?")[0]
        if path == "/v1/messages/count_tokens":
            return 200, "application/json", json.dumps({"input_tokens": len(json.dumps(body)) // 4})
        if path != "/v1/messages":
            return self.stray(path)
        block = {"type": "text", "text": "done"}
        # Requests beside the conversation, for a title and the like, offer no tools.
        if body.get("tools"):
            self.tools = {tool["name"]: tool for tool in body["tools"]}
            self.system = json.dumps(body.get("system")) + json.dumps(body["messages"])
            contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
            blocks = [block for content in contents for block in content]
            call = self.next_call([block for block in blocks if block["type"] == "tool_result"])
            if call:
                block = {"type": "tool_use", "id": f"toolu_{len(self.results)}", "name": call[0], "input": call[1]}
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", ""),
                   "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
        if not body.get("stream"):
            whole = {**message, "content": [block], "stop_reason": stop, "stop_sequence": None}
            return 200, "application/json", json.dumps(whole)
        if stop == "tool_use":
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        text = events(
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        )
        return 200, "text/event-stream", text


class FakeResponses(FakeModel):
    """The interface that Codex speaks."""

    def answer(self, path, body):
        path = path.split("?")[0]
        if path.endswith("/models"):
            return 200, "application/json", '{"models": [], "data": []}'
        if not path.endswith("/responses"):
            return self.stray(path)
        self.tools = {tool.get("name"): tool for tool in body.get("tools", [])}
        self.system = json.dumps(body.get("instructions")) + json.dumps(body["input"])
        call = self.next_call([item for item in body["input"] if item["type"] == "function_call_output"])
        if call:
            # The tools of a server come as one namespace, and are called by both names.
            (namespace, name), arguments = call
            item = {"type": "function_call", "id": f"fc_{len(self.results)}", "call_id": f"call_{len(self.results)}",
                    "namespace": namespace, "name": name, "arguments": json.dumps(arguments)}  # fmt: skip
        else:
            item = {"type": "message", "id": "msg_1", "role": "assistant",
                    "content": [{"type": "output_text", "text": "done", "annotations": []}]}  # fmt: skip
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None,
                 "total_tokens": 2}  # fmt: skip
        text = events(
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "output": [], "usage": usage}},
        )
        return 200, "text/event-stream", text
