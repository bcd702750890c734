"""A recorder without arrays: it follows ops by their specs, so that what a program gives is known before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.slices import GradientKind, SlicesValue, SparseGradient
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.recorder import Recorder, Share
from teletape_engine.recording.values import Literal, Uid, new_uid
from teletape_engine.spec import DType, Spec


class Outline:
    """A value of which only the spec is known."""

    __slots__ = ("__weakref__", "spec", "uid")

    def __init__(self, spec: Spec, uid: Uid | None = None) -> None:
        self.spec = spec
        self.uid = new_uid() if uid is None else uid

    def alias(self, uid: Uid) -> Outline:
        """The same outline of another value."""
        return Outline(self.spec, uid)


class Sketch(Recorder):
    """Follows specs.

    Attributes:
        price: Bytes that the ops followed so far would have allocated.
    """

    bare = Presence()
    decides = False
    outlines = True

    def __init__(self) -> None:
        super().__init__()
        self.price = 0

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Outline:
        self.price += bound.price
        return Outline(bound.spec)

    def constant(self, array: np.ndarray[Any, Any]) -> Outline:
        """An outline of it."""
        return Outline(Spec.of(array.shape, array.dtype))

    def number(self, number: Literal, dtype: DType) -> Outline:
        return Outline(Spec.of((), dtype))

    def full(self, spec: Spec, number: int) -> Outline:
        return Outline(spec)

    def ct(self, value: Any) -> GradientKind:
        return GradientKind.DENSE

    def answer(self, ct: Any, spec: Spec) -> Any:
        if isinstance(ct, SparseGradient):
            return SlicesValue(Outline(ct.values), Outline(ct.indices), ct.dense)
        return Outline(spec)

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Outline:
        return Outline(bound.spec)
