"""`tf.function`: accepted, and called through; every op inside means what it means outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from teletape import nest
from teletape.calling import constant


def function(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A decorator, with or without arguments: the function runs op by op, and what it returns becomes tensors.

    Args:
        func: The function.
        **options: input_signature, jit_compile, reduce_retracing, …: accepted, without effect.
    """
    if func is None:
        return functools.partial(function, **options)

    @functools.wraps(func)
    def call_through(*args: Any, **kwargs: Any) -> Any:
        return nest.map_structure(_result, func(*args, **kwargs))

    call_through.python_function = func  # type: ignore[attr-defined]  # TensorFlow's attribute
    return call_through


def _result(leaf: Any) -> Any:
    known = isinstance(leaf, bool | int | float | complex | str | bytes | np.ndarray | np.generic)
    return constant(leaf) if known else leaf
