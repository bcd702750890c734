"""Control flow as commands: what the functions of `control` and `maps` become where their bodies are programs.

Inside `tf.function` always; outside it where that cannot be told from running them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from teletape.functions.trace import NotTraceable, Traced, trace
from teletape.ops.dispatch import convert_to_tensor
from teletape.sessions.current import current
from teletape.tensors.tensor import EagerTensor, Tensor
from teletape_engine import commands
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function
from teletape_engine.spec import Spec

Leaves: TypeAlias = Sequence[Tensor]


def repeated(
    cond: Callable[..., Any],
    body: Callable[..., Leaves],
    values: Leaves,
    most: int | None,
    *,
    choices: bool = True,
) -> list[Tensor]:
    """`body` of the values, again and again, while `cond` of them is true, `most` times at the most: one command.

    Args:
        cond: To a scalar bool.
        body: To the next values.
        values: The first ones.
        most: A bound on the iterations, or None.
        choices: Whether there may be choices and loops inside, which then are connected as those of `tf.function`.

    Raises:
        NotTraceable: One of them needs values to go on, draws random numbers, or makes choices where it may not.
        teletape.errors.InvalidArgumentError: The body changes a shape or dtype.
    """
    specs = _specs(values)
    traces = [trace(lambda *given: convert_to_tensor(cond(*given)), specs), trace(body, specs)]
    programs, captured = joined(traces)
    if not choices and any(one.decides for one in programs):
        raise NotTraceable("has a choice or a loop inside", "one loop")
    if traces[1].specs != tuple(specs):
        raise NotTraceable("changes the shape or dtype of a loop variable", "one that stays as it is")
    inputs = [*_operands(values), *captured]
    return _run(commands.While, programs, inputs, captured=len(captured), maximum_iterations=most)


def chosen(selector: Tensor, branches: Sequence[Callable[[], Leaves]]) -> list[Tensor]:
    """The results of the branch that a scalar bool (true: the first) or integer chooses: one command.

    Raises:
        NotTraceable: A branch needs values to go on, draws random numbers, or gives another shape than the first.
    """
    traces = [trace(branch, ()) for branch in branches]
    for one in traces[1:]:
        if one.specs != traces[0].specs:
            raise NotTraceable(
                f"has branches of different shapes or dtypes ({traces[0].specs} and {one.specs})",
                "branches that agree in them",
            )
    programs, captured = joined(traces)
    return _run(commands.Cond, programs, [selector.operand(), *captured])


def scanned(
    body: Callable[..., tuple[Leaves, Leaves]],
    carry: Leaves,
    elements: Leaves,
    *,
    reverse: bool = False,
    vectorize: bool = False,
    choices: bool = True,
) -> tuple[list[Tensor], list[Tensor]]:
    """`body` once for each element along axis 0: what it carries at the end, and its other results stacked.

    Args:
        body: From (carried, elements), two lists, to the carried ones that follow and any others.
        carry: Before the first element.
        elements: Tensors of one length along axis 0.
        reverse: Whether the last element comes first.
        vectorize: Whether all elements are taken at once, by the ops' batch rules, where nothing is carried.
        choices: As in `repeated`.

    Raises:
        NotTraceable: The body needs values to go on, or draws random numbers.
        teletape.errors.InvalidArgumentError: It changes a shape or dtype of what it carries.
    """
    count = len(carry)

    def step(*given: Tensor) -> list[Tensor]:
        kept, others = body(given[:count], given[count:])
        return [*kept, *others]

    rows = [Spec.of(one.recorded.spec.shape[1:], one.recorded.spec.dtype) for one in elements]
    traced = trace(step, [*_specs(carry), *rows])
    (program,), captured = joined([traced])
    if not choices and program.decides:
        raise NotTraceable("has a choice or a loop inside", "one loop")
    if program.assigns:
        raise NotTraceable("assigns to a variable in a function over elements", "what it carries from one to the next")
    inputs = [*_operands(carry), *_operands(elements), *captured]
    found = _run(
        commands.Scan, [program], inputs, carried=count, captured=len(captured), reverse=reverse, vectorize=vectorize
    )
    return found[:count], found[count:]


#: What a body may raise while it is traced, or when it is run as one command, better raised in its own iteration.
TELLING: Final = (NotTraceable, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def joined(traces: Sequence[Traced]) -> tuple[list[Function], list[Any]]:
    """Programs that all take the same inputs behind their arguments: what any of them takes from outside.

    Raises:
        NotTraceable: One draws random numbers, which would be the same in each iteration.
    """
    found: dict[Any, Any] = {}
    for one in traces:
        for kind, thing, _ in one.captures:
            if kind == "number":
                raise NotTraceable("draws random numbers in a loop or a branch", "numbers drawn before, as its input")
            found.setdefault(_key(kind, thing), thing.operand() if kind == "tensor" else thing)
    programs = []
    for one in traces:
        program = one.program
        arguments = len(program.inputs) - len(one.captures)
        own = {
            _key(kind, thing): name
            for (kind, thing, _), name in zip(one.captures, program.inputs[arguments:], strict=True)
        }
        names = [own.get(key, f"unused{i}") for i, key in enumerate(found)]
        programs.append(compile_function([*program.inputs[:arguments], *names], program.commands, program.outputs))
    return programs, list(found.values())


def _key(kind: str, thing: Any) -> Any:
    return kind, (thing.recorded if kind == "tensor" else thing).uid


def _specs(values: Leaves) -> list[Spec]:
    return [one.recorded.spec for one in values]


def _operands(values: Leaves) -> list[Any]:
    return [one.operand() for one in values]


def _run(command: type[commands.Command], programs: list[Function], inputs: list[Any], **fields: Any) -> list[Tensor]:
    owner = current()
    return [EagerTensor(one, owner) for one in owner.flow(command, programs, inputs, **fields)]
