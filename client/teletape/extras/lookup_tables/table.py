"""The base class of the tables of `tf.lookup`."""

from __future__ import annotations

from typing import Any

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import TensorLike
from teletape.extras.lookup_tables.entries import KEYS, Typed
from teletape.tf.files.host import array_of


class Table(Typed):
    """The base class of tables: dtypes of keys and values, and the entries by key, as Python's numbers or bytes."""

    def __init__(self, key_dtype: Any, value_dtype: Any, name: str | None) -> None:
        super().__init__(dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype))
        if self._key_dtype not in KEYS:
            raise InvalidArgumentError(f"keys must be string, int32 or int64, found {self._key_dtype.name}")
        self._name = name

    @property
    def name(self) -> str | None:
        """The name that was given."""
        return self._name

    def lookup(self, keys: Any) -> Any:
        """Returns the values of keys, in their shape."""
        raise NotImplementedError  # pragma: no cover - abstract

    def __getitem__(self, keys: Any) -> Any:
        """Returns the values of keys; see `lookup`."""
        return self.lookup(keys)

    def keys_of(self, keys: Any) -> Any:
        """The values of keys as an array.

        Raises:
            TypeError: Another dtype than that of the table's keys.
        """
        tensor = keys if isinstance(keys, TensorLike) else convert_to_tensor(keys, self._key_dtype)
        if tensor.dtype is not self._key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self._key_dtype}, received: {tensor.dtype}")
        return array_of(convert_to_tensor(tensor))

    def entry(self, value: Any) -> Any:
        """A value of this table as an array; ValueError or TypeError for another dtype."""
        return array_of(convert_to_tensor(value, self._value_dtype))
