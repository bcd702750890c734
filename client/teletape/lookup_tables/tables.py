"""`tf.lookup.StaticHashTable` and `tf.lookup.StaticVocabularyTable`: tables that do not change.

A lookup reads its keys: over HTTP a round trip, and in a tf.function the function runs op by op. Looking up has no
gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.errors import FailedPreconditionError, InvalidArgumentError
from teletape.files.hashes import farmhash64
from teletape.files.host import array_of
from teletape.lookup_tables.entries import KEYS, Initializer
from teletape.ops.dispatch import convert_to_tensor
from teletape.program.tracebacks import reports_methods
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape.tensors.indexed_slices import SparseValue
from teletape.tensors.tensor import Tensor, TensorLike

__all__ = ["StaticHashTable", "StaticVocabularyTable"]


class Table:
    """What all tables have: the dtypes of their keys and values, and entries by key, as Python's numbers or bytes."""

    def __init__(self, key_dtype: Any, value_dtype: Any, name: str | None) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        if self._key_dtype not in KEYS:
            raise InvalidArgumentError(f"keys must be string, int32 or int64, found {self._key_dtype.name}")
        self._name = name

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value_dtype

    @property
    def name(self) -> str | None:
        """The name that was given."""
        return self._name

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


@reports_methods
class StaticHashTable(Table):
    """A table from keys to values that does not change.

    Args:
        initializer: The keys and values.
        default_value: The value of keys that are not there.
        name: Without effect.
        experimental_is_anonymous: Without effect.

    Raises:
        FailedPreconditionError: A key with two values.
        InvalidArgumentError: Keys of another dtype than string, int32 and int64; not one value for each key.
        TypeError: A default value of another dtype.
    """

    def __init__(
        self,
        initializer: Initializer,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype, name)
        self._default = convert_to_tensor(default_value, self._value_dtype)
        self._default_value = array_of(self._default)
        keys, values = initializer.arrays()
        self._places: dict[Any, int] = {}
        chosen: list[int] = []
        for place, key in enumerate(keys.tolist()):
            known = self._places.setdefault(key, len(chosen))
            if known == len(chosen):
                chosen.append(place)
            elif values[chosen[known]] != values[place]:
                raise FailedPreconditionError(
                    f"HashTable has different value for same key. Key {_shown(key)} has {_shown(values[chosen[known]])}"
                    f" and trying to add value {_shown(values[place])}"
                )
        self._entries, self._members = values[chosen], keys[chosen]

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return self._default

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the values of keys, in their shape; of a sparse tensor a sparse tensor.

        Raises:
            TypeError: Keys of another dtype.
        """
        if isinstance(keys, SparseValue):
            return keys.of_parts(self.lookup(keys.values), keys.indices, keys.shape)
        array = self.keys_of(keys)
        places = [self._places.get(key, -1) for key in array.reshape(-1).tolist()]
        choices = np.append(self._entries, self._default_value.reshape(1)).astype(self._entries.dtype, copy=False)
        return convert_to_tensor(choices[places].reshape(array.shape), self._value_dtype)

    def __getitem__(self, keys: Any) -> Any:
        """As lookup."""
        return self.lookup(keys)

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of keys, int64."""
        return convert_to_tensor(np.int64(len(self._places)))

    def arrays(self) -> tuple[Any, Any]:
        """All keys and their values, as arrays."""
        return self._members, self._entries

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and their values."""
        return convert_to_tensor(self._members, self._key_dtype), convert_to_tensor(self._entries, self._value_dtype)


def _shown(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@reports_methods
class StaticVocabularyTable(Table):
    """A table from words to their numbers; words that are not there share `num_oov_buckets` numbers, by FarmHash.

    Args:
        initializer: The words and their numbers, int64; None: there are none.
        num_oov_buckets: How many numbers there are for other words, at least 1.
        lookup_key_dtype: Of the keys; None: the initializer's.
        name: Without effect.
        experimental_is_anonymous: Without effect.

    Raises:
        ValueError: No buckets.
        TypeError: Numbers of another dtype than int64, or keys that cannot be looked up.
    """

    def __init__(
        self,
        initializer: Initializer | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        if initializer is None and lookup_key_dtype is None:
            raise TypeError("`lookup_key_dtype` must be given if there is no initializer")
        wanted = lookup_key_dtype or (initializer.key_dtype if initializer is not None else None)
        super().__init__(wanted, dtypes.int64, name)
        self._buckets = num_oov_buckets
        self._words: dict[Any, int] = {}
        if initializer is None:
            return
        if initializer.value_dtype is not dtypes.int64:
            raise TypeError(f"Invalid `value_dtype`, expected {dtypes.int64} but got {initializer.value_dtype}.")
        if initializer.key_dtype.is_integer != self._key_dtype.is_integer:
            raise TypeError(
                f"Invalid `key_dtype`, expected {'integer' if self._key_dtype.is_integer else 'string'} but got "
                f"{initializer.key_dtype}."
            )
        words, numbers = StaticHashTable(initializer, -1).arrays()
        self._words = dict(zip(words.tolist(), numbers.tolist(), strict=True))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the numbers of words, int64, in their shape; of a sparse tensor a sparse tensor.

        Raises:
            TypeError: Keys of another dtype.
        """
        if isinstance(keys, SparseValue):
            return keys.of_parts(self.lookup(keys.values), keys.indices, keys.shape)
        array = self.keys_of(keys)
        flat = [self._number(key) for key in array.reshape(-1).tolist()]
        return convert_to_tensor(np.array(flat, np.int64).reshape(array.shape))

    def _number(self, key: Any) -> int:
        number = self._words.get(key)
        text = key if isinstance(key, bytes) else str(key).encode()
        return len(self._words) + farmhash64(text) % self._buckets if number is None else number

    def __getitem__(self, keys: Any) -> Any:
        """As lookup."""
        return self.lookup(keys)

    def size(self, name: str | None = None) -> Tensor:
        """Returns how many numbers there are, int64."""
        return convert_to_tensor(np.int64(len(self._words) + self._buckets))
