"""`tf.control_dependencies`, `tf.group`, `tf.no_op`: ops run in the order of the program anyway, also in a function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["control_dependencies", "group", "no_op"]


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Runs a block after its inputs, which have run already; callables among them are called.

    Args:
        control_inputs: Tensors, or callables; None: none.
    """
    for control in control_inputs or ():
        if callable(control):
            control()
    yield


def group(*inputs: Any, **kwargs: Any) -> None:
    """Returns None: its inputs have run already."""


def no_op(name: str | None = None) -> None:
    """Does nothing."""
