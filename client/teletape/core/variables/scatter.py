"""Methods of a variable that change or read some of its rows or elements: scatter and gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls import dispatch
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops


class ScatterMethods(TensorLike):
    """The scatter and gather methods of variables. Over HTTP only the rows are sent."""

    __slots__ = ()

    def _scattered(self, mode: str, indices: Any, updates: Any) -> Any:
        """Assigns some rows or elements; the modes are those of `teletape_engine.ops.assign`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds IndexedSlices to the rows that they name; rows named twice are added twice.

        Args:
            sparse_delta: Its values have the variable's dtype: a row of the variable's shape for each index, or one
                number for all rows.
            use_locking: Accepted, without effect.
            name: Accepted, without effect.

        Returns:
            Another object for this variable, as from `assign`.

        Raises:
            TypeError: `sparse_delta` is not IndexedSlices.
            ValueError: Values of another dtype.
            teletape.errors.InvalidArgumentError: Shapes that do not fit; an index outside of the variable.
        """
        return self._scatter("scatter_add", sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts IndexedSlices from the rows that they name; see `scatter_add`."""
        return self._scatter("scatter_sub", sparse_delta)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces the rows that IndexedSlices name; if a row is named twice, the last one stays. See `scatter_add`."""
        return self._scatter("scatter_update", sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies the rows that IndexedSlices name; see `scatter_add`."""
        return self._scatter("scatter_mul", sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides the rows that IndexedSlices name, integers towards zero; see `scatter_add`."""
        return self._scatter("scatter_div", sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the minimum with IndexedSlices in the rows that they name; see `scatter_add`."""
        return self._scatter("scatter_min", sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the maximum with IndexedSlices in the rows that they name; see `scatter_add`."""
        return self._scatter("scatter_max", sparse_delta)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds `updates` at `indices`; an index named twice is added twice.

        Args:
            indices: Integers [..., depth]: an index along the first `depth` axes of the variable, for each update.
            updates: [..., *shape[depth:]], of the variable's dtype.
            name: Accepted, without effect.

        Raises:
            ValueError: Updates of another dtype.
            teletape.errors.InvalidArgumentError: Shapes that do not fit; an index outside of the variable.
        """
        return self._scattered("scatter_nd_add", indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts `updates` at `indices`; see `scatter_nd_add`."""
        return self._scattered("scatter_nd_sub", indices, updates)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Writes `updates` at `indices`; if an index is named twice, the last one stays. See `scatter_nd_add`."""
        return self._scattered("scatter_nd_update", indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the minimum with `updates` at `indices`; see `scatter_nd_add`."""
        return self._scattered("scatter_nd_min", indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the maximum with `updates` at `indices`; see `scatter_nd_add`."""
        return self._scattered("scatter_nd_max", indices, updates)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces elements along the last axis that the indices have: `variable[i, indices[i, k]] = values[i, k]`.

        All axes of the indices but the last count through the first axes of the variable. See `scatter_add`.
        """
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {sparse_delta}")
        indices = dispatch.convert_to_tensor(sparse_delta.indices)
        lengths = indices.shape.as_list()
        lead = [dispatch.constant(axis) for axis in np.indices(lengths, indices.dtype.np)[:-1]]
        places = dispatch.call(ops.stack, [*lead, indices], axis=len(lengths))
        return self._scattered("scatter_nd_update", places, sparse_delta.values)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows at `indices`, as `tf.gather` of the variable."""
        return dispatch.call(ops.gather, (self, dispatch.convert_to_tensor(indices)))

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements or rows at `indices` [..., depth], as `tf.gather_nd` of the variable."""
        return dispatch.call(ops.gather_nd, (self, dispatch.convert_to_tensor(indices)))

    def _scatter(self, mode: str, delta: Any) -> Any:
        if not isinstance(delta, IndexedSlices):
            raise TypeError(f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {delta}")
        return self._scattered(mode, delta.indices, delta.values)
