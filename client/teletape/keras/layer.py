"""`tf.keras.layers.Layer`: the base class of layers: variables, building, conversion of inputs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from teletape.keras import initializers, names
from teletape.keras.variable import Variable
from teletape.ops.derived.cast import cast
from teletape.ops.dispatch import constant
from teletape.tensors import nest
from teletape.tensors.dtypes import as_dtype
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.tensors.tensor_shape import as_shape
from teletape.variables.variable import Variable as Watched

__all__ = ["Layer"]


def _building(build: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(build)
    def once(layer: Layer, *args: Any, **kwargs: Any) -> None:
        if layer._building:  # super().build() of an overriding one
            build(layer, *args, **kwargs)
            return
        layer._building = not layer.built
        try:
            with names.inside(layer, layer.name):
                build(layer, *args, **kwargs)
        finally:
            layer._building = False
        layer.built = True

    return once


class Layer:
    """A computation, `call`, with its variables, which `build` makes when the first input's shape is known.

    Variables made by `add_weight` or held in attributes, and those of layers held in attributes, lists, tuples and
    dicts there, are the layer's. NumPy arrays passed to it become tensors; floating inputs take its dtype.

    Args:
        name: Without a slash; the class name in snake case, made unique, if None.
        dtype: Of variables and of the computation: float32 if None.
        trainable: Whether its variables are listed as trainable.

    Raises:
        ValueError: A bad name, an unknown keyword.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in vars(cls):  # whoever calls it, its variables get the path, and it happens once
            cls.build = _building(cls.build)  # type: ignore[method-assign]  # a wrapper of the same signature

    def __init__(self, *, name: str | None = None, dtype: Any = None, trainable: bool = True, **kwargs: Any) -> None:
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}")
        self.name = names.unique_name(type(self).__name__) if name is None else names.checked(name, with_type=True)
        self.built = False
        self._dtype = as_dtype(dtype or "float32")
        self._trainable = bool(trainable)
        self._weights: list[Variable] = []
        self._fixed_weights: list[Variable] = []
        self._building = False

    @property
    def dtype(self) -> str:
        """The dtype of its variables, by name."""
        return self._dtype.name

    @property
    def variable_dtype(self) -> str:
        """The same as `dtype`."""
        return self._dtype.name

    @property
    def compute_dtype(self) -> str:
        """The dtype that floating inputs are cast to; the same as `dtype`."""
        return self._dtype.name

    @property
    def trainable(self) -> bool:
        """Whether its variables are listed as trainable; setting it sets it for each of them, and for inner layers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for variable in self.variables:
            variable.trainable = self._trainable
        for layer in self._layers():
            layer.trainable = self._trainable

    @property
    def variables(self) -> list[Variable]:
        """Its own variables, those made trainable first, then those of inner layers, in the order of attributes."""
        inner = [leaf for leaf in self._attribute_leaves() if isinstance(leaf, Variable)]
        fixed = {id(variable) for variable in self._fixed_weights}
        own = [*self._weights, *(variable for variable in inner if id(variable) not in fixed), *self._fixed_weights]
        inner = [variable for layer in self._layers() for variable in layer.variables]
        return list({id(variable): variable for variable in [*own, *inner]}.values())

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of `variables` that are trainable; none if the layer is not."""
        return [variable for variable in self.variables if self._trainable and variable.trainable]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Those of `variables` that are not among `trainable_variables`."""
        return [variable for variable in self.variables if not (self._trainable and variable.trainable)]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def count_params(self) -> int:
        """How many numbers its variables hold.

        Raises:
            ValueError: The layer has not been built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer '{self.name}', but the layer isn't built. "
                "You can build it manually via: `layer.build(input_shape)`."
            )
        return sum(variable.shape.num_elements() or 0 for variable in self.variables)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """The values of `variables`."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights: list[Any]) -> None:
        """Assign `weights`, arrays in the order of `get_weights`.

        Raises:
            ValueError: Another number of them, or another shape; then nothing is assigned.
        """
        variables = self.variables
        if len(variables) != len(weights):
            raise ValueError(
                f"You called `set_weights(weights)` on layer '{self.name}' with a weight list of length "
                f"{len(weights)}, but the layer was expecting {len(variables)} weights."
            )
        for variable, weight in zip(variables, weights, strict=True):
            if variable.shape != np.shape(weight):
                raise ValueError(
                    f"Layer {self.name} weight shape {variable.shape} is not compatible with provided weight shape "
                    f"{np.shape(weight)}."
                )
        for variable, weight in zip(variables, weights, strict=True):
            variable.assign(weight)

    def add_weight(
        self,
        shape: Any = (),
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> Variable:
        """A new variable of this layer.

        Args:
            shape: Sizes, all known.
            initializer: As `initializers.get` takes it; if None, glorot_uniform for a floating dtype, else zeros.
            dtype: The layer's if None.
            trainable: Whether it is listed as trainable.
            name: "variable", "variable_1", … if None.

        Raises:
            ValueError: The layer has been built, or what `keras.Variable` raises.
        """
        if self.built and not self._building:
            raise ValueError(
                "You cannot add new elements of state (variables or sub-layers) to a layer that is already built. All "
                "state must be created in the `__init__()` method or in the `build()` method."
            )
        of = self._dtype if dtype is None else as_dtype(dtype)
        if initializer is None:
            initializer = "glorot_uniform" if of.is_floating else "zeros"
        with names.inside(self, self.name):
            weight = Variable(initializers.get(initializer), shape=shape, dtype=of, trainable=trainable, name=name)
        weight.trainable = trainable and self._trainable
        (self._weights if trainable else self._fixed_weights).append(weight)
        return weight

    def build(self, input_shape: Any) -> None:
        """Make the variables for a first input of `input_shape`, a tuple. Made to be overridden."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Made to be overridden."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call` method implemented.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`call` on these inputs; `build` before, the first time.

        Raises:
            ValueError: A positional argument is neither tensor nor array, or does not fit the layer.
            RuntimeError: A subclass did not call `super().__init__()`.
        """
        if not hasattr(self, "_weights"):
            raise RuntimeError(
                f"In layer '{type(self).__name__}', you forgot to call `super().__init__()` as the first statement "
                "in the `__init__()` method. Go add it!"
            )
        if not self.built or kwargs or len(args) != 1 or not self._ready(args[0]):
            args, kwargs = self._inputs(args, kwargs)
        first = args[0] if args else next(iter(kwargs.values()), None)
        self._check(first)
        with names.inside(self, self.name):
            if not self.built:
                self.build(nest.map_structure(_sizes, first))
                self.built = True
            return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"

    def _ready(self, x: Any) -> bool:
        return isinstance(x, EagerTensor | Watched) and (x.dtype is self._dtype or not x.dtype.is_floating)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `call`: arrays as tensors, floating ones in the layer's dtype."""
        args, kwargs = nest.map_structure(self._input, (args, kwargs))
        for arg in nest.flatten(args):
            if arg is not None and not isinstance(arg, TensorLike):
                raise ValueError(
                    "Only input tensors may be passed as positional arguments. The following argument value should be "
                    f"passed as a keyword argument: {arg} (of type {type(arg)})"
                )
        signature = inspect.signature(self.call)
        takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
        if "training" not in signature.parameters and not takes_any:
            kwargs.pop("training", None)
        signature.bind(*args, **kwargs)  # raises here, before anything is built
        return args, kwargs

    def _input(self, x: Any) -> Any:
        if isinstance(x, np.ndarray | np.generic):
            own = as_dtype(x.dtype)
            return constant(x, dtype=self._dtype if own.is_floating else own)
        if not isinstance(x, TensorLike) or self._ready(x):
            return x
        return cast(x, self._dtype)

    def _check(self, x: Any) -> None:
        """Raise ValueError if the first input does not fit. Made to be overridden."""

    def _attribute_leaves(self) -> list[Any]:
        return [leaf for value in vars(self).values() for leaf in nest.flatten(value)]

    def _layers(self) -> Iterator[Layer]:
        return (leaf for leaf in self._attribute_leaves() if isinstance(leaf, Layer))


def _sizes(x: Any) -> Any:
    return tuple(as_shape(x.shape)) if hasattr(x, "shape") else None
