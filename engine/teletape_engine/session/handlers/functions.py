"""Functions: definitions, and the commands that run them."""

from __future__ import annotations

from typing import Any

from teletape_engine import commands, object_bytes
from teletape_engine.commands.results import Facts, Specs
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import RUNNERS, Function
from teletape_engine.session import operations
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State
from teletape_engine.spec import FLOATING, dtype_of


@handles(commands.DefineFunction)
def define(state: State, command: commands.DefineFunction) -> None:
    """Names a function; the functions that it takes stay alive with it."""
    dtype = None if command.dtype is None else dtype_of(command.dtype)
    if dtype is not None and dtype not in FLOATING:
        raise InvalidArgumentError(f"the dtype of a function's numbers is one of floats; found {dtype.name}")
    function = compile_function(
        command.inputs, command.steps, command.outputs, lambda name: state.find(name, Function), dtype
    )
    state.memory.note(object_bytes.FUNCTION + object_bytes.STEP * len(function.steps), "a function")
    state.name(command.id, function)


def run(state: State, command: Any) -> None:
    """Runs a command that takes functions in the current context; answers specs that only the values determine."""
    functions = [state.find(name, Function) for name in commands.functions_of(command) if name is not None]
    inputs = [state.argument(operand) for operand in command.inputs]
    state.monitor.loops(state.index)
    decisions: list[Any] | None = [] if getattr(command, "report_decisions", False) else None
    state.current.decided = decisions
    try:
        results = operations.run_functions(state.current, command, functions, inputs)
    finally:
        state.current.decided = None
    if decisions is not None:
        state.results.append(Facts(state.index, {"decisions": decisions}))
    if len(command.outputs) != len(results):
        raise InvalidArgumentError(
            f"there are {len(results)} results, found {len(command.outputs)} ids for them: outputs has one for each"
            f"{', the values and then the gradients' if command.verb == 'value_and_gradient' else ''}"
        )
    for name, result in zip(command.outputs, results, strict=True):
        state.name(name, result)
    if any(function.dynamic for function in functions):
        state.results.append(Specs(state.index, tuple([result.spec for result in results])))


for kind in RUNNERS:
    handles(kind)(run)
