"""Variables whose shape has unknown sizes, which an assignment may change.

An engine variable never changes its shape, so a value of another shape makes a new one for the same Variable.
"""

from __future__ import annotations

import weakref
from typing import Any

from teletape.core.program.tracebacks import report
from teletape.core.sessions.current import current
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.variable import ResourceVariable, V, Variable


class ResizableVariable(ResourceVariable):
    """A variable made with a `shape` in which sizes are unknown. A `tf.function` that uses it runs op by op."""

    def __init__(self, initial_value: Any = None, trainable: bool | None = None, **options: Any) -> None:
        super().__init__(initial_value, trainable, **options)
        self._declared = TensorShape(options["shape"])

    @property
    def shape(self) -> TensorShape:
        """The shape that every value must fit."""
        return self._declared

    def operand(self) -> Any:
        current().check_fixed_shape()
        return super().operand()

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Replaces the value; its shape must fit the variable's. See `Variable.assign`.

        Raises:
            ValueError: It does not fit, or is a tensor of another dtype.
        """
        try:
            owner = current()
            owner.check_fixed_shape()
            operand = self._operand_for(value)
            if not self._declared.is_compatible_with(operand.spec.shape):
                raise ValueError(
                    f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable shape {self.shape}, "
                    f"and the assigned value shape {TensorShape(operand.spec.shape)} are incompatible."
                )
            if operand.spec.shape == self.recorded.spec.shape:
                return self._assign(operand, "set", read_value)
            self.recorded = owner.variable(operand, trainable=self.trainable, name=self.name)
            self.recorded.owner = weakref.ref(self)
            return self if read_value else None
        except BaseException as error:
            report(error)
            raise

    def _same(self, kind: type[V]) -> V:
        return self  # type: ignore[return-value]  # an assignment may replace what it holds

    def standing_for(self, slot: Any) -> Variable:
        """See `Variable.standing_for`."""
        other = super().standing_for(slot)
        other._declared = self._declared  # type: ignore[attr-defined]  # of this class
        return other

    def __deepcopy__(self, memo: Any) -> Variable:
        copied = type(self)(self.read_value(), trainable=self.trainable, name=self._name, shape=self._declared)
        memo[id(self)] = copied
        return copied


ResizableVariable.__name__ = ResizableVariable.__qualname__ = "ResourceVariable"
