"""TensorFlow's warning about functions that are traced again and again."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from teletape.core.functions.signature import GeneralSpec, shape_key
from teletape.core.program import logs
from teletape.core.tensors.indexed_slices import SparseStructure
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.spec import Spec

_HISTORY = 10  # the number of latest calls that count
_MANY = 5  # tracings among them
_WARNINGS = 2
_FUNCTIONS = 1024


class Retracing:
    """Counts the latest calls of one piece of code that were traced, and those that were not."""

    _known: ClassVar[dict[Any, Retracing]] = {}

    def __init__(self) -> None:
        self._calls: list[int] = []
        self._total = 0
        self._warned = 0

    @classmethod
    def of(cls, function: Any) -> Retracing:
        """Returns the counts of the function's code, without decorators: functions made in a loop share them."""
        inner = inspect.unwrap(function)
        inner = getattr(inner, "__func__", inner)
        code = getattr(inner, "__code__", function)
        try:
            counts = cls._known.get(code)
        except TypeError:
            return cls()
        if counts is None:
            if len(cls._known) >= _FUNCTIONS:
                cls._known.clear()
            counts = cls._known[code] = cls()
        return counts

    def reused(self) -> None:
        """Counts a call that needed no tracing."""
        if not self._calls:
            self._calls = [0]
        self._calls[-1] += 1
        self._total += 1

    def traced(self, function: Any) -> None:
        """Counts a call that was traced; too many log TensorFlow's warning, twice at most."""
        self._total += 1
        self._calls.append(1)
        while self._total - self._calls[0] > _HISTORY:
            self._total -= self._calls.pop(0)
        if self._warned < _WARNINGS and len(self._calls) >= _MANY:
            self._warned += 1
            logs.get_logger().warning(
                f"{len(self._calls)} out of the last {self._total} calls to {function} triggered tf.function "
                "retracing. Tracing is expensive and the excessive number of tracings could be due to (1) creating "
                "@tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) passing Python "
                "objects instead of tensors. For (1), please define your @tf.function outside of the loop. For (2), "
                "@tf.function has reduce_retracing=True option that can avoid unnecessary retracing. For (3), please "
                "refer to https://www.tensorflow.org/guide/function#controlling_retracing and "
                "https://www.tensorflow.org/api_docs/python/tf/function for  more details."
            )


class TracingCount:
    """Counts traces as TensorFlow does, which has one trace for all shapes that fit a more general shape.

    Here every shape is traced by itself.

    Args:
        relaxes: Whether a second shape makes the trace general, as `reduce_retracing` does.

    Attributes:
        number: The count.
    """

    def __init__(self, *, relaxes: bool) -> None:
        self.number = 0
        self._relaxes = relaxes
        self._traced: dict[Any, list[list[TensorShape]]] = {}  # by the signature without shapes

    def add(self, key: Any, shapes: list[TensorShape] | None = None) -> bool:
        """Counts a new signature, and returns whether TensorFlow would trace for it.

        Args:
            key: The signature, as `key_of` returns it.
            shapes: More general shapes, of an input signature; None: those of the key.
        """
        own: list[TensorShape] = []
        traced = self._traced.setdefault(without_shapes(key, own), [])
        if any(len(known) <= len(own) and all(map(_covers, known, own)) for known in traced):
            return False
        if shapes is None and self._relaxes and traced:
            shapes = [_common(first, second) for first, second in zip(traced[-1], own, strict=True)]
        traced.append(own if shapes is None else shapes)
        self.number += 1
        return True


def without_shapes(key: Any, shapes: list[TensorShape]) -> Any:
    """Returns a signature's key without the shapes in it, which are appended to `shapes`."""
    if isinstance(key, Spec | GeneralSpec):
        shapes.append(TensorShape(key.shape))
        return key.dtype
    if isinstance(key, SparseStructure):
        shapes.append(TensorShape(key.lengths))
        return key.kind
    return tuple([without_shapes(part, shapes) for part in key]) if isinstance(key, tuple) else key


def _covers(general: TensorShape, shape: TensorShape) -> bool:
    return shape.is_subtype_of(general)


def _common(first: TensorShape, second: TensorShape) -> TensorShape:
    """Returns the most specific shape that covers both."""
    sizes, others = shape_key(first), shape_key(second)
    if sizes is None or others is None or len(sizes) != len(others):
        return TensorShape(None)
    return TensorShape([size if size == other else None for size, other in zip(sizes, others, strict=True)])
