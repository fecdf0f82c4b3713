"""The API's description, held against the running service by a client that tries all it says."""

import copy
import json
import subprocess
import sys
import urllib.error
import urllib.request

import jsonschema
import pytest

PROBLEM = "application/problem+json"
METHODS = {"get", "head", "post", "put", "delete"}


@pytest.fixture(scope="module")
def document(demo):
    status, headers, body = demo.get("/openapi.json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    return json.loads(body)


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_example_is_what_its_schema_says(document):
    """A validator of another make than what made the schemas."""
    checked = 0
    for path, method, operation in operations(document):
        contents = [response.get("content", {}) for response in operation["responses"].values()]
        contents.append(operation.get("requestBody", {}).get("content", {}))
        for media in (media for content in contents for media in content.values()):
            examples = [example["value"] for example in media.get("examples", {}).values()]
            examples += [media["example"]] if "example" in media else []
            schema = {**closed(media["schema"]), "components": closed(document["components"])}
            for example in examples:
                jsonschema.Draft202012Validator(schema).validate(example)
                checked += 1
        for parameter in operation["parameters"]:
            jsonschema.Draft202012Validator.check_schema(parameter["schema"])
            if "example" in parameter:
                jsonschema.validate(parameter["example"], parameter["schema"])
    assert checked > 100, checked


def test_the_paths_have_the_methods_that_are_described_and_no_others(demo, document):
    for path, methods in document["paths"].items():
        url = demo.url + path.replace("{", "").replace("}", "")
        request = urllib.request.Request(url, method="PROPFIND")
        request.add_header("Authorization", f"Bearer {demo.keys['read_only']}")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        with refused.value as answer:
            assert answer.code == 405, path
            allowed = {name.strip().lower() for name in answer.headers["Allow"].split(",")}
        # Every GET answers HEAD; only where they differ is it described.
        assert allowed - {"head"} == set(methods) - {"head"}, path
        assert set(methods) <= METHODS


def closed(schema):
    """The schema, so that a member which it does not name is a fault: clients allow for more, tests do not."""
    schema = copy.deepcopy(schema)
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            branch = "const" in str(part.get("properties", {}).get("status")) and "code" in part["properties"]
            if part.get("type") == "object" and "properties" in part and not branch:
                part.setdefault("additionalProperties", False)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return schema


def of_this_project(document, demo, tags):
    """The description as a user of this project would fill it in, answers closed: what is made up alone would
    lead nowhere."""
    _, _, body = demo.get("/v1/trials")
    trials = [item["trial_id"] for item in json.loads(body)["items"]][:2]
    artifacts = []
    for trial in trials:
        _, _, body = demo.get(f"/v1/trials/{trial}/artifacts")
        artifacts += [item["artifact_id"] for item in json.loads(body)["items"]]
    known = {
        "X-Workspace-ID": {"const": "default"},
        "X-Project-ID": {"const": demo.project},
        "workspace_id": {"const": "default"},
        "project_id": {"const": demo.project},
        "trial_id": {"enum": trials},
        "artifact_id": {"enum": sorted(set(artifacts))},
    }
    document = copy.deepcopy(document)
    document["components"] = closed(document["components"])
    for path, methods in list(document["paths"].items()):
        for method, operation in list(methods.items()):
            if operation["tags"][0] not in tags:
                del methods[method]
                continue
            for parameter in operation["parameters"]:
                if parameter["name"] in known:
                    parameter["schema"] = known[parameter["name"]]
                    parameter.pop("example", None)
        if not methods:
            del document["paths"][path]
    return document


@pytest.mark.parametrize(
    ("key", "tags"),
    [("project_automation", {"Artifacts", "Links", "Quota", "Agents", "Service"}), ("operator", {"Operators", "Quota"})],
)
def test_the_service_answers_as_described(demo, document, key, tags, tmp_path):
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(of_this_project(document, demo, tags)))
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", str(file),
        "--url", demo.url, "--header", f"Authorization: Bearer {demo.keys[key]}",
        "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "12",
        "--checks", "all", "--continue-on-failure", "--generation-deterministic", "--no-color",
        "--request-timeout", "20",
    ]  # fmt: skip
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout[-20000:] + result.stderr[-4000:]
