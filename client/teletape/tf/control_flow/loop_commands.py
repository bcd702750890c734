"""Control flow as commands: loops and conditions whose bodies are traced into functions.

Inside `tf.function` always; outside it if that makes no difference but speed (`as_one_command`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.functions.step_log import Capture, bind_captures
from teletape.core.functions.trace import NotTraceable, Traced, trace
from teletape.core.program import logs
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.tf.control_flow.growth import Unbounded
from teletape.tf.control_flow.purity import impurity
from teletape.tf.ops.arrays.create import zeros
from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import UnimplementedError
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function
from teletape_engine.spec import Spec

Leaves: TypeAlias = Sequence[Tensor]


DRAWS_IN_A_LOOP: Final = "draws random numbers in a loop or a branch"
ASSIGNS_IN_SCAN: Final = "assigns to a variable in a function over elements"
_UNKNOWN: Final = 2**44  #: Blocks that a loop of unknown length takes.
_WORTH: Final = 16  #: Elements from which on one command is worth the tracing.
#: Errors of a body, traced or as one command, after which the loop runs by iterations to raise them in the right one.
_TRACE_ERRORS: Final = (NotTraceable, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def as_one_command(functions: Sequence[Callable[..., Any]], length: int | None, command: Callable[[bool], Any]) -> Any:
    """Runs a loop as one command if only the speed differs; the first time it logs why, or why not.

    Args:
        functions: The user's functions.
        length: The number of iterations; None: not known.
        command: Runs the command. Its argument: whether there may be conditions and loops inside.

    Returns:
        What `command` returns; None: the loop must run iteration by iteration. On a server a loop is one command if it
        is long and its functions only compute (or the session's `offload_loops` says so); inside a traced function
        always.

    Raises:
        UnimplementedError: The session's `offload_loops` is true, and the loop cannot be one command.
    """
    owner = current()
    if owner.tracing:
        return None if length == 0 else command(True)
    if owner.local or (length is not None and length < _WORTH):
        return None
    wanted = owner.offload_loops
    if wanted is None:
        reason = next((text for text in map(impurity, functions) if text is not None), None)
    else:
        reason = None if wanted else "offload_loops is off"
    if reason is None:
        try:
            result = command(False)
        except _TRACE_ERRORS as error:
            why = error.why if isinstance(error, NotTraceable) else f"raises {type(error).__name__}: {error}"
            reason = f"its body cannot be traced: it {why}"
            if wanted:
                raise UnimplementedError(
                    f"offload_loops is on, and the loop with the body {_name(functions)} cannot run as one command: "
                    f"{reason}. Change the body, or leave offload_loops unset"
                ) from error
        else:
            _log(functions, f"runs as one command: {'offload_loops is on' if wanted else 'its functions only compute'}")
            return result
    _log(functions, f"runs iteration by iteration: {reason}")
    return None


def _log(functions: Sequence[Callable[..., Any]], text: str) -> None:
    """Logs at INFO whether a loop is one command, and why, once for each body."""
    message = f"The loop with the body {_name(functions)} {text}"
    logs.log_first_n(logging.INFO, message, 1, message)


def _name(functions: Sequence[Callable[..., Any]]) -> str:
    """Returns the name of a loop's body and its place in the program."""
    code = getattr(functions[-1], "__code__", None)
    return repr(functions[-1]) if code is None else f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def repeated(
    cond: Callable[..., Any],
    body: Callable[..., Leaves],
    values: Leaves,
    most: int | None,
    *,
    choices: bool = True,
) -> list[Tensor]:
    """Runs `body` on the values again and again while `cond` of them is true: one command.

    Args:
        cond: To a scalar bool.
        body: To the next values.
        values: The first values.
        most: The largest number of iterations, or None.
        choices: Whether there may be conditions and loops inside, whose gradients are then those of `tf.function`.

    Raises:
        NotTraceable: A function needs values, or outside of a trace draws random numbers, or has a condition although
            it may not.
        teletape.errors.InvalidArgumentError: The body changes a shape or dtype.
    """
    specs = _specs(values)
    traces = [trace(lambda *loop_values: convert_to_tensor(cond(*loop_values)), specs), trace(body, specs)]
    if traces[1].specs == tuple(specs) and current().tracing and any(map(_draws, traces)):
        return _repeated_with_draws(traces, values, most)
    functions, captured = joined(traces)
    if not choices and any(function.decides for function in functions):
        raise NotTraceable("has a choice or a loop inside", "one loop")
    if traces[1].specs != tuple(specs):
        raise Unbounded("changes the shape or dtype of a loop variable", unrolled=True)
    inputs = [*_operands(values), *captured]
    return _run(commands.While, functions, inputs, captured=len(captured), maximum_iterations=most)


def _repeated_with_draws(traces: Sequence[Traced], values: Leaves, most: int | None) -> list[Tensor]:
    """Runs a loop like `repeated`; the iteration's number is another loop variable, on which random numbers depend."""
    cond, body = traces
    states = _states(traces, most)

    def next_values(iteration: Tensor, *loop_values: Tensor) -> list[Tensor]:
        return [iteration + 1, *_run_iteration(body, states, iteration, loop_values)]

    def goes_on(iteration: Tensor, *loop_values: Tensor) -> Tensor:
        return _run_iteration(cond, states, iteration, loop_values)[0]

    return repeated(goes_on, next_values, [constant(0), *values], most)[1:]


def _draws(traced: Traced) -> bool:
    """Whether a function draws random numbers."""
    return any(map(_is_state, traced.captures))


def _states(traces: Sequence[Traced], count: int | None) -> dict[int, Tensor]:
    """Returns the state of each random draw of the functions in the first iteration, by the symbol's uid.

    Args:
        traces: The functions.
        count: The number of iterations, or the largest possible one; None: not known.
    """
    owner = current()
    captures = [capture for traced in traces for capture in traced.captures if _is_state(capture)]
    blocks = {capture.symbol.uid: _UNKNOWN if count is None else capture.value[1] * count for capture in captures}
    return {
        capture.symbol.uid: EagerTensor(owner.draw(capture.value[0], blocks[capture.symbol.uid]), owner)
        for capture in captures
    }


def _is_state(capture: Capture) -> bool:
    return capture.kind == "state"


def _run_iteration(traced: Traced, states: dict[int, Tensor], iteration: Tensor, values: Leaves) -> list[Tensor]:
    """Runs a function with the random numbers of an iteration: they follow those of the iteration before."""
    owner = current()
    number = call(ops.cast, (iteration,), dtype=np.dtype(np.int64))
    captured = []
    for capture in traced.captures:
        if _is_state(capture):
            step = constant(np.array([capture.value[1], 0, 0]))
            captured.append((states[capture.symbol.uid] + number * step).operand())
        else:
            captured.append(capture.value.operand() if capture.kind == "tensor" else capture.value)
    results = owner.call_function(traced.function, [*_operands(values), *captured])
    return [EagerTensor(result, owner) for result in results]


def chosen(selector: Tensor, branches: Sequence[Callable[[], Leaves]]) -> list[Tensor]:
    """Runs the branch that a scalar bool (true: the first) or integer selects: one command.

    Raises:
        NotTraceable: A branch needs values, or returns another shape than the first.
    """
    owner: Any = current()
    prints = owner.tracing and owner.deferred is not None
    traces = [trace(branch, (), defers=prints) for branch in branches]
    for traced in traces[1:]:
        if traced.specs != traces[0].specs:
            raise NotTraceable(
                f"has branches of different shapes or dtypes ({traces[0].specs} and {traced.specs})",
                "branches that agree in them",
            )
    if any(traced.deferred for traced in traces):
        return _chosen_with_prints(selector, traces)
    functions, captured = joined(traces, draws=True)
    return _run(commands.Cond, functions, [selector.operand(), *captured])


def _chosen_with_prints(selector: Tensor, traces: Sequence[Traced]) -> list[Tensor]:
    """Runs a branch like `chosen`; values that it prints become further results, which are zeros if it is not taken."""

    def widened(taken: Traced) -> list[Tensor]:
        owner = current()
        results = owner.call_function(taken.function, taken.bound())
        count = len(taken.specs)
        wide: list[Tensor] = [EagerTensor(result, owner) for result in results[:count]]
        for traced in traces:
            if traced is taken:
                wide += [EagerTensor(result, owner) for result in results[count:]]
            else:
                wide += [zeros(spec.shape, spec.dtype.name) for spec in traced.deferred_specs]
        return wide

    functions, captured = joined([trace(partial(widened, traced), ()) for traced in traces], draws=True)
    results = _run(commands.Cond, functions, [selector.operand(), *captured])
    owner, count = current(), len(traces[0].specs)
    at = count
    for number, traced in enumerate(traces):
        values = [*results[:count], *results[at : at + len(traced.deferred_specs)]]
        at += len(traced.deferred_specs)
        if traced.deferred:
            _print_if_taken(owner, selector, number, traced, values)
    return results[:count]


def _print_if_taken(owner: Any, selector: Tensor, number: int, traced: Traced, values: Sequence[Tensor]) -> None:
    """Makes each call of the function print the values of a branch, if that branch was taken."""

    def action(structure: Any) -> None:
        chooser, *printed = structure
        choice = chooser.numpy()
        if number == (int(not choice) if chooser.dtype is dtypes.bool else choice):
            traced.run_deferred([tensor.recorded for tensor in printed], current())

    owner.defer(action, [selector, *values])


def scanned(
    body: Callable[..., tuple[Leaves, Leaves]],
    carry: Leaves,
    elements: Leaves,
    *,
    reverse: bool = False,
    vectorize: bool = False,
    choices: bool = True,
) -> tuple[list[Tensor], list[Tensor]]:
    """Runs `body` once for each element along axis 0; returns the last carry, and the other results stacked.

    Args:
        body: From (carry, elements), two lists, to the next carry and any other results.
        carry: The first carry.
        elements: Tensors of one length along axis 0.
        reverse: Whether the last element comes first.
        vectorize: Whether all elements are computed at once, by the ops' batch rules, if there is no carry.
        choices: As in `repeated`.

    Raises:
        NotTraceable: The body needs values, or outside of a trace draws random numbers.
        teletape.errors.InvalidArgumentError: It changes a shape or dtype of the carry.
    """
    count = len(carry)

    def step(*values: Tensor) -> list[Tensor]:
        next_carry, results = body(values[:count], values[count:])
        return [*next_carry, *results]

    rows = [Spec.of(tensor.recorded.spec.shape[1:], tensor.recorded.spec.dtype) for tensor in elements]
    traced = trace(step, [*_specs(carry), *rows])
    if current().tracing and elements and _draws(traced):
        return _scanned_with_draws(traced, carry, elements, reverse=reverse, vectorize=vectorize)
    (function,), captured = joined([traced])
    if not choices and function.decides:
        raise NotTraceable("has a choice or a loop inside", "one loop")
    if function.assigns:
        raise NotTraceable(ASSIGNS_IN_SCAN, "what it carries from one to the next")
    fields = {"carried": count, "captured": len(captured), "reverse": reverse, "vectorize": vectorize}
    results = _run(commands.Scan, [function], [*_operands(carry), *_operands(elements), *captured], **fields)
    return results[:count], results[count:]


def _scanned_with_draws(
    traced: Traced, carry: Leaves, elements: Leaves, *, reverse: bool, vectorize: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Runs a body like `scanned`; the iteration's number is another element, on which random numbers depend."""
    count = elements[0].recorded.spec.shape[0]
    states = _states([traced], count)
    numbers = np.arange(count, dtype=np.int32)
    iterations = constant(numbers[::-1].copy() if reverse else numbers)

    def body(carried: Leaves, row: Leaves) -> tuple[Leaves, Leaves]:
        iteration, *values = row
        results = _run_iteration(traced, states, iteration, [*carried, *values])
        return results[: len(carry)], results[len(carry) :]

    return scanned(body, carry, [iterations, *elements], reverse=reverse, vectorize=vectorize)


def joined(traces: Sequence[Traced], *, draws: bool = False) -> tuple[list[Function], list[Any]]:
    """Returns the functions with the captures of all as inputs after their arguments, and these inputs.

    Args:
        traces: The functions.
        draws: Whether they may draw random numbers, which are the same whenever the functions run.

    Raises:
        NotTraceable: A function draws random numbers and must not.
    """
    captured: dict[Any, Any] = {}
    for traced in traces:
        drawn = [capture for capture in traced.captures if capture.kind == "state"]
        if drawn and not draws:
            raise NotTraceable(DRAWS_IN_A_LOOP, "numbers drawn before, as its input")
        states = iter(bind_captures(drawn))
        for capture in traced.captures:
            if capture.kind == "state":
                captured[_key(capture)] = next(states)
            else:
                captured.setdefault(
                    _key(capture), capture.value.operand() if capture.kind == "tensor" else capture.value
                )
    return [_with_inputs(traced, list(captured)) for traced in traces], list(captured.values())


def _with_inputs(traced: Traced, keys: Sequence[Any]) -> Function:
    """Returns the function with one more input for each key; it does not use all of them."""
    function = traced.function
    arguments = len(function.inputs) - len(traced.captures)
    captures = zip(traced.captures, function.inputs[arguments:], strict=True)
    names = {_key(capture): name for capture, name in captures}
    inputs = [names.get(key, f"unused{i}") for i, key in enumerate(keys)]
    return compile_function(
        [*function.inputs[:arguments], *inputs], function.commands, function.outputs, call_sites=function.call_sites
    )


def _key(capture: Capture) -> Any:
    if capture.kind == "state":
        return capture.kind, capture.symbol.uid
    return capture.kind, (capture.value.recorded if capture.kind == "tensor" else capture.value).uid


def _specs(values: Leaves) -> list[Spec]:
    return [tensor.recorded.spec for tensor in values]


def _operands(values: Leaves) -> list[Any]:
    return [tensor.operand() for tensor in values]


def _run(command: type[commands.Command], functions: list[Function], inputs: list[Any], **fields: Any) -> list[Tensor]:
    owner = current()
    return [EagerTensor(result, owner) for result in owner.run_command(command, functions, inputs, **fields)]
