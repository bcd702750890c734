"""`tf.fetch`, `tf.gather_values` and `tf.get_static_value`: several values, read in one request or known already."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.sessions.sending.event_loops import check_loop
from teletape.core.sessions.session import Session
from teletape.core.tensors import nest
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import EagerTensor, TensorLike, current_value, own_copy

__all__ = ["fetch", "gather_values", "get_static_value"]


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
    for owner, recorded in _by_session(leaves, _current(leaves)).items():
        if not owner.local:
            owner.fetch_all(recorded)
    arrays = [leaf.numpy() if isinstance(leaf, TensorLike) else leaf for leaf in leaves]
    fetched = nest.pack_sequence_as(values, arrays)
    return fetched[0] if len(values) == 1 else tuple(fetched)


async def gather_values(*values: Any) -> tuple[Any, ...]:
    """Returns several values, read in one request while the event loop of asyncio or trio goes on: await it.

    Args:
        *values: Tensors and variables, and lists, tuples and dicts of them, as the gradients of a step; None and Python
            values stay as they are. Of sparse gradients, sparse and ragged tensors the parts are read, so that reading
            them is no request any more.

    Returns:
        The values in the same structures: of tensors and variables what `numpy` returns.

    Raises:
        RuntimeError: There is no event loop of asyncio or trio.

    Example:
        import asyncio

        async def program():
            x = tf.Variable(3.0)
            with tf.GradientTape() as tape:
                loss = x * x
            return await tf.gather_values(loss, tape.gradient(loss, [x]))

        print(asyncio.run(program()))  # (9.0, [6.0])
    """
    check_loop()
    leaves = nest.flatten(values)
    now = _current(leaves)
    arrays: dict[int, Any] = {}
    for owner, recorded in _by_session(leaves, now).items():
        arrays |= zip(map(id, recorded), await owner.fetch_later(recorded), strict=True)
    read = [
        own_copy(arrays[id(value)]) if isinstance(leaf, TensorLike) else leaf
        for leaf, value in zip(leaves, now, strict=True)
    ]
    return tuple(nest.pack_sequence_as(values, read))


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


def _current(leaves: list[Any]) -> list[Any]:
    """Returns the recorded values of tensors and variables; other leaves unchanged."""
    return [current_value(leaf) if isinstance(leaf, TensorLike) else leaf for leaf in leaves]


def _by_session(leaves: list[Any], values: list[Any]) -> dict[Session, list[Any]]:
    """Returns the recorded values of tensors and variables, and those of the parts of composites."""
    recorded: dict[Session, list[Any]] = {}
    for leaf, value in zip(leaves, values, strict=True):
        if isinstance(leaf, TensorLike):
            recorded.setdefault(leaf.session, []).append(value)
        elif isinstance(leaf, Composite):
            for part in leaf.parts():
                recorded.setdefault(part.session, []).append(current_value(part))
    return recorded
