"""Mutated safetensors bodies: requests with named tensors, in a session of this process with something of each kind.

A body may be refused with a documented code, or executed. The session must go on after it, and a safetensors answer be
what the safetensors package reads.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import safetensors
from safetensors.numpy import save

import teletape_server.handlers  # noqa: F401  # it registers the methods
import teletape_wire as wire
from fuzz.sessions import check_alive, new_session, run_program
from fuzz.target import Finding
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.methods import METHODS, Request
from teletape_server.problems import PROBLEMS
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

BODIES: Final = 20  #: Bodies of a case: they share a session.
_X: Final = np.array([1.5, -2.0], np.float32)
_FUNCTION: Final = {
    "id": "energy",
    "inputs": ["x", "w"],
    "outputs": ["e"],
    "steps": [
        {"op": "mul", "inputs": ["x", "w"], "outputs": ["xw"]},
        {"op": "reduce_sum", "inputs": ["xw"], "outputs": ["e"]},
    ],
}
_RUN: Final = {
    "commands": [
        {"do": "variable", "id": "v", "value": {"tensor": "start"}},
        {"do": "tapes-open", "id": "t"},
        {"do": "op", "op": "mul", "inputs": ["v", "a"], "outputs": ["y"]},
        {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["v"], "outputs": ["dv"]},
    ],
    "fetch": ["dv", "a"],
}
#: Method, the id in its path, its tensors, and the JSON in the metadata.
_SEEDS: Final[list[tuple[str, str | None, dict[str, Any], Any]]] = [
    ("functions-call", "energy", {"x": _X, "w": _X}, None),
    ("functions-gradient", "energy", {"x": _X, "w": _X}, {"sources": ["x"], "unconnected": "zero"}),
    ("functions-value_and_gradient", "energy", {"p": _X}, {"inputs": [{"tensor": "p"}, {"tensor": "p"}]}),
    ("functions-hvp", "energy", {"inputs/x": _X, "inputs/w": _X, "vectors/0": _X, "vectors/1": _X}, None),
    ("functions-hessian", "energy", {"x": _X, "w": _X}, {"max_bytes": 1 << 20}),
    ("functions-jvp", "energy", {"x": _X, "w": _X, "t": _X}, {"sources": ["w"], "tangents": [{"tensor": "t"}]}),
    ("run", None, {"start": _X, "a": _X}, _RUN),
    ("ops-run", None, {"a": _X}, {"ops": [{"op": "reduce_sum", "inputs": [{"tensor": "a"}], "attrs": {"axis": 0}}]}),
    ("tensors-create_all", None, {"new": _X, "flag": np.array([True, False]), "none": np.zeros((0, 2))}, None),
    ("tensors-create", None, {"anything": np.array(3, np.int8)}, {"id": "single"}),
    ("variables-write_all", None, {"fresh": _X, "w": _X}, {"trainable": False}),
    ("variables-assign", "w", {"value": _X, "indices": np.array([1, 0])}, {"mode": "scatter_update"}),
    ("tapes-gradient", "t", {"output_gradients/0": _X}, {"targets": ["y"], "sources": ["x"]}),
    ("tapes-questions", "t", {"g": _X}, {"questions": [{"do": "vjps", "targets": ["y"], "sources": ["x"]}]}),
]
_NAMES: Final = ("x", "w", "value", "inputs", "inputs/0", "inputs/x/y", "a/b", "", "/", "é", "x" * 300, "0", "request")
_LEAVES: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, -1, 2**31, 2**63, 2**70, 0.5, 1e308, "", "x", "w", "zero", "F32", "BOOL", "F8_E4M3", "C64"),
    *([], {}, [0], [0, 0], [0, 8], [8, 0], [2**62, 4], [1] * 40, {"tensor": "x"}, {"tensor": "nobody"}, {"tensor": 1}),
    *([{"tensor": "x"}], {"id": {"tensor": "x"}}, {"data": {"tensor": "x"}}, {"x": {"tensor": "x"}}, "[" * 3000),
)


class TensorFiles:
    """The target: a case is a list of {method, id, accept, body}, the body in hexadecimal."""

    name = "tensor_files"

    def close(self) -> None:
        """Nothing has been started."""

    def draw(self, rng: random.Random) -> Any:
        """Bodies of every kind, mutated."""
        requests = []
        for _ in range(BODIES):
            method, id, tensors, fields = rng.choice(_SEEDS)
            if fields is not None and rng.random() < 0.5:
                fields = _changed(rng, fields, [*tensors])
            if rng.random() < 0.2:
                tensors = {rng.choice(_NAMES) if rng.random() < 0.5 else name: array for name, array in tensors.items()}
            text = fields if isinstance(fields, str) else json.dumps(fields)
            body = _mutated(rng, save(tensors, None if fields is None else {"request": text}))
            accept = rng.choice([wire.JSON_TYPE, SAFETENSORS_TYPE])
            requests.append({"method": method, "id": id, "accept": accept, "body": body.hex()})
        return requests

    def check(self, case: Any) -> list[str]:
        """Executes the requests in order."""
        session = new_session()
        run_program(session)
        _execute(session, "functions-create", None, wire.JSON_TYPE, wire.JSON_TYPE, json.dumps(_FUNCTION).encode())
        outcomes = []
        for part in case:
            body = bytes.fromhex(part["body"])
            # Run has a session of its own on a server.
            own = new_session() if part["method"] == "run" else session
            outcomes.append(_execute(own, part["method"], part["id"], SAFETENSORS_TYPE, part["accept"], body))
        check_alive(session)
        return outcomes

    def smaller(self, case: Any) -> Iterator[Any]:
        """With one request alone; with fewer."""
        if len(case) > 1:
            for part in case:
                yield [part]
            for index in range(len(case)):
                yield case[:index] + case[index + 1 :]


def _execute(session: Session, method: str, id: str | None, content_type: str, accept: str, body: bytes) -> str:
    params = {"id": id, "full": False, "collection": "", "idempotency_key": None, "accept": accept, "request": None}
    request = Request(params, content_type, memoryview(body), 32, lambda: False, lambda *numbers: None, 0.0)
    try:
        result = METHODS[method](session, request)
    except TeletapeError as error:
        if error.code not in PROBLEMS or error.code == "internal" or not error.message:
            raise Finding(f"{method}: {error.code}", error.message) from error
        return error.code
    except Exception as error:
        raise Finding(f"{method} raises {type(error).__name__}", str(error)) from error
    written = b"".join(result.buffers)
    if len(written) != result.length:
        raise Finding(f"{method}: length", f"{result.length} declared, {len(written)} written")
    if result.content_type == SAFETENSORS_TYPE:
        try:
            safetensors.deserialize(written)
        except Exception as error:
            raise Finding(f"{method}: answer", repr(error)) from error
    return "executed"


def _changed(rng: random.Random, value: Any, names: list[str]) -> Any:
    """The JSON with a part of it replaced."""
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key: Any = rng.choice(keys)
        copy = value.copy()
        copy[key] = _changed(rng, value[key], names)
        return copy
    return {"tensor": rng.choice(names)} if rng.random() < 0.4 else rng.choice(_LEAVES)


def _mutated(rng: random.Random, body: bytes) -> bytes:
    """The body with something changed, or as it is."""
    kind = rng.random()
    if kind < 0.3:
        return body
    end = 8 + int.from_bytes(body[:8], "little")
    if kind < 0.7:
        text = json.dumps(_changed(rng, json.loads(body[8:end]), ["x"])).encode()
        return len(text).to_bytes(8, "little") + text + body[end:]
    if kind < 0.8:
        return body[: rng.randrange(len(body))]
    if kind < 0.85:
        return body + bytes(rng.randrange(1, 50))
    changed = bytearray(body)
    for _ in range(rng.choice([1, 1, 2, 5])):
        changed[rng.randrange(len(changed) if kind < 0.95 else 8)] = rng.randrange(256)
    return bytes(changed)
