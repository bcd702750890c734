"""`tf.strings` of ragged tensors, and the functions whose results are ragged: parts, bytes and characters of strings.

Each reads the values of its tensors, like all functions of strings.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor, tensor_or_ragged
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors.tensor import Tensor
from teletape.extras.ragged_tensors.forms.elementwise import broadcast
from teletape.extras.ragged_tensors.forms.reductions import reduced
from teletape.extras.ragged_tensors.partition import RowPartition
from teletape.extras.ragged_tensors.rows import uniform
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape.extras.text import buckets, ngrams, strings
from teletape.tf.files.host import array_of, bytes_of, each_string, strings_of

_OUTPUT_ENCODINGS: Final = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
_POLICIES: Final = ("strict", "replace", "ignore")


# --------------------------------------------------------------------------------------------------- results in rows
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Returns the parts of strings, at white space or at `sep`: a tensor for one string, else a row for each.

    Args:
        input: Strings: a tensor or a ragged tensor.
        sep: The separator of parts; None or "": any white space.
        maxsplit: The largest number of splits of a string; -1: no limit.
        name: Without effect.

    Example:
        tf.strings.split(["a b c", "d"])
    """
    between = None if sep is None else bytes_of(sep, "sep") or None
    return _divided(input, lambda text: text.split(between, maxsplit), _texts)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Returns the bytes of strings, each as a string: a tensor for one string, else a row for each.

    Example:
        tf.strings.bytes_split(["ab", "c"])
    """
    return _divided(input, lambda text: [text[place : place + 1] for place in range(len(text))], _texts)


def _divided(input: Any, parts_of: Callable[[bytes], list[Any]], tensor_of: Callable[[list[Any]], Tensor]) -> Any:
    """Returns a row of parts in place of each string."""
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(_divided(input.flat_values, parts_of, tensor_of))
    array = strings_of(input, "input")
    if not array.shape:
        return tensor_of(parts_of(array.item()))
    rows = [parts_of(text) for text in array.reshape(-1)]
    lengths = np.array([len(row) for row in rows], np.int64)
    flat = tensor_of([part for row in rows for part in row])
    ragged = RaggedTensor.of(flat, RowPartition.of_lengths(lengths, np.int64))
    if array.ndim == 1:
        return ragged
    outer = uniform(convert_to_tensor(np.zeros(array.shape, np.int8)), array.ndim - 1)
    return RaggedTensor.of(ragged, *outer.partitions)


def _texts(parts: list[bytes]) -> Tensor:
    array = np.empty(len(parts), object)
    array[:] = parts
    return convert_to_tensor(array)


# ---------------------------------------------------------------------------------------------------------- characters
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Returns the code points of strings, int32: a tensor for one string, else a row for each.

    Args:
        input: Strings: a tensor or a ragged tensor.
        input_encoding: Of the strings: "UTF-8", "UTF-16-BE", or another that Python knows.
        errors: The treatment of invalid bytes: "replace", "ignore", or "strict": an error.
        replacement_char: The code point that replaces them.
        replace_control_characters: Whether the code points below 32 are treated as invalid.
        name: Without effect.

    Raises:
        InvalidArgumentError: An unknown encoding or policy; with "strict" invalid bytes.

    Example:
        tf.strings.unicode_decode(["ab", "c"], "UTF-8")
    """
    policy = _Policy(input_encoding, errors, replacement_char, replace_control_characters)
    return _divided(input, lambda text: [point for point, _ in policy.characters(text)], _int32)


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Returns the code points of strings and their byte offsets, int64; arguments as for unicode_decode.

    Example:
        tf.strings.unicode_decode_with_offsets(["ab", "c"], "UTF-8")
    """
    points = unicode_decode(input, input_encoding, errors, replacement_char, replace_control_characters)
    policy = _Policy(input_encoding, errors, replacement_char, replace_control_characters)
    return points, _divided(input, lambda text: [place for _, place in policy.characters(text)], _int64)


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: str | None = None
) -> Any:
    """Returns the characters of strings, each as a string; arguments as for unicode_decode.

    Example:
        tf.strings.unicode_split(["ab", "c"], "UTF-8")
    """
    policy = _Policy(input_encoding, errors, replacement_char, False)
    encode = _encoder(input_encoding, "replace", 0xFFFD)
    return _divided(input, lambda text: [encode([point]) for point, _ in policy.characters(text)], _texts)


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: str | None = None
) -> tuple[Any, Any]:
    """Returns the characters of strings and their byte offsets, int64; arguments as for unicode_decode.

    Example:
        tf.strings.unicode_split_with_offsets(["ab", "c"], "UTF-8")
    """
    policy = _Policy(input_encoding, errors, replacement_char, False)
    places = _divided(input, lambda text: [place for _, place in policy.characters(text)], _int64)
    return unicode_split(input, input_encoding, errors, replacement_char), places


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: str | None = None
) -> Any:
    """Returns strings of code points: those along the last axis are one string.

    Args:
        input: int32 [..., characters]: a tensor or a ragged tensor.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: The treatment of numbers that are no code points: "replace", "ignore", or "strict": an error.
        replacement_char: The code point that replaces them.
        name: Without effect.

    Raises:
        InvalidArgumentError: Another encoding or policy; with "strict" a number that is no code point.
        ValueError: A scalar.

    Example:
        tf.strings.unicode_encode([97, 98], "UTF-8")
    """
    if output_encoding not in _OUTPUT_ENCODINGS:
        raise InvalidArgumentError(
            f'Value for attr \'output_encoding\' of "{output_encoding}" is not in the list of allowed values: "UTF-8", '
            '"UTF-16-BE", "UTF-32-BE"'
        )
    encode = _encoder(output_encoding, errors, replacement_char)
    value = tensor_or_ragged(input)
    if not len(value.shape):
        raise ValueError("input_tensor's rank must be at least 1.")
    return _encoded(value, encode)


def _encoded(value: Any, encode: Callable[[list[int]], bytes]) -> Any:
    if isinstance(value, RaggedTensor) and len(value.values.shape) > 1:
        return RaggedTensor.of(_encoded(value.values, encode), value.partition)
    if isinstance(value, RaggedTensor):
        return _texts([encode(row) for row in value.to_list()])
    array = array_of(value)
    rows = array.reshape(-1, array.shape[-1]) if array.size else np.zeros((int(np.prod(array.shape[:-1])), 0), int)
    texts = np.empty(len(rows), object)
    texts[:] = [encode(row) for row in rows.tolist()]
    return convert_to_tensor(texts.reshape(array.shape[:-1]))


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Returns strings in another encoding; arguments and errors as for unicode_decode and unicode_encode.

    Example:
        tf.strings.unicode_transcode(["a"], "UTF-8", "UTF-16-BE")
    """
    policy = _Policy(input_encoding, errors, replacement_char, replace_control_characters)
    encode = _encoder(output_encoding, errors, replacement_char)
    return each_string(lambda text: encode([point for point, _ in policy.characters(text)]), strings_of(input, "input"))


class _Policy:
    """The decoding of bytes to code points: the encoding, and the treatment of invalid bytes."""

    def __init__(self, encoding: str, errors: str, replacement: int, controls: bool) -> None:
        try:
            self._codec = codecs.lookup(encoding).name
        except LookupError:
            raise InvalidArgumentError(f"Could not create converter for input encoding: {encoding}") from None
        self._errors, self._replacement, self._controls = _checked(errors), replacement, controls

    def characters(self, text: bytes) -> list[tuple[int, int]]:
        """Returns the code points of a string, and their byte offsets."""
        characters: list[tuple[int, int]] = []
        place = 0
        while place < len(text):
            valid, invalid = text[place:], 0
            try:
                decoded = valid.decode(self._codec)
            except UnicodeDecodeError as error:
                if self._errors == "strict":
                    raise InvalidArgumentError("Invalid formatting on input string") from None
                decoded, invalid = valid[: error.start].decode(self._codec), max(error.end - error.start, 1)
            for character in decoded:
                self._append(characters, ord(character), place)
                place += len(character.encode(self._codec))
            if not invalid:
                break
            if self._errors == "replace":
                characters.append((self._replacement, place))
            place += invalid
        return characters

    def _append(self, characters: list[tuple[int, int]], point: int, place: int) -> None:
        if not (self._controls and point < _FIRST_PRINTED):
            characters.append((point, place))
        elif self._errors == "replace":
            characters.append((self._replacement, place))


_FIRST_PRINTED: Final = 32
_SURROGATES: Final = range(0xD800, 0xE000)


def _encoder(encoding: str, errors: str, replacement: int) -> Callable[[list[int]], bytes]:
    """Returns a function from code points to the bytes of a string."""
    codec, policy = codecs.lookup(encoding).name, _checked(errors)

    def encode(points: list[int]) -> bytes:
        characters = []
        for point in points:
            if 0 <= point <= sys.maxunicode and point not in _SURROGATES:
                characters.append(chr(point))
            elif policy == "strict":
                raise InvalidArgumentError("Code point is out of range for Unicode, or is a surrogate.")
            elif policy == "replace":
                characters.append(chr(replacement))
        return "".join(characters).encode(codec)

    return encode


def _checked(errors: str) -> str:
    if errors not in _POLICIES:
        raise InvalidArgumentError(
            f'Value for attr \'errors\' of "{errors}" is not in the list of allowed values: "strict", "replace", '
            '"ignore"'
        )
    return errors


def _int32(points: list[int]) -> Tensor:
    return convert_to_tensor(np.array(points, np.int32))


def _int64(places: list[int]) -> Tensor:
    return convert_to_tensor(np.array(places, np.int64))


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


#: The forms of the functions of strings for ragged tensors, by the function.
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
    unicode_transcode: _of_elements(unicode_transcode),
    strings.join: _join,
    strings.reduce_join: _reduce_join,
    strings.substr: _substr,
}
