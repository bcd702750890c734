"""`tf.GradientAccumulator`: gradients added over many batches, for steps with more examples than fit at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape._generated.shapes.cast import cast
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.trackable import AutoTrackable, Trackable
from teletape.core.variables.variable import Variable
from teletape.tf.gradient_structure import GradientStructure, Source

__all__ = ["GradientAccumulator"]

#: Sums of such gradients would lose most of each: they are kept in float32.
_NARROW: Final = (dtypes.float16, dtypes.bfloat16)


class GradientAccumulator(AutoTrackable):
    """Sums of gradients over many batches, to which each batch is added once.

    The sums are variables where the gradients are, so nothing is sent to add one. A checkpoint saves them, and the
    numbers of the batches: a program that begins again from a checkpoint adds none of them twice.

    Args:
        sources: Variables or tensors that the gradients are by, or a nested structure of them.

    Raises:
        TypeError: One is no variable or tensor, or has no gradients, since it is not of floats.
    """

    def __init__(self, sources: Any) -> None:
        self._sources = GradientStructure(sources)
        self._sums = [_zeros(source) for source in self._sources.leaves]
        self._weight = Variable(np.zeros((), np.float64), trainable=False, name="weight")
        self._count = Variable(np.zeros((), np.int64), trainable=False, name="count")
        self._batches = _Batches()

    def add(self, gradients: Any, *, weight: Any = 1.0, batch: int | None = None) -> bool:
        """Adds the gradients of a batch, times its weight.

        Args:
            gradients: For each source a tensor of its shape, IndexedSlices, or None, which counts as zeros: what
                `tape.gradient` returns.
            weight: Such as the number of examples that the gradients are a mean of: then `mean` is that of all
                examples, however they are split.
            batch: The batch's number, 0 or more: one that was added before is not added again. None: it has no number.

        Returns:
            Whether it was added.

        Raises:
            ValueError: Another structure than that of the sources.
            teletape.errors.InvalidArgumentError: Another shape; a number below 0, or a number inside a tf.function,
                which runs more often than its Python code.
        """
        if batch is not None and current().tracing:
            raise InvalidArgumentError(
                "a batch with a number is added outside of a tf.function: return the gradients, and add them there"
            )
        flat = self._sources.flatten(gradients)
        if batch is not None and not self._batches.add(batch):
            return False
        for total, gradient in zip(self._sums, flat, strict=True):
            if gradient is not None:
                total.assign_add(cast(gradient, total.dtype) * cast(convert_to_tensor(weight), total.dtype))
        self._weight.assign_add(cast(convert_to_tensor(weight), dtypes.float64))
        self._count.assign_add(1)
        return True

    @property
    def count(self) -> Tensor:
        """The number of batches, int64."""
        return self._count.read_value()

    @property
    def weight(self) -> Tensor:
        """The sum of their weights, float64."""
        return self._weight.read_value()

    @property
    def batches(self) -> list[tuple[int, int]]:
        """The numbers of the batches, as ranges: the first and the last of each."""
        return [*self._batches.ranges]

    def sum(self) -> Any:
        """Returns the sum of the gradients times their weights, in the structure of the sources."""
        return self._packed([total.read_value() for total in self._sums])

    def mean(self) -> Any:
        """Returns the sum divided by the weight, in the structure of the sources: NaN if nothing was added."""
        weight = self._weight.read_value()
        return self._packed([total.read_value() / cast(weight, total.dtype) for total in self._sums])

    def reset(self) -> None:
        """Forgets all batches: everything is zero again."""
        for variable in (*self._sums, self._weight, self._count):
            variable.assign(constant(0, variable.dtype, variable.shape))
        self._batches.ranges = []

    def _packed(self, values: Sequence[Tensor]) -> Any:
        """Returns values in the dtypes and the structure of the sources."""
        leaves = zip(values, self._sources.leaves, strict=True)
        return self._sources.packed([cast(value, source.dtype) for value, source in leaves])


def _zeros(source: Source) -> Variable:
    dtype = dtypes.float32 if source.dtype in _NARROW else source.dtype
    return Variable(np.zeros(source.shape.as_list(), dtype.np), trainable=False, name="sum", dtype=dtype)


class _Batches(Trackable):
    """The numbers of batches, as ranges: the state that a checkpoint saves.

    Attributes:
        ranges: The first and the last number of each range, in ascending order.
    """

    dtype, shape, name = dtypes.int64, TensorShape([None, 2]), "batches"

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def add(self, batch: int) -> bool:
        """Adds a number; returns whether it was not there."""
        if batch < 0:
            raise InvalidArgumentError(f"the number of a batch is 0 or more; found {batch}")
        if any(first <= batch <= last for first, last in self.ranges):
            return False
        below = [(first, last) for first, last in self.ranges if last < batch]
        above = [(first, last) for first, last in self.ranges if first > batch]
        first = last = batch
        if below and below[-1][1] == batch - 1:
            first = below.pop()[0]
        if above and above[0][0] == batch + 1:
            last = above.pop(0)[1]
        self.ranges = [*below, (first, last), *above]
        return True

    def _serialize_to_tensors(self) -> dict[str, Any]:
        return {"VARIABLE_VALUE": np.array(self.ranges, np.int64).reshape(-1, 2)}

    def _restore_from_tensors(self, restored_tensors: Any) -> None:
        (ranges,) = restored_tensors.values()
        self.ranges = [(int(first), int(last)) for first, last in np.asarray(ranges)]
