"""`tf.keras.Variable`: a variable with a path in place of TensorFlow's name, and Keras's rules of assignment."""

from __future__ import annotations

import weakref
from typing import Any

from teletape.keras import initializers, names
from teletape.ops.derived.cast import cast
from teletape.ops.dispatch import convert_to_tensor
from teletape.tensors.dtypes import DType, as_dtype
from teletape.tensors.tensor import TensorLike
from teletape.tensors.tensor_shape import as_shape
from teletape.variables.variable import ResourceVariable
from teletape.variables.variable import Variable as Watched


class Variable(Watched):
    """A variable as layers make them: `name` is "kernel", `path` "dense/kernel".

    Assignment casts to the variable's dtype and gives the value assigned (TensorFlow's variables refuse to cast, and
    give themselves). Unlike Keras's it is a `tf.Variable`, so that ops and tapes need to know nothing of it.

    Args:
        initializer: The value; or an initializer, its name, or another callable of shape and dtype.
        shape: For a callable: the sizes, all known.
        dtype: If None, float32 for a callable, else the value's own.
        trainable: Whether layers list it as trainable. It may change; tapes watch it as it was made.
        name: Without a slash; "variable", "variable_1", … if None.

    Raises:
        ValueError: A callable without a shape or of another shape, an unknown size, a bad name.
    """

    def __init__(
        self, initializer: Any, shape: Any = None, dtype: Any = None, trainable: bool = True, name: str | None = None
    ) -> None:
        self._short_name = names.checked(names.unique_name("Variable") if name is None else name)
        self._path = names.path_of(self._short_name)
        self._listed = bool(trainable)
        if isinstance(initializer, str):
            initializer = initializers.get(initializer)
        if callable(initializer):
            dtype = as_dtype("float32" if dtype is None else dtype)
            initializer = self._initial(initializer, shape, dtype)
        super().__init__(initializer, trainable=trainable, dtype=dtype, name=self._path)
        self._inner = self._same(ResourceVariable)
        self.recorded.owner = weakref.ref(self._inner)

    def _initial(self, initializer: Any, shape: Any, dtype: DType) -> Any:
        if shape is None:
            raise ValueError(
                "When creating a Variable from an initializer, the `shape` argument should be specified. "
                f"Received: initializer={initializer} and shape={shape}"
            )
        wanted = as_shape(shape)
        if not wanted.is_fully_defined():
            raise ValueError(
                "Shapes used to initialize variables must be fully-defined (no `None` dimensions). "
                f"Received: shape={wanted} for variable path='{self._path}'"
            )
        value = initializer(tuple(wanted), dtype=dtype.name)
        if hasattr(value, "shape") and as_shape(value.shape) != wanted:
            raise ValueError(
                f"The initializer of variable path='{self._path}' was asked for shape {wanted} "
                f"and gave shape {as_shape(value.shape)}"
            )
        return value

    @property
    def name(self) -> str:
        """The name given, without the layers around it."""
        return self._short_name

    @property
    def path(self) -> str:
        """The name after the names of the layers inside which the variable was made."""
        return self._path

    @property
    def value(self) -> Any:  # type: ignore[override]  # a method of TensorFlow's variables
        """The `tf.Variable` that holds the value, which tapes list: its name is the path with ":0"."""
        return self._inner

    @property
    def trainable(self) -> bool:
        """Whether layers list it as trainable."""
        return self._listed

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._listed = bool(value)

    def assign(self, value: Any) -> Any:  # type: ignore[override]  # Keras's signature
        """Set the value, cast to the variable's dtype; gives it as a tensor.

        Raises:
            ValueError: The shapes differ.
        """
        value = cast(value, self.dtype) if isinstance(value, TensorLike) else convert_to_tensor(value, self.dtype)
        if value.shape != self.shape:
            raise ValueError(
                "The shape of the target variable and the shape of the target value in `variable.assign(value)` must "
                f"match. variable.shape={self.shape}, Received: value.shape={value.shape}. Target variable: {self}"
            )
        super().assign(value)
        return value

    def assign_add(self, value: Any) -> Any:  # type: ignore[override]  # Keras's signature
        """Add `value`, which may broadcast; gives the new value as a tensor."""
        return self.assign(self + value)

    def assign_sub(self, value: Any) -> Any:  # type: ignore[override]  # Keras's signature
        """Subtract `value`, which may broadcast; gives the new value as a tensor."""
        return self.assign(self - value)

    def __deepcopy__(self, memo: Any) -> Variable:
        memo[id(self)] = copied = Variable(self.read_value(), trainable=self.recorded.trainable, name=self._short_name)
        copied._path, copied._listed = self._path, self._listed
        return copied

    def __bool__(self) -> bool:
        raise TypeError("A Keras Variable cannot be used as a boolean.")

    def __repr__(self) -> str:
        value = self.numpy()
        return f"<Variable path={self._path}, shape={self.shape}, dtype={self.dtype.name}, value={value!s}>"

    __str__ = __repr__
