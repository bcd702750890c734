"""Custom calls, and backward passes that stop at them."""

from __future__ import annotations

from dataclasses import dataclass

from teletape_engine.commands.command import Command, FunctionId, Id, Input


@dataclass(frozen=True, slots=True)
class Custom(Command):
    """The values `outputs`, each just made by an identity, come from `inputs` by a function with a gradient of its own.

    Active tapes that follow an input go through it from now on. `tag` is what a backward pass will call it by, `label`
    a name for people. The function, and that which makes its gradient, stay with the caller.
    """

    verb = "custom"
    inputs: tuple[Id, ...]
    outputs: tuple[Id, ...]
    tag: Id
    label: str = "custom"
    where: str | None = None


@dataclass(frozen=True, slots=True)
class CustomFunction(Command):
    """What questions that do not stop (jacobian, hvp, …) are to do at the custom call `tag`; they name it in `customs`.

    The program is as of `custom.call`; `inputs`: what else it takes.
    """

    verb = "custom.function"
    id: Id
    tag: Id
    function: FunctionId
    inputs: tuple[Input, ...]
    has_gradient: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class BackwardBegin(Command):
    """A gradient as a pass `id`, that stops wherever a function of the caller's makes the cotangents.

    Fields as of `gradient`. It answers, as `backward.resume` does, where it stands: the call's tag and function (or the
    op's type), and the kind of each of its results' cotangents; or that it is through.
    """

    verb = "backward.begin"
    id: Id
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    output_gradients: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    retain_tape: bool = False


@dataclass(frozen=True, slots=True)
class BackwardCotangents(Command):
    """Names what the pass hands out where it stands: the cotangents of the call's results (zeros where nothing came).

    `tag`: the call at which the caller takes it to be; another is a StructureMismatchError. `op_values`: ids for the
    inputs and the result of an op whose gradient was declared `registered`; null: not wanted.
    """

    verb = "backward.cotangents"
    id: Id
    outputs: tuple[Id | None, ...]
    tag: Id | None = None
    op_values: tuple[Id | None, ...] = ()


@dataclass(frozen=True, slots=True)
class BackwardResume(Command):
    """The cotangents of the call's inputs, null for none: the pass goes on to its next stop, or through."""

    verb = "backward.resume"
    id: Id
    cotangents: tuple[Input | None, ...]


@dataclass(frozen=True, slots=True)
class BackwardEnd(Command):
    """What the pass, once through, found for its sources, under the ids in `outputs`; `predicted` as of `gradient`."""

    verb = "backward.end"
    id: Id
    outputs: tuple[Id | None, ...]
    predicted: tuple[str, ...] | None = None
