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


def of_this_project(document, demo, tags, known, left_out):
    """The description as a user of this project would fill it in, answers closed: what is made up alone would
    lead nowhere. `known` are schemas by the names of parameters, or of an operation and a parameter of it;
    those of `left_out` are left out. `tags` are also ids of operations."""
    document = copy.deepcopy(document)
    document["components"] = closed(document["components"])
    for path, methods in list(document["paths"].items()):
        for method, operation in list(methods.items()):
            if not {operation["tags"][0], operation["operationId"]} & tags:
                del methods[method]
                continue
            named = {parameter["name"]: (f"{operation['operationId']} {parameter['name']}", parameter["name"])
                     for parameter in operation["parameters"]}
            operation["parameters"] = [
                parameter for parameter in operation["parameters"] if not set(named[parameter["name"]]) & left_out
            ]  # fmt: skip
            for parameter in operation["parameters"]:
                schema = next((known[name] for name in named[parameter["name"]] if name in known), None)
                if schema is not None:
                    parameter["schema"] = schema
                    parameter.pop("example", None)
            if tags == LISTINGS:
                for response in operation["responses"].values():
                    response.pop("links", None)
        # Decoration has no wrong values.
        if (methods := document["paths"].pop(path)) and "filename" in left_out:
            path = path.replace("{filename}", "file")
        if methods:
            document["paths"][path] = methods
    bodies = document["components"]["schemas"]
    for name in {"AllowanceBody", "AdjustmentBody"} & bodies.keys():
        # Bounds in time, which a schema cannot say.
        times = {"day": {"const": ask(demo, "/v1/quota")["day"]}, "until": {"enum": [None, "2100-01-01T00:00:00Z"]}}
        bodies[name]["properties"].update({key: times[key] for key in times.keys() & bodies[name]["properties"].keys()})
    return document


def known_of_the_project(demo):
    """What its users know: themselves, and what is there."""
    trials = [item["trial_id"] for item in ask(demo, "/v1/trials")["items"]][:2]
    listings = [ask(demo, f"/v1/trials/{trial}/artifacts")["items"] for trial in trials]
    return {
        "X-Workspace-ID": {"const": "default"},
        "X-Project-ID": {"const": demo.project},
        "workspace_id": {"const": "default"},
        "project_id": {"const": demo.project},
        "trial_id": {"enum": trials},
        "artifact_id": {"enum": sorted({item["artifact_id"] for listing in listings for item in listing})},
        "token": {"const": minted(demo, trials[0], listings[0][0]["artifact_id"])},
        # Any trial may be asked for there, also one that is gone.
        "listAudit trial_id": TRIAL,
        "days": {"type": "integer", "minimum": 1, "maximum": KEPT_DAYS},
    }


def known_of_pages(demo):
    """A cursor of each listing, which is good for that listing alone."""
    known = known_of_the_project(demo)
    trial = known["trial_id"]["enum"][0]
    listing = f"/v1/trials/{trial}/artifacts"
    # Of links and of the audit there is more than one page.
    for item in ask(demo, listing)["items"][:2]:
        minted(demo, trial, item["artifact_id"])
        assert demo.get(f"{listing}/{item['artifact_id']}/content")[0] == 200
    demo.settled()
    known["listArtifacts trial_id"] = {"const": trial}
    for operation, path in (("listTrials", "/v1/trials"), ("listArtifacts", listing), ("listLinks", "/v1/links"),
                            ("listAudit", "/v1/quota/audit")):
        cursor = known[f"{operation} cursor"] = {"const": ask(demo, f"{path}?limit=1")["next_cursor"]}
        assert cursor["const"], operation
    return known


def known_of_texts(demo):
    """Where any text may stand: some."""
    words = {"type": "string", "pattern": "^[A-Za-z0-9 ._~-]{0,20}$"}
    return known_of_the_project(demo) | {
        "prefix": {"type": "string", "pattern": "^([a-z]{1,5}/){0,2}[A-Za-zäλ日 .~#%+]{0,9}$"},
        "filename": {"type": "string", "pattern": "^[A-Za-zäλ日 .~#%+]{1,20}$"},
        "key_id": words,
    }


def known_to_operators(demo):
    """Every project, whether or not it has been heard of."""
    return {}


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
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 410, 412, 413, 416, 429, 503]
"""
TRIAL = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"}
KEPT_DAYS = 36
ALL = {"Artifacts", "Links", "Quota", "Agents", "Service"}
LISTINGS = {"listTrials", "listArtifacts", "listLinks", "listAudit"}
# They have no wrong values that a schema could tell, and so are tried with right ones alone. A range of a file in JSON
# is none.
TEXTS = {"prefix", "filename", "verbose", "key_id"}
# The pages of the audit go with no groups, and a cursor with the filters that it was made with.
FILTERS = {"day", "listAudit trial_id", "key_id", "channel", "outcome", "group_by", "prefix"}
PAGES = {"cursor", "listAudit limit"}
SINGLE = "examples,coverage,fuzzing"
PHASES = f"{SINGLE},stateful"


@pytest.mark.parametrize(
    ("key", "tags", "known", "left_out", "mode", "phases"),
    [
        pytest.param("project_automation", ALL, known_of_the_project, TEXTS | PAGES, "all", PHASES, id="project"),
        # A cursor is of one listing: one that another answer leads to is a wrong one.
        pytest.param("project_automation", LISTINGS, known_of_pages, FILTERS, "all", SINGLE, id="pages"),
        pytest.param("project_automation", ALL, known_of_texts, PAGES | {"Range"}, "positive", PHASES, id="texts"),
        pytest.param("operator", {"Operators"}, known_to_operators, {"X-Workspace-ID"}, "all", PHASES, id="operator"),
    ],
)
def test_the_service_answers_as_described(demo, document, key, tags, known, left_out, mode, phases, tmp_path):
    """No fault of the service, and no status, header or shape that is not described; request after request, too."""
    filled_in = of_this_project(document, demo, tags, known(demo), left_out)
    (tmp_path / "openapi.json").write_text(json.dumps(filled_in))
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", "openapi.json",
        "--url", demo.url, "--header", f"Authorization: Bearer {demo.keys[key]}",
        "--phases", phases, "--max-examples", "6", "--mode", mode,
        "--checks", "all", "--generation-deterministic", "--no-color", "--request-timeout", "20",
    ]  # fmt: skip
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout[-20000:] + result.stderr[-4000:]
