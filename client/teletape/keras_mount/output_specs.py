"""Keras's `compute_output_spec`: shapes and dtypes of a function's results, without computing and without a request.

TensorFlow builds a graph with unknown sizes. Teletape traces the function twice, with different numbers for unknown
sizes: a size of the result that differs between the traces is unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from teletape.core.functions.trace import trace_gradient
from teletape.core.functions.tracing_session import TracingSession
from teletape.core.sessions.current import current, inside
from teletape.core.tensors.dtypes import as_dtype
from teletape.core.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.spec import Spec

#: Substitutes for an unknown size in the two traces. All have many divisors: functions split and reshape.
#: The second pair is used if the function raises an error with the first; each number up to 15 divides it.
_SIZES: Final = ((120, 168), (360360, 720720))


def compute_output_spec(core: ModuleType, tree: Any) -> Callable[..., Any]:
    """Returns the function for Keras's backend.

    Args:
        core: `keras.src.backend.tensorflow.core`.
        tree: `keras.src.tree`.
    """
    keras_tensor: Any = core.KerasTensor

    def traced(fn: Callable[..., Any], args: Any, kwargs: Any, size: int) -> Any:
        session = TracingSession(current(), trace_gradient)
        session.deferred = []

        def symbolic(leaf: Any) -> Any:
            if not isinstance(leaf, keras_tensor):
                return leaf
            shape = tuple([size if length is None else length for length in leaf.shape])
            spec = Spec.of(shape, as_dtype(leaf.dtype).np)
            return EagerTensor(session.log.new_symbol(spec, "keras_tensor:0"), session)

        def body() -> Any:
            symbolic_args, symbolic_kwargs = tree.map_structure(symbolic, (args, kwargs))
            return fn(*symbolic_args, **symbolic_kwargs)

        with core.StatelessScope(), core.SymbolicScope():
            return inside(session, body)

    def both(fn: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
        try:
            return traced(fn, args, kwargs, _SIZES[0][0]), traced(fn, args, kwargs, _SIZES[0][1])
        except Exception:
            with contextlib.suppress(Exception):  # the first error is the one to report
                return traced(fn, args, kwargs, _SIZES[1][0]), traced(fn, args, kwargs, _SIZES[1][1])
            raise

    def compute(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        leaves = tree.flatten((args, kwargs))
        unknown = any(isinstance(leaf, keras_tensor) and None in leaf.shape for leaf in leaves)
        if not unknown:
            first = second = traced(fn, args, kwargs, _SIZES[0][0])
        else:
            first, second = both(fn, args, kwargs)

        def described(leaf: Any, other: Any) -> Any:
            if not isinstance(leaf, TensorLike):
                return leaf
            shape = [length if length == after else None for length, after in zip(leaf.shape, other.shape, strict=True)]
            return keras_tensor(shape, core.standardize_dtype(leaf.dtype))

        return tree.map_structure(described, first, second)

    return compute
