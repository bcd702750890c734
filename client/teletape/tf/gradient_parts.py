"""`tf.GradientParts`: a part of each gradient, and what is left of it for the next one."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape._generated.elementwise.complex import abs
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.index import gather
from teletape._generated.shapes.nd import tensor_scatter_nd_update
from teletape._generated.shapes.shape import expand_dims, reshape
from teletape.core.calls.dispatch import call, constant
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.trackable import AutoTrackable
from teletape.core.variables.variable import Variable
from teletape.tf.gradient_structure import GradientStructure, Source
from teletape.tf.ops.arrays.create import zeros, zeros_like
from teletape_engine.catalogue.namespace import ops

__all__ = ["GradientPart", "GradientParts"]

_NARROW: Final = (dtypes.bfloat16, dtypes.float16)


class GradientPart(NamedTuple):
    """Some elements or rows of a gradient.

    Attributes:
        indices: The numbers of the elements in row-major order, the largest magnitude first, or of the rows: int32 [k].
        values: The elements [k], or the rows [k, ...], in the gradient's dtype.
        shape: The shape of the whole gradient.
    """

    indices: Tensor
    values: Tensor
    shape: TensorShape

    def to_dense(self) -> Tensor:
        """Returns the whole gradient, with zeros for the rest."""
        lengths = self.shape.as_list()
        whole = zeros(lengths, self.values.dtype)
        if len(self.values.shape) == 1 and len(lengths) != 1:  # elements
            whole = reshape(whole, [-1])
        return reshape(tensor_scatter_nd_update(whole, expand_dims(self.indices, 1), self.values), lengths)


class GradientParts(AutoTrackable):
    """Parts of gradients, of which nothing is lost: what is left of one is added to the next (error feedback).

    Over a server only the part travels. All parts together, and the remainder, are the sum of all gradients. A
    checkpoint saves the remainder.

    Args:
        sources: Variables or tensors that the gradients are by, or a nested structure of them.
        remainder: Whether what is left is kept and added to the next gradient.

    Raises:
        TypeError: A source is no variable or tensor, or has no gradients, since it is not of floats.

    Example:
        parts = tf.GradientParts(tf.zeros([3]))
        parts.take(tf.constant([2.0, -5.0, 3.0]), top=1), parts.remainder  # element 1 is -5; [2., 0., 3.]
    """

    def __init__(self, sources: Any, *, remainder: bool = True) -> None:
        self._sources = GradientStructure(sources)
        self._rests = [_zeros(source) for source in self._sources.leaves] if remainder else []

    def take(
        self, gradients: Any, *, top: int | None = None, rows: Sequence[int] | None = None, dtype: Any = None
    ) -> Any:
        """Returns a part of each gradient, to which what was left of the last ones is added before.

        Args:
            gradients: For each source a tensor of its shape, IndexedSlices, or None, which counts as zeros: what
                `tape.gradient` returns.
            top: This many elements of the largest magnitude, 1 or more; all if there are not so many.
            rows: The numbers of rows along axis 0, each once.
            dtype: All elements with fewer bits: tf.bfloat16 or tf.float16, of real gradients.

        Returns:
            In the structure of the sources, with `top` and `rows` a `GradientPart`, with `dtype` a tensor of it.

        Raises:
            ValueError: Another structure than that of the sources.
            teletape.errors.InvalidArgumentError: Not exactly one of top, rows and dtype, or not what is said there; a
                gradient of another shape than its source, or without these rows. The remainder is as before then.
        """
        take = _Taking(top, rows, dtype)
        flat = self._sources.flatten(gradients)
        for source in self._sources.leaves:
            take.check(source)
        parts, rests = [], []
        for number, (gradient, source) in enumerate(zip(flat, self._sources.leaves, strict=True)):
            total = zeros(source.shape, source.dtype) if gradient is None else cast(gradient, source.dtype)
            if self._rests:
                total = total + self._rests[number]
            part, rest = take.part(total)
            parts.append(part)
            rests.append(rest)
        for variable, rest in zip(self._rests, rests, strict=bool(self._rests)):
            variable.assign(rest)
        return self._sources.packed(parts)

    @property
    def remainder(self) -> Any:
        """The rest, in the structure of the sources: tensors of their shapes and dtypes; zeros without `remainder`."""
        if not self._rests:
            return self._sources.packed([zeros(source.shape, source.dtype) for source in self._sources.leaves])
        return self._sources.packed([variable.read_value() for variable in self._rests])

    def reset(self) -> None:
        """Forgets what is left."""
        for variable in self._rests:
            variable.assign(zeros_like(variable))


class _Taking:
    """Which part is taken: exactly one of its arguments."""

    def __init__(self, top: int | None, rows: Sequence[int] | None, dtype: Any) -> None:
        chosen = [name for name, value in (("top", top), ("rows", rows), ("dtype", dtype)) if value is not None]
        if len(chosen) != 1:
            raise InvalidArgumentError(f"take exactly one of top, rows and dtype; found {', '.join(chosen) or 'none'}")
        self._top = None if top is None else operator.index(top)
        self._rows = None if rows is None else [operator.index(row) for row in rows]
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        if self._top is not None and self._top < 1:
            raise InvalidArgumentError(f"top is a number of elements, 1 or more; found {top}")
        if self._rows is not None and not 0 < len(self._rows) == len({*self._rows}):
            raise InvalidArgumentError(f"rows are numbers along axis 0, one or more, each once; found {self._rows}")
        if self._dtype is not None and self._dtype not in _NARROW:
            raise InvalidArgumentError(f"dtype is bfloat16 or float16; found {self._dtype.name}")

    def check(self, source: Source) -> None:
        """Raises InvalidArgumentError unless the gradient by a source has such a part."""
        lengths = source.shape.as_list()
        if self._rows is not None and (not lengths or any(not 0 <= row < lengths[0] for row in self._rows)):
            raise InvalidArgumentError(f"a gradient of the shape {source.shape} has no rows {self._rows}")
        if self._dtype is not None and source.dtype.is_complex:
            raise InvalidArgumentError(
                f"{self._dtype.name} is for real gradients, and a source is of {source.dtype.name}"
            )

    def part(self, gradient: Tensor) -> tuple[Any, Tensor]:
        """Returns the part of a gradient, and the rest with the gradient's shape."""
        if self._dtype is not None:
            value = cast(gradient, self._dtype)
            return value, gradient - cast(value, gradient.dtype)
        whole = gradient
        if self._top is not None:
            whole = reshape(gradient, [-1])
            size = whole.shape.as_list()[0]
            _, indices = call(ops.top_k, (abs(whole),), k=min(self._top, size))
        else:
            indices = constant(np.array(self._rows, np.int32))
        values = gather(whole, indices)
        rest = tensor_scatter_nd_update(whole, expand_dims(indices, 1), zeros_like(values))
        return GradientPart(indices, values, gradient.shape), reshape(rest, gradient.shape.as_list())


def _zeros(source: Source) -> Variable:
    array = np.zeros(source.shape.as_list(), source.dtype.np)
    return Variable(array, trainable=False, name="remainder", dtype=source.dtype)
