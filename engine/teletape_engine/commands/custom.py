"""Custom calls, whose gradient is the caller's own function, and backward passes that stop at them."""

from __future__ import annotations

from teletape_engine.commands.base import Command, FunctionId, Id, Input, NewId
from teletape_engine.records import record


@record(frozen=True, slots=True)
class Custom(Command):
    """Notes on the active tapes that `outputs`, each just made by an identity, come from `inputs` by a custom call.

    Tapes that follow an input go through the call from now on. `tag` is the caller's id for the call, which backward
    passes report, `label` a name for people. The function and its gradient function stay with the caller.
    """

    verb = "custom"
    inputs: tuple[Id, ...]
    outputs: tuple[Id, ...]
    tag: Id
    label: str = "custom"
    where: str | None = None


@record(frozen=True, slots=True)
class CustomFunction(Command):
    """Creates a gradient for the custom call `tag`, for questions that do not stop: they name it in `custom_gradients`.

    The function is as in custom.call; `inputs`: what it takes after the cotangents.
    """

    verb = "custom.function"
    creates = "gradient"
    id: NewId
    tag: Id
    function: FunctionId
    inputs: tuple[Input, ...]
    has_gradient: tuple[bool, ...]


@record(frozen=True, slots=True)
class BackwardBegin(Command):
    """Begins a gradient as a pass that stops at every call whose gradient is the caller's function.

    It answers, as backward.resume does, the stop: the call's tag and function (or the op's type), and the kind of the
    cotangent of each result; or that the pass has ended. Fields as in gradient.
    """

    verb = "backward.begin"
    creates = "backward"
    id: NewId
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    output_gradients: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    retain_tape: bool = False


@record(frozen=True, slots=True)
class BackwardCotangents(Command):
    """Names the cotangents of the results of the call at which the pass has stopped; zeros if nothing came.

    `tag`: the call at which the caller expects the pass; another is a StructureMismatchError. `op_values`: ids for the
    inputs and the result of an op whose type was declared `registered`; null: not kept.
    """

    verb = "backward.cotangents"
    id: Id
    outputs: tuple[NewId | None, ...]
    tag: Id | None = None
    op_values: tuple[NewId | None, ...] = ()


@record(frozen=True, slots=True)
class BackwardResume(Command):
    """Gives the pass the cotangents of the call's inputs, null for none; it goes on to its next stop, or to its end."""

    verb = "backward.resume"
    id: Id
    cotangents: tuple[Input | None, ...]


@record(frozen=True, slots=True)
class BackwardEnd(Command):
    """Names the gradients of a pass that has ended, one for each source; `predicted` as in gradient."""

    verb = "backward.end"
    id: Id
    outputs: tuple[NewId | None, ...]
    predicted: tuple[str, ...] | None = None
