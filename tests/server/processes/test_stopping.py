"""What callers see of a session whose process does not stop in time."""

import os
import signal
import threading
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from serving import KEYS, Program, Server, ok, problem, until
from teletape_engine.commands import Constant
from teletape_server.settings import Settings


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with short limits."""
    settings = Settings(api_keys=KEYS, memory_limit=64 << 20, max_body=16 << 20, time_limit=0.2, grace=1.5)
    with Server(settings).running() as server:
        yield server


def test_a_process_that_does_not_stop_is_ended_and_its_callers_learn_why(server: Server) -> None:
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        answers: dict[str, httpx.Response] = {}
        first, second = program.batch(Constant("x", np.ones(2))), program.batch(Constant("y", np.ones(2)))
        pid = server.worker("demo")
        os.kill(pid, signal.SIGSTOP)  # it stands for an op that takes an hour

        def post() -> None:
            answers["running"] = program.post(first)

        thread = threading.Thread(target=post)
        thread.start()
        while ok(http.get("/v1/sessions/demo")).json()["running"]["requests"] == 0:
            pass
        assert http.post("/v1/sessions/demo/cancel").status_code == 202  # answered, whatever the process does
        answers["waiting"] = program.post(second)
        thread.join()
    refusal = problem(answers["running"], 422, "deadline_exceeded")
    assert refusal["details"] == {"limit": 0.2, "reason": "deadline"}
    assert "0.2 s" in refusal["detail"]
    with server.client() as http:
        for response in (answers["waiting"], http.get("/v1/sessions/demo"), http.post("/v1/sessions/demo/cancel")):
            assert problem(response, 410, "session_ended")["details"]["reason"] == "deadline"
        assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 201
    until(lambda: not is_there(pid))


def is_there(pid: int) -> bool:
    """Whether there is a process with that number, also one that has ended, until its parent reads how."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_op_that_cannot_end_in_time_is_refused_and_the_session_goes_on(server: Server) -> None:
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        whole = {"dtype": "int32", "data": 1}
        fill = {"do": "op", "op": "fill", "inputs": [whole], "attrs": {"shape": [2600, 2600]}, "outputs": ["a"]}
        product = {"do": "op", "op": "matmul", "inputs": ["a", "a"], "outputs": ["b"]}
        for command in (fill, product):
            answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": [command]})).json()
        failure = answer["failure"]
        assert (failure["code"], failure["op"]) == ("deadline_exceeded", "matmul")
        assert "int32[2600, 2600]" in failure["message"]
        assert failure["details"]["limit"] == 0.2
        assert failure["details"]["seconds"] > 0.2
        assert ok(http.get("/v1/sessions/demo")).json()["running"]["requests"] == 0
        ok(http.get("/v1/sessions/demo/tensors/a"))
