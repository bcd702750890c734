"""The structure, shapes and dtypes of what gradients are by, without the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape.core.calls.dispatch import as_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import nest
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape


class Source:
    """Shape and dtype of a source."""

    def __init__(self, source: Any) -> None:
        if not isinstance(getattr(source, "dtype", None), DType):
            raise TypeError(f"a source is a variable or a tensor, found {source!r}")
        self.shape: TensorShape = source.shape
        self.dtype: DType = source.dtype
        if not (self.dtype.is_floating or self.dtype.is_complex):
            raise TypeError(f"gradients are by floats, and a source is of {self.dtype.name}: {source!r}")


class GradientStructure:
    """The structure of the sources: no list or dict of an object, so a checkpoint does not save the sources with it.

    Args:
        sources: Variables or tensors, or a nested structure of them.

    Attributes:
        leaves: Shape and dtype of each.

    Raises:
        TypeError: One is no variable or tensor, or has no gradients, since it is not of floats.
    """

    def __init__(self, sources: Any) -> None:
        self._structure = nest.map_structure(lambda source: None, sources)
        self.leaves = [Source(source) for source in nest.flatten(sources)]

    def flatten(self, gradients: Any) -> list[Tensor | None]:
        """Returns gradients in the order of the sources: a tensor for each, or None.

        Args:
            gradients: In the structure of the sources tensors, IndexedSlices or None.

        Raises:
            ValueError: They have another structure.
            InvalidArgumentError: One has another shape than its source.
        """
        nest.assert_same_structure(self._structure, gradients)
        flat = [None if leaf is None else as_tensor(leaf) for leaf in nest.flatten(gradients)]
        for gradient, source in zip(flat, self.leaves, strict=True):
            if gradient is not None and gradient.shape != source.shape:
                raise InvalidArgumentError(f"a gradient of the shape {gradient.shape} for a source of {source.shape}")
        return flat

    def packed(self, values: Sequence[Any]) -> Any:
        """Returns a value for each source in the structure of the sources."""
        return nest.pack_sequence_as(self._structure, list(values))
