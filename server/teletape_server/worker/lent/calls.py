"""Calls of published functions that came over lent connections: those that wait are computed together.

Which go together, and whether one waits for others, is decided as for the calls that the server passes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from teletape_engine.errors import DeadlineExceededError, TeletapeError
from teletape_server.handlers.methods import TIME_LIMIT, Result
from teletape_server.handlers.published.batching import MOST_WAIT, Calls, Waiting, batch_limit, late
from teletape_server.worker.answers import Answers
from teletape_server.worker.lent.connection import LentConnection
from teletape_wire.tensors import Buffer

ASK: Final = "published-ask"  #: The method that computes calls.


class LentCall(NamedTuple):
    """A call that was read.

    Attributes:
        connection: Over which it came.
        number: Of the requests that the process has read.
        body: Its body.
        received: When it came.
    """

    connection: LentConnection
    number: int
    body: memoryview
    received: float

    @property
    def limit(self) -> float | None:
        """Seconds from its arrival that its caller gives it; None: it does not say."""
        limit: float | None = self.connection.approval.params.get(TIME_LIMIT)
        return limit


class LentCalls:
    """The calls that wait, and the way to their answers.

    Args:
        run: Runs a request; see `Worker.run_lent`.
        answers: Sends messages to the server, which answers what is refused.
        finish: Answers a call that was computed.
        drop: Closes a connection whose call the server answers.
    """

    def __init__(
        self,
        run: Callable[..., Result],
        answers: Answers,
        finish: Callable[[LentCall, Result], None],
        drop: Callable[[LentConnection], None],
    ) -> None:
        self._run, self._answers, self._finish, self._drop = run, answers, finish, drop
        self._calls: Calls[LentCall] = Calls()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: LentCall) -> None:
        """Takes a call."""
        call.connection.is_waiting = True
        approval = call.connection.approval
        key = approval.params["version"], approval.params["question"]
        self._calls.add(key, Waiting(call, approval.owner, len(call.body), call.received), most=approval.together)

    def compute(self, *, waits: bool = True) -> float | None:
        """Computes the next batch, unless it pays to wait; returns seconds after which to look again; None: none waits.

        Args:
            waits: Whether it may wait.
        """
        now = time.monotonic()
        batch = self._calls.next(now if waits else now + MOST_WAIT)
        if not isinstance(batch, tuple):
            return batch
        key, waiting = batch
        self._compute([call.item for call in waiting], key)
        return 0.0 if self._calls else None

    def compute_all(self) -> None:
        """Computes all that wait."""
        while self._calls:
            self.compute(waits=False)

    def _compute(self, calls: Sequence[LentCall], key: Any) -> None:
        """Computes a batch; if it fails as a whole, call by call."""
        began, live = time.monotonic(), []
        for call in calls:
            call.connection.is_waiting = False
            text = late(began - call.received, call.limit)
            if text is None:
                live.append(call)
            else:
                self._refuse(call, DeadlineExceededError(text, limit=call.limit))
        if not live:
            return
        try:
            result = self._ask(live, began)
        except TeletapeError as error:
            if len(live) == 1:
                self._refuse(live[0], error)
            else:  # one of them may be the reason
                for call in live:
                    self._compute([call], key)
            return
        seconds = time.monotonic() - began
        self._calls.note(key, len(live), seconds)
        self._answer(live, result, began, seconds)

    def _ask(self, calls: Sequence[LentCall], began: float) -> Result:
        first = calls[0]
        params = first.connection.approval.params
        described = [_described(call, began) for call in calls]
        limit = batch_limit([(began - call.received, call.limit) for call in calls])
        body = first.body if len(calls) == 1 else memoryview(b"".join([call.body for call in calls]))
        parameters = {"version": params["version"], "question": params["question"], "calls": described}
        return self._run(first.number, ASK, parameters | limit, "", body, began, None)

    def _answer(self, calls: Sequence[LentCall], result: Result, began: float, seconds: float) -> None:
        """Answers the calls of a batch."""
        is_single, position, size = len(calls) == 1, 0, len(calls)
        content = memoryview(b"" if is_single else b"".join(result.buffers))
        for call, (length, content_type, problem) in zip(calls, result.facts["parts"], strict=True):
            if problem is not None:
                self._answers.refuse_as(-call.number, *problem)
                self._drop(call.connection)
                continue
            buffers: list[Buffer] = result.buffers if is_single else [content[position : position + length]]
            position += length
            facts = {"computed": (began - call.received, seconds, size)}
            seconds, size = 0.0, 0  # each batch is counted with its first answer
            self._finish(call, Result(content_type, buffers, length, facts))

    def _refuse(self, call: LentCall, error: TeletapeError) -> None:
        self._answers.refuse(-call.number, error)
        self._drop(call.connection)


def _described(call: LentCall, began: float) -> tuple[int, str, Any, int]:
    approval = call.connection.approval
    waited = round((began - call.received) * 1e6)
    return len(call.body), approval.content_type, approval.params["call"], waited
