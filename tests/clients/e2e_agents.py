"""Coding agents, unchanged, each with a model that plays a script: asserted is what the model sees.

Run by `make e2e`; the agents are some 800 MB to install.
"""

import base64
import json
import os
import re
import subprocess
import urllib.request

import pytest

from conftest import NODE, ROOT
from fake_models import FakeMessages, FakeResponses

AGENTS = ROOT / "target/npm-agents/node_modules/.bin"
LIST = "envloop_trial_artifacts_list"
READ = "envloop_trial_artifact_read"
PLOTS = "plot-training-loss__Qm7RtZ2"
WIDE = "translate-readme__Hn5cV8s"
LOG = "train-tokenizer__w9LkP4d"
WRONG_KEY = "epk_" + "0" * 64

# What both agents are made to call; the answers are looked at below, in this order.
SCRIPT = [
    (LIST, {"trial_id": PLOTS, "prefix": "artifacts/app/plots/"}),
    (READ, {"trial_id": WIDE, "name": "artifacts/app/README.all.md"}),
    (READ, {"trial_id": LOG, "name": "agent/train.log", "offset": -4096}),
    (READ, {"trial_id": WIDE, "name": "agent/codex.txt"}),
    (READ, {"trial_id": PLOTS, "name": "artifacts/app/plots/loss.png"}),
    (READ, {"trial_id": PLOTS, "name": "artifacts/app/plots/truncated.png"}),
    (READ, {"trial_id": PLOTS, "name": "artifacts/app/plots/los.png"}),
    (READ, {"trial_id": PLOTS, "name": "trial.log", "max_bytes": 0}),
]


def call_directly(demo, tool, arguments):
    """The result's blocks, without an agent in between."""
    params = {"name": tool, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {"Authorization": f"Bearer {demo.keys['read_only']}", "Content-Type": "application/json"}
    request = urllib.request.Request(demo.url + "/v1/mcp", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["result"]["content"]


def comparable(text):
    """A text without what is new in each answer: nonce, link, and the etag's weakness (a young file's becomes
    strong)."""
    text = re.sub(r"<<<(content|end of content) [0-9a-f]{32}>>>", r"<<<\1 NONCE>>>", text)
    text = re.sub(r"(/v1/download/)[\w.-]{100,}(/\S+ .* ends at )[\dT:Z-]+", r"\1TOKEN\2TIME", text)
    return text.replace('etag=W/"', 'etag="')


def without_etags(text):
    page = json.loads(text)
    for item in page["items"]:
        assert item.pop("etag")
    return page


def assert_the_model_saw(demo, seen, images):
    """`seen` is the text of each answer, as the model got it; `images` those of the fifth one."""
    texts = [call_directly(demo, tool, arguments) for tool, arguments in SCRIPT]
    texts = ["\n".join(block["text"] for block in blocks if block["type"] == "text") for blocks in texts]
    listing, wide, tail, ansi, picture, broken, missing, wrong = range(len(SCRIPT))
    assert without_etags(seen[listing]) == without_etags(texts[listing]), "a listing arrives whole"
    for index in (wide, tail, ansi, broken):
        assert comparable(seen[index]) == comparable(texts[index]), f"verbatim: {SCRIPT[index]}"
    assert "\\x1b[" in seen[ansi] and "\x1b" not in seen[ansi]
    assert "truncated" in seen[broken] and "el trail artifact download" in seen[broken]
    assert comparable(texts[picture]) in comparable(seen[picture]), "the caption"
    for index, code in ((missing, "ARTIFACT_NOT_FOUND: "), (wrong, "INVALID_REQUEST: ")):
        assert seen[index].startswith(code) and seen[index] == texts[index], f"errors arrive verbatim: {seen[index]}"
    (image,) = images
    want = (demo.samples / PLOTS / "artifacts/app/plots/loss.png").read_bytes()
    assert image == want, "a small picture arrives byte for byte"


def run(command, home, timeout=180, **variables):
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables}
    return subprocess.run(
        [str(word) for word in command], env=environment, cwd=home, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=timeout,
    )  # fmt: skip


# Claude Code


def claude(home, *words, **variables):
    quiet = {
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    return run([AGENTS / "claude", *words], home, **quiet, **variables)


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_claude_code(demo, tmp_path, era):
    servers = {"type": "http", "url": demo.url + "/v1/mcp",
               "headers": {"Authorization": "Bearer ${ENVLOOP_API_KEY}"}}  # fmt: skip
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"envloop": servers}}))
    script = [("mcp__envloop__" + tool, arguments) for tool, arguments in SCRIPT]
    with FakeMessages(script).listening() as model:
        result = claude(
            tmp_path, "-p", "Look at the trials.", "--mcp-config", "mcp.json", "--strict-mcp-config",
            "--allowedTools", ",".join({tool for tool, _ in script}), "--output-format", "stream-json", "--verbose",
            "--max-turns", "20",
            ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="none", ENABLE_TOOL_SEARCH="false",
            ENVLOOP_API_KEY=demo.keys["read_only"], **({"MCP_PROTOCOL_NEGOTIATION": era} if era == "legacy" else {}),
        )  # fmt: skip
    first = json.loads(result.stdout.splitlines()[0])
    servers = [(server["name"], server["status"]) for server in first["mcp_servers"]]
    assert servers == [("envloop", "connected")], result.stderr
    assert {tool for tool, _ in script} <= set(model.tools), sorted(model.tools)
    assert "offset=-4096" in model.tools["mcp__envloop__" + READ]["description"]
    assert "untrusted output of the evaluated run" in model.system, "the server's instructions"
    assert len(model.results) == len(SCRIPT), result.stdout[-3000:]

    seen, images = [], []
    for block in model.results:
        content = block["content"]
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        seen.append("\n".join(part["text"] for part in content if part["type"] == "text"))
        images += [part["source"] for part in content if part["type"] == "image"]
    assert [bool(block.get("is_error")) for block in model.results] == [False] * 6 + [True] * 2
    assert [image["media_type"] for image in images] == ["image/png"]
    assert_the_model_saw(demo, seen, [base64.b64decode(image["data"]) for image in images])


def test_claude_code_connects_and_says_what_is_wrong(demo, tmp_path):
    def added(name, *header):
        claude(tmp_path, "mcp", "add", "--transport", "http", name, demo.url + "/v1/mcp", *header)
        answer = claude(tmp_path, "mcp", "get", name).stdout
        return answer

    good = added("envloop", "--header", f"Authorization: Bearer {demo.keys['read_only']}")
    assert "✔ Connected" in good, good
    wrong = added("wrong", "--header", f"Authorization: Bearer {WRONG_KEY}")
    assert "✔ Connected" not in wrong and "401" in wrong and "UNAUTHENTICATED: " in wrong, wrong
    missing = added("missing")
    assert "✔ Connected" not in missing, missing


# Codex


def codex(demo, home, model, key):
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f"""
model = "gpt-5.2"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "read-only"
[model_providers.fake]
name = "fake"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.envloop]
url = "{demo.url}/v1/mcp"
bearer_token_env_var = "ENVLOOP_API_KEY"
default_tools_approval_mode = "approve"
""")
    command = [AGENTS / "codex", "exec", "--skip-git-repo-check", "--json", "Look at the trials."]
    return run(command, home, CODEX_HOME=str(home), FAKE_KEY="none", ENVLOOP_API_KEY=key)


def test_codex(demo, tmp_path):
    script = [(("mcp__envloop", tool), arguments) for tool, arguments in SCRIPT]
    with FakeResponses(script).listening() as model:
        result = codex(demo, tmp_path / "codex", model, demo.keys["read_only"])
    assert len(model.results) == len(SCRIPT), result.stdout[-3000:] + result.stderr[-3000:]
    assert READ in json.dumps(model.tools)
    done = [json.loads(line) for line in result.stdout.splitlines() if '"mcp_tool_call"' in line]
    done = [event["item"]["status"] for event in done if event["type"] == "item.completed"]
    assert len(done) == len(SCRIPT), done

    seen, images = [], []
    for item in model.results:
        output = item["output"]
        parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
        seen.append("\n".join(part["text"] for part in parts if part["type"] == "input_text"))
        images += [part["image_url"] for part in parts if part["type"] == "input_image"]
    (image,) = images
    assert image.startswith("data:image/png;base64,")
    # Codex puts a line on how long the call took before what the server said.
    seen = [re.sub(r"\AWall time: [0-9.]+ seconds\nOutput:\n", "", text) for text in seen]
    assert_the_model_saw(demo, seen, [base64.b64decode(image.split(",")[1])])


def test_codex_says_what_is_wrong_with_a_key(demo, tmp_path):
    with FakeResponses([]).listening() as model:
        result = codex(demo, tmp_path / "codex", model, WRONG_KEY)
    assert READ not in json.dumps(model.tools)
    # What Codex shows of the answer is its challenge.
    assert 'Bearer realm=\\"artifactd\\", error=\\"invalid_token\\"' in result.stderr, result.stderr


# Gemini CLI and opencode: they connect; what they hand to a model is not looked at


@pytest.mark.parametrize(
    ("agent", "file", "settings", "good", "bad"),
    [
        ("gemini", ".gemini/settings.json", {"mcpServers": {"envloop": {
            "httpUrl": "URL", "headers": {"Authorization": "Bearer $ENVLOOP_API_KEY"}}}}, "Connected", "Disconnected"),
        ("opencode", "opencode.json", {"mcp": {"envloop": {"type": "remote", "url": "URL", "enabled": True,
            "oauth": False, "headers": {"Authorization": "Bearer {env:ENVLOOP_API_KEY}"}}}}, "connected", "failed"),
    ],
)  # fmt: skip
def test_it_connects(demo, tmp_path, agent, file, settings, good, bad):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings).replace("URL", demo.url + "/v1/mcp"))
    for key, says in ((demo.keys["read_only"], good), (WRONG_KEY, bad)):
        variables = {"PATH": f"{NODE.parent}:{os.environ['PATH']}", "GEMINI_API_KEY": "none", "NO_COLOR": "1"}
        variables |= {"GEMINI_CLI_TRUST_WORKSPACE": "true", "ENVLOOP_API_KEY": key}
        result = run([AGENTS / agent, "mcp", "list"], tmp_path, **variables)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout + result.stderr)
        line = next(line for line in plain.splitlines() if "envloop" in line)
        assert re.search(rf"\b{says}\b", line), result


# fastmcp's command line


@pytest.mark.parametrize("arguments", [["list"], ["call", READ, f"trial_id={PLOTS}", "name=verifier/reward.txt"]])
def test_fastmcp(demo, tmp_path, arguments):
    command = [ROOT / "target/venv-agents/bin/fastmcp", arguments[0], demo.url + "/v1/mcp", *arguments[1:]]
    result = run([*command, "--auth", demo.keys["read_only"]], tmp_path)
    assert result.returncode == 0, result
    assert (READ if arguments == ["list"] else "0.6") in result.stdout
