"""Spans of OpenTelemetry, in a program that records some: each wait for the server is one, with the line that waits.

The server's own spans are below it. Any other program pays for one lookup: whoever records spans has imported the API.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from teletape.core.program.call_site import call_site_of, line_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_API: Final = "opentelemetry.trace"


class WaitSpan:
    """The span of a wait, which has begun.

    Args:
        span: The span.
        headers: What a request says of it to the server.

    Attributes:
        headers: The same.
    """

    __slots__ = ("_span", "headers")

    def __init__(self, span: Span, headers: Mapping[str, str]) -> None:
        self._span, self.headers = span, headers

    def end(self, error: BaseException | None) -> None:
        """Ends it; `error`: why there is no answer, if there is none."""
        if error is not None:
            self._span.record_exception(error)
        self._span.end()


def begin_wait(session: str) -> WaitSpan | None:
    """Begins the span of a wait for a session's answer, in the thread that waits.

    Returns:
        The span; None: the program's present span is not recorded, or there is none.
    """
    api: Any = sys.modules.get(_API)
    if api is None or not api.get_current_span().is_recording():
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    where = call_site_of(sys._getframe(1))
    attributes = {
        "teletape.session": session,
        "code.file.path": where[0].co_filename,
        "code.line.number": line_of(where),
        "code.function.name": where[0].co_qualname,
    }
    tracer = api.get_tracer("teletape")
    span = tracer.start_span("teletape wait", kind=api.SpanKind.CLIENT, attributes=attributes)
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers, api.set_span_in_context(span))
    return WaitSpan(span, headers)


def lines_of(headers: Mapping[str, str]) -> bytes:
    """Returns headers as `FrameSocket.post` takes them: each after a line end."""
    return b"".join(f"\r\n{name}: {value}".encode("latin-1") for name, value in headers.items())
