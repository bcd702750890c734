"""What a host can be asked: functions by name, run in the worker process beside the session.

A module of kinds registers its functions with `@kind`; `worker.KINDS_MODULES` names the modules to load.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import teletape_wire as wire
from teletape_engine.recording.progress import Progress
from teletape_engine.session.session import Session
from teletape_wire.tensors import Buffer


@dataclass(frozen=True)
class Request:
    """What a kind's function gets.

    Attributes:
        params: Small JSON-able values that the front made of path, query and headers.
        content_type: Of the body, without parameters.
        body: The request's bytes, read only; arrays made as views of it keep it alive.
        adopts: Tensors shorter than this are to be copied out of the body, longer ones kept as views.
        cancelled: Whether the caller wants it stopped; to be asked between steps.
        progress: To be told how far it is.
        received: When the front took it up, on the monotonic clock.
    """

    params: Mapping[str, Any]
    content_type: str
    body: memoryview
    adopts: int
    cancelled: Callable[[], bool]
    progress: Progress
    received: float
    started: float = field(default_factory=time.monotonic)

    def json(self) -> Any:
        """The body as JSON; {} where there is none.

        Raises:
            MalformedJsonError: It is no JSON.
        """
        return wire.parse_json(self.body) if len(self.body) else {}


@dataclass(frozen=True)
class Result:
    """What a kind's function gives.

    Attributes:
        content_type: Of the body.
        buffers: The body, in parts.
        length: Bytes in all.
        facts: For the front.
    """

    content_type: str
    buffers: list[Buffer]
    length: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def json_result(value: Any, **facts: Any) -> Result:
    """A result whose body is `value` as JSON."""
    body = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    return Result(wire.JSON_TYPE, [body], len(body), facts)


Function: TypeAlias = Callable[[Session, Request], Result]
KINDS: Final[dict[str, Function]] = {}


def kind(name: str) -> Callable[[Function], Function]:
    """Registers the function that answers requests of this kind."""

    def register(function: Function) -> Function:
        if name in KINDS:
            raise TypeError(f"the kind {name!r} is registered twice")
        KINDS[name] = function
        return function

    return register
