"""`tf.lookup.StaticHashTable`: a table that does not change.

A lookup reads its keys: over HTTP a round trip; a tf.function with a lookup runs op by op. A lookup has no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import FailedPreconditionError
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import Tensor
from teletape.extras.lookup_tables.entries import Initializer
from teletape.extras.lookup_tables.table import Table
from teletape.tf.files.host import array_of


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
        self._places: dict[Any, int] = {}
        self._members = np.empty(0, self._key_dtype.np)
        self._entries = np.empty(0, self._value_dtype.np)
        initializer.initialize(self)

    def fill(self, keys: Any, values: Any) -> None:
        """Fills the empty table from arrays of keys and values; its initializer calls it."""
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
        """Returns the values of keys, in their shape; for a sparse or ragged tensor one of its structure.

        Raises:
            TypeError: Keys of another dtype.
        """
        if isinstance(keys, Composite):
            return keys.with_elements(self.lookup(keys.elements))
        array = self.keys_of(keys)
        places = [self._places.get(key, -1) for key in array.reshape(-1).tolist()]
        choices = np.append(self._entries, self._default_value.reshape(1)).astype(self._entries.dtype, copy=False)
        return convert_to_tensor(choices[places].reshape(array.shape), self._value_dtype)

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
