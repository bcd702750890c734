"""Commands for POST /v1/run."""

from typing import Any


def op(name: str, *inputs: Any, to: str, **attrs: Any) -> dict[str, Any]:
    return {"do": "op", "op": name, "inputs": list(inputs), "outputs": [to], "attrs": attrs}


SQUARE = [
    {"do": "variable", "id": "x", "value": 3.5},
    {"do": "tape.open", "id": "t"},
    op("square", "x", to="y"),
    {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["dx"]},
]
#: Takes longer than a test.
LOOP = [
    {"do": "function", "id": "f", "inputs": ["x"], "outputs": ["y"], "steps": [op("pow", "x", 1.0, to="y")]},
    {"do": "scan", "body": "f", "inputs": [1.0], "carried": 1, "length": 9_000_000, "outputs": ["z"]},
]


def loop(iterations: int) -> dict[str, Any]:
    """A body of commands that count to `iterations`."""
    below = {"op": "less", "inputs": ["i", iterations], "outputs": ["more"]}
    power = {"op": "pow", "inputs": ["i", 1], "outputs": ["same"]}  # has no loop in C: each iteration is Python's
    add = {"op": "add", "inputs": ["same", 1], "outputs": ["next"]}
    commands = [
        {"do": "function", "id": "below", "inputs": ["i"], "steps": [below], "outputs": ["more"]},
        {"do": "function", "id": "add", "inputs": ["i"], "steps": [power, add], "outputs": ["next"]},
        {"do": "while", "cond": "below", "body": "add", "inputs": [0], "outputs": ["last"]},
    ]
    return {"commands": commands}


ENDLESS = loop(2_000_000_000)
