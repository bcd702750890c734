"""Recording: a context that runs ops and notes them on its active tapes.

`Recorder` is what the engine (`teletape_engine.executor`) and an SDK without arrays share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from teletape_engine.attrs import NO_ATTRS, Attrs
from teletape_engine.backward import Algebra
from teletape_engine.graph import Context, Literal, record
from teletape_engine.op import CATALOGUE, Bound, Kind, Op, Operand, Runtime
from teletape_engine.spec import DType, Spec

Recorded: TypeAlias = Any  # a Value here, a handle in an SDK


class SlicesValue:
    """A sparse gradient: two recorded values and the spec of the array they stand for.

    Attributes:
        name: What a remote session knows it by, where there is one.
    """

    __slots__ = ("dense", "indices", "name", "spec", "values")

    def __init__(self, values: Recorded, indices: Recorded, dense: Spec) -> None:
        self.values, self.indices, self.dense = values, indices, dense
        self.spec = dense
        self.name: Any = None

    def __repr__(self) -> str:
        return f"<slices of {self.dense!r}>"


def kind_of(answer: Any) -> Kind:
    """The structure of one source's gradient."""
    if answer is None:
        return Kind.NONE
    return Kind.SLICES if isinstance(answer, SlicesValue) else Kind.DENSE


class Recorder(Context, Runtime):
    """A context that runs ops. Subclasses say what running, a constant and an answer are."""

    bare: Algebra  #: The algebra of a backward pass that nobody records.

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Recorded:
        """The result of one bound call."""
        raise NotImplementedError  # pragma: no cover - abstract

    def number(self, number: Literal, dtype: DType) -> Recorded:
        """A Python number as a recorded scalar."""
        raise NotImplementedError  # pragma: no cover - abstract

    def full(self, spec: Spec, number: int) -> Recorded:
        """Zeros or ones of that spec."""
        raise NotImplementedError  # pragma: no cover - abstract

    def ct(self, value: Recorded) -> Any:
        """A recorded value as a cotangent of the `bare` algebra."""
        raise NotImplementedError  # pragma: no cover - abstract

    def answer(self, ct: Any, spec: Spec) -> Recorded:
        """A cotangent of the `bare` algebra as a recorded value (or SlicesValue) of its own."""
        raise NotImplementedError  # pragma: no cover - abstract

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Recorded:
        """Runs `op` on recorded values and literals, and notes it on the active tapes that follow an input.

        Raises:
            InvalidArgumentError: The op does not take such inputs.
            ResourceExhaustedError: The result would pass the memory limit.
        """
        bound = op.bound.get((*[value.spec for value in inputs], attrs))
        if bound is None:
            inputs, bound = self._bind(op, inputs, attrs)
        if op.expand is not None:
            return self._expand(bound, inputs)
        result = self.run(bound, inputs)
        if self.tapes:
            record(self.tapes, bound, inputs, result, where)
        return result

    def _bind(self, op: Op, inputs: Sequence[Any], attrs: Attrs) -> tuple[Sequence[Any], Bound]:
        specs = tuple([value.spec for value in inputs])
        op.check_count(len(specs))
        if not op.takes_numbers(specs):
            inputs = [
                self.number(value, op.number_dtype(i, specs)) if isinstance(value, Literal) else value
                for i, value in enumerate(inputs)
            ]
            specs = tuple([value.spec for value in inputs])
        return inputs, op.call(specs, attrs)

    def _expand(self, bound: Bound, inputs: Sequence[Any]) -> Recorded:
        assert bound.op.expand is not None
        args = [value.array if isinstance(value, Literal) else Operand(self, value) for value in inputs]
        result: Operand = bound.op.expand(*args, **bound.attrs)
        if any(result is arg for arg in args):  # unchanged: still a value of its own
            return self.apply(CATALOGUE["identity"], (result.value,))
        return result.value

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Operand:
        """Runs `op` inside a rule, on operands and Python numbers."""
        inputs = [arg.value if isinstance(arg, Operand) else Literal(arg) for arg in args]
        return Operand(self, self.apply(op, inputs, op.attrs(attrs)))
