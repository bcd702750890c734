"""GET /metrics: for Prometheus. It needs a key if the server has any, as every request but that for health."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from itertools import accumulate
from typing import TypeAlias

from fastapi import APIRouter, Request, Response
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from starlette.datastructures import State

from teletape_server.http.access import Authenticated
from teletape_server.http.plain_requests import RUN
from teletape_server.ipc.durations import SIZES, Durations
from teletape_server.ipc.heads import FRAME
from teletape_server.middleware.metrics import Metrics, counter, gauge, histogram
from teletape_server.published.pool import Pool
from teletape_server.sessions.usage import Spent, Usage

#: A metric by key: the end of its name, its text, and its value for a key.
_OfKey: TypeAlias = tuple[str, str, Callable[[str], float]]

router = APIRouter(include_in_schema=False)


@router.get("/metrics", tags=["server"])
async def metrics(request: Request, principal: Authenticated) -> Response:
    """Counts of requests, frames and sessions, and what is in use now; by key for an admin, else of the key's own."""
    state = request.app.state
    counts: Metrics = state.metrics
    usage: Usage = state.registry.usage()
    spent = {**usage.spent}
    for account, served in state.pool.lent.served().items():
        spent.setdefault(account.owner, Spent()).answered[account.label] += served.durations
    usage = usage._replace(spent=spent)
    owners = {*counts.requests_of, *counts.frames_by(0), *usage.spent} if principal.is_admin else {principal.owner}
    families = [*_of_all(state, counts, usage), *_of_keys(sorted(owners), counts, usage)]
    text, content_type = counts.text(request.headers.get("accept", ""), families)
    return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def _of_all(state: State, counts: Metrics, usage: Usage) -> Iterator[Metric]:
    """Yields what the server has of all keys together."""
    by_request = ("method", "route", "status")
    answered = usage.answered
    requests, durations = counts.requests_with(answered)
    yield counter("teletape_requests", "Requests that are no frames", by_request, requests.items())
    about = "Time from a request's head to the end of its answer, by route"
    yield histogram("teletape_request_seconds", about, "route", durations.items())
    lent_frames = answered.get(FRAME, Durations())
    by_status = {**counts.frames_by(1), 0: lent_frames.total}.items()
    yield counter("teletape_frames", "Frames answered, by status; 0: by sessions' processes", "status", by_status)
    about = "Time from a frame's head to the beginning of its answer"
    yield histogram("teletape_frame_seconds", about, "", [("", lent_frames + counts.frame_durations)])
    yield gauge("teletape_sessions", "Live sessions", usage.sessions)
    states = GaugeMetricFamily("teletape_session_states", "Live sessions by state", labels=["state"])
    for name, count in usage.states.items():
        states.add_metric([name], count)
    yield states
    yield gauge("teletape_session_disk_bytes", "Bytes of the files of live sessions", usage.disk_bytes)
    if (data_dir := state.settings.data_dir) is not None:
        yield gauge(
            "teletape_disk_free_bytes", "Bytes that the disk of the folder for data still takes", _free(data_dir)
        )
    yield gauge("teletape_runs", "Requests without a session that run", usage.runs[0])
    yield gauge("teletape_waiting_runs", "Requests without a session that wait for their turn", usage.runs[1])
    yield gauge("teletape_session_bytes", "Bytes in use by live sessions, as of their last answers", usage.bytes)
    yield gauge("teletape_bodies_bytes", "Bytes of request bodies under way", usage.body_bytes)
    yield gauge("teletape_unanswered_requests", "Requests that sessions have not answered yet", usage.requests)
    yield counter("teletape_sessions_ended", "Ended sessions by reason", "reason", usage.ended.items())
    yield counter("teletape_refused_connections", "Refused, by code", "code", counts.refused.items())
    connections = getattr(state, "connections", None)
    if connections is not None:
        lent = usage.lent + state.pool.lent.connections
        yield gauge("teletape_connections", "Open connections", len(connections.open))
        yield gauge("teletape_lent_connections", "Of these, served by other processes", lent)
    yield from _of_published(state)
    yield counter("teletape_sessions_created", "Sessions that were created", (), [((), usage.created)])
    begun = usage.begun + answered.get(("POST", RUN, 200), Durations()).total
    yield counter("teletape_runs_begun", "Requests without a session that have begun", (), [((), begun)])


def _free(folder: str) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def _of_published(state: State) -> Iterator[Metric]:
    """Yields what is counted for each published function that still is one."""
    pool: Pool = state.pool
    counts = {name: item for name, item in pool.lent.counts().items() if name in state.catalogue.names}
    calls = [((name, question), count) for name, item in counts.items() for question, count in item.calls.items()]
    yield counter("teletape_published_calls", "Calls of a published function", ("function", "question"), calls)
    problems = [(name, item.problems) for name, item in counts.items()]
    yield counter("teletape_published_problems", "Of these, answered with a problem", "function", problems)
    for field, about in (
        ("queue_seconds", "That its calls have waited for a process"),
        ("compute_seconds", "That processes have computed for it"),
    ):
        pairs = [(name, getattr(item.batches, field)) for name, item in counts.items()]
        yield counter(f"teletape_published_{field}", about, "function", pairs)
    family = HistogramMetricFamily(
        "teletape_published_batch_calls", "Calls that were computed together", labels=["function"]
    )
    for name, item in counts.items():
        ends = [*[str(float(size)) for size in SIZES], "+Inf"]
        buckets = [*zip(ends, accumulate(map(float, item.batches.counts)), strict=True)]
        family.add_metric([name], buckets, item.batches.calls)
    yield family
    yield gauge("teletape_published_processes", "Processes of published functions", pool.processes)
    yield gauge("teletape_published_waiting", "Calls that wait for one", pool.waiting)


def _of_keys(owners: Collection[str], counts: Metrics, usage: Usage) -> Iterator[Metric]:
    """Yields what the server has of each of these keys."""
    frames = counts.frames_by(0)
    spent = {owner: usage.spent.get(owner, Spent()) for owner in owners}
    totals: tuple[_OfKey, ...] = (
        (
            *("requests", "Requests of a key that are no frames"),
            lambda owner: counts.requests_of[owner] + spent[owner].lent_requests,
        ),
        ("frames", "Frames of a key", lambda owner: frames[owner] + spent[owner].lent_frames),
        ("compute_seconds", "That the requests of a key have run", lambda owner: spent[owner].compute_seconds),
        ("cpu_seconds", "Of the threads that compute for a key", lambda owner: spent[owner].cpu_seconds),
    )
    for name, about, value in totals:
        yield counter(f"teletape_key_{name}", about, "key", [(owner, value(owner)) for owner in owners])
    present: tuple[_OfKey, ...] = (
        ("sessions", "Live sessions of a key", lambda owner: spent[owner].sessions),
        ("session_bytes", "Bytes in use by these, as of their last answers", lambda owner: spent[owner].bytes),
        ("session_disk_bytes", "Bytes of the files of these", lambda owner: spent[owner].disk_bytes),
    )
    for name, about, value in present:
        family = GaugeMetricFamily(f"teletape_key_{name}", about, labels=["key"])
        for owner in owners:
            family.add_metric([owner], value(owner))
        yield family
