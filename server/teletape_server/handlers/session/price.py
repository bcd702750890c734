"""The method `price`: what commands would need and answer, in the session or in one that has nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import teletape_wire as wire
from teletape_engine.catalogue.op import WorkKind
from teletape_engine.commands import Batch, Command, Fetch, Id
from teletape_engine.derivatives.reports.speed import measured
from teletape_engine.errors import TeletapeError
from teletape_engine.pricing.price import Price, price
from teletape_engine.session.session import Session
from teletape_engine.session.state import State
from teletape_server.handlers.bodies import validated
from teletape_server.handlers.execution import constants, error_of, inspected
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.handlers.session.run import check_fetched, created_names
from teletape_server.models.session.prices import PriceRequest

#: Of commands that are refused before any of them runs.
_REFUSED: Final = {"is_known": True, "work": None}


@method("price")
def price_commands(session: Session, request: Request) -> Result:
    """Returns the cost of the commands, what they would make, and the problem that they would fail with.

    The answer has `cost`, `results` and `depends` as a `PriceAnswer` has them; `problem` with code, detail and details,
    or null; `is_known`: whether it is certain that they would, or would not, fail so; and `work`: what is computed, by
    which the front knows the seconds, or null.

    Raises:
        TeletapeError: The body is no request for a price.
    """
    with wire.specs_in_place_of_tensors():
        body = validated(PriceRequest, request.json())
        try:
            commands, batch = _read(session, body)
        except TeletapeError as error:  # the commands would be refused so too
            return json_result({"cost": None, "results": [], "depends": [], "problem": _problem(error), **_REFUSED})
    first = len(body.tensors)

    def look(state: State) -> tuple[Price, str]:
        return price(state, batch, budget=request.budget, cancelled=request.cancelled), state.backend.name

    priced, backend = inspected(session, request, look)
    problem = None
    if priced.failure is not None:
        results = _PricedSession(session, priced)
        problem = _problem(error_of(results, priced.failure, commands, first=first, name_command=True))
    answer = {
        "cost": _cost(priced),
        "results": [
            {
                "command": _position(result.index, first),
                "id": result.id,
                "kind": result.kind,
                "dtype": result.spec.dtype.name,
                "shape": list(result.spec.shape),
                "rows": result.rows,
                "exact": result.exact,
            }
            for result in priced.results
        ],
        "depends": [
            {"command": _position(doubt.index, first), "on": doubt.on, "what": doubt.what} for doubt in priced.doubts
        ],
        "problem": problem,
        "is_known": priced.is_known,
        "work": _by_kernel(priced.work, written=priced.written) if backend == "cpu" else None,
    }
    return json_result(answer)


@method("speed")
def speed_of_cpu(session: Session, request: Request) -> Result:
    """Returns what this machine's CPU does in a second; see `Speed`. The first call in a process measures it."""
    speed = measured(time.perf_counter)
    return json_result(_by_kernel(speed.operations, written=speed.elements, calls=speed.calls))


def _by_kernel(numbers: Mapping[WorkKind, float], **others: float) -> dict[str, float]:
    return {**{kind.value: number for kind, number in numbers.items()}, **others}


def _read(session: Session, body: PriceRequest) -> tuple[Sequence[Command], Batch]:
    """Returns the caller's commands, and the batch of these and of the server's own.

    Raises:
        TeletapeError: They are refused before any of them runs.
    """
    with wire.numbers_alone(body.dtype):
        commands = wire.batch_from_json({"commands": body.commands}).commands
    if body.session is None:
        check_fetched(body, commands)
    else:
        created = {*body.tensors, *created_names(commands)}
        for id in body.fetch:
            if id not in created:
                session.describe(id)
    fetched = [Fetch(id, None, True) for id in body.fetch]
    batch = Batch((*constants(body.tensors), *commands, *fetched), tuple(body.release), replace=body.replace)
    return commands, batch


class _PricedSession(Session):
    """A session with the results that the commands would have."""

    def __init__(self, session: Session, priced: Price) -> None:
        self._session = session
        self._results = {result.id: result for result in priced.results}

    def describe(self, name: Id) -> dict[str, Any]:
        """The dtype of what the commands would make; else the session's facts."""
        result = self._results.get(name)
        return self._session.describe(name) if result is None else {"dtype": result.spec.dtype.name}


def _position(index: int, first: int) -> int | None:
    return index - first if index >= first else None


def _problem(error: TeletapeError) -> Mapping[str, Any]:
    return {"code": error.code, "detail": error.message, "details": error.details}


def _cost(priced: Price) -> Mapping[str, Any]:
    return {
        "peak_bytes": priced.peak,
        "bytes_in_use": priced.used,
        "bytes_after": priced.after,
        "memory_limit": priced.limit,
        "ops": priced.ops,
        "multiply_adds": priced.work[WorkKind.PRODUCTS] + priced.work[WorkKind.LOOPS],
        "elements": priced.work[WorkKind.ELEMENTS],
        "seconds": None,
        "bytes_up": priced.up,
        "bytes_down": priced.down,
    }
