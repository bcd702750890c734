"""GET /metrics: for Prometheus. It needs a key if the server has any, as every request but that for health."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fastapi import APIRouter, Request, Response
from prometheus_client.core import CounterMetricFamily, Metric
from starlette.datastructures import State

from teletape_server.http.access import Owner
from teletape_server.middleware.metrics import Metrics, counter, gauge
from teletape_server.sessions.registry import Registry

router = APIRouter(include_in_schema=False)


@router.get("/metrics", tags=["server"])
async def metrics(request: Request, _: Owner) -> Response:
    """Counts of requests, frames and sessions, and what is in use now."""
    all_metrics: Metrics = request.app.state.metrics
    text, content_type = all_metrics.text(request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def facts_of(state: State) -> Callable[[], Iterable[Metric]]:
    """Returns what reads the facts of a server's state."""

    def facts() -> Iterable[Metric]:
        registry: Registry = state.registry
        counts: Metrics = state.metrics
        usage = registry.usage()
        yield gauge("teletape_sessions", "Live sessions", usage.sessions)
        yield gauge("teletape_runs", "Requests without a session that run", usage.runs[0])
        yield gauge("teletape_waiting_runs", "Requests without a session that wait for their turn", usage.runs[1])
        yield gauge("teletape_session_bytes", "Bytes in use by live sessions, as of their last answers", usage.bytes)
        yield gauge("teletape_bodies_bytes", "Bytes of request bodies under way", usage.body_bytes)
        yield gauge("teletape_unanswered_requests", "Requests that sessions have not answered yet", usage.requests)
        yield counter("teletape_sessions_ended", "Ended sessions by reason", "reason", usage.ended.items())
        frames = counter("teletape_frames", "Frames answered, by status; 0: by sessions' processes", "status", ())
        for status, count in {**counts.frames, 0: usage.lent_frames}.items():
            frames.add_metric([str(status)], count)
        yield frames
        yield counter("teletape_refused_connections", "Refused, by code", "code", counts.refused.items())
        connections = getattr(state, "connections", None)
        if connections is not None:
            yield gauge("teletape_connections", "Open connections", len(connections.open))
            yield gauge("teletape_handed_connections", "Of these, served by sessions' processes", usage.lent)
        for name, text, count in (
            ("teletape_sessions_created", "Sessions that were created", usage.created),
            ("teletape_runs_begun", "Requests without a session that have begun", usage.begun),
        ):
            total = CounterMetricFamily(name, text)
            total.add_metric([], count)
            yield total

    return facts
