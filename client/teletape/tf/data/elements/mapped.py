"""Elements in a pipeline: their leaves, or a function's results that are not computed yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.leaves import Lazy, dtype_of, host_of, shape_of, stacked
from teletape.tf.data.elements.specs import NoneTensorSpec
from teletape_engine.errors import InvalidArgumentError


class ElementOperation(Protocol):
    """A function of elements; see `functions.ElementFunction`."""

    result: Any
    pure: bool

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns the leaves of the result."""

    def over_rows(self, leaves: Sequence[Any]) -> list[Any] | None:
        """Returns the leaves of the results for all rows; None: they cannot be computed so."""


class Mapped:
    """An element that is a function's result, computed when its leaves are needed.

    Attributes:
        function: The function.
        arguments: The element to which the function is applied.
    """

    __slots__ = ("_leaves", "arguments", "function")

    def __init__(self, function: ElementOperation, arguments: Element) -> None:
        self.function, self.arguments = function, arguments
        self._leaves: list[Any] | None = None

    @property
    def computed(self) -> bool:
        """Whether it is computed already."""
        return self._leaves is not None

    def leaves(self) -> list[Any]:
        """Returns its leaves, as tensors."""
        if self._leaves is None:
            self._leaves = self.function(leaves_of(self.arguments))
        return self._leaves


#: An element in a pipeline: its leaves, or a function's result that is not computed yet.
Element: TypeAlias = "list[Any] | Mapped"


def leaves_of(element: Element) -> list[Any]:
    """Returns the leaves of an element."""
    return element.leaves() if element.__class__ is Mapped else element  # type: ignore[return-value]


class Part(Lazy):
    """A leaf that is one of several of a function's results."""

    __slots__ = ("index", "mapped")

    def __init__(self, mapped: Mapped, index: int) -> None:
        self.mapped, self.index = mapped, index

    def tensor(self) -> Any:
        """Returns it as a tensor."""
        return self.mapped.leaves()[self.index]

    def host(self) -> Any:
        """Returns its values on the host."""
        return host_of(self.tensor())

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return shape_of(self.tensor())

    @property
    def dtype(self) -> dtypes.DType:
        """Its dtype."""
        return dtype_of(self.tensor())


def parts_of(element: Element) -> list[Any]:
    """Returns the leaves of an element, without computing a result that is not computed yet."""
    if not isinstance(element, Mapped) or element.computed or element.function.result is None:
        return leaves_of(element)
    specs = structure.flatten(element.function.result)
    return [None if isinstance(spec, NoneTensorSpec) else Part(element, i) for i, spec in enumerate(specs)]


def is_dataset(leaf: Any) -> bool:
    """Whether a leaf is a dataset."""
    return hasattr(leaf, "element_spec") and not isinstance(leaf, TensorLike)


def spec_of_leaf(leaf: Any, *, sizes: bool = True) -> Any:
    """Returns the spec of a leaf.

    Args:
        leaf: The leaf.
        sizes: Whether every element has the sizes of this one; if not, only the sizes that the program has stated, by
            `set_shape`, are known.
    """
    if leaf is None:
        return NoneTensorSpec()
    if is_dataset(leaf):
        return leaf._spec_as_leaf()
    shape = shape_of(leaf)
    return TensorSpec(shape if sizes else stated_shape(leaf, len(shape)), dtype_of(leaf))


def stated_shape(leaf: Any, rank: int) -> TensorShape:
    """Returns the shape that the program has stated for a leaf; without a statement no size is known."""
    stated = getattr(leaf, "stated_shape", None)
    return TensorShape([None] * rank) if stated is None or stated.rank is None else stated


def joined(elements: Sequence[Element]) -> Element:
    """Returns elements as one batch."""
    first = elements[0]
    if isinstance(first, Mapped) and len(elements) > 1:
        function = first.function
        if all(isinstance(each, Mapped) and each.function is function and not each.computed for each in elements):
            try:
                arguments = joined([each.arguments for each in elements])  # type: ignore[union-attr]  # as checked
            except InvalidArgumentError:  # their shapes differ; those of the results may not
                rows = None
            else:
                rows = function.over_rows(leaves_of(arguments))
            if rows is not None:
                return rows
    computed: dict[int, list[Any]] = {}
    batch = []
    for i, column in enumerate(zip(*map(leaves_of, elements), strict=True)):
        first = column[0]
        if isinstance(first, Part) and len(column) > 1 and _alike(column):
            if id(first.mapped) not in computed:
                computed[id(first.mapped)] = leaves_of(joined([part.mapped for part in column]))
            batch.append(computed[id(first.mapped)][first.index])
        else:
            batch.append(stacked(column, i))
    return batch


def _alike(column: Sequence[Any]) -> bool:
    """Whether all leaves are the same part of results of one function."""
    first = column[0]
    return all(
        isinstance(part, Part) and part.index == first.index and part.mapped.function is first.mapped.function
        for part in column
    )
