"""`tf.control_dependencies`, `tf.group`, `tf.tuple`, `tf.no_op`: ops run in the order of the program anyway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from teletape.core.calls.dispatch import call
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape_engine.catalogue.namespace import ops


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Runs a block after its inputs, which have run already; callables among them are called.

    Args:
        control_inputs: Tensors, or callables; None: none.

    Example:
        tf.control_dependencies([tf.constant(1.0)])
    """
    for control in control_inputs or ():
        if callable(control):
            control()
    yield


def group(*inputs: Any, **kwargs: Any) -> None:
    """Returns None: its inputs have run already.

    Example:
        tf.group(tf.constant(1.0), tf.constant(2.0))
    """


def tuple(tensors: Any, control_inputs: Any = None, name: str | None = None) -> list[Any]:  # TensorFlow's
    """Returns the tensors as a list: all of them have been computed.

    Args:
        tensors: Tensors, slices or None; one of them at least is no None.
        control_inputs: Without effect: they have run already.
        name: Without effect.

    Raises:
        ValueError: There is no tensor.

    Example:
        tf.tuple([tf.constant(1.0), tf.constant(2.0)])
    """
    results = [
        tensor if tensor is None or isinstance(tensor, IndexedSlices) else call(ops.identity, (tensor,))
        for tensor in tensors
    ]
    if all(result is None for result in results):
        raise ValueError(f"Must have at least one Tensor or Operation in tensors: {tensors}")
    return results


def no_op(name: str | None = None) -> None:
    """Does nothing.

    Example:
        tf.no_op()
    """
