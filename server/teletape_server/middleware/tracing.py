"""Spans of OpenTelemetry for requests whose callers trace them: one of the request, below it what processes ran.

A request belongs to a trace if its header `traceparent` says that it is sampled; no other one is traced.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers

from teletape_server import version
from teletape_server.hosts.running import Trace

_NANOSECONDS: Final = 1_000_000_000


class Tracing:
    """Makes the spans of requests, and sends them in a thread of its own, as the variables of the environment say."""

    def __init__(self) -> None:
        name = os.environ.get("OTEL_SERVICE_NAME", "teletape")
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("teletape_server", version())
        self._propagator = TraceContextTextMapPropagator()

    def parent(self, headers: Headers) -> Any:
        """Returns the context of the caller's span; None: the caller does not trace the request."""
        if "traceparent" not in headers:
            return None
        context = self._propagator.extract(headers)
        span = get_current_span(context).get_span_context()
        return context if span.is_valid and span.trace_flags.sampled else None

    def end(self, trace: Trace, method: str, route: str, status: int, seconds: float, **facts: str | None) -> None:
        """Makes the spans of a request that has just been answered.

        Args:
            trace: The request's.
            method: Of its HTTP.
            route: Its path, with the names of parameters in the place of their values.
            status: Of the answer.
            seconds: From its head to its answer.
            facts: Attributes of its span, whose names get `teletape.` before them; None: not known.
        """
        end = time.time_ns()
        attributes = {f"teletape.{name}": value for name, value in facts.items() if value is not None}
        span = self._tracer.start_span(
            f"{method} {route}",
            trace.parent,
            SpanKind.SERVER,
            {"http.request.method": method, "http.route": route, "http.response.status_code": status, **attributes},
            start_time=end - int(seconds * _NANOSECONDS),
        )
        trace.note_late = partial(self._child, span)
        for ended, run in trace.ran:
            trace.note_late(ended, run)
        if status >= 500:
            span.set_status(StatusCode.ERROR)
        span.end(end)

    def _child(self, parent: Span, end: int, run: Mapping[str, Any]) -> None:
        """Makes the spans of what a process ran: of its wait for its turn, if there was one, and of its work."""
        context = set_span_in_context(parent)
        start = end - int(run["compute_seconds"] * _NANOSECONDS)
        if queued := int(run["queue_seconds"] * _NANOSECONDS):
            self._tracer.start_span("queue", context, start_time=start - queued).end(start)
        attributes = {f"teletape.ops.{name}": count for name, count in run.get("ops", {}).items()}
        name = f"compute {run['method']}"
        self._tracer.start_span(name, context, attributes=attributes, start_time=start).end(end)

    def close(self) -> None:
        """Sends the spans that are left."""
        self._provider.shutdown()
