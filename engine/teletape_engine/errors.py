"""Every way the engine says no.

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
    ├─ CancelledError                   cancelled
    ├─ DeadlineExceededError            deadline_exceeded
    └─ InternalError                    internal

A class is both its own tree and the builtin that a caller expects. `surface` is the type a TensorFlow program sees
for it: the class itself where TensorFlow has one of that name, the plain builtin elsewhere. The code is what travels.
"""

from __future__ import annotations

from typing import Any, ClassVar


class TeletapeError(Exception):
    """Base of all: a message for people, a code for programs, details for both.

    Args:
        message: What was asked, what was found, and what to do.
        **details: JSON-able facts (numbers, names) that a program may act on.
    """

    code: ClassVar[str] = "internal"
    surface: ClassVar[type[Exception] | None] = None

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message

    def surfaced(self) -> Exception:
        """The exception that a TensorFlow program expects in this place."""
        return self if self.surface is None else self.surface(self.message)


class InvalidArgumentError(TeletapeError, ValueError):
    """Shapes, dtypes or values that an op cannot take."""

    code = "invalid_argument"


class UnknownOpError(InvalidArgumentError):
    """The catalogue has no op of this name."""

    code = "unknown_op"


class BadAttributeError(InvalidArgumentError):
    """An attribute that the op does not have, or cannot have with this value."""

    code = "bad_attribute"


class BadCommandError(InvalidArgumentError):
    """A command with a field missing, left over, or of the wrong kind."""

    code = "bad_command"


class UnimplementedError(InvalidArgumentError):
    """The op exists, but not for this dtype or on this device."""

    code = "unimplemented"


class UnknownIdError(TeletapeError, KeyError):
    """No value, variable, tape or program of this id in the session."""

    code = "unknown_id"


class ReleasedIdError(UnknownIdError):
    """The id was in use earlier in the session and has been released."""

    code = "released_id"


class IdInUseError(TeletapeError, ValueError):
    """An id may name one thing only during a session's life."""

    code = "id_in_use"


class PoisonedError(TeletapeError, RuntimeError):
    """The value was never made, since a command before it failed; the message is that first cause."""

    code = "poisoned"


class TapeConsumedError(TeletapeError, RuntimeError):
    """A non-persistent tape has answered already, or was never entered."""

    code = "tape_consumed"
    surface = RuntimeError

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(
            message or "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)",
            **details,
        )


class TapeStateError(TeletapeError, ValueError):
    """The tape is recording, or is not, and the call needs the other."""

    code = "tape_state"
    surface = ValueError


class NoGradientRegisteredError(TeletapeError, LookupError):
    """An op between the target and what the tape watched has no gradient at all."""

    code = "no_gradient_registered"
    surface = LookupError


class GradientRegisteredError(TeletapeError, KeyError):
    """The session has a declaration for this op type already."""

    code = "gradient_registered"
    surface = KeyError


class StructureMismatchError(TeletapeError, RuntimeError):
    """The caller predicted other kinds (none, dense, slices) than the tape gives."""

    code = "structure_mismatch"


class ResourceExhaustedError(TeletapeError, MemoryError):
    """An allocation that would pass the session's memory limit; nothing was allocated."""

    code = "resource_exhausted"


class SequenceConflictError(TeletapeError, RuntimeError):
    """Another batch has this client and sequence number already."""

    code = "sequence_conflict"


class OutOfTurnError(TeletapeError, RuntimeError):
    """The sequence number is not the client's next; the details tell which is."""

    code = "out_of_turn"


class CancelledError(TeletapeError):
    """The caller cancelled the batch; the commands before this one stand."""

    code = "cancelled"


class DeadlineExceededError(TeletapeError):
    """It has computed for as long as it may; the commands before this one stand."""

    code = "deadline_exceeded"


class InternalError(TeletapeError):
    """A defect of the engine, not of the request."""

    code = "internal"


def tree(root: type[TeletapeError] = TeletapeError) -> dict[str, type[TeletapeError]]:
    """Code to class, over the tree below `root`, the first class of a code first."""
    found: dict[str, type[TeletapeError]] = {}
    for cls in root.__subclasses__():
        found.setdefault(cls.code, cls)
        for code, sub in tree(cls).items():
            found.setdefault(code, sub)
    return found
