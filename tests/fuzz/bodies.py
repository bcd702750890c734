"""Mutated JSON bodies, paths and queries, sent over HTTP to a server with real session processes.

They begin as the examples of the API page, and batches that use every command. An answer is a success, or a problem
that documents name; 500 is never one. The session goes on, or its end is said.
"""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import walk

import teletape_wire as wire
from fuzz.sessions import PROGRAM
from fuzz.target import Finding
from serving import Server
from teletape_engine.catalogue.op import CATALOGUE
from teletape_server.problems import PROBLEM_TYPE, PROBLEMS
from teletape_server.settings import Settings

JSON: Final = "application/json"
_DOCUMENT: Final = Path(__file__).parents[2] / "openapi" / "openapi.json"
_SESSION: Final = "/v1/sessions/demo"
_CHANGES: Final = ("tapes-reset", "sessions-cancel", "sessions-extend", "run-run")  # left out of what runs before
_WORDS: Final = (
    *(
        "x",
        "w",
        "y",
        "loss",
        "tape",
        "squared_error",
        "points",
        "demo",
        "nobody",
        "",
        "null",
        "NaN",
        "Infinity",
        "none",
    ),
    *("zero", "float32", "float99", "op", "fetch", "tape.open", "gradient", "while", "rollback", "mul", "cpu", "gpu:9"),
    *("..", "%00", "a" * 3000, "é", "\ud800", "/", "💥", "__proto__"),
)
_LEAVES: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 2, 3, 7, 2**31, 2**53, 2**63, 2**64, 10**400, -(10**30), 0.5, -0.0, 1e308, 1e-320, True, False, None),
    *([], {}, [[]], [[1, 2], [3]], [None], [0.5, "x"], {"dtype": "float32", "shape": [2**31, 2**31], "data": []}),
    *({"dtype": "int8", "shape": [1], "data": [300]}, {"": ""}, {"do": "fetch", "id": "x"}, [1.5] * 1000),
)
_TEXTS: Final = (
    *("", "{", "[]", "null", "1e999", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', "[" * 5000, '{"a":' * 3000),
    *('"\\ud800"', "\ufeff{}", "9" * 5000, '{"value": ' + "9" * 5000 + "}", "{}{}", "true", '"x"', "\x00"),
)


class Bodies:
    """The target: a case is {method, path, query, content}; the content is the text of the body."""

    name = "bodies"

    def __init__(self) -> None:
        self._running = ExitStack()
        self._http: httpx.Client | None = None
        page = list(walk.steps(json.loads(_DOCUMENT.read_text())))
        self._before = [step for step in page if step.method in ("post", "put") and step.operation not in _CHANGES]
        batches = [
            walk.Step("batches-batch", "post", f"{_SESSION}/batch", {}, wire.batch_to_json(batch), JSON)
            for batch in PROGRAM
        ]
        often = [step for step in page if step.body is not None] * 3
        self._seeds = [*page, *often, *batches * 6]

    def draw(self, rng: random.Random) -> Any:
        """A request of the page, with something changed."""
        step = rng.choice(self._seeds)
        path, query, body = step.path, dict(step.query), json.loads(json.dumps(step.body))
        content = None if body is None else json.dumps(body)
        if body is not None and rng.random() < 0.85:
            for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
                body = _changed(rng, body)
            content = json.dumps(body)
        elif rng.random() < 0.5:
            content = rng.choice(_TEXTS) if content is None or rng.random() < 0.5 else _garbled(rng, content)
        if rng.random() < 0.1 or (body is None and rng.random() < 0.5):
            parts = path.split("/")
            first = min(2, len(parts) - 1)  # /v1 has no more
            parts[rng.randrange(first, len(parts))] = str(
                rng.choice([*_WORDS[:20], "9" * 5000, -1, 2**70, "%ff", "a b"])
            )
            path = "/".join(parts)
        if rng.random() < 0.1:
            names = ("full", "preview", "limit", "name", "format", "nodes", "device", "targets", "sources", "replace")
            query[rng.choice(names)] = str(rng.choice([*_WORDS[:14], -1, 0, 2**70, 1e400, "true"]))
        return {"method": step.method, "path": path, "query": query, "content": content}

    def check(self, case: Any) -> list[str]:
        """Sends the request."""
        http = self._client()
        content = None if case["content"] is None else case["content"].encode("utf-8", "surrogatepass")
        try:
            response = http.request(
                case["method"].upper(),
                case["path"],
                params=case["query"],
                content=content,
                headers={"Content-Type": JSON, "Accept": "*/*"},
            )
        except httpx.InvalidURL:
            return ["not sendable"]
        except httpx.HTTPError as error:
            raise Finding(f"{case['method']} {_operation(case)}: no answer", repr(error)) from error
        outcome = _check_answer(case, response)
        if case["path"] == "/v1/sessions" and case["method"] == "post" and response.is_success:
            http.delete(f"/v1/sessions/{response.json()['id']}")
        if response.is_success and ("batch" in case["path"] or case["method"] == "delete"):
            there = [http.get(f"{_SESSION}/{name}").status_code for name in ("tensors/x", "variables/w", "tapes/tape")]
            if there != [200] * 3:
                self._begin(http)
        elif http.get(_SESSION).status_code != 200:
            self._begin(http)
        return [outcome]

    def smaller(self, case: Any) -> Iterator[Any]:
        """Without the query; without a member of the body."""
        if case["query"]:
            yield case | {"query": {}}
        try:
            body = json.loads(case["content"] or "")
        except ValueError:
            return
        for shorter in _shorter(body):
            yield case | {"content": json.dumps(shorter)}

    def close(self) -> None:
        """Ends the server."""
        self._running.close()
        self._http = None

    def _client(self) -> httpx.Client:
        if self._http is None:
            settings = Settings(
                memory_limit=32 << 20,
                max_body=8 << 20,
                sessions=8,
                sessions_per_key=8,
                time_limit=2.0,
                max_iterations=1000,
            )
            server = self._running.enter_context(Server(settings).running())
            self._http = self._running.enter_context(server.client())
            self._begin(self._http)
        return self._http

    def _begin(self, http: httpx.Client) -> None:
        for step in self._before:
            walk.send(http, step)


# ---------------------------------------------------------------------------------------------------------------- laws
def _check_answer(case: Any, response: httpx.Response) -> str:
    where = f"{case['method']} {_operation(case)}"
    if response.is_success:
        if response.content and JSON in response.headers.get("content-type", ""):
            _json_of(where, response)
        return "success"
    if response.is_redirect:
        return "redirect"
    if response.headers.get("content-type") != PROBLEM_TYPE:
        raise Finding(f"{where}: {response.status_code} is no problem", response.text[:500])
    problem = _json_of(where, response)
    code = problem.get("code")
    if code == "internal" or code not in PROBLEMS or PROBLEMS[code].status != response.status_code:
        raise Finding(f"{where}: {response.status_code} {code}", str(problem.get("detail")))
    if not problem.get("detail") or not problem.get("title"):
        raise Finding(f"{where}: {code} says nothing", response.text[:500])
    return str(code)


def _json_of(where: str, response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise Finding(f"{where}: the answer is not JSON", response.text[:500]) from error


def _operation(case: Any) -> str:
    """The path, its ids replaced by what they stand for."""
    parts = case["path"].split("/")
    return "/".join(part if index % 2 == 0 or index < 3 else "…" for index, part in enumerate(parts))[:100]


# ------------------------------------------------------------------------------------------------------------- drawing
def _changed(rng: random.Random, body: Any) -> Any:
    """A body with one place changed."""
    node = body
    while isinstance(node, dict | list) and node:
        key: Any = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.75:
            node = node[key]
            continue
        what = rng.random()
        if what < 0.7:
            node[key] = _leaf(rng, node[key])
        elif what < 0.8:
            del node[key]
        elif isinstance(node, list):
            node.insert(rng.randrange(len(node) + 1), node[key])
        else:
            node[rng.choice(["id", "outputs", "extra", "where", "unconnected", "client", "seq", "releases"])] = _leaf(
                rng, 1
            )
        return body
    return _leaf(rng, body)


def _leaf(rng: random.Random, like: Any) -> Any:
    """Most often something of the same kind as what is there."""
    if rng.random() < 0.3:
        return json.loads(json.dumps(rng.choice(_LEAVES)))
    if isinstance(like, str):
        return rng.choice(_WORDS) if rng.random() < 0.8 else rng.choice(sorted(CATALOGUE))
    fitting = [leaf for leaf in _LEAVES if type(leaf) is type(like)]
    return json.loads(json.dumps(rng.choice(fitting))) if fitting else like


def _garbled(rng: random.Random, text: str) -> str:
    """Text cut, with a character changed, or repeated."""
    at = rng.randrange(len(text)) if text else 0
    return rng.choice(
        [
            text[:at],
            text[:at] + rng.choice('{}[]",:0e-\x00\\') + text[at + 1 :],
            text + text,
            text[:at] + text[at + 1 :],
        ]
    )


def _shorter(body: Any) -> Iterator[Any]:
    if isinstance(body, dict):
        for key in body:
            yield {name: value for name, value in body.items() if name != key}
            for shorter in _shorter(body[key]):
                yield body | {key: shorter}
    elif isinstance(body, list):
        for index in range(min(len(body), 20)):
            yield body[:index] + body[index + 1 :]
            for shorter in _shorter(body[index]):
                yield [*body[:index], shorter, *body[index + 1 :]]
