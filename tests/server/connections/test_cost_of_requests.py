"""What a request costs does not depend on what its session has done before: no clock, the calls are counted."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import walk
from in_this_process import Client, HostsHere, application

from counting import calls
from programs import load_script
from serving import ok
from teletape_engine.session import names
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import lasting_ids
from teletape_server.models.base import Results
from teletape_server.published import pool
from teletape_server.sessions import registry

openapi_document = load_script("openapi_document")

REST = "/v1/sessions/demo"
EXPLAINED = ("tapes-sparse_hessian", "tapes-explain", "tapes-node_gradient", "tapes-node_explain", "functions-explain")


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(names, "MOST_RELEASED", 64)
    for sweeping in (registry, pool):  # their looks once a second are not a request's
        monkeypatch.setattr(sweeping, "_SWEEP_SECONDS", 3600.0)
    with application(HostsHere(lambda: Session(memory_limit=1 << 30))) as client:
        yield client


def life(http: Client, number: int) -> dict[str, int]:
    """The calls that each example of the API page takes. At the end nothing is left, and the examples' ids are new."""
    counted = {}
    for step in walk.steps(openapi_document.document()):
        if step.path.startswith(REST) and step.operation not in ("sessions-delete", *EXPLAINED):
            counted[step.operation] = calls(partial(walk.send, http, step))
    for collection in ("tapes", "functions", "variables", "tensors"):
        ok(http.request("DELETE", f"{REST}/{collection}?all=true"))
    others = {f"t{number}.{i}": 0 for i in range(names.MOST_RELEASED + 1)}
    ok(http.request("PUT", f"{REST}/tensors", json={"tensors": others}))
    ok(http.request("DELETE", f"{REST}/tensors?all=true"))
    return counted


def least(http: Client, *numbers: int) -> dict[str, int]:
    """The fewest calls that each example takes in some lives: now and then one of them builds a plan."""
    lives = [life(http, number) for number in numbers]
    return {operation: min([counted[operation] for counted in lives]) for operation in lives[0]}


class Compared(str):
    """An id that counts how often it is compared with another one."""

    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return str(self) == other

    __hash__ = str.__hash__


@pytest.mark.parametrize("fields", [{}, {"keep": [f"y{i}" for i in range(1000)]}])
def test_which_results_of_a_request_stay_takes_no_comparison_of_all_with_all(fields: dict[str, Any]) -> None:
    Compared.count = 0
    ids = [Compared(f"y{i}") for i in range(1000)]
    lasting = lasting_ids(ids, Results(**fields))
    assert [id for id in ids if id not in lasting] == []
    assert Compared.count <= 3 * len(ids)


def work(http: Client, requests: int, first: int) -> None:
    """Requests of several kinds, of which nothing stays."""
    function = {
        "inputs": ["w", "x"],
        "steps": [
            {"op": "matmul", "inputs": ["x", "w"], "outputs": ["y"]},
            {"op": "tanh", "inputs": ["y"], "outputs": ["z"]},
            {"op": "reduce_mean", "inputs": ["z"], "outputs": ["mean"]},
        ],
        "outputs": ["mean"],
    }
    question = {"inputs": {"w": [[0.5], [1.5]], "x": [[1.0, 2.0], [3.0, 4.0]]}, "sources": ["w"]}
    for number in range(first, first + requests):
        f, t, v = f"f{number}", f"tape{number}", f"v{number}"
        ok(http.post(f"{REST}/functions", json={"id": f, **function}))
        ok(http.post(f"{REST}/variables", json={"id": v, "value": [0.5, 1.5]}))
        ok(http.post(f"{REST}/tapes", json={"id": t}))
        squares = [{"op": "square", "inputs": [v], "outputs": [f"y{number}"]}]
        ok(http.post(f"{REST}/tapes/{t}/ops", json={"ops": squares}))
        ok(http.post(f"{REST}/tapes/{t}/gradient", json={"targets": [f"y{number}"], "sources": [v]}))
        for path in ("call", "value_and_gradient"):
            body = question if path != "call" else {"inputs": question["inputs"], "scratch": True}
            headers = {"Idempotency-Key": f"{path}{number}"}
            ok(http.post(f"{REST}/functions/{f}/{path}", json=body, headers=headers))
        commands = [
            {"do": "context.switch", "context": f"c{number}"},
            {"do": "op", "op": "neg", "inputs": [v], "outputs": [f"n{number}"]},
        ]
        ok(http.post(f"{REST}/run", json={"commands": commands, "scratch": True}))
        for path in (f"functions/{f}", f"tapes/{t}", f"tensors/y{number}", f"variables/{v}"):
            ok(http.request("DELETE", f"{REST}/{path}"))


@pytest.mark.long
def test_a_request_costs_in_an_old_session_what_it_costs_in_a_young_one(http: Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "demo"}))
    for number in range(2):  # first uses build plans and tables
        life(http, number)
    work(http, 5, 0)
    young = least(http, 2, 3)
    work(http, 100, 5)
    old = least(http, 4, 5, 6)
    dearer = {operation: (young[operation], n) for operation, n in old.items() if n > 1.02 * young[operation]}
    assert not dearer
