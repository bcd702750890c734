"""GET /metrics: for Prometheus. It needs a key if the server has any, as every request but that for health."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import accumulate
from typing import TypeAlias

from fastapi import APIRouter, Request, Response
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from starlette.datastructures import State

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.http.access import Authenticated
from teletape_server.http.plain_requests import RUN
from teletape_server.ipc.durations import SIZES, Durations
from teletape_server.ipc.heads import FRAME
from teletape_server.middleware.metrics import Metrics, counter, gauge, histogram
from teletape_server.published.pool import Pool
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.live_sessions import LiveSessions
from teletape_server.sessions.usage import Spent, Usage
from teletape_server.waiting.keys import KeyUse

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
    keys = state.waits.box().keys
    known = {*counts.requests_of, *counts.frames_by(0), *usage.spent, *keys, *state.registry.runs.waited}
    owners = sorted(known if principal.is_admin else {principal.owner})
    families = [
        *_of_all(state, counts, usage),
        *_of_sessions(state.registry.live),
        *_of_devices(state.device_looks.latest(state.starts), state.registry.live.devices_in_use()),
        *_of_keys(owners, counts, usage),
        *_of_waits(owners, keys, state.registry.runs.waited),
    ]
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


class DeviceLooks:
    """What is known of the devices without a wait: a process of its own looks at GPUs, which takes a second."""

    def __init__(self) -> None:
        self._known: list[DeviceFacts] = []
        self._look: asyncio.Task[list[DeviceFacts]] | None = None

    def latest(self, starts: Starts) -> list[DeviceFacts]:
        """Returns what the look before found, and begins another one."""
        if self._look is None or self._look.done():
            if self._look is not None and not self._look.cancelled() and self._look.exception() is None:
                self._known = self._look.result()
            self._look = asyncio.get_running_loop().create_task(starts.devices())
        return self._known


def _of_sessions(live: LiveSessions) -> Iterator[Metric]:
    """Yields what is counted of the processes of sessions."""
    about = "Time until a session had a process: created, woken, recovered, or run for requests without one"
    yield histogram("teletape_session_start_seconds", about, "cause", live.starts.items())
    yield counter(
        "teletape_session_starts_failed", "Processes that could not be started", (), [((), live.failed_starts)]
    )
    yield counter("teletape_sessions_parked", "Sessions that were parked", (), [((), live.parked)])


def _of_devices(devices: Collection[DeviceFacts], sessions: Mapping[str, int]) -> Iterator[Metric]:
    """Yields the memory of each GPU, and how many sessions each device has."""
    gpus = [facts for facts in devices if facts.device != "cpu" and not facts.unusable]
    for name, about, pairs in (
        ("memory_bytes", "Memory of a GPU", [(facts.device, facts.memory_bytes) for facts in gpus]),
        ("free_bytes", "Of it that no program uses", [(facts.device, facts.free_bytes) for facts in gpus]),
        ("sessions", "Sessions that compute on a device", [*sessions.items()]),
    ):
        family = GaugeMetricFamily(f"teletape_device_{name}", about, labels=["device"])
        for device, value in pairs:
            if value is not None:
                family.add_metric([device], value)
        yield family


def _of_waits(owners: Collection[str], keys: Mapping[str, KeyUse], waited: Mapping[str, Durations]) -> Iterator[Metric]:
    """Yields what the requests of each of these keys wait for."""
    present: tuple[tuple[str, str, Callable[[KeyUse], float]], ...] = (
        ("computing", "Processes that compute for a key", lambda key: key.computing),
        ("waiting", "Requests of a key that wait", lambda key: key.waiting),
        ("share", "The part of the processors that is a key's own while it computes", lambda key: key.share),
    )
    for name, about, value in present:
        family = GaugeMetricFamily(f"teletape_key_{name}", about, labels=["key"])
        for owner in owners:
            family.add_metric([owner], value(keys.get(owner, KeyUse(owner))))
        yield family
    pairs = [(owner, waited[owner]) for owner in owners if owner in waited]
    yield histogram(
        "teletape_key_run_wait_seconds", "Time that requests without a session wait for a place", "key", pairs
    )


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
        ("queue_seconds", "That they have waited in sessions' processes", lambda owner: spent[owner].queue_seconds),
        ("body_bytes", "Of bodies that sessions' processes were sent", lambda owner: spent[owner].body_bytes),
        ("answer_bytes", "Of their answers to these", lambda owner: spent[owner].answer_bytes),
    )
    for name, about, value in totals:
        yield counter(f"teletape_key_{name}", about, "key", [(owner, value(owner)) for owner in owners])
    about = "Time from a request's arrival in its session's process to its end"
    yield histogram(
        "teletape_key_session_request_seconds", about, "key", [(key, spent[key].durations) for key in owners]
    )
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
