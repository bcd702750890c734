"""Untyped inputs of functions: each takes the dtype of what it meets in the function's steps.

The steps are followed by specs alone. As long as an untyped number meets only others, what an op makes of it is untyped
too, and all of them will have one dtype: that of the first array that one of them meets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from teletape_engine import commands
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs, keep
from teletape_engine.catalogue.op import Op, Trait
from teletape_engine.commands import Command
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.values import Literal, SpecValue, Variable
from teletape_engine.spec import DType, Spec, Weak

MOST_SIGNATURES: Final = 256  #: Calls of other specs of which a function remembers something.

#: Runs a part of a command: from a recorder and arguments to results.
Run = Callable[[Recorder, Sequence[Any]], Sequence[Any]]


class _Dtype:
    """The dtype of some untyped numbers that must have the same.

    Attributes:
        dtype: None: they have met no array.
        same: What has joined these numbers with others; None: nothing.
    """

    def __init__(self) -> None:
        self.dtype: DType | None = None
        self.same: _Dtype | None = None

    def root(self) -> _Dtype:
        """That of all numbers that were joined."""
        root = self
        while root.same is not None:
            root = root.same
        return root

    def join(self, other: _Dtype) -> None:
        """Makes both one."""
        root, joined = self.root(), other.root()
        if root is not joined:
            joined.same = root
            root.dtype = root.dtype or joined.dtype

    def meet(self, dtype: DType) -> None:
        """Takes a dtype, if it has none."""
        root = self.root()
        root.dtype = root.dtype or dtype


class _Meetings(SpecRecorder):
    """Follows ops by specs, and notes which dtypes untyped numbers meet."""

    def __init__(self) -> None:
        super().__init__()
        self._followed: dict[int, tuple[Literal, _Dtype]] = {}  # by identity, which the literal keeps

    def follow(self, literal: Literal, dtype: _Dtype) -> Literal:
        """Follows a number, of which `dtype` is the dtype."""
        literal = Literal.of(literal.spec)
        self._followed[id(literal)] = literal, dtype
        return literal

    def dtype_of(self, value: Any) -> _Dtype | None:
        """The dtype of a number that is followed; None: it is not."""
        followed = self._followed.get(id(value))
        return None if followed is None else followed[1]

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        """As `Recorder.apply`; what is followed meets the other inputs."""
        numbers = {i: dtype for i, value in enumerate(inputs) if (dtype := self.dtype_of(value)) is not None}
        if not numbers:
            return super().apply(op, inputs, attrs, where)
        specs = [value.spec for value in inputs]
        meets_array = any(isinstance(spec, Spec) and spec.differentiable for spec in specs)
        dtypes = op.number_dtypes(specs)
        alone: list[_Dtype] = []
        for i, number in numbers.items():
            if meets_array or dtypes[i] is not specs[i].alone:
                number.meet(dtypes[i])
            else:
                alone.append(number)
        result = super().apply(op, inputs, attrs, where)
        if not alone or result.__class__ is tuple or Trait.CONVERTS in op.traits:
            return result
        for number in alone[1:]:
            alone[0].join(number)
        weak = max([specs[i] for i in numbers], key=lambda spec: (int, float).index(spec.kind))
        if result.spec.dtype is not weak.alone:  # a comparison's, say
            return result
        return self.follow(
            Literal.of(Weak.of_untyped(weak.kind, result.spec.shape, weak.integer, weak.alone)), alone[0]
        )

    def element(self, value: Any) -> Any:
        """What a scan takes of an array in an iteration."""
        shape = value.spec.shape[1:]
        number = self.dtype_of(value)
        if number is None:
            return self.new_value(value.spec.with_shape(shape))
        spec: Weak = value.spec
        return self.follow(Literal.of(Weak.of_untyped(spec.kind, shape, spec.integer, spec.alone)), number)

    def meet_result(self, argument: Any, result: Any) -> None:
        """A loop returns `result` for the next iteration's `argument`."""
        before, after = self.dtype_of(argument), self.dtype_of(result)
        if before is not None and after is not None:
            before.join(after)
        elif before is not None and isinstance(result.spec, Spec):
            before.meet(result.spec.dtype)
        elif after is not None and isinstance(argument.spec, Spec):
            after.meet(argument.spec.dtype)

    def typed(self, literal: Literal, dtype: DType) -> Any:
        """A value of that dtype; the number takes it, unless it is the one without an array."""
        number = self.dtype_of(literal)
        if number is not None and dtype is not literal.spec.alone:
            number.meet(dtype)
        return self.new_value(Spec.of(literal.spec.shape, dtype))


def typed_inputs(
    recorder: Recorder, command: Command, functions: Sequence[Any], inputs: Sequence[Any]
) -> Sequence[Any]:
    """The inputs of a command that takes functions, untyped ones as values of the dtype that they take.

    A number stays one, and each step may take it in another dtype, unless the command keeps it as a value: to carry it
    from one iteration to the next, or to differentiate by it.
    """
    numbers = [i for i, value in enumerate(inputs) if value.__class__ is Literal and value.spec.untyped]
    if not numbers:
        return inputs
    inputs = in_dtype_of(functions, inputs)
    keeps = isinstance(command, commands.While | commands.Scan | commands.Map | commands.ValueAndGradient)
    chosen = [i for i in numbers if keeps or inputs[i].spec.shape]
    if not chosen or (isinstance(recorder, _Meetings) and not keeps):
        return inputs
    if isinstance(command, commands.CallFunction):
        dtypes = call_dtypes(functions[0], inputs, chosen)
    else:
        dtypes, _ = taken_dtypes(_runs(command, functions), inputs, chosen)
    typed = list(inputs)
    for i, dtype in dtypes.items():
        typed[i] = recorder.typed(inputs[i], dtype)
    return typed


def in_dtype_of(functions: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs, untyped ones with the dtype of the first function that has one for numbers that meet no array."""
    dtype = next((function.dtype for function in functions if function.dtype is not None), None)
    if dtype is None:
        return inputs
    return [value.with_alone(dtype) if value.__class__ is Literal else value for value in inputs]


def call_dtypes(function: Any, inputs: Sequence[Any], chosen: Sequence[int] | None = None) -> dict[int, DType]:
    """The dtypes that the untyped inputs of one call take, by their numbers; see `taken_dtypes`.

    Args:
        function: The function, which remembers them by the specs of the inputs.
        inputs: Recorded values, variables, Literals.
        chosen: Which of them are untyped; None: find out.
    """
    inputs = in_dtype_of([function], inputs)
    if chosen is None:
        chosen = [i for i, value in enumerate(inputs) if value.__class__ is Literal and value.spec.untyped]
    if not chosen:
        return {}
    key = tuple(chosen), tuple([(value.spec, isinstance(value, Variable)) for value in inputs])
    dtypes: dict[int, DType] | None = function.number_dtypes.get(key)
    if dtypes is None:
        dtypes, complete = taken_dtypes(partial(function.run, tie=False), inputs, chosen)
        if complete:
            keep(function.number_dtypes, key, dtypes, MOST_SIGNATURES)
    return dtypes


def taken_dtypes(run: Run, inputs: Sequence[Any], chosen: Sequence[int]) -> tuple[dict[int, DType], bool]:
    """The dtypes that untyped inputs take, their own if they meet no array; and whether all steps were followed.

    Args:
        run: Runs what the inputs are for.
        inputs: Recorded values, variables, Literals.
        chosen: Which of them are untyped.
    """
    recorder = _Meetings()
    numbers = {i: _Dtype() for i in chosen}
    arguments = [
        recorder.follow(value, numbers[i]) if i in numbers else _by_spec(value) for i, value in enumerate(inputs)
    ]
    complete = False
    with contextlib.suppress(TeletapeError):  # the command will raise it too
        run(recorder, arguments)
        complete = True
    return {i: number.root().dtype or inputs[i].spec.alone for i, number in numbers.items()}, complete


def _by_spec(value: Any) -> Any:
    if value.__class__ is Literal:
        return value
    if isinstance(value, Variable):
        return Variable(SpecValue(value.spec), trainable=False)
    return SpecValue(value.spec)


def _runs(command: Command, functions: Sequence[Any]) -> Run:
    """How the functions of a command take its inputs."""

    def loop(recorder: Any, arguments: Sequence[Any]) -> Sequence[Any]:
        """One iteration: what it carries must have the dtype of what it returns for it."""
        first = command.carried if isinstance(command, commands.Scan) else len(arguments) - command.captured  # type: ignore[attr-defined]
        arguments = list(arguments)
        if isinstance(command, commands.Scan):
            for i in range(first, len(arguments) - command.captured):
                arguments[i] = recorder.element(arguments[i])
        results: Sequence[Any] = ()
        for function in functions:
            results = function.run(recorder, arguments, tie=False)
        for argument, result in zip(arguments[:first], results, strict=False):
            recorder.meet_result(argument, result)
        return results

    def branches(recorder: Any, arguments: Sequence[Any]) -> Sequence[Any]:
        """Every branch."""
        for function in functions:
            function.run(recorder, arguments[1:], tie=False)
        return ()

    def entry(recorder: Any, arguments: Sequence[Any]) -> Sequence[Any]:
        """One run of a map."""
        marked = zip(arguments, command.mapped, strict=True)  # type: ignore[attr-defined]  # of a map
        cut = [recorder.element(value) if mapped else value for value, mapped in marked]
        return functions[0].run(recorder, cut, tie=False)  # type: ignore[no-any-return]

    if isinstance(command, commands.While | commands.Scan):
        return loop
    if isinstance(command, commands.Map):
        return entry
    if isinstance(command, commands.Cond):
        return branches
    return partial(functions[0].run, tie=False)
