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
            shared = document["components"]["examples"]
            examples = [shared[example["$ref"].rsplit("/", 1)[1]]["value"] for example in media.get("examples", {}).values()]
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


def of_this_project(document, demo, tags, left_out):
    """The description as a user of this project would fill it in, answers closed: what is made up alone would
    lead nowhere. Parameters that take any text, or that go with some others alone, are left out."""
    trials = [item["trial_id"] for item in ask(demo, "/v1/trials")["items"]][:2]
    listings = [ask(demo, f"/v1/trials/{trial}/artifacts")["items"] for trial in trials]
    known = {
        "X-Workspace-ID": {"const": "default"},
        "X-Project-ID": {"const": demo.project},
        "workspace_id": {"const": "default"},
        "project_id": {"const": demo.project},
        "trial_id": {"enum": trials},
        "artifact_id": {"enum": sorted({item["artifact_id"] for listing in listings for item in listing})},
        "token": {"const": minted(demo, trials[0], listings[0][0]["artifact_id"])},
    }
    document = copy.deepcopy(document)
    document["components"] = closed(document["components"])
    for path, methods in list(document["paths"].items()):
        for method, operation in list(methods.items()):
            if operation["tags"][0] not in tags:
                del methods[method]
                continue
            operation["parameters"] = [
                parameter for parameter in operation["parameters"]
                if not {parameter["name"], f"{operation['operationId']} {parameter['name']}"} & left_out
            ]  # fmt: skip
            for parameter in operation["parameters"]:
                if parameter["name"] in known:
                    parameter["schema"] = known[parameter["name"]]
                    parameter.pop("example", None)
        # The name in the path is decoration: it has no wrong values.
        if methods := document["paths"].pop(path):
            document["paths"][path.replace("{filename}", "file")] = methods
    bodies = document["components"]["schemas"]
    for name in {"AllowanceBody", "AdjustmentBody"} & bodies.keys():
        # Bounds in bytes and in time, which a schema cannot say.
        bodies[name]["properties"]["reason"]["maxLength"] = 125
        times = {"day": {"const": ask(demo, "/v1/quota")["day"]}, "until": {"enum": [None, "2100-01-01T00:00:00Z"]}}
        bodies[name]["properties"].update({key: times[key] for key in times.keys() & bodies[name]["properties"].keys()})
    return document


def ask(demo, path):
    status, _, body = demo.get(path)
    assert status == 200, body
    return json.loads(body)


def minted(demo, trial, artifact):
    """The token of a link."""
    request = urllib.request.Request(f"{demo.url}/v1/trials/{trial}/artifacts/{artifact}/links", method="POST")
    request.add_header("Authorization", f"Bearer {demo.keys['read_only']}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["url"].split("/")[-2]


# What a client may get for a request that is right: the state of things decides.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 410, 412, 416, 429, 503]
"""
ANY_TEXT = {"cursor", "prefix", "verbose", "days", "filename", "listAudit trial_id", "listAudit key_id", "listAudit limit"}


@pytest.mark.parametrize(
    ("key", "tags", "left_out", "checks"),
    [
        ("project_automation", {"Artifacts", "Links", "Quota", "Agents", "Service"}, ANY_TEXT, []),
        # To an operator every text is a project's name.
        ("operator", {"Operators"}, {"X-Workspace-ID"}, ["--exclude-checks", "negative_data_rejection"]),
    ],
)
def test_the_service_answers_as_described(demo, document, key, tags, left_out, checks, tmp_path):
    """No fault of the service, and no status, header or shape that is not described; request after request, too."""
    (tmp_path / "openapi.json").write_text(json.dumps(of_this_project(document, demo, tags, left_out)))
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", "openapi.json",
        "--url", demo.url, "--header", f"Authorization: Bearer {demo.keys[key]}",
        "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "6",
        "--checks", "all", *checks, "--generation-deterministic", "--no-color", "--request-timeout", "20",
    ]  # fmt: skip
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout[-20000:] + result.stderr[-4000:]
