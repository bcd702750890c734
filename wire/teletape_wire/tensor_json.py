"""A tensor in JSON: {"dtype", "shape", "data"}, or the bare number or nested list that a person writes.

Numbers without a dtype are read as an untyped `Literal`: JavaScript, Go, C# and PHP write 2.0 as 2. Long because what
reads a tensor and what writes it keep to one form.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

import numpy as np

from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.values import Literal, spec_array, untyped
from teletape_engine.spec import BFLOAT16, BOOL, COMPLEX, DTYPES, INTEGER, dtype_of
from teletape_wire.errors import NotInJsonError
from teletape_wire.tensors import MAX_DIMS, NAMES, Array, raw

#: What JSON has besides numbers and strings.
_KINDS: Final = {list: "a list", dict: "an object", type(None): "null"}
_ALONE: Final[ContextVar[np.dtype[Any]]] = ContextVar("alone", default=DTYPES["float32"])
_SPECS: Final[ContextVar[bool]] = ContextVar("specs", default=False)
MAX_NUMBERS: Final = 6_000_000  #: Of the tensors in a JSON answer: the text of more can take over two seconds.
#: Numbers that a tensor counts as at least: 30,000 tensors of up to 16 elements take as long as the limit's numbers. To
#: fetch one in a batch takes 28 µs of CPU time from the command's text to that of the answer, of it 12 µs to write it.
_LEAST: Final = 200
_BASE64: Final = 32  #: Bytes whose base64 takes as long as the text of a number.
_SMALL: Final = 16  #: Elements of an array of float16 that is not worth the table of all numbers.
#: Dtypes that NumPy gives numbers of JSON, whatever list they are in.
_FLOAT64: Final = DTYPES["float64"]
_OF_JSON: Final = (_FLOAT64, DTYPES["int64"])
#: The strings for the numbers that JSON cannot write.
NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def numbers_alone(dtype: str | None) -> AbstractContextManager[None]:
    """Within the block, numbers that are read without a dtype take `dtype` where they meet no tensor; None: as before.

    Args:
        dtype: The name of a dtype of floats.
    """
    return _AS_BEFORE if dtype is None else _NumbersAlone(dtype_of(dtype))


@contextmanager
def specs_in_place_of_tensors() -> Iterator[None]:
    """Within the block, {"dtype", "shape"} without data is read as a `SpecArray`."""
    token = _SPECS.set(True)
    try:
        yield
    finally:
        _SPECS.reset(token)


_AS_BEFORE: Final[AbstractContextManager[None]] = nullcontext()


class _NumbersAlone:
    """See `numbers_alone`: a class, since each request enters it, and a generator takes three times as long."""

    __slots__ = ("_dtype", "_token")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def __enter__(self) -> None:
        self._token = _ALONE.set(self._dtype)

    def __exit__(self, *_: object) -> None:
        _ALONE.reset(self._token)


def tensor_from_json(value: Any) -> Array | Literal:
    """Reads the array in {"dtype", "shape", "data"}, or in a bare number or nested list.

    `data` is nested or flat; NaN and infinities are the strings "NaN", "Infinity" and "-Infinity"; a complex number is
    a pair [re, im]; with "encoding": "base64" it is the raw little-endian row-major bytes. Without `dtype` booleans
    are a bool array, and numbers a `Literal`: they take the dtype of what they meet, alone float32 or that of
    `numbers_alone`. Without `shape` the nesting decides.

    Raises:
        InvalidArgumentError: It is not a tensor; the message says what does not fit.
    """
    if not isinstance(value, dict):
        return tensor_from_data(value, None, None)
    if value.keys() == {"dtype", "shape"} and _SPECS.get():
        return spec_array(_shape(value["shape"]), dtype_of(value["dtype"]))
    unknown = value.keys() - {"dtype", "shape", "data", "encoding"}
    if value.keys() == {"tensor"}:
        raise InvalidArgumentError(
            f'{{"tensor": {value["tensor"]!r:.60}}} refers to a tensor of a safetensors body; there is none here'
        )
    if unknown or "data" not in value:
        members = ", ".join(value) or "no member"
        raise InvalidArgumentError(
            f"a tensor is {{dtype, shape, data}}, with encoding if data is base64; found {members}"
        )
    dtype = dtype_of(value["dtype"]) if value.get("dtype") is not None else None
    shape = value.get("shape")
    if shape is not None:
        _shape(shape)
    encoding = value.get("encoding")
    if encoding is None:
        return tensor_from_data(value["data"], dtype, shape)
    if encoding != "base64" or dtype is None or shape is None or not isinstance(value["data"], str):
        raise InvalidArgumentError('the one encoding is "base64": it needs dtype, shape, and data as a string')
    try:
        data = base64.b64decode(value["data"], validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(f"data is no valid base64: {error}") from None
    needed = math.prod(shape) * dtype.itemsize
    if len(data) != needed:
        raise InvalidArgumentError(f"{dtype.name}{shape} takes {needed} bytes, the base64 holds {len(data)}")
    if dtype is BOOL and data.strip(b"\0\1"):
        raise InvalidArgumentError("dtype bool has only the bytes 0 and 1")
    return _shaped(np.frombuffer(data, np.uint8).view(dtype), shape)


def _shape(shape: Any) -> tuple[int, ...]:
    """A shape of JSON.

    Raises:
        InvalidArgumentError: It is none.
    """
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise InvalidArgumentError(f"a shape is a list of lengths, none negative; found {shape!r:.60}")
    if len(shape) > MAX_DIMS:
        raise InvalidArgumentError(f"{len(shape)} axes, the limit is {MAX_DIMS}")
    return tuple(shape)


def _shaped(flat: Array, shape: Any) -> Array:
    """The array [*shape], read only."""
    try:
        array = flat.reshape(shape)
    except ValueError:  # an axis of length 0, and others too long for NumPy to count
        raise InvalidArgumentError(f"no array can have the shape {shape}") from None
    array.flags.writeable = False
    return array


def tensor_from_data(data: Any, dtype: np.dtype[Any] | None, shape: list[int] | None) -> Array | Literal:
    """Reads the array of some `data`, its dtype and its shape, as `tensor_from_json` does; None: it has none.

    Raises:
        InvalidArgumentError: They do not fit.
    """
    flat, nesting = _flatten(data)
    paired = dtype in COMPLEX
    if paired:
        if (nesting[-1:] or [0]) != [2] and flat:
            raise InvalidArgumentError(f"a complex number is a pair [re, im]; the data has the shape {nesting}")
        nesting = nesting[:-1] if flat else nesting
    if shape is not None:
        size = math.prod(shape)
        if nesting != shape and nesting != [size] and not (size == 0 and not flat):
            raise InvalidArgumentError(
                f"shape {shape} needs {size} elements, nested so or flat; the data has the shape {nesting}"
            )
    array = _shaped(_numbers(flat, dtype), nesting if shape is None else shape)
    return array if dtype is not None or array.dtype is BOOL else untyped(array, _ALONE.get())


def tensor_from_numbers(data: Any, dtype: np.dtype[Any] | None, shape: list[int] | None) -> Array | Literal:
    """As `tensor_from_data`, of what `parse_numbers` has returned: NumPy need not be kept from words and booleans.

    Raises:
        InvalidArgumentError: They do not fit.
    """
    try:
        array = np.array(data)
    except ValueError:  # lists of different lengths
        return tensor_from_data(data, dtype, shape)
    if array.size and array.ndim <= MAX_DIMS and array.dtype in _OF_JSON and (shape is None or [*array.shape] == shape):
        array.flags.writeable = False
        if dtype is None:
            return untyped(array, _ALONE.get())
        if dtype is _FLOAT64 and array.dtype is dtype:
            return array
    return tensor_from_data(data, dtype, shape)


def _flatten(data: Any) -> tuple[list[Any], list[int]]:
    """The members of nested lists in order, and the shape of the nest."""
    level = [data]
    shape: list[int] = []
    while level and isinstance(level[0], list):
        lengths = {len(member) if isinstance(member, list) else -1 for member in level}
        if len(lengths) != 1:
            raise InvalidArgumentError("nested lists of a tensor must all have the same length at the same depth")
        if len(shape) > MAX_DIMS:
            raise InvalidArgumentError(f"the limit is {MAX_DIMS} axes")
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    return level, shape


def _numbers(flat: list[Any], dtype: np.dtype[Any] | None) -> Array:
    kinds = set(map(type, flat))
    if not kinds <= {bool, int, float, str}:
        others = sorted(_KINDS.get(kind, "something else") for kind in kinds - {bool, int, float, str})
        raise InvalidArgumentError(f"a tensor holds numbers; found {', '.join(others)}")
    if bool in kinds and (len(kinds) > 1 or dtype not in (None, BOOL)):
        raise InvalidArgumentError("only a bool tensor has true and false, and they cannot be mixed with numbers")
    if str in kinds:
        words = {member for member in flat if type(member) is str}
        if not words <= NOT_FINITE.keys():
            unknown = sorted(words - NOT_FINITE.keys())[:3]
            raise InvalidArgumentError(f"a tensor holds numbers and the words {', '.join(NOT_FINITE)}; found {unknown}")
        flat = [NOT_FINITE[member] if type(member) is str else member for member in flat]
    if dtype is None:
        return _untyped_numbers(kinds, flat)
    if dtype in INTEGER and kinds - {int}:
        raise InvalidArgumentError(f"dtype {dtype.name} holds integers; found a fraction, NaN or an infinity")
    if dtype is BOOL and kinds - {bool}:
        raise InvalidArgumentError("dtype bool holds true and false; found numbers")
    try:
        if dtype in INTEGER or dtype is BOOL:
            return np.array(flat, dtype)
        wide = np.array(flat, np.float64)
    except OverflowError:
        raise InvalidArgumentError(f"an integer that dtype {dtype.name} cannot hold") from None
    with np.errstate(over="ignore"):
        array = wide.view(np.complex128).astype(dtype) if dtype in COMPLEX else wide.astype(dtype)
    if not np.array_equal(np.isfinite(wide), np.isfinite(_parts(array))):
        raise InvalidArgumentError(f"a number too large for dtype {dtype.name}")
    return array


def _untyped_numbers(kinds: set[type], flat: list[Any]) -> Array:
    """Booleans as bool, integers as int64 or uint64, others as float64.

    Integers that neither holds are floating: JavaScript writes 1e20 with all its digits.
    """
    if kinds == {bool}:
        return np.array(flat, BOOL)
    for name in ("int64", "uint64") if kinds <= {int} else ():
        try:
            return np.array(flat, DTYPES[name])
        except OverflowError:
            continue
    try:
        return np.array(flat, DTYPES["float64"])
    except OverflowError:
        raise InvalidArgumentError("an integer that no dtype can hold") from None


def _parts(array: Array) -> Array:
    """A complex array's parts as reals, side by side; a real array as it is."""
    return array.view(array.real.dtype) if array.dtype in COMPLEX else array


def _pairs(array: Array) -> Array:
    """A complex array's numbers as pairs [re, im]."""
    return _parts(np.ascontiguousarray(array).reshape(*array.shape, 1))


def tensor_to_json(
    array: Array, *, elements: int | None = None, encoding: str | None = None, unwritten: bool = False
) -> dict[str, Any]:
    """Writes an array as JSON-able data, nested; floats in the shortest digits from which the same float is read.

    Args:
        array: Of any dtype in `teletape_engine.spec.DTYPES`.
        elements: At most this many: a larger array's first ones, flat, with "complete": false.
        encoding: None, or "base64" for the raw bytes.
        unwritten: Whether the data is the array itself, for `write_json`, and no list.
    """
    facts: dict[str, Any] = {"dtype": NAMES[array.dtype], "shape": list(array.shape)}
    if elements is not None and array.size > elements:
        facts, array = facts | {"complete": False}, array.reshape(-1)[:elements]
    elif encoding == "base64":
        data = _Base64(array)
        return facts | {"encoding": "base64", "data": data if unwritten else data.text().decode()}
    return facts | {"data": array if unwritten else _nested(array)}


@dataclass(frozen=True)
class _Base64:
    """An array whose data in JSON is the base64 of its bytes."""

    array: Array

    def text(self) -> bytes:
        """Returns the base64 of the raw little-endian row-major bytes."""
        return base64.b64encode(raw(self.array))


def write_json(value: Any) -> list[bytes]:
    """Writes JSON-able data as UTF-8, in parts; what `tensor_to_json` left unwritten, as it writes it itself.

    Raises:
        NotInJsonError: The unwritten arrays have more than `MAX_NUMBERS` together.
        ValueError: A number outside arrays is not finite.
    """
    parts, unwritten = json_around_arrays(value)
    _check_size(unwritten)
    between = [
        *(b'"%b"' % data.text() if isinstance(data, _Base64) else array_as_json(data) for data in unwritten),
        b"",
    ]
    return [part for pair in zip(parts, between, strict=True) for part in pair if part]


def json_around_arrays(value: Any) -> tuple[list[bytes], list[Array | _Base64]]:
    """Writes JSON-able data without what `tensor_to_json` left unwritten: the text around it, and that in its order.

    Raises:
        ValueError: A number outside arrays is not finite.
    """
    unwritten: list[Array | _Base64] = []
    mark = secrets.token_hex(16)

    def marked(data: Any) -> str:
        if not isinstance(data, np.ndarray | _Base64):
            raise TypeError(f"{type(data).__name__} is no JSON-able data")
        unwritten.append(data)
        return mark

    text = json.dumps(value, default=marked, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode().split(f'"{mark}"'.encode()), unwritten


def _check_size(unwritten: list[Array | _Base64]) -> None:
    """Refuses arrays of which the text takes too long."""
    total = sum(map(_count, unwritten))
    if total <= MAX_NUMBERS:
        return
    subject = "the tensor has" if len(unwritten) == 1 else f"the answer's {len(unwritten):,} tensors together have"
    raise NotInJsonError(
        f"{subject} {total:,} numbers, an answer in JSON has at most {MAX_NUMBERS:,} (a complex one counts as two, "
        f"{_BASE64} bytes in base64 as one, a small tensor as {_LEAST}): ask for safetensors (Accept: "
        "application/vnd.safetensors), of a batch for a frame (application/vnd.teletape.frame), or of a single tensor "
        "for raw bytes (application/octet-stream); what the request changed stays"
    )


def _count(data: Array | _Base64) -> int:
    if isinstance(data, _Base64):
        count = data.array.nbytes // _BASE64
    else:
        count = data.size * (2 if data.dtype in COMPLEX else 1)
    return max(count, _LEAST)


def array_as_json(array: Array) -> bytes:
    """Writes an array as nested lists of numbers: orjson prints a million in the time of 20,000 in Python."""
    import orjson  # the server's; a client writes no large arrays as JSON

    numbers = _pairs(array) if array.dtype in COMPLEX else np.ascontiguousarray(array)  # a list of one of a scalar
    if array.dtype == np.float16:
        # The table takes as long as the text of some thousand small tensors.
        is_small = array.size <= _SMALL
        numbers = _shortest(numbers) if is_small else _halves()[numbers.view(np.uint16)]
    elif array.dtype is BFLOAT16:
        numbers = numbers.astype(np.float32)
    text = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)
    if not array.ndim and array.dtype not in COMPLEX:
        text = text[1:-1]
    if numbers.dtype.kind != "f" or b"n" not in text:
        return text
    return _with_words(text, numbers[~np.isfinite(numbers)])


def _shortest(array: Array) -> Array:
    """The doubles with the fewest digits from which these floats are read."""
    return array.astype(np.str_).astype(np.float64)


def _with_words(text: bytes, numbers: Array) -> bytes:
    """Returns the text with the words of these numbers in place of orjson's null, by their last letter."""
    letters = np.frombuffer(text, np.uint8).copy()
    lasts = np.flatnonzero(letters == ord("n")) + 3
    letters[lasts] = np.where(np.isnan(numbers), ord("N"), np.where(numbers > 0, ord("P"), ord("M")))
    text = letters.tobytes()
    for letter, word in zip("NPM", NOT_FINITE, strict=True):
        text = text.replace(f"nul{letter}".encode(), json.dumps(word).encode())
    return text


@cache
def _halves() -> Array:
    """The double with the fewest digits from which each float16 is read, in the order of their bits."""
    return _shortest(np.arange(1 << 16, dtype=np.uint16).view(np.float16))


def _nested(array: Array) -> Any:
    dtype = array.dtype
    if dtype in COMPLEX:
        array = _pairs(array)
    elif dtype is BFLOAT16:
        array = array.astype(np.float32)
    if array.dtype.kind != "f":
        return array.tolist()
    finite = bool(np.isfinite(array).all())
    if array.dtype != np.float64:
        # A float32 printed as the double it equals has nine digits too many: 0.1 is 0.10000000149011612.
        array = _shortest(array)
    return array.tolist() if finite else worded(array.tolist())


def worded(value: Any) -> Any:
    """The numbers, nested or alone, with strings for those that JSON cannot write."""
    if isinstance(value, list):
        return [worded(member) for member in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
