"""Sources of elements: arrays, ranges, random numbers, Python generators. None of them uses a session."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from teletape.core.errors import InvalidArgumentError, OpError, UnimplementedError, UnknownError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.program.tracebacks import text_in_program
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import TypeSpec
from teletape.core.tensors.convert import as_bytes
from teletape.core.tensors.tensor import TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.leaves import Array, Rows, Source, Whole, as_array, dtype_of, shape_of
from teletape.tf.data.elements.mapped import Element
from teletape.tf.data.elements.specs import NoneTensorSpec


# -------------------------------------------------------------------------------------------------------------- arrays
def arrays_of(tensors: Any) -> tuple[Any, list[Array | None]]:
    """Returns the structure of a program's value, and its arrays; None stays None.

    Raises:
        ValueError: There are none.
    """
    source = Source()
    arrays = [None if leaf is None else as_array(leaf, source) for leaf in structure.flatten(tensors)]
    if not arrays:
        raise ValueError("Invalid `element`. `element` should not be empty.")
    specs = [NoneTensorSpec() if array is None else array.spec for array in arrays]
    return structure.pack(tensors, specs), arrays


def check_lengths(arrays: Sequence[Array | None]) -> int:
    """Returns the length of all arrays along the first axis.

    Raises:
        ValueError: The lengths differ, or there is a scalar.
    """
    columns = [array for array in arrays if array is not None]
    if any(not array.spec.shape.rank for array in columns):
        raise ValueError("Unbatching a tensor is only supported for rank >= 1")
    size = len(columns[0])
    for array in columns:
        if len(array) != size:
            raise ValueError(f"Dimensions {size} and {len(array)} are not compatible")
    return size


def slices(arrays: Sequence[Array | None], size: int) -> Iterator[Element]:
    """The rows of arrays of one length."""
    return ([None if array is None else Rows(array, i) for array in arrays] for i in range(size))


def whole(arrays: Sequence[Array | None]) -> Iterator[Element]:
    """One element: all arrays."""
    yield [None if array is None else Whole(array) for array in arrays]


# ------------------------------------------------------------------------------------------------------------- numbers
def counted(numbers: range, dtype: Any) -> Iterator[Element]:
    """The numbers of a range."""
    return ([dtype(number)] for number in numbers)


def random_numbers(seed: str) -> Iterator[Element]:
    """Random numbers of 32 bits, without end."""
    draw = Random(seed).getrandbits
    while True:
        yield [np.int64(draw(32))]


# ---------------------------------------------------------------------------------------------------------- generators
def signature_of(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """Returns the spec of a generator's elements.

    Raises:
        TypeError: There is none, or there are two.
    """
    if output_signature is not None:
        for name, value in (("output_types", output_types), ("output_shapes", output_shapes)):
            if value is not None:
                raise TypeError(f"The `{name}` argument can not be used together with the `output_signature` argument.")
        for spec in structure.flatten(output_signature):
            if isinstance(spec, TypeSpec) and not isinstance(spec, TensorSpec):
                raise TypeError(
                    f"{spec!r}: the elements of datasets are dense tensors here. Yield tf.sparse.to_dense(x) of a "
                    "sparse tensor, x.to_tensor() of a ragged one, and give their tf.TensorSpec"
                )
            if not isinstance(spec, TensorSpec | NoneTensorSpec):
                raise TypeError(
                    "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                    f"{type(spec)} which is not."
                )
        return output_signature
    if output_types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` argument or the "
            "`output_types` argument."
        )
    types = structure.flatten(output_types)
    shapes = [None] * len(types) if output_shapes is None else _shapes(output_types, output_shapes)
    return structure.pack(output_types, [TensorSpec(*pair) for pair in zip(shapes, types, strict=True)])


def _shapes(types: Any, shapes: Any) -> list[Any]:
    """Returns one shape for each type; a tuple of sizes is a shape where a type is a leaf."""
    if isinstance(types, tuple):
        return [shape for pair in zip(types, shapes, strict=True) for shape in _shapes(*pair)]
    if isinstance(types, dict):
        return [shape for key in sorted(types) for shape in _shapes(types[key], shapes[key])]
    return [TensorShape(shapes)]


def generated(generator: Callable[..., Any], arguments: Sequence[Any], signature: Any) -> Iterator[Element]:
    """The values that a generator yields, checked against a signature.

    Raises:
        InvalidArgumentError: An element does not fit; the generator raised a TypeError or ValueError.
        UnknownError: It raised another exception.
    """
    specs = structure.flatten(signature)
    try:
        for value in generator(*arguments):
            yield _checked(value, signature, specs)
    except Exception as error:
        kind: type[OpError] = UnknownError
        if isinstance(error, TypeError | ValueError):
            kind = InvalidArgumentError
        elif isinstance(error, NotImplementedError):
            kind = UnimplementedError
        raise kind(text_in_program(error)) from error


def _checked(value: Any, signature: Any, specs: Sequence[Any]) -> list[Any]:
    """Returns the leaves of an element that a generator yielded.

    Raises:
        TypeError: They do not fit the specs.
    """
    if not isinstance(signature, tuple | dict):
        return [_fitting(value, specs[0])]
    if not structure.same(signature, value):
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. The expected structure was "
            f"{structure.map_leaves(lambda spec: spec.dtype, signature)}, but the yielded element was {value}."
        )
    return [_fitting(leaf, spec) for leaf, spec in zip(structure.flatten(value), specs, strict=True)]


def _fitting(value: Any, spec: Any) -> Any:
    if isinstance(spec, NoneTensorSpec):
        return None
    leaf = value if isinstance(value, TensorLike) else _converted(value, spec)
    if dtype_of(leaf) is not spec.dtype:
        raise TypeError(
            f"`generator` yielded an element of type {dtype_of(leaf).name} where an element of type {spec.dtype.name} "
            "was expected."
        )
    shape = shape_of(leaf)
    if not spec.shape.is_compatible_with(shape):
        raise TypeError(
            f"`generator` yielded an element of shape {shape} where an element of shape {spec.shape} was expected."
        )
    return leaf


def _converted(value: Any, spec: TensorSpec) -> Any:
    """Returns a Python value, list or array as an array of a spec's dtype.

    Raises:
        TypeError: It does not fit.
    """
    try:
        if spec.dtype is dtypes.string:
            return as_bytes(np.asarray(value, object))
        array = np.asarray(value)
        if array.dtype.kind in "OUS":
            raise TypeError
        return array.astype(spec.dtype.np)
    except (TypeError, ValueError):
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected type. The expected type was "
            f"{spec.dtype.name}, but the yielded element was {value}."
        ) from None


# --------------------------------------------------------------------------------------------------------------- files
def matching_files(patterns: Any) -> list[bytes]:
    """Returns the paths that match patterns of the shell, sorted.

    Raises:
        InvalidArgumentError: None does.
    """
    texts = [_text(pattern) for pattern in (patterns if isinstance(patterns, list | tuple) else [patterns])]
    texts = list(itertools.chain.from_iterable(text if isinstance(text, list) else [text] for text in texts))
    paths = sorted({path for text in texts for path in glob.glob(text)})
    if not paths:
        raise InvalidArgumentError(f"No files matched pattern: {', '.join(texts)}")
    return [path.encode() for path in paths]


def _text(value: Any) -> Any:
    if isinstance(value, TensorLike):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return [_text(item) for item in value.reshape(-1).tolist()]
    return value.decode() if isinstance(value, bytes) else str(value)
