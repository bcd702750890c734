"""`tf.io.parse_example` and `tf.io.parse_single_example`: serialized examples as tensors, read in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.errors import InvalidArgumentError, UnimplementedError
from teletape.core.tensors import dtypes
from teletape.core.tensors.convert import as_bytes
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.record_messages import classes

_FIELDS: Final = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}
_NAMES: Final = {"float_list": "float", "int64_list": "int64", "bytes_list": "string"}


@dataclass(frozen=True)
class FixedLenFeature:
    """A feature of one size in every example.

    Attributes:
        shape: Its shape.
        dtype: float32, int64 or string.
        default_value: The values for an example without it; None: every example must have it.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """A feature of any number of rows of one shape; in a batch rows are added until all examples have the same number.

    Attributes:
        shape: The shape of a row.
        dtype: float32, int64 or string.
        allow_missing: Must be True.
        default_value: The value of added rows; None: 0, or an empty string.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


@dataclass(frozen=True)
class VarLenFeature:
    """A feature of any size, which TensorFlow parses into a sparse tensor: refused here.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Tensor]:
    """Returns the features of one serialized `tf.train.Example`, by name.

    Args:
        serialized: A scalar string.
        features: A FixedLenFeature or FixedLenSequenceFeature for each name.
        example_names: Without effect.
        name: Without effect.

    Raises:
        ValueError: There are no features, or the string is no scalar.
        InvalidArgumentError: The example cannot be read, or does not fit the features.
        UnimplementedError: A VarLenFeature, or another kind of feature.
    """
    texts = _texts(serialized)
    if texts.ndim:
        raise ValueError(f"Input serialized must be a scalar: its shape is {texts.shape}")
    return {key: constant(array[0]) for key, array in _parsed([texts[()]], features).items()}


def parse_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Tensor]:
    """Returns the features of serialized `tf.train.Example`s, by name; see `parse_single_example`.

    Args:
        serialized: A vector of strings, or a scalar.
        features: A FixedLenFeature or FixedLenSequenceFeature for each name.
        example_names: Without effect.
        name: Without effect.
    """
    texts = _texts(serialized)
    if not texts.ndim:
        return parse_single_example(serialized, features)
    return {key: constant(array) for key, array in _parsed(texts.tolist(), features).items()}


def _texts(serialized: Any) -> Any:
    tensor = serialized if isinstance(serialized, TensorLike) else convert_to_tensor(serialized)
    if tensor.dtype is not dtypes.string:
        raise TypeError(f"serialized examples are strings; found {tensor.dtype!r}")
    return np.asarray(tensor.numpy(), object)


def _parsed(texts: Sequence[bytes], features: Mapping[str, Any]) -> dict[str, Any]:
    if not features:
        raise ValueError("Invalid argument: features cannot be empty.")
    examples = []
    for text in texts:
        try:
            examples.append(classes()["Example"].FromString(text).features.feature)
        except Exception as error:  # protobuf's own
            raise InvalidArgumentError(f"Could not parse example input, value: {text!r}") from error
    return {name: _column(name, features[name], examples) for name in sorted(features)}


def _column(name: str, feature: Any, examples: Sequence[Any]) -> Any:
    """Returns one feature of all examples: [examples, ...]."""
    if isinstance(feature, VarLenFeature):
        raise UnimplementedError(
            f"the feature {name!r} is a VarLenFeature, and there are no sparse tensors: use "
            "FixedLenSequenceFeature([], dtype, allow_missing=True), which pads"
        )
    if not isinstance(feature, FixedLenFeature | FixedLenSequenceFeature):
        raise UnimplementedError(
            f"the feature {name!r} is a {type(feature).__name__}; FixedLenFeature and FixedLenSequenceFeature are there"
        )
    dtype = dtypes.as_dtype(feature.dtype)
    if dtype not in _FIELDS:
        raise InvalidArgumentError(
            f"the feature {name!r} has the dtype {dtype.name}: float32, int64 and string are there"
        )
    shape = tuple(TensorShape(feature.shape).as_list())
    rows = [_values(name, example, dtype) for example in examples]
    if isinstance(feature, FixedLenSequenceFeature):
        return _padded(name, feature, rows, shape, dtype)
    size = int(np.prod(shape))
    for i, row in enumerate(rows):
        if row is None:
            if feature.default_value is None:
                raise InvalidArgumentError(
                    f"Feature: {name} (data type: {_NAMES[_FIELDS[dtype]]}) is required but could not be found."
                )
            whole = np.broadcast_to(_array(feature.default_value, dtype), shape)
            rows[i] = whole.reshape(-1)
        elif len(row) != size:
            raise InvalidArgumentError(
                f"Key: {name}.  Can't parse serialized Example: it has {len(row)} values, the shape {list(shape)} has "
                f"{size}."
            )
    return np.stack(rows).reshape(len(rows), *shape)


def _padded(name: str, feature: FixedLenSequenceFeature, rows: list[Any], shape: tuple[int, ...], dtype: DType) -> Any:
    if not feature.allow_missing:
        raise ValueError(f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True ({name!r}).")
    size = int(np.prod(shape))
    columns = [_array([], dtype) if row is None else row for row in rows]
    for row in columns:
        if len(row) % size:
            raise InvalidArgumentError(f"Key: {name}. Number of values is not a multiple of stride length {size}.")
    longest = max((len(row) for row in columns), default=0)
    filler = feature.default_value
    if filler is None:
        filler = b"" if dtype is dtypes.string else 0
    whole = np.full((len(columns), longest), filler, dtype.np)
    for i, row in enumerate(columns):
        whole[i, : len(row)] = row
    return whole.reshape(len(columns), longest // size, *shape)


def _values(name: str, example: Any, dtype: DType) -> Any:
    """Returns the values of a feature of one example; None: it has none."""
    if name not in example:
        return None
    kind = example[name].WhichOneof("kind")
    if kind is None:
        return None
    if kind != _FIELDS[dtype]:
        raise InvalidArgumentError(
            f"Key: {name}.  Data types don't match. Data type: {_NAMES[kind]} but expected type: "
            f"{_NAMES[_FIELDS[dtype]]}"
        )
    return _array(list(getattr(example[name], kind).value), dtype)


def _array(values: Any, dtype: DType) -> Any:
    if dtype is not dtypes.string:
        return np.asarray(values, dtype.np)
    return as_bytes(np.asarray(values, object))
