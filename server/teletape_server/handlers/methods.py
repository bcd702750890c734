"""The methods of a session's process: functions by name, which the front calls with a request.

`@method(name)` registers a function. The functions are in `batches` and `handlers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Batch, Id
from teletape_engine.commands.results import Answer
from teletape_engine.commands.structure import Repetition
from teletape_engine.recording.progress import TimeBudget
from teletape_engine.records import record
from teletape_engine.session.session import Session
from teletape_server.tensor_files.answers import answer_file
from teletape_server.tensor_files.errors import BodyTooLargeError
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.tensors import Buffer

TIME_LIMIT: Final = "time_limit"  #: The parameter of a request whose caller gives it some seconds.
TRACED: Final = "traced"  #: The parameter of a request whose process says what it ran.
#: The parameter of a request that another process had before, which has ended: the seconds since it was sent there.
WAITED: Final = "waited"
_MAX_VALUES: Final = 5_000_000  # of a body in JSON, as `_WEIGHTS` counts them: to read more takes two seconds
#: Values that a sign in JSON counts as, a value being what is read in 0.3 µs: a number or list. To read a command or a
#: small tensor, an object of two to four members, takes 6 to 25 µs.
_WEIGHTS: Final = {",": 1, "[": 1, "{": 24, ":": 8}
#: What to do with a body that is too large for JSON.
SEND_BYTES: Final = (
    f"send large tensors as safetensors (Content-Type: {SAFETENSORS_TYPE}) or, a single one, as raw bytes "
    "(application/octet-stream)"
)


class Reporter(Protocol):
    """Receives the progress of a request, as a `progress.Progress` of the engine does, and the loss of a training."""

    def __call__(
        self, done: int, total: int, iteration: int = 0, iterations: int = 0, *, loss: float | None = None
    ) -> None:
        """Reports commands and iterations done and in all, and the loss of the last step that is known."""


class Noting(Protocol):
    """Takes note of what a request asks; see `handlers.forms`."""

    def note(
        self,
        session: Session,
        batch: Batch,
        inputs: Sequence[Any],
        typed: Sequence[Any],
        answering: Callable[[Session, Request, Answer], Result],
        *functions: Id,
        renews: bool = False,
    ) -> None:
        """Notes a request.

        Args:
            session: The session.
            batch: Its commands.
            inputs: Tensors, numbers and ids in its body, as they came; None: nothing.
            typed: The same with the dtypes that they have in the commands.
            answering: Makes the answer, which depends on the numbers by the answer of the batch alone.
            *functions: The ids of functions that it names.
            renews: Whether the session has nothing but what the request makes: it can begin anew.
        """


@dataclass(slots=True, eq=False)  # not frozen: that takes longer than all else that makes one
class Request:
    """What a method gets; it does not change, but for `batch`.

    Attributes:
        params: Small JSON-able values that the front made from path, query and headers.
        content_type: Of the body, without parameters.
        body: The request's bytes, read only; an array made as a view of it keeps it alive.
        copy_below: Bytes; smaller tensors have to be copied out of the body, larger ones may be views of it.
        cancelled: Returns whether the caller wants the request stopped; to be called between steps.
        progress: To be called with the number of commands and iterations done.
        received: Time at which the front took the request, on the monotonic clock.
        budget: The time that is left for it; None: not known beforehand.
        started: Time at which the process began to work on it, on the monotonic clock.
        structures: Those of batches that the process keeps.
        noting: Takes note of what it asks, for requests that differ from it in their numbers alone; None: of no use.
        prefix: Of a frame, if it is known already.
        batch: The batch that it has run, for the log; None: it has run none yet.
    """

    params: Mapping[str, Any]
    content_type: str
    body: memoryview
    copy_below: int
    cancelled: Callable[[], bool]
    progress: Reporter
    received: float
    budget: TimeBudget | None = None
    started: float = field(default_factory=time.monotonic)
    structures: wire.Structures = field(default_factory=wire.Structures)
    noting: Noting | None = None
    prefix: wire.Prefix | None = None
    batch: Batch | Repetition | None = None

    def json(self) -> Any:
        """Returns the body as JSON; {} if there is no body.

        Raises:
            MalformedJsonError: The body is not JSON.
            BodyTooLargeError: It has too many values.
        """
        if len(self.body) > _MAX_VALUES // max(_WEIGHTS.values()):
            text = np.frombuffer(self.body, np.uint8)
            count = sum(weight * int(np.count_nonzero(text == ord(sign))) for sign, weight in _WEIGHTS.items())
            if count > _MAX_VALUES:
                message = (
                    f"the body has {count:,} values in JSON (an object counts as {_WEIGHTS['{']}, each of its members "
                    f"as {_WEIGHTS[':']}), the limit is {_MAX_VALUES:,}: {SEND_BYTES}, many commands as a frame "
                    f"({wire.FRAME_TYPE}) or in several requests"
                )
                raise BodyTooLargeError(message, found=count, limit=_MAX_VALUES)
        return wire.parse_json(self.body) if len(self.body) else {}


@record(frozen=True, slots=False)
class Result:
    """What a method returns.

    Attributes:
        content_type: Of the body.
        buffers: The body, in parts.
        length: Bytes in all.
        facts: For the front: bytes_in_use, headers, and the status if it is not that of any success.
    """

    content_type: str
    buffers: list[Buffer]
    length: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@record(frozen=True, slots=False)
class _Unwritten(Result):
    """A result whose body is written when it is known in which type.

    Attributes:
        value: JSON-able data; arrays in it are the tensors of a safetensors body, or the data of tensors in JSON.
    """

    value: Any = None


def json_result(value: Any, **facts: Any) -> Result:
    """Returns a result whose body is `value` as JSON, or as safetensors if the request asks for that."""
    return _Unwritten(wire.JSON_TYPE, [], 0, facts, value)


def value_of(result: Result) -> Any:
    """Returns the value of a result that is not written yet."""
    assert isinstance(result, _Unwritten), "a result of `json_result`"
    return result.value


def with_member(result: Result, name: str, value: Any) -> Result:
    """Returns a result that is not written yet with one more member."""
    return json_result({**value_of(result), name: value}, **result.facts)


def written(result: Result, accept: str | None) -> Result:
    """Returns a result with its body.

    Raises:
        NotInSafetensorsError: safetensors has no name for a tensor's dtype.
    """
    if not isinstance(result, _Unwritten):
        return result
    if accept == SAFETENSORS_TYPE:
        buffers = answer_file(result.value)
    else:
        accept, buffers = wire.JSON_TYPE, [*wire.write_json(result.value)]
    return Result(accept, buffers, sum(map(len, buffers)), result.facts)


Method: TypeAlias = Callable[[Session, Request], Result]
METHODS: Final[dict[str, Method]] = {}


def method(name: str) -> Callable[[Method], Method]:
    """Returns a decorator that registers a function as the method `name`."""

    def register(function: Method) -> Method:
        if name in METHODS:
            raise TypeError(f"the method {name!r} is registered twice")
        METHODS[name] = lambda session, request: written(function(session, request), request.params.get("accept"))
        return function

    return register
