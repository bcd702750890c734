"""`tf.strings.to_hash_bucket…` and `tf.fingerprint`: the numbers are TensorFlow's.

Each reads the values of its tensors, like all functions of strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.tensor import Tensor
from teletape.extras.text.hashes import farmhash64, hash64, siphash
from teletape.tf.files.host import array_of, bytes_of, strings_of

__all__ = ["to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong"]  # and fingerprint, which is below `tf`


def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Returns for each string a number in [0, num_buckets), by a hash that may change between releases of TensorFlow.

    Args:
        input: Strings.
        num_buckets: The number of buckets, at least 1.
        name: Without effect.

    Returns:
        int64, in the shape of `input`.

    Raises:
        InvalidArgumentError: Fewer than one bucket.
        TypeError: No strings.

    Example:
        tf.strings.to_hash_bucket(["a", "b"], num_buckets=10)
    """
    return _buckets(hash64, input, num_buckets)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Returns for each string a number in [0, num_buckets), by FarmHash; arguments and errors as for to_hash_bucket.

    Example:
        tf.strings.to_hash_bucket_fast(["a", "b"], num_buckets=10)
    """
    return _buckets(farmhash64, input, num_buckets)


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Tensor:
    """Returns for each string a number in [0, num_buckets), by SipHash with a key of two whole numbers.

    Strings with the same number cannot be found without the key. Other arguments and errors as for to_hash_bucket.

    Raises:
        InvalidArgumentError: The key is not two numbers.

    Example:
        tf.strings.to_hash_bucket_strong(["a", "b"], num_buckets=10, key=[1, 2])
    """
    words = to.ints(key, "key")
    if len(words) != 2:
        raise InvalidArgumentError(f"Key must have 2 elements, found {len(words)}")
    first, second = (word % 2**64 for word in words)
    return _buckets(lambda text: siphash((first, second), text), input, num_buckets)


def _buckets(hashed: Callable[[bytes], int], input: Any, num_buckets: int) -> Tensor:
    strings, count = strings_of(input, "input"), to.whole(num_buckets)
    if count < 1:
        raise InvalidArgumentError(f"Value for attr 'num_buckets' of {count} must be at least minimum 1")
    numbers = [hashed(text) % count for text in strings.reshape(-1)]
    return convert_to_tensor(np.array(numbers, np.int64).reshape(strings.shape))


def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """Returns FarmHash's fingerprint of each row of a tensor: 8 bytes, almost surely different for different rows.

    Args:
        data: [n, ...] of any dtype.
        method: "farmhash64", the only one.
        name: Without effect.

    Returns:
        uint8 [n, 8].

    Raises:
        InvalidArgumentError: Another method, or a scalar.

    Example:
        tf.fingerprint(["a", "b"])
    """
    if bytes_of(method, "method") != b"farmhash64":
        raise InvalidArgumentError(f"Unsupported fingerprint method: {method}")
    array = array_of(convert_to_tensor(data))
    if not array.ndim:
        raise InvalidArgumentError("`data` should have at least one dimension: []")
    rows = array.reshape(len(array), -1) if array.size else np.zeros((len(array), 0), np.uint8)
    if array.dtype.kind == "O":
        texts = [b"".join(_fingerprint(text) for text in row) if len(row) != 1 else row[0] for row in rows]
    else:
        texts = [np.ascontiguousarray(row).tobytes() for row in rows]
    prints = b"".join(map(_fingerprint, texts))
    return convert_to_tensor(np.frombuffer(prints, np.uint8).reshape(len(rows), 8))


def _fingerprint(text: bytes) -> bytes:
    return farmhash64(text).to_bytes(8, "little")
