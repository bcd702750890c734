"""Plain requests that belong to no session when they come: for the server's health, a published function, a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from starlette.responses import Response

import teletape_wire as wire
from teletape_server.connections.exchanges.frame import FrameExchange
from teletape_server.connections.heads import FrameHead, FrameHeads
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.hosts.loans import LentRequest
from teletape_server.hosts.protocols import Reply
from teletape_server.hosts.running import begin_request
from teletape_server.http.answers import LargeResponse
from teletape_server.http.schemas import Health
from teletape_server.models.published.contract import Name, Published
from teletape_server.problems import Problem
from teletape_server.published.calls import Call, Part
from teletape_server.sessions.counted_bodies import EarlyBody

_HEALTH: Final = Health(status="ok").model_dump_json().encode()


class HealthExchange(FrameExchange):
    """A plain request for the server's health."""

    def end_of_body(self) -> None:
        """Answers at once."""
        self._answer(Response(_HEALTH, media_type=wire.JSON_TYPE))


class PublishedExchange(FrameExchange):
    """A plain question to a published function: its body waits here with those that are computed with it.

    Args:
        heads, head, length, respond: As of `FrameExchange`.
        name, published: The function, and its version.

    Attributes:
        compute_seconds: That the call has taken of its batch.
    """

    def __init__(
        self,
        heads: FrameHeads,
        head: FrameHead,
        name: Name,
        published: Published,
        length: int,
        respond: Callable[[FrameExchange, Response], None],
    ) -> None:
        super().__init__(heads, head, None, length, respond)
        self._name, self._published = name, published
        self._leave: Callable[[], None] | None = None
        self.compute_seconds = 0.0
        self._copy_of_body = b""  # of a call that a process has read

    def go_on(self, request: LentRequest) -> None:
        """Answers a call that a process has read itself; see `FrameExchange`."""
        self.began -= request.seconds
        self._running, self._copy_of_body = request.running, request.body
        request.running.request_id = self.request_id
        request.running.reply.add_done_callback(self._on_reply)

    def _on_reply(self, future: asyncio.Future[Reply]) -> None:
        plain = self.head.plain
        assert plain is not None
        if future.exception():  # its process has ended, and nothing of the call stays: another one does it
            if not self.disconnected:
                self._running = None
                self._ask(self._copy_of_body, time.monotonic() - self.began, is_again=True)
            return
        reply = future.result()
        self._heads.pool.lent.note_passed_on(self._name.name, plain.operation, reply)
        if self.disconnected:
            return
        if reply.code is not None:
            self._fail(Problem(reply.code, reply.facts["message"], **reply.facts["details"]))
        else:
            self._answer(LargeResponse(reply.body, 200, media_type=reply.content_type))

    def _room_for_body(self) -> EarlyBody:
        return EarlyBody(self._length, self._heads.registry.bodies.admit(self.head.owner, self._length))

    def _submit(self) -> None:
        assert self._body is not None
        self._ask(self._body.view)

    def _ask(self, body: bytes | memoryview, seconds: float = 0.0, *, is_again: bool = False) -> None:
        """Submits the call, which came some seconds ago."""
        head, plain = self.head, self.head.plain
        assert plain is not None
        reply: asyncio.Future[Part] = self._loop.create_future()
        limit = plain.params.get(TIME_LIMIT)
        limit = None if limit is None else limit - seconds
        content_type = head.params["content_type"]
        name, version, question = self._name.name, self._published, plain.operation
        call = Call(head.owner, name, version, question, plain.params, content_type, body, limit, reply)
        call.is_again = is_again
        try:
            self._leave = self._heads.pool.submit(call)
        except Exception as error:
            self._fail(error)
        else:
            reply.add_done_callback(self._on_part)

    def _on_part(self, reply: asyncio.Future[Part]) -> None:
        self._leave = None
        if self.disconnected:
            return
        try:
            part = reply.result()
        except Exception as error:
            self._fail(error)
        else:
            self.compute_seconds = part.seconds
            if self.trace is not None:
                self.trace.note({"method": "published", "compute_seconds": part.seconds, "queue_seconds": 0.0})
            self._answer(LargeResponse(part.body, 200, media_type=part.content_type))

    def abandon(self) -> None:
        """Ends the exchange of a caller that has left; see `FrameExchange`."""
        super().abandon()
        if self._leave is not None:
            self._leave()


class RunExchange(FrameExchange):
    """A plain request without a session: its body waits here for its turn, and it ends if its caller leaves."""

    _work: asyncio.Task[None] | None = None

    def go_on(self, request: LentRequest) -> None:
        """Answers a request that a process has read itself; see `FrameExchange`."""
        self._heads.registry.note_run()
        self.began -= request.seconds
        self._running = request.running
        request.running.request_id = self.request_id
        self._work = self._loop.create_task(self._end())

    def _room_for_body(self) -> EarlyBody:
        return EarlyBody(self._length, self._heads.registry.bodies.admit(self.head.owner, self._length))

    def _submit(self) -> None:
        self._work = self._loop.create_task(self._run())

    async def _run(self) -> None:
        begin_request(self.request_id, self.trace)
        registry, plain = self._heads.registry, self.head.plain
        early, self._body = self._body, None
        assert plain is not None
        assert early is not None
        try:
            try:
                self._session = await registry.begin_run(
                    self.head.owner, self.head.account, device=self._heads.settings.device
                )
            finally:
                early.discard()
        except Exception as error:
            self._fail(error)
            return
        try:
            body = registry.body_buffer(self._session, self._length)
            body.view[:] = early.view
            self._running, _ = plain.submit(registry, self._session, body)
        except Exception as error:
            self._fail(error)
        await self._end()

    async def _end(self) -> None:
        """Answers when there is a reply, and ends the use of the session."""
        begin_request(self.request_id, self.trace)
        try:
            if self._running is not None:
                await asyncio.wait([self._running.reply])
                self._on_reply(self._running.reply)
        except Exception as error:
            self._fail(error)
        finally:
            await self._heads.registry.end_run(self.session)

    def abandon(self) -> None:
        """Ends the exchange of a caller that has left, and its work; see `FrameExchange`."""
        super().abandon()
        if self._work is not None:
            self._work.cancel()
