"""The protocol of objects that hold a `tf.Variable`, as Keras's variables do: the SDK uses that variable."""

from __future__ import annotations

from typing import Any

from teletape.core.sessions.session import Session
from teletape.core.tensors.tensor import EagerTensor, TensorLike


class VariableWrapper(TensorLike):
    """A tensor-like object of another library that holds a `tf.Variable`.

    Ops, tapes and functions use `wrapped()` in its place.
    """

    __slots__ = ()

    def wrapped(self) -> TensorLike:
        """Returns the variable, or a tensor that replaces it for the moment, such as its value in another dtype."""
        raise NotImplementedError  # pragma: no cover - abstract

    def operand(self) -> Any:
        return self.wrapped().operand()

    @property
    def recorded(self) -> Any:
        """The recorder's value, or the engine's variable."""
        return self.wrapped().recorded

    @property
    def session(self) -> Session:  # type: ignore[override]  # an attribute of tensors
        """The session that the variable belongs to."""
        return self.wrapped().session


def unwrapped(value: Any) -> Any:
    """Returns the variable that a `VariableWrapper` holds; any other value unchanged."""
    if value.__class__ is EagerTensor:
        return value
    return value.wrapped() if isinstance(value, VariableWrapper) else value
