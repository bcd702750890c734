"""`tf.RegisterGradient`: the program's own gradient for a type of ops that has none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from teletape.core.calls import dispatch
from teletape.core.derivatives.custom_gradient import as_cotangent
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes
from teletape.core.tensors.indexed_slices import wrap
from teletape_engine.derivatives.query import Stop
from teletape_engine.errors import InternalError, InvalidArgumentError, TeletapeError
from teletape_engine.recording.values import Literal


class RegisterGradient:
    """Decorates a function that becomes the gradient of a type of ops, in the current session from now on.

    The function takes `(op, *upstream)` and returns a cotangent, or None, for each input of the op; for an op of one
    input that cotangent alone. `op` has `type`, `inputs`, `outputs` (tuples of tensors) and `get_attr(name)`. It is
    called in each backward pass that comes to such an op, also to one that ran before the registration.

    Args:
        op_type: TensorFlow's op type, as `gradient registry has no entry for: …` names it.

    Raises:
        TypeError: `op_type` is no string.
        KeyError: The type is registered, or declared to have no gradient.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Registers `f`, and returns it."""
        owner = current()
        try:
            owner.register_gradient(self._op_type, functools.partial(_cotangents, f))
        except TeletapeError as error:
            raise error.surfaced() from None
        return f


class _Op:
    """An op as a registered function sees it.

    Attributes:
        type: TensorFlow's op type.
        inputs: A tuple of its inputs.
        outputs: A tuple of its results.
    """

    def __init__(self, owner: Session, stop: Stop) -> None:
        self.type = stop.bound.op_type
        inputs, results = stop.residuals[: len(stop.inputs)], stop.residuals[len(stop.inputs) :]
        self.inputs = tuple(
            dispatch.constant(value.array, dtypes.as_dtype(spec.dtype))
            if isinstance(value, Literal)
            else wrap(value, owner)
            for value, spec in zip(inputs, stop.bound.specs, strict=True)
        )
        self.outputs = tuple([wrap(result, owner) for result in results])
        self._bound = stop.bound

    def get_attr(self, name: str) -> Any:
        """Returns the op's attribute; `T` is the dtype of its first input.

        Raises:
            InvalidArgumentError: It has no attribute of that name.
        """
        if name in self._bound.attrs:
            return self._bound.attrs[name]
        if name == "T":
            return self.inputs[0].dtype
        raise InvalidArgumentError(f"Attribute '{name}' does not exist for this operation")


def _cotangents(f: Callable[..., Any], stop: Stop) -> list[Any]:
    """Calls the registered function where a backward pass stops."""
    owner = current()
    returned = f(_Op(owner, stop), *[wrap(ct, owner) for ct in stop.cts])
    grads = list(returned) if isinstance(returned, list | tuple) else [returned]
    specs = stop.bound.specs
    if len(grads) != len(specs):
        raise InternalError(
            f"Recorded operation '{stop.bound.op_type}' returned too few gradients. Expected {len(specs)} but "
            f"received {len(grads)}"
        )
    return [as_cotangent(gradient, spec) for gradient, spec in zip(grads, specs, strict=True)]
