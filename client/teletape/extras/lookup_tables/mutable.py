"""`tf.lookup.experimental.MutableHashTable` and `DenseHashTable`: tables that a program changes.

Each call reads its tensors; a tf.function with such a call runs op by op. A checkpoint does not save the tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import Tensor
from teletape.extras.lookup_tables.table import Table
from teletape.tf.files.host import array_of
from teletape_engine.spec import shape_text


class MutableHashTable(Table):
    """A table from keys to values, initially empty.

    Args:
        key_dtype: string, int32 or int64.
        value_dtype: Of the values.
        default_value: The value of keys that are not there; its shape is that of every value.
        name: Without effect.
        checkpoint: Accepted; a checkpoint does not hold the table.
        experimental_is_anonymous: Without effect.

    Raises:
        InvalidArgumentError: Keys of another dtype.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, name)
        self._default = self.entry(default_value)
        self._entries: dict[Any, Any] = {}

    def keys_of(self, keys: Any) -> Any:
        """The values of keys as an array; ValueError for a tensor of another dtype."""
        return array_of(convert_to_tensor(keys, self._key_dtype))

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """Returns the values of keys: [*keys.shape, *value.shape]; for a sparse or ragged tensor one of its structure.

        Args:
            keys: Of the table's dtype.
            dynamic_default_values: A value for each key that is not there; None: the table's default.
            name: Without effect.

        Raises:
            ValueError: Keys of another dtype.
            InvalidArgumentError: Defaults of another shape.
        """
        if isinstance(keys, Composite):
            return keys.with_elements(self.lookup(keys.elements))
        array = self.keys_of(keys)
        shape = (*array.shape, *self._default.shape)
        flat = array.reshape(-1).tolist()
        defaults = [self._default] * len(flat)
        if dynamic_default_values is not None:
            table = self.entry(dynamic_default_values)
            if table.shape not in (shape, self._default.shape):
                raise InvalidArgumentError(f"Expected shape {shape_text(shape)}, got {shape_text(table.shape)}")
            defaults = list(np.broadcast_to(table, shape).reshape((len(flat), *self._default.shape)))
        values = np.empty((len(flat), *self._default.shape), self._default.dtype)
        for place, key in enumerate(flat):
            values[place] = self._entries.get(key, defaults[place])
        return convert_to_tensor(values.reshape(shape), self._value_dtype)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Sets the values of keys; if a key occurs twice, the last value counts.

        Raises:
            ValueError: Keys or values of another dtype.
            InvalidArgumentError: Not one value for each key.
        """
        array, entries = self.keys_of(keys), self.entry(values)
        expected = (*array.shape, *self._default.shape)
        if entries.shape != expected:
            raise InvalidArgumentError(
                f"Expected shape {shape_text(expected)} for value, got {shape_text(entries.shape)}"
            )
        flat = array.reshape(-1).tolist()
        rows = entries.reshape((len(flat), *self._default.shape)).copy()
        self._entries.update(zip(flat, rows, strict=True))

    def __setitem__(self, keys: Any, values: Any) -> None:
        """Sets the values of keys; see `insert`."""
        self.insert(keys, values)

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Removes keys, if they exist; ValueError for another dtype."""
        for key in self.keys_of(keys).reshape(-1).tolist():
            self._entries.pop(key, None)

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of keys, int64."""
        return convert_to_tensor(np.int64(len(self._entries)))

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and their values, in the order in which they were inserted."""
        count = len(self._entries)
        keys = np.empty(count, self._key_dtype.np)
        keys[:] = list(self._entries)
        values = np.empty((count, *self._default.shape), self._default.dtype)
        for place, value in enumerate(self._entries.values()):
            values[place] = value
        return convert_to_tensor(keys, self._key_dtype), convert_to_tensor(values, self._value_dtype)


class DenseHashTable(MutableHashTable):
    """A MutableHashTable with two keys that cannot be used.

    Args:
        key_dtype: As for MutableHashTable.
        value_dtype: The dtype of the values.
        default_value: As for MutableHashTable.
        empty_key: A key that cannot be used.
        deleted_key: Another one.
        initial_num_buckets: Without effect.
        name: Without effect.
        checkpoint: Accepted; a checkpoint does not hold the table.
        experimental_is_anonymous: Without effect.

    Raises:
        InvalidArgumentError: Both keys are the same, or keys of another dtype.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name)
        self._refused: dict[Any, str] = {}
        empty, deleted = self.keys_of(empty_key).item(), self.keys_of(deleted_key).item()
        if empty == deleted:
            raise InvalidArgumentError("Empty and deleted keys cannot be equal")
        self._refused = {empty: "empty_key", deleted: "deleted_key"}

    def keys_of(self, keys: Any) -> Any:
        """The values of keys as an array; InvalidArgumentError for one that cannot be used."""
        array = super().keys_of(keys)
        for key in array.reshape(-1).tolist():
            if key in self._refused:
                raise InvalidArgumentError(f"Using the {self._refused[key]} as a table key is not allowed")
        return array

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Sets the values of keys; see `insert`."""
        self.insert(keys, values)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Removes keys; see `remove`."""
        self.remove(keys)
