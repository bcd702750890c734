"""The errors of the engine: one class for each thing that a caller can do about it.

    TeletapeError                       code
    ├─ InvalidArgumentError             invalid_argument
    │  ├─ UnknownOpError                unknown_op
    │  ├─ BadAttributeError             bad_attribute
    │  ├─ BadCommandError               bad_command
    │  └─ UnimplementedError            unimplemented
    ├─ UnknownIdError                   unknown_id
    │  └─ ReleasedIdError               released_id
    ├─ IdInUseError                     id_in_use
    ├─ PoisonedError                    poisoned
    ├─ TapeConsumedError                tape_consumed
    ├─ TapeStateError                   tape_state
    ├─ NoGradientRegisteredError        no_gradient_registered
    ├─ GradientRegisteredError          gradient_registered
    ├─ StructureMismatchError           structure_mismatch
    ├─ ResourceExhaustedError           resource_exhausted
    ├─ SequenceConflictError            sequence_conflict
    ├─ OutOfTurnError                   out_of_turn
    ├─ AnswerDroppedError               answer_dropped
    ├─ UnknownStructureError            unknown_structure
    ├─ CancelledError                   cancelled
    ├─ DeadlineExceededError            deadline_exceeded
    └─ InternalError                    internal

A class is also the builtin that a caller expects. `surface` is the type that a TensorFlow program sees: the class
itself if TensorFlow has one of that name, else the builtin. On the wire only the code is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class TeletapeError(Exception):
    """Base class: a message for people, a code for programs, details for both.

    Args:
        message: What was requested, what is wrong with it, and what to do.
        *others: Programs that know TensorFlow, Keras among them, make an error from three arguments or four: a node,
            an op, the message, and for a bare OpError its number.
        **details: JSON-able facts (numbers, names) that a program may act on.
    """

    code: ClassVar[str] = "internal"
    surface: ClassVar[type[Exception] | None] = None
    node_def: ClassVar[None] = None  #: What such programs hand on to the next error.
    op: ClassVar[None] = None
    #: TensorFlow's number for this kind of error, and the payloads of its distributed runtime, of which there are none.
    error_code: int | None = None
    experimental_payloads: ClassVar[Mapping[str, bytes]] = {}
    #: The call site of the command that failed, if a client knows it.
    recorded: Any = None
    #: The id, in the server's log, of the request that was refused, or that had the failed command. None: not known.
    request_id: str | None = None
    #: Seconds after which the same request may succeed, if the server says so.
    retry_after: float | None = None
    #: The function a step of which raised it, until its id is known (`functions.steps.note_function`).
    function: Any = None

    def __init__(self, message: Any, *others: Any, **details: Any) -> None:
        text = str(others[1] if len(others) > 1 else message)
        super().__init__(text)
        if len(others) > 2 and isinstance(others[2], int):
            self.error_code = others[2]
        self.message = text
        self.details = details

    def __str__(self) -> str:
        return self.message

    def surfaced(self) -> Exception:
        """The exception that a TensorFlow program expects for this error."""
        return self if self.surface is None else self.surface(self.message)


class InvalidArgumentError(TeletapeError, ValueError):
    """Shapes, dtypes or values that an op cannot take."""

    code = "invalid_argument"
    error_code = 3


class UnknownOpError(InvalidArgumentError):
    """The catalogue has no op of this name."""

    code = "unknown_op"


class BadAttributeError(InvalidArgumentError):
    """An attribute that the op does not have, or cannot have with this value."""

    code = "bad_attribute"


class BadCommandError(InvalidArgumentError):
    """A command with a missing, an unknown or a wrong field."""

    code = "bad_command"


class UnimplementedError(InvalidArgumentError):
    """The op exists, but not for this dtype or on this device."""

    code = "unimplemented"
    error_code = 12


class UnknownIdError(TeletapeError, KeyError):
    """No value, variable, tape or function of this id in the session."""

    code = "unknown_id"


class ReleasedIdError(UnknownIdError):
    """The id was in use earlier in the session and has been released."""

    code = "released_id"


class IdInUseError(TeletapeError, ValueError):
    """The id names something else already; an id is used only once in a session."""

    code = "id_in_use"


class PoisonedError(TeletapeError, RuntimeError):
    """The value was not computed, since a command before it failed; the message is that first cause."""

    code = "poisoned"


class TapeConsumedError(TeletapeError, RuntimeError):
    """A non-persistent tape was used already, or was never entered."""

    code = "tape_consumed"
    surface = RuntimeError

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(
            message or "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)",
            **details,
        )


class TapeStateError(TeletapeError, ValueError):
    """The tape is recording and must not, or is not recording and must."""

    code = "tape_state"
    surface = ValueError


class NoGradientRegisteredError(TeletapeError, LookupError):
    """An op between the target and a watched value has no gradient registered."""

    code = "no_gradient_registered"
    surface = LookupError


class GradientRegisteredError(TeletapeError, KeyError):
    """The session or the catalogue has a gradient for this op type already."""

    code = "gradient_registered"
    surface = KeyError


class StructureMismatchError(TeletapeError, RuntimeError):
    """The caller predicted other kinds of gradient (none, dense, slices) than the tape has."""

    code = "structure_mismatch"


class ResourceExhaustedError(TeletapeError, MemoryError):
    """An allocation would exceed the session's memory limit; nothing was allocated."""

    code = "resource_exhausted"
    error_code = 8


class SequenceConflictError(TeletapeError, RuntimeError):
    """Another batch has this client and sequence number already."""

    code = "sequence_conflict"


class OutOfTurnError(TeletapeError, RuntimeError):
    """The sequence number is not the client's next one, which is in the details."""

    code = "out_of_turn"


class AnswerDroppedError(TeletapeError, RuntimeError):
    """A retry of a request whose answer is no longer stored: it was executed, and is not executed again."""

    code = "answer_dropped"


class UnknownStructureError(TeletapeError, LookupError):
    """A repeated batch names a structure that is not kept: nothing of it was executed, send the whole batch."""

    code = "unknown_structure"


class CancelledError(TeletapeError):
    """The caller cancelled the batch; the commands before this one have been executed."""

    code = "cancelled"
    error_code = 1


class DeadlineExceededError(TeletapeError):
    """The batch exceeded its time limit; the commands before this one have been executed."""

    code = "deadline_exceeded"
    error_code = 4


class InternalError(TeletapeError):
    """A defect of the engine, not of the request."""

    code = "internal"
    error_code = 13


def tree(root: type[TeletapeError] = TeletapeError) -> dict[str, type[TeletapeError]]:
    """Code to class, over the tree below `root`, the first class of a code first."""
    classes: dict[str, type[TeletapeError]] = {}
    for cls in root.__subclasses__():
        classes.setdefault(cls.code, cls)
        for code, sub in tree(cls).items():
            classes.setdefault(code, sub)
    return classes
