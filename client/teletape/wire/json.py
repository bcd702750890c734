"""The readable form: what a frame can say, in JSON, for people and for languages without msgpack.

A string is an id, {"id": 5} an integer id, a plain number a number, {"number": ...} one that JSON has no form for (NaN,
infinities, [re, im]), and a tensor {"dtype", "shape", "data"} or a bare nested list.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from teletape.wire.errors import MalformedJsonError
from teletape.wire.frame import Served
from teletape.wire.tensors import MAX_DIMS, NAMES, Array, raw
from teletape_engine import commands
from teletape_engine.commands import COMMANDS, Batch, Call, Command
from teletape_engine.errors import BadCommandError, InvalidArgumentError
from teletape_engine.graph import Literal
from teletape_engine.session import Answer, Fetched, Kinds, Result, SlicesArrays
from teletape_engine.spec import BFLOAT16, BOOL, COMPLEX, DTYPES, INTEGER, Spec, dtype_of

JSON_TYPE: Final = "application/json"
PREVIEW: Final = 1000  #: Elements of a tensor that an answer shows unless all are asked for.
_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def parse_json(text: bytes | memoryview) -> Any:
    """The JSON value in UTF-8 bytes, strictly: NaN and infinities are strings.

    Raises:
        MalformedJsonError: It is none; the message tells line and column.
    """
    try:
        return json.loads(bytes(text), parse_constant=_no_constant)
    except MalformedJsonError:
        raise
    except json.JSONDecodeError as error:
        raise MalformedJsonError(f"no valid JSON: {error}") from None
    except RecursionError:
        raise MalformedJsonError("no valid JSON here: it is nested too deep") from None
    except ValueError as error:  # not UTF-8, or a number of more digits than Python reads
        raise MalformedJsonError(f"no valid JSON: {error}"[:300]) from None


def _no_constant(word: str) -> Any:
    raise MalformedJsonError(f'no valid JSON: {word} is written as a string, "{word}"')


# ------------------------------------------------------------------------------------------------------------ tensors
def tensor_from_json(given: Any) -> Array:
    """The array in {"dtype", "shape", "data"}, or in a bare number or nested list.

    `data` is nested or flat; "NaN", "Infinity" and "-Infinity" stand for what JSON has no numbers for; a complex number
    is a pair [re, im]; with "encoding": "base64" it is the raw little-endian row-major bytes. Without `dtype` booleans
    give bool, integers int32 (int64 where one is larger), other numbers float32. Without `shape` the nesting decides.

    Raises:
        MalformedJsonError: No tensor; the message tells what does not fit.
    """
    if not isinstance(given, dict):
        return _from_data(given, None, None)
    unknown = given.keys() - {"dtype", "shape", "data", "encoding"}
    if unknown or "data" not in given:
        raise MalformedJsonError(f"a tensor is {{dtype, shape, data}}, with encoding if data is base64; found {[*given]}")
    try:
        dtype = dtype_of(given["dtype"]) if given.get("dtype") is not None else None
    except InvalidArgumentError as error:
        raise MalformedJsonError(error.message) from None
    shape = given.get("shape")
    if shape is not None:
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise MalformedJsonError(f"a shape is a list of lengths, none negative; found {shape!r:.60}")
        if len(shape) > MAX_DIMS:
            raise MalformedJsonError(f"{len(shape)} axes, at most {MAX_DIMS} are taken")
    encoding = given.get("encoding")
    if encoding is None:
        return _from_data(given["data"], dtype, shape)
    if encoding != "base64" or dtype is None or shape is None or not isinstance(given["data"], str):
        raise MalformedJsonError('the one encoding is "base64": it needs dtype, shape, and data as a string')
    try:
        data = base64.b64decode(given["data"], validate=True)
    except binascii.Error as error:
        raise MalformedJsonError(f"data is no valid base64: {error}") from None
    needed = math.prod(shape) * dtype.itemsize
    if len(data) != needed:
        raise MalformedJsonError(f"{dtype.name}{shape} takes {needed} bytes, the base64 holds {len(data)}")
    if dtype is BOOL and data.strip(b"\0\1"):
        raise MalformedJsonError("dtype bool has the bytes 0 and 1 alone")
    return _shaped(np.frombuffer(data, np.uint8).view(dtype), shape)


def _shaped(flat: Array, shape: Any) -> Array:
    try:
        array = flat.reshape(shape)
    except ValueError:  # axes beside one of length 0, too long for NumPy to count
        raise MalformedJsonError(f"no array can have the shape {shape}") from None
    array.flags.writeable = False
    return array


def _from_data(data: Any, dtype: np.dtype[Any] | None, shape: list[int] | None) -> Array:
    flat, found = _flatten(data)
    paired = dtype in COMPLEX
    if paired:
        if (found[-1:] or [0]) != [2] and flat:
            raise MalformedJsonError(f"a complex number is a pair [re, im]; the data has the shape {found}")
        found = found[:-1] if flat else found
    if shape is not None:
        size = math.prod(shape)
        if found != shape and found != [size] and not (size == 0 and not flat):
            raise MalformedJsonError(f"shape {shape} needs {size} elements, nested so or flat; the data has the shape {found}")
    return _shaped(_numbers(flat, dtype), found if shape is None else shape)


def _flatten(data: Any) -> tuple[list[Any], list[int]]:
    """The members of nested lists in order, and the shape of the nest."""
    level, shape = [data], []
    while level and isinstance(level[0], list):
        lengths = {len(one) if isinstance(one, list) else -1 for one in level}
        if len(lengths) != 1:
            raise MalformedJsonError("nested lists of a tensor must all have the same length at the same depth")
        if len(shape) > MAX_DIMS:
            raise MalformedJsonError(f"more than {MAX_DIMS} axes are not taken")
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    return level, shape


def _numbers(flat: list[Any], dtype: np.dtype[Any] | None) -> Array:
    kinds = set(map(type, flat))
    if not kinds <= {bool, int, float, str}:
        raise MalformedJsonError(
            f"a tensor holds numbers; found {', '.join(sorted(kind.__name__ for kind in kinds - {bool, int, float}))}"
        )
    if bool in kinds and (len(kinds) > 1 or dtype not in (None, BOOL)):
        raise MalformedJsonError("true and false are a bool tensor's alone, and cannot be mixed with numbers")
    if str in kinds:
        words = {one for one in flat if type(one) is str}
        if not words <= _WORDS.keys():
            raise MalformedJsonError(
                f'a tensor holds numbers, "NaN", "Infinity" or "-Infinity"; found {sorted(words - _WORDS.keys())[:3]}'
            )
        flat = [_WORDS[one] if type(one) is str else one for one in flat]
    if dtype is None:
        dtype = _by_content(kinds, flat)
    if dtype in INTEGER and kinds - {int}:
        raise MalformedJsonError(f"dtype {dtype.name} holds integers; found a fraction, NaN or an infinity")
    if dtype is BOOL and kinds - {bool}:
        raise MalformedJsonError("dtype bool holds true and false; found numbers")
    try:
        if dtype in INTEGER or dtype is BOOL:
            return np.array(flat, dtype)
        wide = np.array(flat, np.float64)
    except OverflowError:
        raise MalformedJsonError(f"an integer that dtype {dtype.name} cannot hold") from None
    with np.errstate(over="ignore"):
        array = wide.view(np.complex128).astype(dtype) if dtype in COMPLEX else wide.astype(dtype)
    if not np.array_equal(np.isfinite(wide), np.isfinite(_parts(array))):
        raise MalformedJsonError(f"a number too large for dtype {dtype.name}")
    return array


def _by_content(kinds: set[type], flat: list[Any]) -> np.dtype[Any]:
    if kinds == {bool}:
        return BOOL
    if kinds == {int}:
        return DTYPES["int32" if -(1 << 31) <= min(flat) and max(flat) < 1 << 31 else "int64"]
    return DTYPES["float32"]


def _parts(array: Array) -> Array:
    """A complex array's parts as reals, side by side; a real array as it is."""
    return array.view(array.real.dtype) if array.dtype in COMPLEX else array


def tensor_to_json(array: Array, *, elements: int | None = None, encoding: str | None = None) -> dict[str, Any]:
    """The array as JSON-able data, nested; floats in the shortest digits that give the same float back.

    Args:
        array: Of any dtype in `teletape_engine.spec.DTYPES`.
        elements: Show at most so many: a larger array's first ones, flat, with "complete": false.
        encoding: None, or "base64" for the raw bytes.
    """
    facts = {"dtype": NAMES[array.dtype], "shape": list(array.shape)}
    if elements is not None and array.size > elements:
        return facts | {"complete": False, "data": _nested(array.reshape(-1)[:elements])}
    if encoding == "base64":
        return facts | {"encoding": "base64", "data": base64.b64encode(raw(array)).decode()}
    return facts | {"data": _nested(array)}


def _nested(array: Array) -> Any:
    dtype = array.dtype
    if dtype in COMPLEX:
        array = _parts(np.ascontiguousarray(array)[..., np.newaxis])
    elif dtype is BFLOAT16:
        array = array.astype(np.float32)
    if array.dtype.kind != "f":
        return array.tolist()
    finite = bool(np.isfinite(array).all())
    if array.dtype != np.float64:
        # A float32 printed as the double it equals has nine digits too many: 0.1 is 0.10000000149011612.
        array = array.astype(np.str_).astype(np.float64)
    return array.tolist() if finite else _worded(array.tolist())


def _worded(value: Any) -> Any:
    if isinstance(value, list):
        return [_worded(one) for one in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# ----------------------------------------------------------------------------------------------------------- commands
def _id_from(given: Any) -> Any:
    if isinstance(given, dict) and given.keys() == {"id"} and type(given["id"]) is int:
        return given["id"]
    return given


def _number_from(given: Any) -> Any:
    """The number in {"number": ...}."""
    if isinstance(given, str) and given in _WORDS:
        return _WORDS[given]
    if isinstance(given, list) and len(given) == 2 and not any(isinstance(part, list | bool) for part in given):
        return complex(*(float(_number_from(part)) for part in given))
    if isinstance(given, bool | int | float):
        return given
    raise BadCommandError(f'{{"number": ...}} holds a number, "NaN", "Infinity", "-Infinity" or [re, im]; found {given!r:.60}')


def _input_from(given: Any) -> Any:
    kind = type(given)
    if kind is str:
        return given
    if kind in (bool, int, float):
        return Literal(given)
    if kind is dict:
        if given.keys() == {"id"}:
            return _id_from(given)
        if given.keys() == {"number"}:
            return Literal(_number_from(given["number"]))
    if kind in (dict, list):
        return tensor_from_json(given)
    raise BadCommandError(f"an input is an id, a number or a tensor, found {given!r:.60}")


def _attr_from(given: Any) -> Any:
    if isinstance(given, list):
        return tuple([_attr_from(one) for one in given])
    if isinstance(given, dict) and given.keys() == {"number"}:
        return _number_from(given["number"])
    return given


def _each(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def every(given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return tuple([None if one is None else read(one) for one in given])

    return every


def _attrs_from(given: Any) -> Any:
    return {name: _attr_from(value) for name, value in given.items()} if isinstance(given, dict) else given


def _call_from(given: Any) -> Any:
    return _command_from({"do": "op"} | given if isinstance(given, dict) else given)


def _input_to(value: Any) -> Any:
    if isinstance(value, Literal):
        return _number_to(value.array)
    if isinstance(value, np.ndarray):
        return tensor_to_json(value)
    return {"id": value} if isinstance(value, int) else value


def _number_to(number: Any) -> Any:
    if isinstance(number, complex):
        return {"number": [_worded(number.real), _worded(number.imag)]}
    return number if math.isfinite(number) else {"number": _worded(number)}


def _attr_to(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_attr_to(one) for one in value]
    if isinstance(value, np.dtype):
        return value.name
    return _number_to(value) if isinstance(value, float | complex) else value


def _attrs_to(value: Mapping[str, Any]) -> Any:
    return {name: _attr_to(one) for name, one in value.items()}


def _every(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: [None if one is None else write(one) for one in value]


def _same(value: Any) -> Any:
    return value


#: How a field of that annotation is read from JSON, and written to it.
_FORMS: Final[dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "Id": (_id_from, _same),
    "Input": (_input_from, _input_to),
    "Tensor | Literal": (_input_from, _input_to),
    "Mapping[str, Any]": (_attrs_from, _attrs_to),
    "tuple[Id, ...]": (_each(_id_from), list),
    "tuple[Id | None, ...]": (_each(_id_from), list),
    "tuple[Input, ...]": (_each(_input_from), _every(_input_to)),
    "tuple[Input | None, ...] | None": (_each(_input_from), _every(_input_to)),
    "tuple[str, ...]": (_same, list),
    "tuple[str, ...] | None": (_same, list),
    "tuple[Call, ...]": (_each(_call_from), _every(lambda call: _command_to(call))),
}
_FIELDS: Final = {
    verb: {f.name: (_FORMS.get(str(f.type), (_same, _same)), f) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def _command_from(given: Any) -> Command:
    if not isinstance(given, dict) or not isinstance(given.get("do"), str):
        raise BadCommandError(f'a command is an object with its name under "do", found {given!r:.60}')
    verb = given["do"]
    commands.fields(verb)
    forms = _FIELDS[verb]
    return commands.make(
        verb, {name: forms[name][0][0](value) if name in forms else value for name, value in given.items() if name != "do"}
    )


def _command_to(command: Command) -> dict[str, Any]:
    out: dict[str, Any] = {"do": command.verb}
    for name, ((_, write), declared) in _FIELDS[command.verb].items():
        value = getattr(command, name)
        default = {} if declared.default_factory is not dataclasses.MISSING else declared.default
        if value is None or (default is not dataclasses.MISSING and value == default):
            continue
        out[name] = write(value)
    return out


def batch_from_json(given: Any) -> Batch:
    """The batch in {"commands": [{"do": ...}, ...], "release": [...]}; "client", "seq", "nonce" (32 hex digits) if sequenced.

    Raises:
        MalformedJsonError: No batch, or a tensor in it that is none.
        BadCommandError: A command with a field missing, unknown or of the wrong kind; the message tells which.
    """
    if not isinstance(given, dict) or not isinstance(given.get("commands"), list):
        raise MalformedJsonError('a batch is an object with a list under "commands"')
    unknown = given.keys() - {"commands", "release", "client", "seq", "nonce"}
    if unknown:
        raise MalformedJsonError(
            f"a batch has commands, release, client, seq and nonce; found also {', '.join(sorted(unknown))}"
        )
    made = []
    for at, one in enumerate(given["commands"]):
        try:
            made.append(_command_from(one))
        except BadCommandError as error:
            raise BadCommandError(f"command {at}: {error.message}", command=at) from None
        except MalformedJsonError as error:
            raise MalformedJsonError(f"command {at}: {error.message}", command=at) from None
    release = given.get("release", [])
    ids = [_id_from(one) for one in release] if isinstance(release, list) else [None]
    if not all((type(one) is int and one >= 0) or (type(one) is str and one) for one in ids):
        raise MalformedJsonError('"release" is a list of ids')
    client, seq = given.get("client", 0), given.get("seq", 0)
    if not all(type(n) is int and 0 <= n < 1 << 64 for n in (client, seq)):
        raise MalformedJsonError('"client" and "seq" are integers from 0 up')
    return Batch(tuple(made), tuple(ids), client, seq, _nonce(given.get("nonce", "")))


def _nonce(given: Any) -> bytes:
    try:
        nonce = bytes.fromhex(given)
    except (TypeError, ValueError):
        nonce = b"?"
    if len(nonce) not in (0, 16):
        raise MalformedJsonError('"nonce" is 32 hexadecimal digits')
    return nonce


def batch_to_json(batch: Batch) -> dict[str, Any]:
    """The batch as JSON-able data that `batch_from_json` reads back."""
    out: dict[str, Any] = {"commands": [_command_to(one) for one in batch.commands]}
    if batch.releases:
        out["release"] = list(batch.releases)
    if batch.client or batch.seq or batch.nonce:
        out |= {"client": batch.client, "seq": batch.seq, "nonce": batch.nonce.hex()}
    return out


# ------------------------------------------------------------------------------------------------------------ answers
def answer_to_json(answer: Answer, served: Served | None = None, *, full: bool, encoding: str | None = None) -> dict[str, Any]:
    """The answer as JSON-able data.

    Args:
        answer: What the batch gave.
        served: What the server says beside it; its time is given as Unix seconds.
        full: All elements of every tensor; else the first `PREVIEW` of a larger one.
        encoding: None, or "base64" for whole tensors.
    """
    failure = answer.failure
    out: dict[str, Any] = {
        "results": [_result_to(one, None if full else PREVIEW, encoding) for one in answer.results],
        "failure": None,
        "bytes_in_use": answer.bytes_in_use,
    }
    if failure is not None:
        facts = {f.name: getattr(failure, f.name) for f in dataclasses.fields(failure)}
        versions = [{"id": name, "version": version} for name, version in failure.versions.items()]
        out["failure"] = {"command": facts.pop("index")} | facts | {"versions": versions}
    return out if served is None else out | served._asdict()


def _result_to(result: Result, elements: int | None, encoding: str | None) -> dict[str, Any]:
    if isinstance(result, Kinds):
        return {"command": result.index, "kinds": list(result.kinds)}
    if isinstance(result, Fetched):
        return {"command": result.index, "id": result.id, "value": _fetched_to(result, elements, encoding)}
    return {"command": result.index, "made": [_spec_to(spec) for spec in result.specs]}


def _fetched_to(result: Fetched, elements: int | None, encoding: str | None) -> dict[str, Any]:
    array = result.array
    if isinstance(array, SlicesArrays):
        return _spec_to(array.dense) | {
            "values": tensor_to_json(array.values, elements=elements, encoding=encoding),
            "indices": tensor_to_json(array.indices, elements=elements, encoding=encoding),
        }
    if result.complete:
        return tensor_to_json(array, elements=elements, encoding=encoding)
    head = tensor_to_json(array if elements is None else array[:elements])
    return _spec_to(result.spec) | {"complete": False, "data": head["data"]}


def _spec_to(spec: Spec) -> dict[str, Any]:
    return {"dtype": NAMES[spec.dtype], "shape": list(spec.shape)}
