"""The client has what the OpenAPI document has: each operation a method, each parameter an argument, both ways."""

import inspect
from typing import Any

import pytest

from programs import load_script
from teletape_client import async_resources, models, resources

script = load_script("service_client")
document = script.Document()
OPERATIONS = [
    pytest.param(path, verb, operation, id=operation["operationId"])
    for path, verb, operation in document.operations()
    if operation["operationId"] not in script.WITHOUT
]


@pytest.mark.parametrize(("path", "verb", "operation"), OPERATIONS)
def test_an_operation_has_a_method_with_its_parameters(path: str, verb: str, operation: dict[str, Any]) -> None:
    cls, _ = script.owner(path)
    item = script.method(document, path, verb, operation)
    arguments = inspect.signature(getattr(getattr(resources, cls.name), item.name)).parameters
    names = {entry["name"] for entry in operation.get("parameters", ())} - set(script.NOT_ARGUMENTS)
    names -= {part.strip("{}") for part in cls.path.split("/")}
    body = script._body(document, operation)
    if body is not None:
        names |= set(body[1]["properties"])
    missing = {script.RENAMED.get(name, name).lower().replace("-", "_") for name in names} - {
        name.rstrip("_") for name in arguments
    }
    assert not missing, item.name


def test_what_has_no_method_is_in_the_document() -> None:
    assert set(script.WITHOUT) <= {operation["operationId"] for _, _, operation in document.operations()}


def methods(cls: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member).replace(return_annotation=inspect.Signature.empty)
        for name, member in vars(cls).items()
        if inspect.isfunction(member)
    }


@pytest.mark.parametrize("cls", script.CLASSES, ids=lambda cls: cls.name)
def test_event_loops_have_what_threads_have(cls: Any) -> None:
    ours, theirs = getattr(resources, cls.name), getattr(async_resources, f"Async{cls.name}")
    assert methods(ours) == methods(theirs)
    assert all(inspect.iscoroutinefunction(getattr(theirs, name)) for name in methods(theirs))
    raw = getattr(resources, f"{cls.name}WithRawResponse")
    assert {name for name in methods(ours) if name != "train"} == set(vars(raw(Named())))


class Named:
    """Has any method."""

    def __getattr__(self, name: str) -> str:
        return name


def test_an_answer_keeps_what_the_client_does_not_know_yet() -> None:
    model = models.Health.read({"status": "ok", "mood": "good"}, {})
    assert model.mood == "good"  # type: ignore[attr-defined]
    assert repr(model) == "Health(status='ok', mood='good')"
    assert models.Derivative.read({"source": "x", "kind": "dense", "id": None, "value": None}, {}).why is None
