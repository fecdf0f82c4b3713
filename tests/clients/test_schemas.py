"""Input schemas against a validator, results against the schemas of the protocol's revisions."""

import json
import urllib.request

import jsonschema
import pytest
from mcp_types import methods

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
PLOTS = "plot-training-loss__Qm7RtZ2"
LIST = "envloop_trial_artifacts_list"
READ = "envloop_trial_artifact_read"


def ask(demo, revision, method, params=None):
    """One request, as its revision writes it; the answer is the result."""
    params = dict(params or {})
    headers = {
        "Authorization": f"Bearer {demo.keys['read_only']}",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": revision,
    }
    if revision == MODERN:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers["Mcp-Method"] = method
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(demo.url + "/v1/mcp", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["result"]


CALLS = {
    "a window": {"name": READ, "arguments": {"trial_id": PLOTS, "name": "verifier/test-stdout.txt"}},
    "an image": {"name": READ, "arguments": {"trial_id": PLOTS, "name": "artifacts/app/plots/loss.png"}},
    "a description": {"name": READ, "arguments": {"trial_id": PLOTS, "name": "artifacts/app/bundle.zip"}},
    "a refusal": {"name": READ, "arguments": {"trial_id": PLOTS, "name": "none"}},
    "a listing": {"name": LIST, "arguments": {"trial_id": PLOTS}},
}


@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
def test_every_result_is_valid_in_its_revision(demo, revision):
    first = "server/discover" if revision == MODERN else "initialize"
    params = {"protocolVersion": revision} if first == "initialize" else {}
    asked = [(first, params), ("tools/list", {})] + [("tools/call", call) for call in CALLS.values()]
    if revision != MODERN:
        asked.append(("ping", {}))
    for method, params in asked:
        result = ask(demo, revision, method, params)
        methods.validate_server_result(method, revision, result)


def test_the_schemas_check_something(demo):
    """The validator above refuses what is wrong."""
    result = ask(demo, MODERN, "tools/list")
    for broken in ({k: v for k, v in result.items() if k != "tools"}, {**result, "ttlMs": "soon"}):
        with pytest.raises(ValueError):
            methods.validate_server_result("tools/list", MODERN, broken)


def test_input_schemas_are_valid_and_say_what_the_tools_do(demo):
    tools = {tool["name"]: tool for tool in ask(demo, "2025-11-25", "tools/list")["tools"]}
    assert list(tools) == [LIST, READ]
    for name, tool in tools.items():
        schema = tool["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        example = json.loads(tool["description"].split("Example: ")[1].split(". Needs")[0])
        assert validator.is_valid(example), name
        for wrong in ({}, {"trial_id": 5}, {"trial_id": "t", "limit": 0, "max_bytes": 0}, {"trial_id": "t", "x": 1}):
            assert not validator.is_valid(wrong)
            result = ask(demo, "2025-11-25", "tools/call", {"name": name, "arguments": wrong})
            text = result["content"][0]["text"]
            assert result["isError"], wrong
            # What the answer offers instead is valid, and other than what was refused.
            called, arguments = text.split("\nNearest valid call: ")[1].split(" ", 1)
            assert called == name and validator.is_valid(json.loads(arguments)), text
            assert json.loads(arguments) != wrong
