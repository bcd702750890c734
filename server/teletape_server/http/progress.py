"""The progress of a request that runs, and why it waits, as answers and events have them."""

from __future__ import annotations

import math
import os
import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from teletape_server.hosts.protocols import Running
from teletape_server.models.waiting import AheadOf, BoxUse, KeyShare, LongestIdle, Place, Unanswered, Wait
from teletape_server.sessions.entry import SessionEntry
from teletape_server.waiting.keys import Box, KeyUse
from teletape_server.waiting.reasons import MOST_SHOWN, Waiting
from teletape_server.waiting.waits import Waits


class Progress(BaseModel):
    """The progress of a running request. After status 202, GET at the address in Location goes on waiting."""

    status: Literal["running"]
    done: Annotated[int, Field(description="Commands done")]
    total: Annotated[int, Field(description="Commands in all; 0: not known yet")]
    iteration: Annotated[int, Field(description="Iterations done by the loop that runs now; of training: steps")]
    iterations: Annotated[int, Field(description="Iterations of that loop in all; 0: not known")]
    loss: Annotated[
        float | Literal["NaN", "Infinity", "-Infinity"] | None,
        Field(description="Of training: that of the last step of which it is known"),
    ] = None
    has_ended: Annotated[
        bool, Field(description="Whether the request has run, and its answer waits for what the session runs now")
    ] = False
    wait: Annotated[Wait | None, Field(description="Why it waits, or what it shares while it runs")] = None

    @classmethod
    def of(cls, running: Running | None, wait: Wait | None = None) -> Progress:
        """Returns the progress of that request; None: its session starts."""
        if running is None:
            return cls(status="running", done=0, total=0, iteration=0, iterations=0, wait=wait)
        return cls(
            status="running",
            done=running.done,
            total=running.total,
            iteration=running.iteration,
            iterations=running.iterations,
            loss=_number(running.loss),
            has_ended=running.has_ended,
            wait=wait,
        )


def _number(loss: float | None) -> float | Literal["NaN", "Infinity", "-Infinity"] | None:
    """Returns a number as JSON has it: NaN and infinities are strings."""
    if loss is None or math.isfinite(loss):
        return loss
    return "NaN" if math.isnan(loss) else "Infinity" if loss > 0 else "-Infinity"


def place_of(waits: Waits, owner: str, running: Running | None, entry: SessionEntry | None = None) -> Place:
    """Returns a request's place, and why it waits; the arguments are those of `Waits.of`."""
    return Place(**_place(waits.of(owner, running, entry)))


def wait_of(waits: Waits, owner: str, running: Running | None, entry: SessionEntry | None = None) -> Wait:
    """Returns the same with who holds what it waits for."""
    return described_wait(waits, waits.of(owner, running, entry))


def described_wait(waits: Waits, waiting: Waiting) -> Wait:
    """Returns a place with what the keys have."""
    place, box = _place(waiting), waits.box()
    return Wait(**place, keys=[_share(key) for key in [*box.keys.values()][:MOST_SHOWN]], longest_idle=_idle(box))


def _place(waiting: Waiting) -> dict[str, Any]:
    return {
        "position": waiting.position,
        "ahead": [
            AheadOf(
                owner=item.owner,
                session=item.session,
                running_seconds=_rounded(item.running_seconds),
                seconds_left=_rounded(item.seconds_left),
            )
            for item in waiting.ahead
        ],
        "starts_in_seconds": _rounded(waiting.starts_in),
        "reason": waiting.reason,
    }


def use_of(waits: Waits, owner: str) -> BoxUse:
    """Returns who uses the server now, and why the requests of an owner wait."""
    box, runs, memory, now = waits.box(), waits.runs, waits.memory(), time.monotonic()
    requests = [
        Unanswered(
            session=None if entry is None or entry.record.is_run else entry.id,
            seconds=None if running is None else round(now - running.began, 1),
            wait=place_of(waits, owner, running, entry),
        )
        for running, entry in waits.unanswered(owner)
    ]
    return BoxUse(
        owner=owner,
        keys=[_share(key) for key in box.keys.values()],
        longest_idle=_idle(box),
        runs=runs.counts[0],
        waiting_runs=runs.counts[1],
        places=runs.places,
        requests=requests,
        memory_free=memory.free,
        memory_promised=memory.promised,
        processors=len(os.sched_getaffinity(0)),
    )


def _share(key: KeyUse) -> KeyShare:
    return KeyShare(
        owner=key.owner,
        sessions=key.sessions,
        bytes_in_use=key.bytes,
        bytes_reserved=key.reserved,
        computing=key.computing,
        waiting=key.waiting,
        share=key.share,
    )


def _idle(box: Box) -> LongestIdle | None:
    if box.idle is None:
        return None
    return LongestIdle(
        owner=box.idle.owner, session=box.idle.id, idle_seconds=box.idle.seconds, bytes_in_use=box.idle.bytes
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
