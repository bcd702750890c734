"""The JSON form of batches and answers, for people and for languages without msgpack.

A string is an id, {"id": 5} an integer id, and a tensor {"dtype", "shape", "data"}. A plain number or nested list has
no dtype: it takes that of what it meets. {"number": ...} is a number of a program that has dtypes for its numbers, and
one that JSON cannot write (NaN, infinities, [re, im]).
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from teletape_engine.commands import Batch, Command, FieldKind, OnFailure, schema
from teletape_engine.commands.fields import Field
from teletape_engine.commands.results import Answer, Facts, Failure, Fetched, Kinds, Result, SlicesArrays
from teletape_engine.errors import BadCommandError, InvalidArgumentError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec
from teletape_wire.frame import Served
from teletape_wire.tensor_json import NOT_FINITE, tensor_from_json, tensor_to_json, worded
from teletape_wire.tensors import NAMES

JSON_TYPE: Final = "application/json"
PREVIEW: Final = 1000  #: Elements of a tensor that an answer shows, unless the caller wants all.


# ----------------------------------------------------------------------------------------------------------- commands
def id_from_json(value: Any) -> Any:
    """Returns the id in {"id": integer}, and everything else as it is.

    Raises:
        BadCommandError: A bare integer, which is a number.
    """
    if isinstance(value, dict) and value.keys() == {"id"} and type(value["id"]) is int:
        return value["id"]
    if type(value) is int:
        raise BadCommandError(f'an id is a name, or {{"id": {value}}} for an integer id; found the number {value}')
    return value


def _number_from(value: Any) -> Any:
    """The number in {"number": ...}."""
    if isinstance(value, str) and value in NOT_FINITE:
        return NOT_FINITE[value]
    if isinstance(value, list) and len(value) == 2 and not any(isinstance(part, list | bool) for part in value):
        return complex(*(float(_number_from(part)) for part in value))
    if isinstance(value, bool | int | float):
        return value
    raise BadCommandError(
        f'{{"number": ...}} holds a number, "NaN", "Infinity", "-Infinity" or [re, im]; found {value!r:.60}'
    )


def input_from_json(value: Any) -> Any:
    """Returns an id, a `Literal` or an array.

    Raises:
        BadCommandError: The value is none of them.
        InvalidArgumentError: A tensor that cannot be read.
    """
    kind = type(value)
    if kind is str:
        return value
    if kind is bool:
        return Literal(value)
    if kind is dict:
        if value.keys() == {"id"}:
            return id_from_json(value)
        if value.keys() == {"number"}:
            return Literal(_number_from(value["number"]))
    if kind in (dict, list, int, float):
        return tensor_from_json(value)
    if isinstance(value, np.ndarray | Literal):  # it came outside of the JSON, or was read before
        return value
    raise BadCommandError(f"an input is an id, a number or a tensor; found {json.dumps(value, default=str):.60}")


def _attribute_from(value: Any) -> Any:
    if isinstance(value, list):
        return tuple([_attribute_from(member) for member in value])
    if isinstance(value, dict) and value.keys() == {"number"}:
        return _number_from(value["number"])
    return value


def attributes_from_json(value: Any) -> Any:
    """Returns an op's attributes with lists as tuples; a value that is not an object as it is."""
    return {name: _attribute_from(member) for name, member in value.items()} if isinstance(value, dict) else value


def step_from_json(value: Any) -> Any:
    """Returns the command of a function's step; `do` is op by default.

    Raises:
        BadCommandError: The step is not a command, or a field of it is wrong.
    """
    return _command_from({"do": "op"} | value if isinstance(value, dict) else value)


def _input_to(value: Any) -> Any:
    if isinstance(value, Literal):
        return _literal_to(value)
    if isinstance(value, np.ndarray):
        return tensor_to_json(value)
    return _id_to(value)


def _literal_to(literal: Literal) -> Any:
    if not literal.spec.untyped:
        number = _number_to(literal.array)
        return number if isinstance(number, bool | dict) else {"number": number}
    if literal.spec.shape:
        nested = literal.array.tolist()
        return worded(nested) if literal.spec.kind is float else nested
    return literal.array if math.isfinite(literal.array) else {"data": worded(literal.array)}


def _id_to(value: Any) -> Any:
    return {"id": value} if isinstance(value, int) else value


def _number_to(number: Any) -> Any:
    if isinstance(number, complex):
        return {"number": [worded(number.real), worded(number.imag)]}
    return number if math.isfinite(number) else {"number": worded(number)}


def _attribute_to(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_attribute_to(member) for member in value]
    if isinstance(value, np.dtype):
        return value.name
    return _number_to(value) if isinstance(value, float | complex) else value


def _attributes_to(value: Mapping[str, Any]) -> Any:
    return {name: _attribute_to(member) for name, member in value.items()}


def _step_to(value: Command) -> Any:
    return _command_to(value)


def _same(value: Any) -> Any:
    return value


#: How a value of each kind is read from JSON, and written to it; other kinds are the same in both.
_FORMS: Final[dict[FieldKind, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    FieldKind.ID: (id_from_json, _id_to),
    FieldKind.FUNCTION_ID: (id_from_json, _id_to),
    FieldKind.INPUT: (input_from_json, _input_to),
    FieldKind.TENSOR: (input_from_json, _input_to),
    FieldKind.ATTRIBUTES: (attributes_from_json, _attributes_to),
    FieldKind.STEP: (step_from_json, _step_to),
}


def _field_from(field: Field, value: Any) -> Any:
    """A field's JSON value as `schema.make` takes it."""
    read, _ = _FORMS.get(field.kind, (_same, _same))
    if not field.is_list:
        return None if value is None and field.nullable else read(value)
    if not isinstance(value, list):
        return value
    return tuple([None if member is None else read(member) for member in value])


def _field_to(field: Field, value: Any) -> Any:
    _, write = _FORMS.get(field.kind, (_same, _same))
    if not field.is_list:
        return write(value)
    return [None if member is None else write(member) for member in value]


def _command_from(value: Any) -> Command:
    if not isinstance(value, dict) or not isinstance(value.get("do"), str):
        raise BadCommandError(
            f'a command is an object with its name under "do", found {json.dumps(value, default=str):.60}'
        )
    verb = "constant" if value["do"] == "tensor" else value["do"]  # as REST calls what it creates
    schema.fields(verb, also=("tensor",))
    fields = schema.FIELDS[verb]
    members = {name: member for name, member in value.items() if name != "do"}
    return schema.make(
        verb,
        {name: _field_from(fields[name], member) if name in fields else member for name, member in members.items()},
    )


def _command_to(command: Command) -> dict[str, Any]:
    """The command as JSON-able data; fields with their default values are left out."""
    out: dict[str, Any] = {"do": command.verb}
    for name, field in schema.FIELDS[command.verb].items():
        value = getattr(command, name)
        if value is None or (not field.required and value.__class__ is not np.ndarray and value == field.default):
            continue
        out[name] = _field_to(field, value)
    return out


def batch_from_json(value: Any) -> Batch:
    """Reads the batch in {"commands": [{"do": ...}, ...], "release": [ids], "temporaries": [ids], "on_failure": ...}.

    A client's batch also has "client", "seq" and "nonce" (32 hexadecimal digits). Only "commands" is required.

    Raises:
        BadCommandError: It is not a batch, or a field of a command is missing, unknown or of the wrong kind; the
            message names the command.
        InvalidArgumentError: A tensor in it is not a tensor.
    """
    if not isinstance(value, dict) or not isinstance(value.get("commands"), list):
        raise BadCommandError('a batch is an object with a list under "commands"')
    unknown = value.keys() - _BATCH_MEMBERS
    if unknown:
        raise BadCommandError(f"a batch has {', '.join(_BATCH_MEMBERS)}; found also {', '.join(sorted(unknown))}")
    commands = []
    for position, member in enumerate(value["commands"]):
        try:
            commands.append(_command_from(member))
        except InvalidArgumentError as error:
            raise type(error)(f"command {position}: {error.message}", command=position) from None
    client, seq = value.get("client", 0), value.get("seq", 0)
    if not all(type(number) is int and 0 <= number < 1 << 64 for number in (client, seq)):
        raise BadCommandError('"client" and "seq" are integers from 0 up')
    on_failure = value.get("on_failure", OnFailure.POISON.value)
    if on_failure not in list(OnFailure):
        raise BadCommandError(f'"on_failure" is {", ".join(OnFailure)}; found {on_failure!r:.60}')
    replace = value.get("replace", False)
    if type(replace) is not bool:
        raise BadCommandError(f'"replace" is true or false; found {replace!r:.60}')
    return Batch(
        tuple(commands),
        _ids(value, "release"),
        client,
        seq,
        _nonce(value.get("nonce", "")),
        _ids(value, "temporaries"),
        OnFailure(on_failure),
        replace,
    )


#: The members of a batch in JSON.
_BATCH_MEMBERS: Final = dict.fromkeys(
    ("commands", "release", "client", "seq", "nonce", "temporaries", "on_failure", "replace")
).keys()


def _ids(batch: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    members = batch.get(name, [])
    try:
        ids = tuple([id_from_json(member) for member in members]) if isinstance(members, list) else (None,)
    except BadCommandError as error:
        raise BadCommandError(f'"{name}" is a list of ids: {error.message}') from None
    if not all(map(schema.is_id, ids)):
        raise BadCommandError(f'"{name}" is a list of ids')
    return ids


def _nonce(text: Any) -> bytes:
    try:
        nonce = bytes.fromhex(text)
    except (TypeError, ValueError):
        nonce = b"?"
    if len(nonce) not in (0, 16):
        raise BadCommandError('"nonce" is 32 hexadecimal digits')
    return nonce


def batch_to_json(batch: Batch) -> dict[str, Any]:
    """Writes the batch as JSON-able data that `batch_from_json` reads back."""
    out: dict[str, Any] = {"commands": [_command_to(command) for command in batch.commands]}
    if batch.releases:
        out["release"] = [_id_to(id) for id in batch.releases]
    if batch.client or batch.seq or batch.nonce:
        out |= {"client": batch.client, "seq": batch.seq, "nonce": batch.nonce.hex()}
    if batch.temporaries:
        out["temporaries"] = [_id_to(id) for id in batch.temporaries]
    if batch.on_failure is not OnFailure.POISON:
        out["on_failure"] = batch.on_failure.value
    if batch.replace:
        out["replace"] = True
    return out


# ------------------------------------------------------------------------------------------------------------ answers
def answer_to_json(
    answer: Answer, served: Served | None = None, *, full: bool, encoding: str | None = None, unwritten: bool = False
) -> dict[str, Any]:
    """Writes an answer as JSON-able data.

    Args:
        answer: The answer.
        served: What the server says about it; its time is written as text (`timestamp`).
        full: All elements of every tensor; else the first `PREVIEW` of a larger one.
        encoding: None, or "base64" for whole tensors.
        unwritten: Whether the data of tensors are arrays, for `write_json`.
    """
    options = {"encoding": encoding, "unwritten": unwritten}
    out: dict[str, Any] = {
        "results": [_result_to(result, None if full else PREVIEW, options) for result in answer.results],
        "failure": None if answer.failure is None else _failure_to(answer.failure),
        "bytes_in_use": answer.bytes_in_use,
    }
    if answer.further_failures:
        out["further_failures"] = [_failure_to(failure) for failure in answer.further_failures]
    if served is None:
        return out
    ends = None if served.expires_at is None else timestamp(served.expires_at)
    return out | {"expires_at": ends, "queue_seconds": served.queue_seconds, "compute_seconds": served.compute_seconds}


def _failure_to(failure: Failure) -> dict[str, Any]:
    facts = {field.name: getattr(failure, field.name) for field in dataclasses.fields(failure)}
    return {"command": facts.pop("index")} | facts


def _result_to(result: Result, elements: int | None, options: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(result, Kinds):
        body = {"command": result.index, "kinds": list(result.kinds)}
        return body | {"why": list(result.why)} if result.why else body
    if isinstance(result, Fetched):
        return {"command": result.index, "id": result.id, "value": _fetched_to(result, elements, options)}
    if isinstance(result, Facts):
        return {"command": result.index, "facts": result.facts}
    return {"command": result.index, "specs": [_spec_to(spec) for spec in result.specs]}


def _fetched_to(result: Fetched, elements: int | None, options: Mapping[str, Any]) -> dict[str, Any]:
    array = result.array
    if isinstance(array, SlicesArrays):
        return _spec_to(array.dense) | {
            "values": tensor_to_json(array.values, elements=elements, **options),
            "indices": tensor_to_json(array.indices, elements=elements, **options),
        }
    if result.complete:
        return tensor_to_json(array, elements=elements, **options)
    head = tensor_to_json(array if elements is None else array[:elements], unwritten=options["unwritten"])
    return _spec_to(result.spec) | {"complete": False, "data": head["data"]}


def _spec_to(spec: Spec) -> dict[str, Any]:
    return {"dtype": NAMES[spec.dtype], "shape": list(spec.shape)}


def timestamp(seconds: float) -> str:
    """Writes a time as RFC 3339 in UTC, to the millisecond.

    Args:
        seconds: Unix time.
    """
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
