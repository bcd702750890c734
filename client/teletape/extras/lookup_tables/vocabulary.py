"""`tf.lookup.StaticVocabularyTable`: numbers for words, also for those outside the vocabulary.

A lookup reads its keys, as in a StaticHashTable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import Tensor
from teletape.extras.lookup_tables.entries import Initializer
from teletape.extras.lookup_tables.static import StaticHashTable
from teletape.extras.lookup_tables.table import Table
from teletape.extras.text.hashes import farmhash64


class StaticVocabularyTable(Table):
    """A table from words to their numbers; other words share `num_oov_buckets` numbers, by FarmHash.

    Args:
        initializer: The words and their numbers, int64; None: there are none.
        num_oov_buckets: The number of numbers for other words, at least 1.
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
        """Returns the numbers of words, int64, in their shape; for a sparse or ragged tensor one of its structure.

        Raises:
            TypeError: Keys of another dtype.
        """
        if isinstance(keys, Composite):
            return keys.with_elements(self.lookup(keys.elements))
        array = self.keys_of(keys)
        flat = [self._number(key) for key in array.reshape(-1).tolist()]
        return convert_to_tensor(np.array(flat, np.int64).reshape(array.shape))

    def _number(self, key: Any) -> int:
        number = self._words.get(key)
        text = key if isinstance(key, bytes) else str(key).encode()
        return len(self._words) + farmhash64(text) % self._buckets if number is None else number

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of numbers, int64."""
        return convert_to_tensor(np.int64(len(self._words) + self._buckets))
