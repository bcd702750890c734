"""The base class of Keras's variables: ops, tapes and functions use the `tf.Variable` that one of them holds."""

from __future__ import annotations

from typing import Any

from teletape.core.tensors.tensor import TensorLike
from teletape.core.tensors.variable_wrapper import VariableWrapper


class KerasVariableBase(VariableWrapper):
    """The base class of `keras.Variable`, in place of TensorFlow's internal tensor type."""

    value: Any  # Keras's property: the variable, or its value in the dtype of an autocast scope

    def wrapped(self) -> TensorLike:
        value: TensorLike = self.value
        return value
