"""POST /price: what commands would need, and whether they would run now. Nothing is run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from fastapi import APIRouter, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_engine.catalogue.op import WorkKind
from teletape_server.handlers.endpoints import NAMED
from teletape_server.hosts.protocols import HostGone, Reply
from teletape_server.http.access import (
    Authenticated,
    find_session,
    pricer_of,
    registry_of,
    settings_of,
    starts_of,
    waits_of,
)
from teletape_server.http.bodies import SmallBodyRoute, check_length
from teletape_server.http.declarations import BODY, STILL_RUNNING, answers, takes
from teletape_server.http.parameters import IdempotencyKey, Prefer
from teletape_server.http.progress import described_wait, wait_of
from teletape_server.identity.principals import Principal
from teletape_server.models.session.prices import PriceAnswer, PriceRequest, Verdict
from teletape_server.models.waiting import Wait
from teletape_server.problems import PROBLEMS, Problem, overloaded
from teletape_server.sessions.registry import SessionEntry

router = APIRouter(prefix="/price", tags=["run"], route_class=SmallBodyRoute)

#: A `PriceAnswer`, as JSON-able data.
_Judged: TypeAlias = dict[str, Any]
_SHORT: Final = 0.001  # seconds; less is said as that
_PATIENCE: Final = 1.0  # seconds that a price waits for what its session runs
#: What is known of commands that cannot be looked at.
_NOTHING: Final[Mapping[str, Any]] = {"cost": None, "results": (), "depends": ()}
_PARAMS: Final = {"accept": wire.JSON_TYPE}


@router.post(
    "",
    summary="See what commands would take",
    response_class=Response,
    openapi_extra=takes(PriceRequest, safetensors=False),
    responses=answers(
        PriceAnswer,
        *("unauthenticated", *BODY, *NAMED, "unknown_session", "session_ended", "overloaded", "busy"),
        safetensors=False,
    )
    | STILL_RUNNING,
)
async def price(
    request: Request, principal: Authenticated, key: IdempotencyKey = None, prefer: Prefer = None
) -> Response:
    """Returns what the commands would need and make, and whether they would run now, wait, or be refused and why.

    Nothing is run, and no session changes. A tensor may be given by dtype and shape alone: `{"dtype": "float32",
    "shape": [1000, 1000]}`. The commands run as in `POST /run`, or in the `session` that is named. If that session
    computes for longer than a second, the answer is `waits`, without a price.
    """
    content = await request.json()
    name = content.get("session") if isinstance(content, dict) else None
    body = await request.body()
    if not isinstance(name, str):  # what else it may be, the process that reads the body refuses
        judged = await _alone(request, principal, body)
    else:
        judged = await _in_session(request, principal, find_session(request, principal, name), body)
    # Written as it is: to look at a thousand results once more would keep the server's other requests waiting.
    return Response(
        json.dumps(judged, default=str, ensure_ascii=False, separators=(",", ":")), media_type=wire.JSON_TYPE
    )


async def _alone(request: Request, principal: Principal, body: bytes) -> _Judged:
    """Returns the price of commands that would run without a session."""
    priced = await _facts(request, await pricer_of(request).price(body, _PARAMS))
    waits, device = waits_of(request), settings_of(request).device
    try:
        registry_of(request).budgets.check_work(principal.account)
        registry_of(request).budgets.check_memory(principal.account)
        if lack := starts_of(request).lack():
            raise overloaded(lack)
        place = waits.of_next_run(principal.owner, device)
    except Problem as problem:
        return _refused(priced, problem)
    return _judged(request, priced, described_wait(waits, place) if place.position else None)


async def _in_session(request: Request, principal: Principal, entry: SessionEntry, body: bytes) -> _Judged:
    """Returns the price of commands that would run in a session.

    Raises:
        Problem: busy, session_ended.
    """
    registry, waits = registry_of(request), waits_of(request)
    if entry.host is None:
        return _waits(wait_of(waits, principal.owner, None, entry))
    entry.host.reclaim()
    buffer = registry.body_buffer(entry, len(body))
    buffer.view[:] = body
    running = registry.submit(entry, "price", _PARAMS, content_type=wire.JSON_TYPE, body=buffer)
    while not (await asyncio.wait([running.reply], timeout=_PATIENCE))[0]:
        wait = wait_of(waits, principal.owner, running, entry)
        if wait.position:  # else the price itself takes long
            running.cancel()
            return _waits(wait)
    try:
        priced = await _facts(request, running.reply.result())
    except HostGone:
        raise registry.live.gone(entry) from None
    try:
        registry.budgets.check_work(entry.account)
    except Problem as problem:
        return _refused(priced, problem)
    return _judged(request, priced, None)


async def _facts(request: Request, reply: Reply) -> Mapping[str, Any]:
    """Returns what the process says of the commands, with the seconds that they take on this machine.

    Raises:
        Problem: It has refused the request.
    """
    if reply.code is not None:
        raise Problem(reply.code, reply.facts["message"], **reply.facts["details"])
    facts: dict[str, Any] = json.loads(bytes(reply.body))
    if facts["work"] is not None:
        speed = await pricer_of(request).speed()
        work = {kind: facts["work"][kind.value] for kind in WorkKind}
        seconds = speed.seconds(work, facts["work"]["written"], facts["cost"]["ops"])
        facts["cost"]["seconds"] = float(f"{seconds:.3g}")
    return facts


def _judged(request: Request, priced: Mapping[str, Any], wait: Wait | None) -> _Judged:
    """Returns the price with its verdict; `wait`: what the commands would wait for."""
    failure = priced["problem"]
    if failure is not None and priced["is_known"]:
        return _refused(priced, Problem(failure["code"], failure["detail"], **failure["details"]))
    if failure is not None:
        problem = _described(Problem(failure["code"], failure["detail"], **failure["details"]))
        text = f"it depends on values that were not given: {problem['detail']}"
        return _answer(priced, verdict="unknown", reason=text, problem=problem)
    cost = priced["cost"]
    try:
        check_length(cost["bytes_up"], settings_of(request).max_body, "")
    except Problem as problem:
        return _refused(priced, problem)
    if wait is not None:
        return _answer(priced, verdict="waits", reason=wait.reason, wait=wait)
    text = f"it needs {cost['peak_bytes']:,} bytes in addition to the {cost['bytes_in_use']:,} in use"
    if cost["memory_limit"] is not None:
        text += f", of {cost['memory_limit']:,}"
    if cost["seconds"] is not None:
        seconds = cost["seconds"]
        text += f", and computes for {f'about {seconds:.3g}' if seconds >= _SHORT else f'less than {_SHORT:g}'} s"
    return _answer(priced, verdict="fits", reason=text)


def _waits(wait: Wait) -> _Judged:
    """Returns the answer about a session that cannot be looked at now."""
    return _answer(_NOTHING, verdict="waits", reason=wait.reason, wait=wait)


def _refused(priced: Mapping[str, Any], problem: Problem) -> _Judged:
    """Returns the price of commands that would be refused."""
    return _answer(priced, verdict="refused", reason=problem.detail, problem=_described(problem))


def _answer(
    priced: Mapping[str, Any],
    *,
    verdict: Verdict,
    reason: str,
    problem: Mapping[str, Any] | None = None,
    wait: Wait | None = None,
) -> _Judged:
    return {
        "verdict": verdict,
        "reason": reason,
        "problem": problem,
        "wait": None if wait is None else wait.model_dump(),
        **{name: priced[name] for name in _NOTHING},
    }


def _described(problem: Problem) -> Mapping[str, Any]:
    kind = PROBLEMS[problem.code]
    return {
        "status": kind.status,
        "title": kind.title,
        "code": problem.code,
        "detail": problem.detail,
        "details": problem.details,
    }
