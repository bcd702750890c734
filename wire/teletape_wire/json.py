"""The readable form: what a frame can say, in JSON, for people and for languages without msgpack.

A string is an id, {"id": 5} an integer id, a plain number a number, {"number": ...} one that JSON has no form for (NaN,
infinities, [re, im]), and a tensor {"dtype", "shape", "data"} or a bare nested list.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from teletape_engine.commands import COMMANDS, Batch, Command, schema
from teletape_engine.commands.results import Answer, Fetched, Kinds, Result, SlicesArrays, Told
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec
from teletape_wire.errors import MalformedJsonError
from teletape_wire.frame import Served
from teletape_wire.tensor_json import NOT_FINITE, tensor_from_json, tensor_to_json, worded
from teletape_wire.tensors import NAMES

JSON_TYPE: Final = "application/json"
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")  #: Half of a surrogate pair: alone it is no character.
PREVIEW: Final = 1000  #: Elements of a tensor that an answer shows unless all are asked for.


def parse_json(text: bytes | memoryview) -> Any:
    """The JSON value in UTF-8 bytes, strictly: NaN and infinities are strings.

    Raises:
        MalformedJsonError: It is none; the message tells line and column.
    """
    try:
        found = json.loads(bytes(text), parse_constant=_no_constant)
        if _HALF.search(text):
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except MalformedJsonError:
        raise
    except json.JSONDecodeError as error:
        raise MalformedJsonError(f"no valid JSON: {error}") from None
    except RecursionError:
        raise MalformedJsonError("no valid JSON here: it is nested too deep") from None
    except UnicodeEncodeError:
        raise MalformedJsonError("no valid JSON: half of a surrogate pair, which is no character") from None
    except ValueError as error:  # not UTF-8, or a number of more digits than Python reads
        raise MalformedJsonError(f"no valid JSON: {error}"[:300]) from None


def _no_constant(word: str) -> Any:
    raise MalformedJsonError(f'no valid JSON: {word} is written as a string, "{word}"')


# ----------------------------------------------------------------------------------------------------------- commands
def id_from_json(given: Any) -> Any:
    """Returns the id in {"id": integer}, and everything else as it is."""
    if isinstance(given, dict) and given.keys() == {"id"} and type(given["id"]) is int:
        return given["id"]
    return given


def _number_from(given: Any) -> Any:
    """The number in {"number": ...}."""
    if isinstance(given, str) and given in NOT_FINITE:
        return NOT_FINITE[given]
    if isinstance(given, list) and len(given) == 2 and not any(isinstance(part, list | bool) for part in given):
        return complex(*(float(_number_from(part)) for part in given))
    if isinstance(given, bool | int | float):
        return given
    raise BadCommandError(
        f'{{"number": ...}} holds a number, "NaN", "Infinity", "-Infinity" or [re, im]; found {given!r:.60}'
    )


def input_from_json(given: Any) -> Any:
    """Returns an id, a `Literal` or an array.

    Raises:
        BadCommandError: The value is none of them.
        MalformedJsonError: A tensor that cannot be read.
    """
    kind = type(given)
    if kind is str:
        return given
    if kind in (bool, int, float):
        return Literal(given)
    if kind is dict:
        if given.keys() == {"id"}:
            return id_from_json(given)
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


def attributes_from_json(given: Any) -> Any:
    """Returns an op's attributes with lists as tuples; what is no object as it is."""
    return {name: _attr_from(value) for name, value in given.items()} if isinstance(given, dict) else given


def step_from_json(given: Any) -> Any:
    """Returns the command of a function's step; `do` is op by default.

    Raises:
        BadCommandError: The step is no command, or a field of it is wrong.
    """
    return _command_from({"do": "op"} | given if isinstance(given, dict) else given)


def _input_to(value: Any) -> Any:
    if isinstance(value, Literal):
        return _number_to(value.array)
    if isinstance(value, np.ndarray):
        return tensor_to_json(value)
    return {"id": value} if isinstance(value, int) else value


def _number_to(number: Any) -> Any:
    if isinstance(number, complex):
        return {"number": [worded(number.real), worded(number.imag)]}
    return number if math.isfinite(number) else {"number": worded(number)}


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
    "Id": (id_from_json, _same),
    "FunctionId": (id_from_json, _same),
    "tuple[FunctionId, ...]": (_each(id_from_json), list),
    "Input": (input_from_json, _input_to),
    "Input | None": (lambda given: None if given is None else input_from_json(given), _input_to),
    "Tensor | Literal": (input_from_json, _input_to),
    "Tensor | Literal | None": (input_from_json, _input_to),
    "Mapping[str, Any]": (attributes_from_json, _attrs_to),
    "tuple[Id, ...]": (_each(id_from_json), list),
    "tuple[Id | None, ...]": (_each(id_from_json), list),
    "tuple[Input, ...]": (_each(input_from_json), _every(_input_to)),
    "tuple[Input | None, ...]": (_each(input_from_json), _every(_input_to)),
    "tuple[Input | None, ...] | None": (_each(input_from_json), _every(_input_to)),
    "tuple[str, ...]": (_same, list),
    "tuple[bool, ...]": (_same, list),
    "tuple[str, ...] | None": (_same, list),
    "tuple[Step, ...]": (_each(step_from_json), _every(lambda step: _command_to(step))),
}
_FIELDS: Final = {
    verb: {f.name: (_FORMS.get(str(f.type), (_same, _same)), f) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def _command_from(given: Any) -> Command:
    if not isinstance(given, dict) or not isinstance(given.get("do"), str):
        raise BadCommandError(f'a command is an object with its name under "do", found {given!r:.60}')
    verb = given["do"]
    schema.fields(verb)
    forms = _FIELDS[verb]
    return schema.make(
        verb,
        {name: forms[name][0][0](value) if name in forms else value for name, value in given.items() if name != "do"},
    )


def _command_to(command: Command) -> dict[str, Any]:
    out: dict[str, Any] = {"do": command.verb}
    for name, ((_, write), declared) in _FIELDS[command.verb].items():
        value = getattr(command, name)
        default = {} if declared.default_factory is not dataclasses.MISSING else declared.default
        if value is None or (
            default is not dataclasses.MISSING and value.__class__ is not np.ndarray and value == default
        ):
            continue
        out[name] = write(value)
    return out


def batch_from_json(given: Any) -> Batch:
    """The batch in {"commands": [{"do": ...}, ...], "release": [ids]}.

    A sequenced one has "client", "seq" and "nonce" (32 hexadecimal digits) too.

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
    ids: list[Any] = [id_from_json(one) for one in release] if isinstance(release, list) else [None]
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
def answer_to_json(
    answer: Answer, served: Served | None = None, *, full: bool, encoding: str | None = None
) -> dict[str, Any]:
    """The answer as JSON-able data.

    Args:
        answer: What the batch gave.
        served: What the server says beside it; its time in words (`timestamp`).
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
    if served is None:
        return out
    ends = None if served.expires_at is None else timestamp(served.expires_at)
    return out | {"expires_at": ends, "queue_seconds": served.queue_seconds, "compute_seconds": served.compute_seconds}


def _result_to(result: Result, elements: int | None, encoding: str | None) -> dict[str, Any]:
    if isinstance(result, Kinds):
        return {"command": result.index, "kinds": list(result.kinds)}
    if isinstance(result, Fetched):
        return {"command": result.index, "id": result.id, "value": _fetched_to(result, elements, encoding)}
    if isinstance(result, Told):
        return {"command": result.index, "told": result.facts}
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


def timestamp(seconds: float) -> str:
    """A time as RFC 3339 in UTC, to the millisecond.

    Args:
        seconds: Unix time.
    """
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
