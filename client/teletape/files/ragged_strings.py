"""`tf.strings` of ragged tensors, and the functions whose results are ragged: the parts and the bytes of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from teletape.files import buckets, ngrams, strings
from teletape.files.host import bytes_of, strings_of
from teletape.ops import arguments as to
from teletape.ops.dispatch import convert_to_tensor
from teletape.ragged_tensors.forms.elementwise import broadcast
from teletape.ragged_tensors.forms.reductions import reduced
from teletape.ragged_tensors.partition import RowPartition
from teletape.ragged_tensors.rows import uniform
from teletape.ragged_tensors.tensor import RaggedTensor, tensor_or_ragged
from teletape.tensors.tensor import Tensor

__all__ = ["bytes_split", "split"]


# --------------------------------------------------------------------------------------------------- results in rows
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Returns the parts of strings, at white space or at `sep`: a tensor for one string, else a row for each.

    Args:
        input: Strings: a tensor or a ragged tensor.
        sep: Between two parts; None or "": any white space.
        maxsplit: The most splits of a string; -1: all.
        name: Without effect.

    Example:
        tf.strings.split(["a b c", "d"])
    """
    between = None if sep is None else bytes_of(sep, "sep") or None
    return _divided(input, lambda text: text.split(between, maxsplit))


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Returns the bytes of strings, each as a string: a tensor for one string, else a row for each.

    Example:
        tf.strings.bytes_split(["ab", "c"])
    """
    return _divided(input, lambda text: [text[place : place + 1] for place in range(len(text))])


def _divided(input: Any, parts_of: Callable[[bytes], list[bytes]]) -> Any:
    """The parts of each string as a row, in the place of the string."""
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(_divided(input.flat_values, parts_of))
    array = strings_of(input, "input")
    if not array.shape:
        return _texts(parts_of(array.item()))
    rows = [parts_of(text) for text in array.reshape(-1)]
    lengths = np.array([len(row) for row in rows], np.int64)
    ragged = RaggedTensor.of(_texts([part for row in rows for part in row]), RowPartition.of_lengths(lengths, np.int64))
    if array.ndim == 1:
        return ragged
    outer = uniform(convert_to_tensor(np.zeros(array.shape, np.int8)), array.ndim - 1)
    return RaggedTensor.of(ragged, *outer.partitions)


def _texts(parts: list[bytes]) -> Tensor:
    array = np.empty(len(parts), object)
    array[:] = parts
    return convert_to_tensor(array)


# ----------------------------------------------------------------------------------------------------- ragged arguments
def _of_elements(function: Callable[..., Any]) -> Callable[..., Any]:
    def form(input: Any, *args: Any, **kwargs: Any) -> Any:
        return input.with_flat_values(function(input.flat_values, *args, **kwargs))

    return form


def _substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    first, *others = (tensor_or_ragged(each) for each in (input, pos, len))
    partitions, flat = broadcast([first, *others])
    return RaggedTensor.of(strings.substr(flat[0], flat[1], flat[2], unit), *partitions)


def _join(inputs: Iterable[Any], separator: str = "", name: str | None = None) -> Any:
    partitions, flat = broadcast([tensor_or_ragged(entry) for entry in inputs])
    return RaggedTensor.of(strings.join(flat, separator), *partitions)


def _reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    if axis is None:
        joined = strings.reduce_join(inputs.flat_values, None, keepdims, separator)
        return convert_to_tensor(joined.numpy().reshape((1,) * len(inputs.shape))) if keepdims else joined
    axes = to.axes(axis)
    return reduced(
        inputs,
        [axes] if isinstance(axes, int) else list(axes),
        lambda tensor, at: strings.reduce_join(tensor, at, keepdims, separator),
        lambda values, ids, count: ngrams.unsorted_segment_join(values, ids, count, separator),
        keepdims=keepdims,
    )


def _ngrams(data: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(data.values, RaggedTensor):
        return RaggedTensor.of(_ngrams(data.values, *args, **kwargs), data.partition)
    rows = [ngrams.ngrams(row, *args, **kwargs).numpy() for row in data]
    lengths = np.array([row.size for row in rows], np.int64)
    flat = _texts([text for row in rows for text in row])
    return RaggedTensor.of(flat, RowPartition.of_lengths(lengths, data.partition.dtype))


#: The forms for ragged tensors of the functions of strings, by the function.
FORMS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    **{
        function: _of_elements(function)
        for function in (
            buckets.to_hash_bucket,
            buckets.to_hash_bucket_fast,
            buckets.to_hash_bucket_strong,
            strings.as_string,
            strings.length,
            strings.lower,
            strings.regex_full_match,
            strings.regex_replace,
            strings.strip,
            strings.to_number,
            strings.upper,
        )
    },
    ngrams.ngrams: _ngrams,
    strings.join: _join,
    strings.reduce_join: _reduce_join,
    strings.substr: _substr,
}
