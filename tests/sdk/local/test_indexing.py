"""Python's index as an op's attribute: slices, integers, newaxis and ellipsis; what else is refused."""

from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.tensors.indexing import index_spec
from teletape_engine.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (1, (1,)),
        (-1, (-1,)),
        (np.int64(2), (2,)),
        (slice(None), ((None, None, None),)),
        ((slice(1, 3), slice(None, None, -1)), ((1, 3, None), (None, None, -1))),
        (..., ("...",)),
        (tf.newaxis, (None,)),
        ([0, 1], (0, 1)),
        ((..., 0, None), ("...", 0, None)),
    ],
)
def test_an_index_becomes_an_attribute(key: Any, expected: tuple[Any, ...]) -> None:
    assert index_spec(key) == expected


def test_a_scalar_tensor_is_an_index() -> None:
    assert index_spec((tf.constant(1), slice(tf.constant(0), tf.constant(2)))) == (1, (0, 2, None))


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        ((..., ...), InvalidArgumentError, "Multiple ellipses"),
        (True, ValueError, "mask cannot be scalar"),
        (np.bool_(False), ValueError, "mask cannot be scalar"),
        ("a", TypeError, "Only integers, slices"),
        (1.0, TypeError, "Only integers, slices"),
        (tf.constant([0, 1]), TypeError, "only integer scalar arrays|Only integers"),
    ],
)
def test_other_keys_are_refused(key: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        index_spec(key)
