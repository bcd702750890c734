"""`tf.keras.layers.Dense`: a dense layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teletape.keras import activations, initializers
from teletape.keras.layer import Layer
from teletape.keras.variable import Variable
from teletape.ops.derived.cast import cast

if TYPE_CHECKING:
    from teletape.ops.arguments import TensorInput
    from teletape.tensors.tensor import Tensor

__all__ = ["Dense"]


class Dense(Layer):
    """`activation(inputs @ kernel + bias)`: inputs (batch, …, n), outputs (batch, …, units).

    Args:
        units: Size of the outputs' last axis, a positive int.
        activation: As `activations.get` takes it; none if None.
        use_bias: Whether to add a bias.
        kernel_initializer: As `initializers.get` takes it; of shape (n, units).
        bias_initializer: The same; of shape (units,).
        kwargs: Those of `Layer`.

    Attributes:
        kernel: The weights, once the layer is built.
        bias: The bias, or None without one; once the layer is built.

    Raises:
        ValueError: `units` is no positive integer; a bad name, an unknown keyword.
    """

    if TYPE_CHECKING:

        def __call__(self, inputs: TensorInput) -> Tensor: ...

    def __init__(
        self,
        units: Any,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        if not isinstance(units, int) or units <= 0:
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. Received: units={units}"
            )
        super().__init__(**kwargs)
        self.units = units
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)

    @property
    def kernel(self) -> Variable:
        """The weights, of shape (n, units).

        Raises:
            AttributeError: The layer has not been built.
        """
        if not self.built:
            raise AttributeError("You must build the layer before accessing `kernel`.")
        return self._kernel

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias for inputs of `input_shape`, of which the last size must be known."""
        self._kernel = self.add_weight((input_shape[-1], self.units), self.kernel_initializer, name="kernel")
        self.bias = self.add_weight((self.units,), self.bias_initializer, name="bias") if self.use_bias else None

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """The outputs; `training` changes nothing."""
        x: Any = inputs if inputs.dtype.is_floating else cast(inputs, self._dtype)
        y = x @ self._kernel
        return self.activation(y if self.bias is None else y + self.bias)

    def _check(self, x: Any) -> None:
        if not hasattr(x, "shape"):
            raise ValueError(
                f"Inputs to a layer should be tensors. Got '{x}' (of type {type(x)}) as input for layer '{self.name}'."
            )
        shape, wrong = x.shape, None
        if len(shape) < 2:
            wrong = f"expected min_ndim=2, found ndim={len(shape)}. Full shape received: {shape}"
        elif self.built and shape[-1] != self._kernel.shape[0]:
            wrong = (
                f"expected axis -1 of input shape to have value {self._kernel.shape[0]}, "
                f"but received input with shape {shape}"
            )
        if wrong:
            raise ValueError(f"Input 0 with name 'None' of layer '{self.name}' is incompatible with the layer: {wrong}")
