"""A record of the batches is a record of the session: REST requests, replayed from their batches, leave the same."""

import json
import time
from typing import Any

import numpy as np
import pytest

import teletape_server.worker.main  # noqa: F401  # registers the methods
import teletape_wire as wire
from teletape_engine.commands import Batch
from teletape_engine.commands.results import Answer
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.methods import METHODS, Request

KINDS = ("tensor", "slices", "variable", "tape", "function")

#: Method, id in the path, body; the code that a request fails with, if it does.
REQUESTS: list[tuple[str, str | None, Any, str | None]] = [
    ("attach", None, {}, None),
    ("variables-create", None, {"id": "w", "value": [1.0, 2.0, 3.0]}, None),
    ("tensors-create", None, {"id": "x", "value": [0.5, 1.5, 2.5]}, None),
    ("tapes-create", None, {"id": "outer", "persistent": True}, None),
    ("tapes-create", None, {"id": "inner", "persistent": True, "parents": ["outer"]}, None),
    ("tapes-record", "inner", {"ops": [{"op": "mul", "inputs": ["w", "x"], "outputs": ["y"]}]}, None),
    ("tapes-gradient", "inner", {"targets": ["y"], "sources": ["w"], "outputs": ["dw"]}, None),
    ("tapes-gradient", "inner", {"targets": ["y"], "sources": ["w"]}, None),
    ("tapes-gradient", "inner", {"targets": ["y"], "sources": ["x", "w"], "outputs": ["dx", None]}, None),
    ("tapes-gradient", "outer", {"targets": ["dw"], "sources": ["w"]}, None),
    (
        "tapes-questions",
        "inner",
        {
            "questions": [
                {"targets": ["y"], "sources": ["w"], "outputs": ["again"]},
                {"do": "hvp", "targets": ["y"], "sources": ["w"], "vectors": [[1.0]]},
            ]
        },
        "invalid_argument",
    ),
    (
        "ops-run",
        None,
        {"ops": [{"op": "neg", "inputs": ["x"], "outputs": ["n"]}, {"op": "mull", "inputs": []}]},
        "unknown_op",
    ),
    (
        "functions-create",
        None,
        {
            "id": "square",
            "inputs": ["a"],
            "outputs": ["b"],
            "steps": [{"op": "mul", "inputs": ["a", "a"], "outputs": ["b"]}],
        },
        None,
    ),
    ("functions-gradient", "square", {"inputs": [[3.0, 4.0]]}, None),
    ("functions-call", "square", {"inputs": ["x"], "outputs": ["xx"], "tape": "inner"}, None),
    (
        "functions-while",
        "square",
        {
            "inputs": [1.5],
            "outputs": ["last"],
            "cond": {
                "inputs": ["a"],
                "outputs": ["c"],
                "steps": [{"op": "less", "inputs": ["a", 20.0], "outputs": ["c"]}],
            },
        },
        None,
    ),
    ("variables-assign", "w", {"value": [3.0, 2.0, 1.0]}, None),
    ("tapes-reset", "outer", {}, None),
    ("tensors-delete", "xx", {}, None),
]


class RecordingSession(Session):
    """A session that keeps its batches as the JSON that a client would send."""

    def __init__(self) -> None:
        super().__init__()
        self.record: list[str] = []

    def execute(self, batch: Batch, **options: Any) -> Answer:
        self.record.append(json.dumps(wire.batch_to_json(batch)))
        return super().execute(batch, **options)


def send(session: Session, method: str, path_id: str | None, body: Any) -> None:
    """Calls a method as the session's process does."""
    params = {"id": path_id, "accept": wire.JSON_TYPE, "full": True, "collection": "/", "query": {}}
    content = memoryview(json.dumps(body).encode())
    request = Request(params, wire.JSON_TYPE, content, 0, lambda: False, lambda *far: None, time.monotonic())
    METHODS[method](session, request)


def inventory(session: Session) -> dict[str, Any]:
    """Everything that the session has, with its numbers."""
    entries = {facts["id"]: facts for kind in KINDS for facts in session.listing(kind)}
    names = [name for name, facts in entries.items() if facts["kind"] in ("tensor", "variable")]
    answer = session.execute(wire.batch_from_json({"commands": [{"do": "fetch", "id": name} for name in names]}))
    assert answer.failure is None
    numbers = {result.id: np.asarray(result.array).tolist() for result in answer.results}
    return {"entries": entries, "numbers": numbers, "bytes": session.bytes_in_use()}


def test_a_replay_of_the_batches_leaves_the_same_session() -> None:
    session = RecordingSession()
    for method, path_id, body, code in REQUESTS:
        if code is None:
            send(session, method, path_id, body)
        else:
            with pytest.raises(TeletapeError) as caught:
                send(session, method, path_id, body)
            assert caught.value.code == code
    replayed = Session()
    for batch in list(session.record):
        replayed.execute(wire.batch_from_json(json.loads(batch)))
    before, after = inventory(session), inventory(replayed)
    assert after == before
    assert before["entries"]["inner"]["parents"] == ["outer"]
    assert {"dw", "y", "last"} <= before["entries"].keys()
    assert not {name for name in before["entries"] if name.startswith("_")}, "temporary ids have ended"
    assert "n" in before["entries"], "what succeeded before a failure stays"
    assert "again" not in before["entries"], "but not of questions, which are asked together"
