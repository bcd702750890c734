"""The answers that the OpenAPI document shows are a server's own: recorded from the page's examples, and still current.

`python tests/server/contract/test_recorded_answers.py` records them again.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

import walk

from programs import load_script
from serving import Server
from teletape_server.http.openapi.document import RECORDED_ANSWERS
from teletape_server.settings import Settings

openapi_document = load_script("openapi_document")

JSON = "application/json"
#: What differs from run to run, and what is recorded in its place.
FIXED = {
    "created_at": "2026-01-01T12:00:00.000Z",
    "expires_at": "2026-01-01T12:30:00.000Z",
    "ends_at": "2026-01-02T12:00:00.000Z",
    "queue_seconds": 0.0002,
    "compute_seconds": 0.0015,
    "cpu_seconds": 0.0016,
    "p50_seconds": 0.0008,
    "p99_seconds": 0.0022,
    "catalogue": "a1b2c3d4",
    "last_request": {"at": "2026-01-01T12:00:00.000Z", "seconds": 0.002, "code": None},
    "boot_id": "0123456789abcdef",
    "started": "2026-01-01T12:00:00.000Z",
}
GENERATED = re.compile(r"_[0-9a-f]{12}")
GENERATED_ID = "_0123456789ab"
LISTED = 2  # entries of a listing of the catalogue that are recorded


def recorded_form(value: Any) -> Any:
    """An answer as it is recorded: short, and the same for each run."""
    if isinstance(value, dict):
        members = {
            name: members[:LISTED] if name == "ops" and isinstance(members, list) else members
            for name, members in value.items()
        }
        return {
            name: FIXED[name] if name in FIXED and member and not isinstance(member, int) else recorded_form(member)
            for name, member in members.items()
        }
    if isinstance(value, list):
        return [recorded_form(member) for member in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def record(url: str) -> dict[str, dict[str, Any]]:
    """The JSON answers to the page's examples, by operation and status."""
    answers: dict[str, dict[str, Any]] = {}
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
        for step in walk.steps(openapi_document.document()):
            response = walk.send(http, step)
            if response.content and response.headers.get("content-type", "").startswith(JSON):
                answers[step.operation] = {
                    str(response.status_code): recorded_form(json.loads(GENERATED.sub(GENERATED_ID, response.text)))
                }
    return answers


def structure(value: Any) -> Any:
    """The value with each number and string replaced by the name of its type; a list of those by the types in it."""
    if isinstance(value, dict):
        return {name: structure(member) for name, member in value.items()}
    if isinstance(value, list):
        members = [structure(member) for member in value]
        return sorted(set(members)) if all(isinstance(member, str) for member in members) else members
    return type(value).__name__


def test_the_recorded_answers_have_the_structure_of_a_servers_answers() -> None:
    recorded = json.loads(RECORDED_ANSWERS.read_text(encoding="utf-8"))
    with Server(Settings()).running() as server:  # of its own: the list of sessions is recorded too
        answers = record(server.url)
    assert recorded.keys() == answers.keys()
    for operation, answer in answers.items():
        assert structure(recorded[operation]) == structure(answer), f"{operation}: python {Path(__file__).name}"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document.document()


def test_every_json_answer_has_an_example_that_fits_its_schema(document: dict[str, Any]) -> None:
    count = 0
    for methods in document["paths"].values():
        for operation in methods.values():
            status, answer = next(item for item in operation["responses"].items() if item[0].startswith("2"))
            content = answer.get("content", {}).get(JSON)
            if content is None:
                assert status == "204" or answer["content"], operation["operationId"]  # no body, or a file
                continue
            count += 1
            schema = content["schema"] | {"components": document["components"]}
            jsonschema.Draft202012Validator(schema).validate(content["example"])
    assert count > 40


def test_every_request_example_fits_its_schema(document: dict[str, Any]) -> None:
    count = 0
    for methods in document["paths"].values():
        for operation in methods.values():
            content = operation.get("requestBody", {}).get("content", {}).get(JSON, {"examples": {}})
            for example in content["examples"].values():
                count += 1
                schema = content["schema"] | {"components": document["components"]}
                jsonschema.Draft202012Validator(schema).validate(example["value"])
    assert count > 20


if __name__ == "__main__":
    with Server(Settings()).running() as server:
        recorded_answers = record(server.url)
    RECORDED_ANSWERS.write_text(json.dumps(recorded_answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {len(recorded_answers)} answers; now run make openapi\n")
