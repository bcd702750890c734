"""Requests that run for long get a line in the log: whose, how long, and the ops of their batch."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serving import Program, Server, ok, until
from teletape_engine.commands import Batch, Call, Constant
from teletape_engine.recording.values import Literal
from teletape_server.handlers.execution import ops_of
from teletape_server.logs import JsonFormatter
from teletape_server.settings import Settings

LOOP = {
    "commands": [
        {"do": "function", "id": "f", "inputs": ["x"], "outputs": ["y"], "steps": [
            {"op": "add", "inputs": ["x", 1.0], "outputs": ["y"]}]},
        {"do": "op", "op": "exp", "inputs": [0.5], "outputs": ["a"]},
        {"do": "op", "op": "exp", "inputs": ["a"], "outputs": ["b"]},
        {"do": "scan", "body": "f", "inputs": ["b"], "outputs": ["last"], "carried": 1, "length": 3_000_000},
    ]
}  # fmt: skip


@pytest.fixture(scope="module", params=["on", "off"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose sessions' processes answer callers themselves, and one with logs, whose processes do not."""
    folder: Path | None = None if request.param == "on" else tmp_path_factory.mktemp("data")
    settings = Settings(
        slow_log=0.02, direct=request.param, data_dir=None if folder is None else str(folder), shutdown_grace=0.1
    )
    with Server(settings).running() as item:
        yield item


def slow_lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if hasattr(record, "queue_seconds")]


def test_a_slow_request_is_written_down_with_its_ops(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo", "replace": True}))
        ok(http.post("/v1/sessions/demo/run", json=LOOP, headers={"X-Request-Id": "long-1"}))
        until(lambda: len(slow_lines(caplog)) == 1)
        (record,) = slow_lines(caplog)
        assert record.levelname == "WARNING"
        assert record.getMessage().startswith("session demo of local: request long-1 has run for ")
        line = json.loads(JsonFormatter().format(record))
        assert (line["session"], line["owner"], line["request_id"]) == ("demo", "local", "long-1")
        assert line["compute_seconds"] >= 0.02
        assert line["ops"] == {"context.switch": 1, "function": 1, "exp": 2, "scan": 1} | line["ops"]
        program = Program(http, "demo")
        for size in (10, 1 << 21, 10):  # the second one takes long, on a connection that may be lent
            program.run(
                Constant(size, np.ones(size)),
                *[Call("reduce_logsumexp", (size,), (f"{size}.{i}.{program.seq}",)) for i in range(9)],
            )
            program.run(Call("add", (Literal(1.0), Literal(2.0)), (f"sum.{program.seq}",)))
        until(lambda: any(item.__dict__["ops"].get("reduce_logsumexp") == 9 for item in slow_lines(caplog)))


def test_few_ops_are_named_and_those_first_that_are_most() -> None:
    calls = [Call(f"op{number}", (), ()) for number in range(20)]
    ops = ops_of(Batch((*calls, *calls[:3])))
    assert len(ops) == 16
    assert [*ops.items()][:4] == [("op0", 2), ("op1", 2), ("op2", 2), ("op3", 1)]
    assert ops_of(None) == {}
