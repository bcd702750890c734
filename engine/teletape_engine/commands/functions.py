"""Functions: defining them, calling them, and control flow over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from teletape_engine.commands.base import Command, FunctionId, Input, NewId, Step
from teletape_engine.records import record


@record(frozen=True, slots=True)
class DefineFunction(Command):
    """Creates a function: named inputs, steps on them in order, named outputs.

    A step is a command (op, assign, call, …) whose values are named inside the function; functions that it takes are
    the session's. An input may be a variable: a step that names it reads it, in order, and `assign` writes it. `dtype`
    is that of numbers without one, in the steps and in calls, that meet no tensor.
    """

    verb = "function"
    creates = "function"
    id: NewId
    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    dtype: str | None = None


@record(frozen=True, slots=True)
class CallFunction(Command):
    """Runs a function on tensors and variables; active tapes record its ops like those of op commands."""

    verb = "call"
    step = True
    function: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[NewId, ...]
    report_decisions: bool = False


@record(frozen=True, slots=True)
class ValueAndGradient(Command):
    """Runs a function, and computes the gradients of its targets' sum with respect to its sources.

    `targets` are names of the function's outputs, by default all; `sources` names of its inputs, by default those of
    floats, or all if there are none (a step names them). `outputs`: the function's results, then a dense gradient for
    each source. `unconnected`: zero, or none, which refuses a source without a gradient.
    """

    verb = "value_and_gradient"
    step = True
    function: FunctionId
    inputs: tuple[Input, ...]
    targets: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    outputs: tuple[NewId, ...] = ()
    unconnected: str = "none"


@record(frozen=True, slots=True)
class CustomCall(Command):
    """A custom call whose cotangents a function computes, so that no backward pass stops at it.

    `inputs`: what tapes follow the call by, then the call's results (`results` of them) as they were computed, then
    what else the function takes. `outputs`: the results under new ids. The function takes a cotangent of each result,
    then the results' rest; it returns a cotangent for each input of the call that `has_gradient` marks.
    """

    verb = "custom.call"
    step = True
    function: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[NewId, ...]
    has_gradient: tuple[bool, ...]
    results: int = 1
    label: str = "custom"


@record(frozen=True, slots=True)
class While(Command):
    """Runs `body` on the loop's values as long as `cond` of them is true, at most `maximum_iterations` times.

    `inputs`: the values, then `captured` others that every iteration takes. Both functions take all of them; `cond`
    returns a scalar bool or integer, `body` the next values, of the same shapes and dtypes. `outputs`: the values
    after the loop; one more id, if there is one, for the number of iterations. `report_decisions`: answer the number
    of iterations of this and of inner loops, and the branches taken.
    """

    verb = "while"
    step = True
    cond: FunctionId
    body: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[NewId, ...]
    captured: int = 0
    maximum_iterations: int | None = None
    report_decisions: bool = False


@record(frozen=True, slots=True)
class Cond(Command):
    """Runs one of the `branches` on all `inputs` but the first, which chooses the branch.

    A scalar bool: true is the first branch, false the second. An integer: the branch of that number, the last if there
    is no such branch. The results of all branches have the same shapes and dtypes. `report_decisions` as in while.
    """

    verb = "cond"
    step = True
    branches: tuple[FunctionId, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[NewId, ...]
    report_decisions: bool = False


@record(frozen=True, slots=True)
class Scan(Command):
    """Runs `body` once for each element along axis 0, from the first to the last, or in `reverse`.

    `inputs`: the `carried` values, arrays of elements, then `captured` others. The body takes the carried values, an
    element of each array, and the others; it returns the next carried values, and any number of results. `outputs`:
    the carried values after the loop, and each result stacked along a new axis 0. `length`: the number of iterations
    if there are no arrays. `vectorize`: computes all elements at once by the ops' batch rules, if nothing is carried
    and every step has such a rule. `report_decisions` as in while.
    """

    verb = "scan"
    step = True
    body: FunctionId
    inputs: tuple[Input, ...]
    outputs: tuple[NewId, ...]
    carried: int = 0
    captured: int = 0
    reverse: bool = False
    length: int | None = None
    report_decisions: bool = False
    vectorize: bool = False


@record(frozen=True, slots=True)
class Map(Command):
    """Calls a function for each entry along axis 0 of the inputs that `mapped` marks; the others go with every entry.

    All entries run at once by the ops' batch rules, if every step has such a rule, else one by one. `outputs`: each
    result stacked along a new axis 0. To tapes it is one call. The function assigns to no input.
    """

    verb = "map"
    step = True
    function: FunctionId
    inputs: tuple[Input, ...]
    mapped: tuple[bool, ...]
    outputs: tuple[NewId, ...]


@record(frozen=True, slots=True)
class CheckGradients(Command):
    """Answers how a function's derivatives at `inputs` compare with its finite differences.

    `settings`: entries, seed, step, rtol, atol.
    """

    verb = "check_gradients"
    function: FunctionId
    inputs: tuple[Input, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
