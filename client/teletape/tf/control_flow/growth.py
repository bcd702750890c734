"""TensorArrays that grow in a loop of a traced function: the largest number of elements, and the elements afterwards.

The shapes of a function's values are known when it is traced. So such an array has room for what the loop may write,
and a length; outside of the function it is cut to that length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from teletape.core.calls.dispatch import call, convert_to_tensor, known_elements
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.functions.trace import NotTraceable
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import Composite, RaggedValue
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.indexing import index_spec
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine import commands
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.recording.executor import evaluate
from teletape_engine.recording.values import Literal
from teletape_engine.spec import INTEGER, Spec

MOST_ELEMENTS: Final = 1 << 16  #: Iterations of a loop in which an array may grow.
MOST_UNROLLED: Final = 1024  #: The largest number of iterations that are unrolled.
#: Advice for a loop whose number of iterations depends on values.
REMEDY: Final = (
    "`for i in tf.range(N)` with a Python number N of iterations at most and a `break` where it ends, and in it a "
    "TensorArray of dynamic size, or one whose size is a Python number"
)
#: Advice for a loop that computes with all elements.
_WITH_MASK: Final = (
    "a TensorArray whose size is a Python number, and a mask: `stack` has zeros for the elements that are not written"
)


class Unbounded(NotTraceable):
    """A loop needs its number of iterations, which is not known.

    Args:
        why: The reason, as in NotTraceable.
        unrolled: Whether the loop must be unrolled, so that a bound on the iterations is not enough.
    """

    def __init__(self, why: str, *, unrolled: bool = False) -> None:
        super().__init__(why, REMEDY)
        self.unrolled = unrolled


def ask_for(tensor: Tensor, why: str) -> None:
    """Requests that the function be traced again for the values of its integer arguments, if they decide the number.

    Raises:
        NeedsValues: They do.
    """
    owner: Any = current()
    owner.ask_for(tensor.operand(), why, REMEDY)


def unrolled(test: Callable[[], Any], body: Callable[[], None], limit: int | None, error: Unbounded) -> None:
    """Unrolls a loop whose condition is known in each iteration.

    Args:
        test: Returns the condition.
        body: Runs an iteration.
        limit: The largest number of iterations; None: there is no limit.
        error: Why the loop is no command; it is raised again if a condition is not known, or the loop is too long.

    Raises:
        NeedsValues: A condition follows from integers among the function's arguments.
    """
    count = 0
    while count != limit:
        condition = convert_to_tensor(test())
        goes_on = known_elements(condition)
        if goes_on is None:
            ask_for(condition, error.why)
        if goes_on is None or count == MOST_UNROLLED:
            raise error
        if not goes_on:
            break
        body()
        count += 1
    error.withdraw()


#: Ops on integers that may compute the index of a write from the number of the iteration.
_FOLLOWED: Final = frozenset("add sub mul neg cast identity floordiv floormod maximum minimum".split())


class Postponed(NamedTuple):
    """An op on elements whose number is not known yet.

    Attributes:
        op: Its name.
        attrs: Its attributes, as pairs.
        others: Its inputs after the elements: numbers, or None for a tensor of the function.
        first: The position of the elements among its inputs.
    """

    op: str
    attrs: tuple[tuple[str, Any], ...]
    others: tuple[Any, ...]
    first: int


class Grown(RaggedValue):
    """The elements of an array that has grown by an unknown number, in a function that is traced.

    Ops on it wait until the function has run.

    Args:
        parts: Room for all elements, how many there are, and the tensors that postponed ops take.
        postponed: The ops.
    """

    def __init__(self, parts: tuple[Any, ...], postponed: tuple[Postponed, ...] = ()) -> None:
        self._parts, self._postponed = parts, postponed

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for lengths that follow from the number of elements."""
        return self.structure().spec([part.recorded.spec for part in self._parts]).shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.structure().spec([part.recorded.spec for part in self._parts]).dtype

    @property
    def flat_values(self) -> Any:
        """Refused: see `refuse_conversion`."""
        self.refuse_conversion()

    def parts(self) -> tuple[Any, ...]:
        """The rows, their number, and the inputs of postponed ops."""
        return self._parts

    def structure(self) -> GrownStructure:
        """The structure without its tensors."""
        return GrownStructure(self._postponed)

    def applied(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Grown:
        """Returns the result of an op, which is postponed.

        Raises:
            NotTraceable: The op takes several such values.
        """
        first = next(i for i, arg in enumerate(args) if arg is self)
        others = [arg for arg in args if arg is not self]
        if op.dynamic or len(others) != len(args) - 1 or any(isinstance(arg, Composite) for arg in others):
            self.refuse_conversion()
        tensors = tuple([convert_to_tensor(arg) for arg in others if not isinstance(arg, int | float)])
        numbers = tuple([arg if isinstance(arg, int | float) else None for arg in others])
        postponed = Postponed(op.name, tuple(op.attrs(attrs).items()), numbers, first)
        return Grown((*self._parts, *tensors), (*self._postponed, postponed))

    def refuse_conversion(self) -> NoReturn:
        """Raises.

        Raises:
            NotTraceable: Always.
        """
        raise NotTraceable("computes with the elements of a TensorArray whose number depends on values", _WITH_MASK)

    def __add__(self, other: Any) -> Any:
        return call(ops.add, (self, other))

    def __radd__(self, other: Any) -> Any:
        return call(ops.add, (other, self))

    def __sub__(self, other: Any) -> Any:
        return call(ops.sub, (self, other))

    def __rsub__(self, other: Any) -> Any:
        return call(ops.sub, (other, self))

    def __mul__(self, other: Any) -> Any:
        return call(ops.mul, (self, other))

    def __rmul__(self, other: Any) -> Any:
        return call(ops.mul, (other, self))

    def __getitem__(self, key: Any) -> Grown:
        return self.applied(ops.strided_slice, (self,), {"index": index_spec(key)})

    def __iter__(self) -> NoReturn:
        self.refuse_conversion()


@dataclass(frozen=True)
class GrownStructure:
    """The structure of a `Grown`: outside of functions it is a tensor of as many elements as there are.

    Attributes:
        postponed: The ops on the elements.
    """

    postponed: tuple[Postponed, ...]

    def of(self, parts: Sequence[Any]) -> Any:
        """The tensor of the first rows, after the postponed ops; one request brings the rows and their number."""
        if not isinstance(parts[0], EagerTensor) or current().tracing:
            return Grown(tuple(parts), self.postponed)
        (rows, length, *rest), owner = parts, current()
        count, elements = owner.fetch_all([length.operand(), rows.operand()])
        result = call(ops.strided_slice, (rows,), index=((0, int(count), None),))
        if getattr(result.recorded, "host", 0) is None:
            result.recorded.host = elements[: int(count)]
        tensors = iter(rest)
        for op, attrs, others, first in self.postponed:
            args = [next(tensors) if number is None else number for number in others]
            result = call(CATALOGUE[op], [*args[:first], result, *args[first:]], **dict(attrs))
        return result

    def spec(self, specs: Sequence[Spec]) -> TensorSpec:
        """The spec of the tensor, with None for lengths that follow from the number of elements."""
        room = specs[0].shape[0]
        first, second = (self._spec_for(count, specs) for count in (room + 1, room + 2))
        sizes = [size if size == another else None for size, another in zip(first.shape, second.shape, strict=True)]
        return TensorSpec(sizes, dtypes.as_dtype(first.dtype))

    def _spec_for(self, count: int, specs: Sequence[Spec]) -> Spec:
        """Returns the spec of the tensor for this number of elements."""
        result, rest = specs[0].with_shape((count, *specs[0].shape[1:])), iter(specs[2:])
        for op, attrs, others, first in self.postponed:
            args = [next(rest) if number is None else Literal(number).spec for number in others]
            inputs = (*args[:first], result, *args[first:])
            result = bind(CATALOGUE[op], inputs, CATALOGUE[op].attrs(dict(attrs))).spec
        return result


def numbers_of(before: Sequence[Any], values: Sequence[Any], after: Sequence[Any], count: int) -> dict[Any, Any]:
    """Returns scalar integers of a loop in each iteration, by their symbols, if every iteration adds the same number.

    Args:
        before: The loop's variables before it.
        values: The variables in one iteration that is traced.
        after: The variables after that iteration.
        count: The largest number of iterations.
    """
    numbers: dict[Any, Any] = {}
    for first, value, last in zip(before, values, after, strict=True):
        if not isinstance(value, EagerTensor) or not isinstance(last, EagerTensor):
            continue
        spec = value.recorded.spec
        start = getattr(first.recorded, "host", None) if isinstance(first, EagerTensor) else first
        if spec.shape or spec.dtype not in INTEGER or start is None:
            continue
        moved = followed(last, {key_of(value): np.zeros((), spec.dtype)})
        again = followed(last, {key_of(value): np.ones((), spec.dtype)})
        if moved is not None and again is not None and int(again) - int(moved) == 1:
            numbers[key_of(value)] = (int(start) + int(moved) * np.arange(count)).astype(spec.dtype)
    return numbers


def followed(tensor: Tensor, numbers: Mapping[Any, Any]) -> Any:
    """Returns the values of a scalar for given values of others, by their symbols; None: it depends on more."""
    key = key_of(tensor)
    if key in numbers:
        return numbers[key]
    host = getattr(tensor.recorded, "host", None)
    if host is not None:
        return host
    log, number = tensor.session.log, tensor.recorded.number  # type: ignore[attr-defined]  # of a trace
    for capture in log.captures:
        if capture.symbol.number == number:
            inner = capture.kind == "tensor" and capture.value.session.tracing
            return followed(capture.value, numbers) if inner else None
    for step in log.steps:
        if number in step.outputs:
            return _computed(tensor, step, numbers)
    return None


def _computed(tensor: Tensor, step: Any, numbers: Mapping[Any, Any]) -> Any:
    command = step.command
    if command is None or not isinstance(command, commands.Call) or command.op not in _FOLLOWED:
        return None
    arrays: list[Any] = [
        value
        if isinstance(value, Literal)
        else followed(EagerTensor(_Reference(value), tensor.session), numbers)
        if value.__class__ is int
        else value
        for value in step.inputs
    ]
    if any(array is None for array in arrays):
        return None
    dtype = next((array.dtype for array in arrays if not isinstance(array, Literal)), None)
    arrays = [np.asarray(array.array, dtype) if isinstance(array, Literal) else np.asarray(array) for array in arrays]
    attrs = CATALOGUE[command.op].attrs(dict(command.attrs))
    return evaluate(bind(CATALOGUE[command.op], tuple([Spec.of(a.shape, a.dtype) for a in arrays]), attrs), arrays)


class _Reference:
    """A value of a trace by its number."""

    host = None

    def __init__(self, number: int) -> None:
        self.number = number


def key_of(tensor: Tensor) -> Any:
    """Returns the key of a symbol of a trace."""
    return id(tensor.session), tensor.recorded.number
