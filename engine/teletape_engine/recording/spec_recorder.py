"""The recorder without arrays: it follows ops by their specs alone (abstract evaluation), for every purpose.

The SDK's recorders of a remote session and of a trace derive from it; they add what their values know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.slices import GradientKind, SlicesValue, SparseGradient
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.recorder import Mode, Recorder, Share
from teletape_engine.recording.values import Literal, SpecValue
from teletape_engine.spec import DType, Spec


class SpecRecorder(Recorder):
    """Follows ops by their specs.

    Attributes:
        price: Bytes that the ops followed so far would have allocated.
    """

    bare = Presence()
    mode = Mode.CONNECTS

    def __init__(self) -> None:
        super().__init__()
        self.price = 0

    def new_value(self, spec: Spec) -> Any:
        """A new value of that spec; subclasses with values of their own override it."""
        return SpecValue(spec)

    def new_values(self, bound: Bound) -> Any:
        """A new value for the result of a call; a tuple for several."""
        if bound.selects:
            return tuple(map(self.new_value, bound.outputs))
        return self.new_value(bound.spec)

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        """A value of the result's spec; of several results a tuple."""
        self.price += bound.price
        return self.new_values(bound)

    def constant(self, array: np.ndarray[Any, Any]) -> Any:
        """A value of the array's spec."""
        return self.new_value(Spec.of(array.shape, array.dtype))

    def number(self, number: Literal, dtype: DType) -> Any:
        """A scalar of that dtype."""
        return self.new_value(Spec.of((), dtype))

    def full(self, spec: Spec, number: int) -> Any:
        """A value of that spec."""
        return self.new_value(spec)

    def ct(self, value: Any) -> GradientKind | SparseGradient:
        """The structure of a cotangent."""
        if isinstance(value, SlicesValue):
            return SparseGradient(value.values.spec, value.indices.spec, value.dense)
        return GradientKind.DENSE

    def answer(self, ct: Any, spec: Spec) -> Any:
        """A value for the structure of a cotangent."""
        if isinstance(ct, SparseGradient):
            return SlicesValue(self.new_value(ct.values), self.new_value(ct.indices), ct.dense)
        return self.new_value(spec)

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Any:
        """A value of the result's spec; of several a tuple."""
        if bound.selects:
            return tuple([self.new_value(spec) if spec.differentiable else None for spec in bound.outputs])
        return self.new_value(bound.spec)
