"""`tf.strings`: functions of strings, elementwise or of several tensors.

Each reads the values of its tensors: over HTTP a round trip; a tf.function with such a call runs op by op. Long because
twelve functions document their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError, OutOfRangeError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape.extras.text.regular_expressions import compiled
from teletape.tf.files.host import array_of, bytes_of, each_string, strings_of
from teletape.tf.print_op import rows_text, summarized
from teletape_engine.spec import shape_text

_UNITS: Final = ("BYTE", "UTF8_CHAR")
_NUMBERS: Final = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
_WHOLE: Final = re.compile(rb"[+-]?[0-9]+\Z")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


# --------------------------------------------------------------------------------------------------------- elementwise
def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Returns strings in lower case: letters of ASCII, or with encoding "utf-8" all.

    Example:
        tf.strings.lower("ABC")
    """
    return _cased(input, encoding, bytes.lower, str.lower)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Returns strings in upper case: letters of ASCII, or with encoding "utf-8" all.

    Example:
        tf.strings.upper("abc")
    """
    return _cased(input, encoding, bytes.upper, str.upper)


def _cased(input: Any, encoding: str, ascii_case: Callable[[bytes], bytes], case: Callable[[str], str]) -> Tensor:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
    return each_string(
        ascii_case if not encoding else lambda text: _bytes(case(_text(text))), strings_of(input, "input")
    )


def strip(input: Any, name: str | None = None) -> Tensor:
    """Returns strings without the white space at their ends.

    Example:
        tf.strings.strip("  a ")
    """
    return each_string(bytes.strip, strings_of(input, "input"))


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """Returns the lengths of strings as int32, in bytes or, with unit "UTF8_CHAR", in characters.

    Example:
        tf.strings.length(["a", "bcd"])
    """
    strings = strings_of(input, "input")
    _check_unit(unit)
    lengths = [len(text if unit == "BYTE" else _text(text)) for text in strings.reshape(-1)]
    return convert_to_tensor(np.array(lengths, np.int32).reshape(strings.shape))


def _check_unit(unit: str) -> None:
    if unit not in _UNITS:
        raise InvalidArgumentError(
            f'Value for attr \'unit\' of "{unit}" is not in the list of allowed values: "BYTE", "UTF8_CHAR"'
        )


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """Returns parts of strings; `pos` and `len` broadcast with the strings, and a negative `pos` counts from the end.

    A negative `len` selects all bytes that follow; in characters it selects none.

    Raises:
        InvalidArgumentError: A position is outside its string.

    Example:
        tf.strings.substr("abcdef", 1, 3)
    """
    strings = strings_of(input, "input")
    _check_unit(unit)
    starts, sizes = (array_of(convert_to_tensor(numbers)) for numbers in (pos, len))
    if starts.shape != sizes.shape:
        raise InvalidArgumentError(
            f"pos and len should have the same shape, got: {shape_text(starts.shape)} vs. {shape_text(sizes.shape)}"
        )
    strings, starts, sizes = map(np.asarray, np.broadcast_arrays(strings, starts, sizes))
    parts = np.empty(strings.shape, object)
    for index, place in enumerate(np.ndindex(strings.shape)):
        text: Any = strings[place]
        whole = text if unit == "BYTE" else _text(text)
        start, count = int(starts[place]), whole.__len__()
        if not -count <= start <= count:
            raise InvalidArgumentError(f"pos {start} out of range for string b'{_text(text)}' at index {index}")
        start += count if start < 0 else 0
        size = int(sizes[place])
        rest = None if unit == "BYTE" else start  # as in TensorFlow, which selects no characters then
        part = whole[start : start + size if size >= 0 else rest]
        parts[place] = part if unit == "BYTE" else _bytes(part)
    return convert_to_tensor(parts)


# -------------------------------------------------------------------------------------------------- regular expressions
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Returns whether each whole string matches a regular expression.

    Example:
        tf.strings.regex_full_match(["abc", "xyz"], "a.*")
    """
    strings, expression = strings_of(input, "input"), _expression(pattern)
    matches = [expression.fullmatch(_text(text)) is not None for text in strings.reshape(-1)]
    return convert_to_tensor(np.array(matches, np.bool_).reshape(strings.shape))


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Returns strings with the matches of a regular expression replaced by a text.

    Args:
        input: The strings.
        pattern: The expression, in RE2's syntax: no looking ahead or back.
        rewrite: The text; `\1` to `\9` are the matches of groups, `\0` the whole match.
        replace_global: Whether all matches are replaced, or the first.
        name: Without effect.

    Raises:
        InvalidArgumentError: The expression is not valid.

    Example:
        tf.strings.regex_replace("a1b2", "[0-9]", "#")
    """
    strings, expression, text = strings_of(input, "input"), _expression(pattern), _text(bytes_of(rewrite, "rewrite"))
    if any(int(number) > expression.groups for number in re.findall(r"(?<!\\)(?:\\\\)*\\([0-9])", text)):
        return convert_to_tensor(strings)  # as in RE2, which then replaces nothing

    def rewritten(match: re.Match[str]) -> str:
        return re.sub(
            r"\\([0-9\\])",
            lambda escape: "\\" if escape[1] == "\\" else match[int(escape[1])] or "",
            text,
        )

    def replaced(each: bytes) -> bytes:
        parts: list[str] = []
        end, whole = 0, _text(each)
        for match in expression.finditer(whole):
            if parts and match.start() == match.end() == end:
                continue  # RE2 has no empty match at the end of the one before it
            parts += [whole[end : match.start()], rewritten(match)]
            end = match.end()
            if not replace_global:
                break
        return _bytes("".join([*parts, whole[end:]]))

    return each_string(replaced, strings)


def _expression(pattern: Any) -> re.Pattern[str]:
    return compiled(_text(bytes_of(pattern, "pattern")))


# -------------------------------------------------------------------------------------------------------------- joining
def join(inputs: Iterable[Any], separator: str = "", name: str | None = None) -> Tensor:
    """Joins the strings at the same index of several tensors; scalars are joined to every string.

    Raises:
        InvalidArgumentError: Two shapes differ.

    Example:
        tf.strings.join(["a", ["b", "c"]], separator="-")
    """
    arrays = [strings_of(entry, "inputs") for entry in inputs]
    shapes = [array.shape for array in arrays if array.shape]
    for shape in shapes:
        if shape != shapes[0]:
            raise InvalidArgumentError(f"Input shapes do not match: {shape_text(shapes[0])} vs. {shape_text(shape)}")
    joined = np.empty(shapes[0] if shapes else (), object)
    between = _bytes(separator)
    for place in np.ndindex(joined.shape):
        joined[place] = between.join(array[place] if array.shape else array.item() for array in arrays)
    return convert_to_tensor(joined)


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins the strings along axes; the first axis runs fastest. None: all axes, the last one first.

    Example:
        tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1)
    """
    array = strings_of(inputs, "inputs")
    rank = array.ndim
    named = to.axes(axis)
    axes = list(reversed(range(rank))) if named is None else [named] if isinstance(named, int) else list(named)
    for each in axes:
        if not -rank <= each < rank:
            raise OutOfRangeError(f"Invalid reduction dimension {each} for input with {rank} dimension(s)")
    axes = [each % rank for each in axes]
    rest = [each for each in range(rank) if each not in axes]
    rows = np.transpose(array, [*rest, *reversed(axes)]).reshape(*(array.shape[each] for each in rest), -1)
    joined = np.empty(rows.shape[:-1], object)
    between = _bytes(separator)
    for place in np.ndindex(joined.shape):
        joined[place] = between.join(rows[place])
    if keepdims:
        joined = joined.reshape([1 if each in axes else size for each, size in enumerate(array.shape)])
    return convert_to_tensor(joined)


# -------------------------------------------------------------------------------------------------------------- numbers
def to_number(input: Any, out_type: to.DTypeInput = dtypes.float32, name: str | None = None) -> Tensor:
    """Parses strings as numbers: float32, float64, int32, int64, uint32 or uint64.

    Raises:
        InvalidArgumentError: A string is no number of that dtype.

    Example:
        tf.strings.to_number(["1.5", "2"])
    """
    strings, dtype = strings_of(input, "input"), dtypes.as_dtype(out_type)
    if dtype not in _NUMBERS:
        raise InvalidArgumentError(
            f"Value for attr 'out_type' of {dtype.name} is not in the list of allowed values: float, double, int32, "
            "int64, uint32, uint64"
        )
    numbers = np.empty(strings.shape, dtype.np)
    for place in np.ndindex(strings.shape):
        numbers[place] = _number(strings[place].strip(), dtype)
    return convert_to_tensor(numbers)


def _number(text: bytes, dtype: dtypes.DType) -> Any:
    refusal = InvalidArgumentError(f"StringToNumberOp could not correctly convert string: {_text(text)}")
    if dtype.is_integer:
        if not _WHOLE.match(text) or not dtype.min <= int(text) <= dtype.max:
            raise refusal
        return int(text)
    if b"_" in text:
        raise refusal
    try:
        return float.fromhex(text.decode()) if b"x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        raise refusal from None


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Returns numbers, bools or strings as strings, as C's printf writes them.

    Args:
        input: The numbers.
        precision: Digits after the point of a fraction; -1: six.
        scientific: Whether fractions have an exponent.
        shortest: Whether fractions have an exponent only if it makes them shorter.
        width: The smallest number of characters.
        fill: "" or " ": spaces on the left; "0": zeros after the sign; "-": spaces on the right; "+": a sign.
        name: Without effect.

    Raises:
        InvalidArgumentError: A precision or form for a dtype without fractions; both forms.

    Example:
        tf.strings.as_string([1.5, 2.0], precision=1)
    """
    tensor = convert_to_tensor(input)
    if tensor.dtype is dtypes.string:
        return tensor
    dtype = tensor.dtype
    fractions = dtype.is_floating or dtype.is_complex
    if not fractions and precision > -1:
        raise InvalidArgumentError(f"precision not supported for datatype {dtype.name}")
    if not fractions and (scientific or shortest):
        raise InvalidArgumentError(f"scientific and shortest format not supported for datatype {dtype.name}")
    if scientific and shortest:
        raise InvalidArgumentError("Cannot select both scientific and shortest notation")
    if len(fill) > 1 or fill not in "0 +-":
        raise InvalidArgumentError(f'Fill argument not supported: "{fill}"')
    start = "%" + fill + (str(width) if width > -1 else "")
    whole = start + "d"
    form = start + (f".{precision}" if precision > -1 else "") + ("e" if scientific else "g" if shortest else "f")

    def written(value: Any) -> Any:
        if dtype is dtypes.bool:
            text = "true" if value else "false"
            return text.ljust(width) if fill == "-" else text.rjust(max(width, 0))
        if dtype.is_complex:
            return f"({form % value.real},{form % value.imag})"
        if fractions:
            return (form if fill != "0" or np.isfinite(value) else form.replace("%0", "%")) % value
        return whole % value

    array = array_of(tensor)
    texts = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        texts[place] = written(array[place]).encode()
    return convert_to_tensor(texts)


def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int | None = 3, name: str | None = None
) -> Tensor:
    """Returns a text with each placeholder replaced by a tensor, in the form of tf.print.

    Raises:
        ValueError: Not as many tensors as placeholders.

    Example:
        tf.strings.format("x = {}", tf.constant([1, 2]))
    """
    tensors = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    parts = template.split(placeholder)
    if len(parts) - 1 != len(tensors):
        raise ValueError(
            f"The template expects {len(parts) - 1} tensors, but the inputs only has {len(tensors)}. Please ensure the "
            "number of placeholders in template matches inputs length."
        )
    ends = 3 if summarize is None else summarize
    shown = [
        rows_text(tensor.to_list(), ends)
        if isinstance(tensor, RaggedTensor)
        else summarized(array_of(convert_to_tensor(tensor)), ends)
        for tensor in tensors
    ]
    return convert_to_tensor(parts[0] + "".join(text + part for text, part in zip(shown, parts[1:], strict=True)))


# --------------------------------------------------------------------------------------------------- Python's own texts
def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """`tf.compat.as_text`: bytes or a text as a text; TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """`tf.compat.as_bytes`: bytes or a text as bytes; TypeError for anything else."""
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    return as_text(bytes_or_text).encode(encoding)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """`tf.compat.as_str_any`: bytes or a text as a text, anything else as str() shows it."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)
