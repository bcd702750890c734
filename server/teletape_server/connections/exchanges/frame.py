"""One frame or plain request: its body goes into memory of the session's process, and the reply becomes the response.

It takes the place of the application's cycle (`cycle`). What may be refused is checked by the same functions as in
the framework's routes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.connections.caller_memory import ANSWER_HEADER, FrameMemory
from teletape_server.connections.heads import FrameHead, FrameHeads
from teletape_server.guard import new_request_id
from teletape_server.hosts.loans import LentRequest
from teletape_server.hosts.protocols import Running
from teletape_server.hosts.running import Joinable, Trace, begin_request
from teletape_server.http.answers import answer, still_running
from teletape_server.http.frames import FrameBatch
from teletape_server.http.plain_requests import PlainRequest
from teletape_server.http.progress import wait_of
from teletape_server.middleware.compression import INLINE, compressed
from teletape_server.problems import error_response
from teletape_server.sessions.counted_bodies import CountedBody, EarlyBody
from teletape_server.sessions.registry import SessionEntry

_PIECE: Final = 4 << 20  # bytes that are copied at once
_LARGE: Final = 1 << 20  # bytes from which an answer is put into the caller's memory
_NOTHING: Final = memoryview(b"")


class FrameExchange:
    """A frame that is received, runs, and is answered.

    Args:
        heads: Knows the server's state.
        head: The frame's head.
        session: The session that it is for; None: it gets one when its body is there.
        length: Bytes of its body, and of the parts that are in the caller's memory.
        respond: Called with the response, at most once: not if the caller has left before.
        memory: Of the caller: where parts of the body are, and room for the answer.

    Attributes:
        response_started, response_complete, disconnected, keep_alive: As of `Cycle`.
        head: The frame's head.
        request_id: The request's id.
        trace: What its spans are made of; None: its caller does not trace it.
        began, seconds: When its head was read, by `time.monotonic`; from then to the beginning of its answer.
    """

    def __init__(
        self,
        heads: FrameHeads,
        head: FrameHead,
        session: SessionEntry | None,
        length: int,
        respond: Callable[[FrameExchange, Response], None],
        memory: FrameMemory | None = None,
    ) -> None:
        self.response_started = self.response_complete = self.disconnected = False
        self.keep_alive = head.keep_alive
        self._loop = asyncio.get_running_loop()
        self.began, self.seconds = time.monotonic(), 0.0
        self.head, self._session = head, session
        self._heads, self._length, self._respond = heads, length, respond
        self.request_id = head.request_id or new_request_id()
        self.trace = None if head.parent is None else Trace(head.parent)
        self._memory, self._beginning = memory, b""
        self._batch: FrameBatch | PlainRequest | None = None
        self._is_refused = self._joins = False
        self._body: CountedBody | EarlyBody | None = None
        self._position = 0  # in the body's memory
        self._running: Running | None = None
        self._earlier: Joinable | None = None  # the same frame, which ran when this one began to come
        self._patience: asyncio.TimerHandle | None = None
        self._waking: asyncio.Task[Any] | None = None

    @property
    def session(self) -> SessionEntry:
        """The session that the frame is for."""
        assert self._session is not None, "it has none yet"
        return self._session

    # ------------------------------------------------------------------------------------------------------ receiving
    @property
    def missing(self) -> memoryview:
        """The memory for the rest of the body; empty if it is not known yet, or the rest is not needed."""
        return _NOTHING if self._body is None or self.uses_memory else self._body.view[self._position :]

    @property
    def uses_memory(self) -> bool:
        """Whether the request names memory of the caller."""
        return self._memory is not None

    def receive(self, body: bytes | memoryview) -> None:
        """Takes the next part of the body."""
        data = memoryview(body)
        if self._body is not None:
            self._place(data)
        elif self._batch is None and not self._is_refused:
            beginning = self._beginning + data if self._beginning else data
            if self.head.plain is not None or len(beginning) >= wire.PREFIX_LENGTH:
                self._begin(memoryview(beginning))
            else:
                self._beginning = bytes(beginning)

    def _place(self, data: memoryview) -> None:
        """Writes bytes of the body to where they belong: what is in the caller's memory is left out."""
        assert self._body is not None
        for part in () if self._memory is None else self._memory.parts:
            before = part.position - self._position
            if before < 0:
                continue
            if len(data) < before:
                break
            self._body.view[self._position : part.position] = data[:before]
            data, self._position = data[before:], part.position + part.memory.nbytes
        self._body.view[self._position : self._position + len(data)] = data
        self._position += len(data)

    def received(self, count: int) -> None:
        """Notes that `count` bytes were written into the missing memory."""
        self._position += count

    def _begin(self, beginning: memoryview) -> None:
        """Finds what runs already, or takes memory for the body."""
        try:
            batch = self._request_of(beginning)
            self._earlier = None if self._session is None else batch.running_in(self._session)
            if self._earlier is None:
                self._body = self._room_for_body()
                self._place(beginning)
            self._batch, self._beginning = batch, b""
        except Exception as error:
            # The answer begins after what is here of the body: if that is all of it, the connection can stay open.
            self._is_refused = True
            self._loop.call_soon(self._fail, error)

    def _request_of(self, beginning: memoryview | bytes) -> FrameBatch | PlainRequest:
        most = self._heads.settings.max_header
        return self.head.plain or FrameBatch.read(beginning, self.head.params, length=self._length, max_header=most)

    def _room_for_body(self) -> CountedBody | EarlyBody:
        return self._heads.registry.body_buffer(self.session, self._length)

    def end_of_body(self) -> None:
        """Submits the frame; its retry waits for it."""
        if self._batch is None:  # it is refused
            return
        if self._body is None or self._memory is None:
            self._submit()
            return
        view = self._body.view
        parts = [(view[part.position : part.position + part.memory.nbytes], part.memory) for part in self._memory.parts]
        self._copy(parts, self._submit)

    def _copy(self, copies: list[tuple[memoryview, memoryview]], then: Callable[[], None]) -> None:
        """Copies memory (to, from) piece by piece: other connections get their turn between two."""
        if self.disconnected:
            return
        copies = [pair for pair in copies if pair[0].nbytes]
        if not copies:
            then()
            return
        target, source = copies[0]
        target[:_PIECE] = source[:_PIECE]
        copies[0] = target[_PIECE:], source[_PIECE:]
        self._loop.call_soon(self._copy, copies, then)

    def _on_awake(self, waking: asyncio.Future[Any]) -> None:
        error = None if waking.cancelled() else waking.exception()
        if isinstance(error, Exception):
            self._fail(error)
        elif not (waking.cancelled() or self.disconnected):
            self._submit()

    def _submit(self) -> None:
        assert self._batch is not None
        if self.session.host is None:  # the one that has begun to receive the body has ended
            self._waking = self._loop.create_task(self.session.wake())
            self._waking.add_done_callback(self._on_awake)
            return
        try:
            body, self._body = self._body, None
            assert not isinstance(body, EarlyBody), "a session has memory for it"
            begin_request(self.request_id, self.trace)
            self._running, self._joins = self._batch.submit(self._heads.registry, self.session, body, self._earlier)
        except Exception as error:
            self._fail(error)
            return
        self._wait(self._batch, self._running, self._heads.settings.patience)

    def go_on(self, request: LentRequest) -> None:
        """Answers a request that its session's process has read, and that was reclaimed as it ran."""
        self.began -= request.seconds
        self._batch, self._running = self._request_of(request.prefix), request.running
        request.running.request_id = self.request_id
        self._batch.note(self.session, request.running)
        self._wait(self._batch, request.running, max(self._heads.settings.patience - request.seconds, 0.0))

    def _wait(self, batch: FrameBatch | PlainRequest, running: Running, patience: float) -> None:
        if batch.is_retriable:
            self._patience = self._loop.call_later(patience, self._on_patience)
        running.reply.add_done_callback(self._on_reply)

    # ------------------------------------------------------------------------------------------------------ answering
    def _on_patience(self) -> None:
        running = self._running
        assert running is not None
        running.reply.remove_done_callback(self._on_reply)
        id = self._heads.long_requests.of_session(self.session, running, 200)
        self._answer(
            still_running(running, id, wait=wait_of(self._heads.waits, self.head.owner, running, self.session))
        )

    def _on_reply(self, _: asyncio.Future[Any]) -> None:
        if self._running is None:  # the caller has left after the reply came
            return
        try:
            status = 200 if self.head.plain is None else self.head.plain.status
            response = answer(self._heads.registry, self.session, self._running, status=status, is_replayed=self._joins)
        except Exception as error:
            self._fail(error)
        else:
            self._put(response)

    def _put(self, response: Response) -> None:
        """Puts a large answer into the caller's memory, if there is room for it."""
        body = memoryview(response.body)
        room = _NOTHING if self._memory is None else self._memory.room
        if response.status_code != 200 or not _LARGE <= body.nbytes <= room.nbytes:
            self._answer(response)
            return
        if self._patience is not None:
            self._patience.cancel()
        headers = {name: value for name, value in response.headers.items() if name != "content-length"}
        headers[ANSWER_HEADER.decode()] = str(body.nbytes)
        short = Response(b"", 200, headers)
        self._copy([(room[: body.nbytes], body)], lambda: self._answer(short))

    def _fail(self, error: Exception) -> None:
        if not self.disconnected:
            self._answer(error_response(error, self.request_id))

    def _answer(self, response: Response) -> None:
        self._release()
        self._heads.complete(response, self.head, self._session, self.request_id)
        if len(response.body) > self.head.uncompressed:
            self._compress(response)
        else:
            self._respond(self, response)

    def _compress(self, response: Response) -> None:
        """Compresses the text of an answer, a large one in a thread, and responds with that."""

        def respond(body: bytes) -> None:
            if not self.disconnected:
                headers = MutableHeaders(raw=response.raw_headers)
                headers["Content-Encoding"], headers["Content-Length"] = "gzip", str(len(body))
                response.body = body
                self._respond(self, response)

        if len(response.body) <= INLINE:
            respond(compressed(response.body))
        else:
            work = self._loop.run_in_executor(None, compressed, response.body)
            work.add_done_callback(lambda done: respond(done.result()))

    def abandon(self) -> None:
        """Ends the exchange of a caller that has left: a frame that runs goes on, one that is received does not run."""
        self.disconnected = True
        if self._running is not None:
            self._running.reply.remove_done_callback(self._on_reply)
        self._release()

    def _release(self) -> None:
        """Lets go of all memory: the connection keeps this object until its next request."""
        if self._body is not None:
            self._body.discard()
        if self._patience is not None:
            self._patience.cancel()
        self._body = self._running = self._patience = self._memory = self._earlier = None
        self._beginning = b""
