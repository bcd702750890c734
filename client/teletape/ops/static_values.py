"""`tf.fetch` and `tf.get_static_value`. By hand: they compute nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.sessions.session import Session
from teletape.tensors import nest
from teletape.tensors.composite import Composite
from teletape.tensors.tensor import EagerTensor, TensorLike

__all__ = ["fetch", "get_static_value"]


def fetch(*values: Any) -> Any:
    """Returns several values as NumPy arrays, read in one request.

    Args:
        *values: Tensors and variables, and lists, tuples and dicts of them, as the gradients of a step; None and Python
            values stay as they are. Of sparse gradients, sparse and ragged tensors the parts are read, so that reading
            them is no request any more.

    Returns:
        The values in the same structures, with what `numpy` returns of tensors and variables; of several arguments a
        tuple.

    Example:
        tf.fetch(tf.constant(2.0), {"all": [tf.constant([1, 2]), None]})
    """
    leaves = nest.flatten(values)
    by_session: dict[Session, list[Any]] = {}
    for leaf in leaves:
        for part in leaf.parts() if isinstance(leaf, Composite) else [leaf]:
            if isinstance(part, TensorLike) and not part.session.local:
                by_session.setdefault(part.session, []).append(getattr(part.recorded, "value", part.recorded))
    for owner, recorded in by_session.items():
        owner.fetch_all(recorded)
    arrays = [leaf.numpy() if isinstance(leaf, TensorLike) else leaf for leaf in leaves]
    fetched = nest.pack_sequence_as(values, arrays)
    return fetched[0] if len(values) == 1 else tuple(fetched)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Returns the value of a tensor as an array if it is known without computing; else None.

    Args:
        tensor: A tensor; a number or array is returned unchanged.
        partial: Without effect.

    Example:
        tf.get_static_value(tf.constant([1, 2]))
    """
    if isinstance(tensor, int | float | bool | np.ndarray | np.generic):
        return tensor
    if isinstance(tensor, EagerTensor):
        host = getattr(tensor.recorded, "host", None)
        if host is not None or tensor.session.tracing:
            return host
        return tensor.numpy()
    return None
