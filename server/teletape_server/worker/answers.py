"""What a session's process sends to the server: replies, refusals, progress, and why it is about to end."""

from __future__ import annotations

import contextlib
import functools
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from teletape_engine.errors import ResourceExhaustedError, TeletapeError
from teletape_server.handlers.execution import ops_of
from teletape_server.handlers.methods import Reporter, Request, Result
from teletape_server.ipc.channel import INLINE, Channel
from teletape_server.ipc.shared_memory import MessageBody
from teletape_server.worker.gate import Gate

_PROGRESS_SECONDS: Final = 0.1
_MESSAGE_LENGTH: Final = 4000  # characters of an error's message that are sent
_TRACEBACK_LENGTH: Final = 16_000  # characters of a defect's traceback that are sent, its end


class Answers:
    """Sends messages; numbers are those of requests, negative for those that the process has read itself.

    Args:
        channel: The connection to the server.
        leave: Ends the session, since the server has gone.

    Attributes:
        gate: Knows when an answer may leave; None: at once.
    """

    def __init__(self, channel: Channel, leave: Callable[[], NoReturn]) -> None:
        self._channel, self._leave = channel, leave
        self.gate: Gate | None = None

    def send(self, head: Any, body: MessageBody | None = None) -> None:
        """Sends a message, once all that it may tell of is as safe as the session's level says; in any thread."""
        self._send(self._channel.encode(head, body))

    def _send(self, message: tuple[bytes, list[int]]) -> None:
        if self.gate is None:
            try:
                self._channel.transmit(*message)
            except (BrokenPipeError, ConnectionResetError):
                self._leave()
        else:
            self.gate.pass_on(functools.partial(self._transmit, *message))

    def _transmit(self, data: bytes, files: list[int]) -> None:
        """Sends a message in any thread; that the server has gone is seen by the one that reads."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._channel.transmit(data, files)

    # ------------------------------------------------------------------------------------------------------- requests
    def reply(self, number: int, result: Result) -> None:
        """Sends the result of a request.

        Raises:
            ResourceExhaustedError: There is too little memory for it.
        """
        try:
            body = self._channel.written(result.buffers)
        except OSError:
            raise ResourceExhaustedError(f"too little memory for an answer of {result.length} bytes") from None
        self.send(("reply", number, None, result.content_type, result.facts), body)

    def refuse(self, number: int, error: TeletapeError, *, headers: Mapping[str, str] | None = None) -> None:
        """Sends the error that a request has met."""
        self.refuse_as(number, error.code, error.message, error.details, headers)

    def refuse_as(
        self, number: int, code: str, message: str, details: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        """Sends the code, the text and the details of an error that a request has met."""
        facts = {"message": message[:_MESSAGE_LENGTH], "details": details, "headers": headers}
        if len(repr(details)) > _MESSAGE_LENGTH:
            facts["details"] = {}
        self.send(("reply", number, code, "", facts))

    def reporter(self, number: int) -> Reporter:
        """Returns what sends the progress of a request."""
        last = time.monotonic()

        def report(
            done: int, total: int, iteration: int = 0, iterations: int = 0, *, loss: float | None = None
        ) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _PROGRESS_SECONDS:
                last = now
                self.send(("progress", number, done, total, iteration, iterations, loss))

        return report

    # ----------------------------------------------------------------------------------------------- lent connections
    def may_leave(self) -> bool:
        """Returns whether the answer to what has run may leave now."""
        return self.gate is None or self.gate.is_open

    def leave_later(self, send: Callable[[], None]) -> None:
        """Calls a function as soon as that is so; in another thread."""
        assert self.gate is not None
        self.gate.pass_on(send)

    def pass_on(self, number: int, result: Result) -> None:
        """Gives the result of a request to the server, which answers; a small one in any thread."""
        if result.length <= INLINE:
            body = b"".join(result.buffers)
            message = ("reply", number, None, result.content_type, result.facts)
            self._send(self._channel.encode_small(message, body))
            return
        try:
            self.reply(number, result)
        except TeletapeError as error:
            self.refuse(number, error)

    def return_loan(self, id: int, unsent: bytes) -> None:
        """Returns a connection to the server, with what the caller has not taken yet of an answer; in any thread."""
        self._send(self._channel.encode_small(("returned", id, unsent)))

    # -------------------------------------------------------------------------------------------------------- defects
    def say_defect(self, number: int) -> None:
        """Sends the traceback of the exception that is handled: the server logs it with the session and the request."""
        self.send(("defect", number, traceback.format_exc()[-_TRACEBACK_LENGTH:]))

    def say_run(self, number: int, method: str, request: Request, seconds: float, *, is_slow: bool) -> None:
        """Says that a request ran for some seconds, and what its batch names: for the log if it is slow, or a trace."""
        waited = max(request.started - request.received, 0.0)
        facts = {"method": method, "compute_seconds": round(seconds, 6), "queue_seconds": round(waited, 6)}
        self.send(("ran", number, facts | {"ops": ops_of(request.batch)}, is_slow))

    def say_broken(self, why: str, *, may_be_by_request: bool = True) -> None:
        """Says why the process is about to end, and whether a request may be the cause; in any thread."""
        with contextlib.suppress(OSError):
            self._channel.transmit(*self._channel.encode_small(("broken", why, may_be_by_request)))
