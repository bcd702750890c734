"""Operands: recorded values inside rules, and the runtimes that run ops on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from teletape_engine.catalogue.namespace import ops
from teletape_engine.spec import DType, Number


class Runtime:
    """Runs ops on operands: a recorder (with arrays), a batching runtime, or abstract evaluation (specs alone)."""

    def call(self, op: Any, args: Sequence[Any], attrs: Mapping[str, Any]) -> Operand:
        """Runs `op` on operands and Python numbers, and records it; returns a tuple for several results."""
        raise NotImplementedError  # pragma: no cover - abstract


class Operand:
    """A recorded value inside a rule: behaves as an array does, and everything done with it is recorded too.

    `value` is the runtime's own record of it: shape and dtype are known, the elements may not be.
    """

    __slots__ = ("runtime", "value")
    __array_ufunc__ = None  # NumPy must not take it apart: `array * operand` comes to __rmul__

    def __init__(self, runtime: Runtime, value: Any) -> None:
        self.runtime, self.value = runtime, value

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.value.spec.shape  # type: ignore[no-any-return]  # the runtime's record

    @property
    def dtype(self) -> DType:
        """The NumPy dtype."""
        return self.value.spec.dtype  # type: ignore[no-any-return]  # the runtime's record

    def __add__(self, other: Any) -> Operand:
        return self.runtime.call(ops.add, (self, other), {})

    def __radd__(self, other: Any) -> Operand:
        return self.runtime.call(ops.add, (other, self), {})

    def __sub__(self, other: Any) -> Operand:
        return self.runtime.call(ops.sub, (self, other), {})

    def __rsub__(self, other: Any) -> Operand:
        return self.runtime.call(ops.sub, (other, self), {})

    def __mul__(self, other: Any) -> Operand:
        return self.runtime.call(ops.mul, (self, other), {})

    def __rmul__(self, other: Any) -> Operand:
        return self.runtime.call(ops.mul, (other, self), {})

    def __truediv__(self, other: Any) -> Operand:
        return self.runtime.call(ops.div, (self, other), {})

    def __rtruediv__(self, other: Any) -> Operand:
        return self.runtime.call(ops.div, (other, self), {})

    def __pow__(self, other: Any) -> Operand:
        return self.runtime.call(ops.pow, (self, other), {})

    def __neg__(self) -> Operand:
        return self.runtime.call(ops.neg, (self,), {})

    def __lt__(self, other: Any) -> Operand:
        return self.runtime.call(ops.less, (self, other), {})

    def __le__(self, other: Any) -> Operand:
        return self.runtime.call(ops.less_equal, (self, other), {})

    def __gt__(self, other: Any) -> Operand:
        return self.runtime.call(ops.greater, (self, other), {})

    def __ge__(self, other: Any) -> Operand:
        return self.runtime.call(ops.greater_equal, (self, other), {})

    def __eq__(self, other: object) -> Any:
        return self.runtime.call(ops.equal, (self, other), {})

    def __ne__(self, other: object) -> Any:
        return self.runtime.call(ops.not_equal, (self, other), {})

    __hash__ = None  # type: ignore[assignment]  # == is elementwise


Term: TypeAlias = Operand | Number  #: What a rule calls an op on.
