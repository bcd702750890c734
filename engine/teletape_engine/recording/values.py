"""What ops are applied to: arrays, sparse gradients and variables, each under an id, and numbers without a dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

import numpy as np

from teletape_engine.catalogue.slices import GradientKind, SlicesValue
from teletape_engine.locks import ReentrantLock
from teletape_engine.spec import DTYPES, WEAK, DType, Number, Shape, Spec, Weak, element, elements

Uid: TypeAlias = int
new_uid: Callable[[], Uid] = itertools.count(1).__next__

Recorded: TypeAlias = Any  # a Value in the engine, a SpecValue in an SDK without arrays


class Trackable(Protocol):
    """Anything that a tape can follow: a value with arrays in the engine, a handle with none in the SDK."""

    @property
    def uid(self) -> Uid:
        """Which value it is, unique in this process."""

    @property
    def spec(self) -> Spec:
        """Shape and dtype."""

    def alias(self, uid: Uid) -> Self:
        """The same contents as another value: what a variable's read gives."""


class Unrecorded:
    """What an op takes, or a node keeps, that is no recorded value: it has no uid and no bytes of its own."""

    __slots__ = ()
    uid: Final = None


class Literal(Unrecorded):
    """What a caller wrote without a dtype: a Python number, or a number or nested list of JSON (`untyped`).

    It takes the dtype of what it meets: the arrays of the same call, the variable that it is assigned to, the source of
    the tangent or cotangent that it is. What is kept under an id has a dtype: a `Literal` is never kept.

    Attributes:
        array: The number, which forward functions take as it is; of a nested list an array, which is converted first.
        spec: Its shape and kind.
    """

    __slots__ = ("array", "spec")

    def __init__(self, number: Number) -> None:
        self.array: Any = number
        self.spec: Weak = WEAK[number.__class__]

    @classmethod
    def of(cls, spec: Weak) -> Self:
        """A zero of that spec, or a list of zeros."""
        literal = cls.__new__(cls)
        zero = spec.kind()
        literal.array = np.broadcast_to(zero, spec.shape) if spec.shape else zero
        literal.spec = spec
        return literal

    def copy(self) -> Self:
        """The same as another object."""
        literal = self.__class__.__new__(self.__class__)
        literal.array, literal.spec = self.array, self.spec
        return literal

    def with_alone(self, dtype: DType | None) -> Literal:
        """The same with another dtype where it meets no array, if it is untyped and `dtype` is not None."""
        spec = self.spec
        if dtype is None or not spec.untyped or spec.alone is dtype:
            return self
        literal = self.copy()
        literal.spec = Weak.of_untyped(spec.kind, spec.shape, spec.integer, dtype)
        return literal

    def __repr__(self) -> str:
        return repr(self.array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or self.spec is not other.spec:
            return False
        return bool(np.array_equal(self.array, other.array)) if self.spec.shape else bool(self.array == other.array)

    def __hash__(self) -> int:
        return hash((self.spec, self.array.tobytes() if self.spec.shape else self.array))


def untyped(numbers: np.ndarray[Any, Any], alone: DType = DTYPES["float32"]) -> Literal:
    """A number (0-d) or nested list of JSON without a dtype.

    Args:
        numbers: Of int64, uint64 or float64.
        alone: The dtype that it takes where it meets no array.
    """
    kind, integer = (float if numbers.dtype.kind == "f" else int), DTYPES["int32"]
    if kind is int and numbers.size:
        limits = np.iinfo(integer)
        if numbers.min() < limits.min or numbers.max() > limits.max:
            integer = numbers.dtype
    literal = Literal.__new__(Literal)
    literal.array = numbers if numbers.shape else numbers.item()
    literal.spec = Weak.of_untyped(kind, numbers.shape, integer, alone)
    return literal


def typed_array(literal: Literal, dtype: DType) -> np.ndarray[Any, Any]:
    """A number or untyped list as an array of that dtype.

    Raises:
        InvalidArgumentError: It does not fit.
    """
    if literal.spec.untyped:
        return elements(np.asarray(literal.array), dtype)
    return element(literal.array, dtype, "the number")


class SpecArray(np.ndarray[Any, Any]):
    """What a caller gives in place of a tensor to learn a price: shape and dtype. All elements are one in memory."""


def spec_array(shape: Shape, dtype: DType) -> SpecArray:
    """Returns a `SpecArray`, of any size: it takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape).view(SpecArray)


class SpecValue:
    """A value of which only the spec is known.

    Attributes:
        uid: Which value it is.
        spec: Shape and dtype.
    """

    __slots__ = ("__weakref__", "spec", "uid")

    def __init__(self, spec: Spec, uid: Uid | None = None) -> None:
        self.spec = spec
        self.uid = new_uid() if uid is None else uid

    def copy(self) -> Self:
        """The same under a uid of its own."""
        return type(self)(self.spec)

    def alias(self, uid: Uid) -> Self:
        """The same as another value."""
        value = self.copy()
        value.uid = uid
        return value


class Value:
    """An array under a uid. The array is never written into: residuals and other values may share it."""

    __slots__ = ("__weakref__", "array", "spec", "uid")

    def __init__(self, array: Any, spec: Spec, uid: Uid) -> None:
        self.array, self.spec, self.uid = array, spec, uid

    def alias(self, uid: Uid) -> Value:
        """The same array as another value."""
        return Value(self.array, self.spec, uid)

    def __repr__(self) -> str:
        return f"<value {self.uid}: {self.spec!r}>"


def kind_of(answer: Any) -> GradientKind:
    """The structure of one source's gradient."""
    if answer is None:
        return GradientKind.NONE
    return GradientKind.SLICES if isinstance(answer, SlicesValue) else GradientKind.DENSE


class Variable:
    """A mutable slot: its uid identifies the variable as a source, its value changes with each version.

    Attributes:
        uid: Which variable.
        value: What it holds now.
        version: Raised by each assignment.
        trainable: Whether tapes watch it when it is read.
        name: A label for people.
        owner: A weak reference to the program's own object for the variable, if there is any.
        serial: Its number among the variables that its session has made; 0: it has none.
        changing: The value while `change` has it; there is no `value` then.
    """

    __slots__ = ("__weakref__", "changing", "name", "owner", "serial", "trainable", "uid", "value", "version")

    def __init__(self, value: Any, *, trainable: bool, name: str | None = None, uid: Uid | None = None) -> None:
        self.value = value
        self.name = name
        self.owner: Callable[[], Any] | None = None
        self.changing: Any = None
        self.trainable = trainable
        self.version = self.serial = 0
        self.uid = new_uid() if uid is None else uid

    @property
    def spec(self) -> Spec:
        """Shape and dtype, fixed for life."""
        return self.value.spec  # type: ignore[no-any-return]  # a Recorded

    def assign(self, value: Any) -> None:
        """Replaces the value and raises the version."""
        self.value = value
        self.version += 1

    def change(self, compute: Callable[[], Any]) -> Any:
        """Replaces the value by what `compute()` makes of `changing`, perhaps in place; and returns it.

        Other threads that read the variable meanwhile wait.
        """
        with _CHANGES:
            self.changing = self.value
            del self.value
            try:
                self.changing = compute()
            finally:
                self.value, self.changing = self.changing, None
            return self.value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The value, to a thread that reads it while another one changes it: as soon as that is done."""
            if name != "value":
                raise AttributeError(f"a variable has no attribute {name!r}", name=name, obj=self)
            with _CHANGES:
                if self.changing is None:
                    return self.value
                return Value(self.changing.array.copy(), self.changing.spec, new_uid())  # a signal handler


#: Held while a variable's value is changed in place.
_CHANGES: Final = ReentrantLock()
