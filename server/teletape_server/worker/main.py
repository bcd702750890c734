"""The worker process: one session, its requests one after the other, ended with the server.

A reader thread takes messages, so that a cancel or the server's end is seen while the session computes. Started from a
forkserver that has this module loaded.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from teletape_engine.errors import DeadlineExceededError, InternalError, ResourceExhaustedError, TeletapeError
from teletape_engine.recording.progress import Progress
from teletape_engine.session.session import Session
from teletape_server.hosts.channel import INLINE, Channel
from teletape_server.worker.methods import KINDS, Request, Result

KINDS_MODULES: Final = (
    "teletape_server.worker.batches",
    *(
        f"teletape_server.worker.handlers.{name}"
        for name in (
            "variables",
            "tensors",
            "tapes",
            "questions",
            "explain",
            "pictures",
            "checks",
            "ops",
            "functions",
            "loops",
            "run",
        )
    ),
)
for _module in KINDS_MODULES:
    importlib.import_module(_module)

_PROGRESS_SECONDS: Final = 0.1
_ADOPTED: Final = 64 << 10  # bytes from which a tensor stays in the body's memory
_MESSAGE_LENGTH: Final = 4000  # characters of an error's message that travel
_SPARE: Final = 512 << 20  # address space beside arrays and bodies: the interpreter, scipy, threads' stacks


def main(sock: socket.socket) -> None:
    """The process's whole life. Messages in: ["open", {...}], ["do", ...], ["cancel", request]."""
    # Ctrl-C reaches the whole group: it is the server that ends its workers, by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # A batch of 100,000 commands is 300,000 new objects and no garbage; the default thresholds double its cost.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    Worker(Channel(sock)).serve()


class Worker:
    """The loop over requests, and what it keeps between them."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._todo: queue.SimpleQueue[tuple[Any, memoryview | None]] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._session: Session | None = None
        self._time_limit = float("inf")
        self._latest = 0  # the request that was answered last
        self._replays = Replays()

    def serve(self) -> None:
        """Answers requests until the server is gone."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        while True:
            head, body = self._todo.get()
            if head[0] == "open":
                self._open(head[1])
            else:
                self._answer(head, body)
            del head, body  # or the next wait would hold the last body's memory

    def _read(self) -> None:
        while True:
            try:
                message = self._channel.receive()
            except OSError:
                message = None
            if message is None:
                os._exit(0)  # at once: what runs has nobody to answer to
            head, body = message
            if head[0] == "cancel":
                if head[1] > self._latest:
                    self._cancelled.add(head[1])
            else:
                self._todo.put((head, body))
            del message, head, body

    def _open(self, start: Mapping[str, Any]) -> None:
        try:
            if start["device"] == "cpu":  # CUDA reserves address space by the terabyte
                _cap(2 * start["memory_limit"] + 3 * start["max_body"] + _SPARE)
            self._session = Session(
                start["device"], memory_limit=start["memory_limit"], most_iterations=start["max_iterations"]
            )
            self._time_limit = start["time_limit"]
            self._send(("ready",))
        except TeletapeError as error:
            self._send(("failed", error.code, error.message, error.details))
        except Exception as error:
            traceback.print_exc()
            self._send(("failed", "internal", f"device {start['device']}: {type(error).__name__}: {error}", {}))

    def _answer(self, head: Any, body: memoryview | None) -> None:
        _, number, kind, params, content_type, has_body, received = head
        try:
            if has_body and body is None:
                raise ResourceExhaustedError("the session's process has no room for the request's body")
            content = memoryview(b"") if body is None else body
            request = Request(
                params,
                content_type,
                content,
                # A small tensor must not keep a large body alive.
                sys.maxsize if len(content) <= INLINE else max(_ADOPTED, len(content) // 8),
                self._canceller(number),
                self._reporter(number),
                received,
            )
            self._reply(number, self._replays.once(params.get("idempotency_key"), kind, request, self._run))
        # Each error is used up in its clause: kept in a variable it would keep this frame, and with it the body.
        except TeletapeError as error:
            self._refuse(number, error)
        except MemoryError:
            self._refuse(number, ResourceExhaustedError("the session's process has reached its memory limit"))
        except Exception as error:
            traceback.print_exc()
            self._refuse(number, InternalError(f"{kind}: {type(error).__name__}: {error}"))
        finally:
            self._latest = number
            self._cancelled = {one for one in self._cancelled if one > number}

    def _run(self, kind: str, request: Request) -> Result:
        assert self._session is not None, "a request came before the session was opened"
        return KINDS[kind](self._session, request)

    def _reply(self, number: int, result: Result) -> None:
        try:
            loan = self._channel.loan(result.length)
        except OSError:
            raise ResourceExhaustedError(f"no memory for an answer of {result.length} bytes") from None
        at = 0
        for buffer in result.buffers:
            loan.view[at : at + len(buffer)] = buffer
            at += len(buffer)
        self._send(("reply", number, None, result.content_type, result.facts), loan)

    def _refuse(self, number: int, error: TeletapeError) -> None:
        facts = {"message": error.message[:_MESSAGE_LENGTH], "details": error.details}
        if len(repr(error.details)) > _MESSAGE_LENGTH:
            facts["details"] = {}
        self._send(("reply", number, error.code, "", facts))

    def _canceller(self, number: int) -> Callable[[], bool]:
        ends = time.monotonic() + self._time_limit

        def cancelled() -> bool:
            if time.monotonic() > ends:
                raise DeadlineExceededError(
                    f"it has computed for {self._time_limit:g} seconds, as long as a request may here: ask for less at "
                    "a time",
                    limit=self._time_limit,
                )
            return number in self._cancelled

        return cancelled

    def _reporter(self, number: int) -> Progress:
        last = time.monotonic()

        def report(done: int, total: int, iteration: int = 0, iterations: int = 0) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _PROGRESS_SECONDS:
                last = now
                self._send(("progress", number, done, total, iteration, iterations))

        return report

    def _send(self, head: Any, loan: Any = None) -> None:
        self._channel.transmit(*self._channel.encode(head, loan))


class Refusal(NamedTuple):
    """What is kept of an error: without its traceback, which would keep the request."""

    cls: type[TeletapeError]
    message: str
    details: Mapping[str, Any]


class Replays:
    """Answers kept under an Idempotency-Key, so that a retry gets the first one again.

    The newest are kept: at most 64, and 64 MiB of them, but always the last.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[bytes, Result | Refusal]] = OrderedDict()

    def once(self, key: str | None, kind: str, request: Request, run: Any) -> Result:
        """Runs the request unless its key was seen.

        Raises:
            TeletapeError: As the first run did; or the key belongs to another request.
        """
        if key is None:
            return run(kind, request)  # type: ignore[no-any-return]  # `run` is Worker._run
        digest = self._digest(kind, request)
        if key in self._kept:
            known, outcome = self._kept[key]
            if known != digest:
                raise IdempotencyConflictError(
                    f"the Idempotency-Key {key!r} was used for another request: take a new key for a new request"
                )
            if isinstance(outcome, Refusal):
                raise outcome.cls(outcome.message, **outcome.details)
            return outcome
        try:
            result: Result = run(kind, request)
        except TeletapeError as error:
            self._keep(key, digest, Refusal(type(error), error.message, error.details))
            raise
        # In bytes: the arrays may be released; what was said is not.
        result = Result(result.content_type, [b"".join(result.buffers)], result.length, result.facts)
        self._keep(key, digest, result)
        return result

    def _keep(self, key: str, digest: bytes, outcome: Result | Refusal) -> None:
        self._kept[key] = digest, outcome
        while len(self._kept) > 64 or (len(self._kept) > 1 and self._bytes() > 64 << 20):
            self._kept.popitem(last=False)

    def _bytes(self) -> int:
        return sum(one.length for _, one in self._kept.values() if isinstance(one, Result))

    @staticmethod
    def _digest(kind: str, request: Request) -> bytes:
        given = {name: value for name, value in request.params.items() if name not in ("now", "terms")}
        text = repr((kind, request.content_type, sorted(given.items())))
        return hashlib.blake2b(request.body, key=hashlib.sha256(text.encode()).digest()).digest()


class IdempotencyConflictError(TeletapeError):
    """The key was used for another request."""

    code = "idempotency_conflict"


def devices(sock: socket.socket) -> None:
    """A short-lived process's whole life: tells the devices of this machine. Only it loads a GPU's driver."""
    from teletape_engine import arrays

    channel = Channel(sock)
    channel.transmit(*channel.encode(arrays.devices()))


def _cap(more: int) -> None:
    """Bounds the address space to what is used now and `more` bytes: a backstop behind the session's own limit."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
