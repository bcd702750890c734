"""RateLimit headers: what is limited and what is left, in the answers that it concerns, and true."""

import re

import httpx
import pytest
from rest_client import op

from serving import Program, Server, ok, problem, unread_post, until
from teletape_engine.commands import Constant


def left(answer: httpx.Response) -> tuple[str, int, int]:
    """The name of the limit, its number, and what is left of it."""
    policy = re.fullmatch(r'"(\w+)";q=(\d+);qu="([\w-]+)"', answer.headers["ratelimit-policy"])
    state = re.fullmatch(r'"(\w+)";r=(\d+)', answer.headers["ratelimit"])
    assert policy is not None
    assert state is not None
    assert policy[1] == state[1]
    assert policy[3] == {"sessions": "sessions", "requests": "concurrent-requests"}[policy[1]]
    return policy[1], int(policy[2]), int(state[2])


def test_creations_say_how_many_sessions_are_left(server: Server) -> None:
    """A key has three, the server five."""
    with server.client("ann") as ann, server.client("bob") as bob:
        assert left(ann.get("/v1/sessions")) == ("sessions", 3, 3)
        for remaining in (2, 1, 0):
            assert left(ok(ann.post("/v1/sessions", json={}))) == ("sessions", 3, remaining)
        refused = ann.post("/v1/sessions", json={})
        problem(refused, 409, "too_many_sessions")
        assert left(refused) == ("sessions", 3, 0)
        assert left(ok(bob.get("/v1/sessions"))) == ("sessions", 3, 2), "the server has two more, whoever asks"
        assert "ratelimit" not in ok(bob.post("/v1/run", json={"commands": []})).headers, "it is no session"


def test_answers_of_a_session_say_how_many_requests_it_can_take(server: Server) -> None:
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        assert left(ok(http.get("/v1/sessions/demo"))) == ("requests", 128, 128)
        assert left(http.get("/v1/sessions/demo/tensors/none")) == ("requests", 128, 128)
        with unread_post(http, "/v1/sessions/demo/ops", b"{", length=100):
            until(lambda: left(http.get("/v1/sessions/demo")) == ("requests", 128, 127))
        until(lambda: left(http.get("/v1/sessions/demo")) == ("requests", 128, 128))
        assert left(ok(http.post("/v1/sessions/demo/ops", json={"ops": [op("exp", 0.5, to="x")]})))[2] == 128


@pytest.mark.parametrize("path", ["/v1", "/v1/health", "/v1/info", "/docs", "/v1/sessions/none", "/v1/nothing"])
def test_answers_that_count_against_no_limit_name_none(server: Server, path: str) -> None:
    with server.client() as http:
        assert "ratelimit" not in http.get(path).headers


def test_strangers_learn_no_limit(server: Server) -> None:
    with server.client(None) as stranger:
        assert "ratelimit" not in stranger.get("/v1/sessions").headers


def test_batches_have_none(server: Server) -> None:
    """Whoever answers them: the connection or the framework."""
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        answer = program.post(program.batch(Constant(program.seq, 1.5)))
        assert "ratelimit" not in ok(answer).headers
        assert "ratelimit" not in ok(http.post("/v1/sessions/demo/batch", json={"commands": []})).headers
